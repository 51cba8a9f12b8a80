package main

import (
	"cmp"
	"context"
	"path/filepath"
	"sync"

	"go.uber.org/zap"

	"parley/agentcore"
	"parley/agentcore/llm"
	"parley/agentcore/memory"
	"parley/agentcore/prompt"
	"parley/agentcore/provider"
	"parley/agentcore/provider/embeddings"
	"parley/agentcore/provider/transcription"
	"parley/agentcore/tool"
	"parley/config"
	"parley/gateway"
	"parley/store"
)

// newRecaller makes what brings back the past. An embeddings model that cannot be
// asked is no reason not to start: words alone find most of it.
func newRecaller(w wiring) *memory.Recaller {
	deps := memory.Deps{Store: w.db, Book: w.book(), Log: w.log}
	model := w.config.Embeddings.Model
	if model == "" {
		return memory.NewRecaller(deps)
	}
	p, ok := endpoint(w.config, model)
	if !ok {
		w.log.Warn("embeddings are off: the provider has no key, or no such endpoint", zap.String("model", string(model)))
		return memory.NewRecaller(deps)
	}
	c, err := embeddings.New(embeddings.Config{BaseURL: p.BaseURL, APIKey: p.APIKey, Model: model})
	if err != nil {
		w.log.Warn("embeddings are off", zap.Error(err))
		return memory.NewRecaller(deps)
	}
	deps.Embedder, deps.Model = c, model
	return memory.NewRecaller(deps)
}

// endpoint is where a side model is asked that speaks OpenAI's API beside its chats; ok
// is false if its provider has none.
func endpoint(c *config.Config, model llm.ModelID) (p provider.Config, ok bool) {
	name, _ := model.Split()
	p = c.Providers[name]
	mode := provider.Resolve(name, p)
	return p, !p.Off(name) && mode != provider.Demo && mode != provider.AnthropicMessages
}

// transcriber writes voice notes down; nil if no model is named that can be asked.
func (w wiring) transcriber() gateway.Transcriber {
	model := w.config.Transcription.Model
	if model == "" {
		return nil
	}
	p, ok := endpoint(w.config, model)
	if !ok {
		w.log.Warn("transcription is off: the provider has no key, or no such endpoint", zap.String("model", string(model)))
		return nil
	}
	c, err := transcription.New(transcription.Config{BaseURL: p.BaseURL, APIKey: p.APIKey, Model: model})
	if err != nil {
		w.log.Warn("transcription is off", zap.Error(err))
		return nil
	}
	return c
}

// sight shows pictures to models, and has auxiliary.vision describe them for those that
// cannot see.
func (w wiring) sight(space tool.Workspace) agentcore.Sight {
	s := agentcore.Sight{Workspace: space, Book: w.book()}
	if aux := w.config.Auxiliary.Vision; aux.Model != "" {
		s.Model, s.ID = w.models.set.Chain(aux), aux.Model
	}
	return s
}

// workspace is the folder that commands run in.
func workspace(c *config.Config) string {
	return cmp.Or(c.Tools.Workspace, filepath.Join(c.DataDir, "workspace"))
}

// private are the files and folders that no command may touch: the configuration,
// all that parley keeps, and the folders of the other conversations.
func private(c *config.Config) []string {
	paths := []string{c.DataDir, workspace(c)}
	if c.Database.URL == "" {
		if server, err := store.PrivateDir(c.DataDir); err == nil {
			paths = append(paths, server) // for root it is elsewhere
		}
	}
	if c.File() != "" {
		paths = append(paths, c.File())
	}
	return paths
}

// hookFolder is where hooks run: beside the configuration, from which their paths are.
func hookFolder(c *config.Config) string {
	if c.File() == "" {
		return c.DataDir
	}
	return filepath.Dir(c.File())
}

// instructions are what the owner has written for the agent: the workspace's notes and
// the skills. What cannot be read is left out with a warning.
func (w wiring) instructions() (prompt.ContextFile, []prompt.Skill) {
	notes, err := prompt.ReadContextFile(workspace(w.config))
	if err != nil {
		w.log.Warn("the workspace's notes are left out", zap.Error(err))
	}
	skills, errs := prompt.ReadSkills(w.config.Skills.Dir)
	for _, err := range errs {
		w.log.Warn("a skill is left out", zap.Error(err))
	}
	return notes, skills
}

// answer runs the gateway, and what works behind it, until ctx ends.
func (p *parts) answer(ctx, hurry context.Context) error {
	behind, stop := context.WithCancel(context.WithoutCancel(ctx))
	var working sync.WaitGroup
	working.Go(func() { p.recall.Run(behind) })
	working.Go(func() { p.servers.Run(behind) })
	defer working.Wait()
	defer stop()
	if p.shell != nil {
		defer p.shell.Close()
	}
	return p.gateway.Run(ctx, hurry)
}
