// Package mcp is the tools of MCP servers (modelcontextprotocol.io), which are run as
// processes or called over HTTP. It guarantees:
//
//   - a server holds up nothing but the calls to itself: it is started beside everything
//     else, and started again with growing waits when it is lost;
//   - the tools that are offered change only when a server's list does. One that is
//     away keeps its tools, calls to it fail; what it had is remembered over restarts.
//     So what a session has declared stays the same bytes in the model's cache;
//   - a server's process gets a clean environment and a group of its own, which is gone
//     when Run returns, and at the latest when parley is killed where the kernel can;
//   - what a server says (descriptions, schemas, results, errors) is bounded, and reaches
//     the model as a quotation or as untrusted text; its secrets are in no error or log.
package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/agentcore/tool"
)

// Deps are what the servers are run with.
type Deps struct {
	Log *zap.Logger
	// Version is parley's, which the servers are told.
	Version string
	// Memory is a file that keeps the tools over restarts; empty: none does.
	Memory string
}

// Servers are all servers of the configuration.
type Servers struct {
	deps    Deps
	servers []*server // sorted by name

	mu    sync.Mutex
	known map[string]remembered
	tools []tool.Tool // sorted by name; replaced when a list has changed
}

// remembered is what a server had when it was last asked.
type remembered struct {
	// Source tells whether it is still the same server.
	Source string      `json:"source"`
	Tools  []*sdk.Tool `json:"tools"`
}

// New makes the servers; nothing runs before Run.
func New(cfg Config, deps Deps) (*Servers, error) {
	if err := errors.Join(cfg.Validate()...); err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = zap.NewNop()
	}
	s := &Servers{deps: deps, known: map[string]remembered{}}
	for _, name := range slices.Sorted(maps.Keys(cfg)) {
		one := newServer(name, cfg[name], deps)
		one.listed = s.listed
		s.servers = append(s.servers, one)
	}
	s.recall()
	s.tools = s.build()
	return s, nil
}

// Run keeps the servers running until ctx ends, and returns when their processes are
// gone.
func (s *Servers) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, one := range s.servers {
		running.Go(func() { one.run(ctx) })
	}
	running.Wait()
}

// Tools are the tools that are known now. The same list comes back until one has
// changed.
func (s *Servers) Tools() []tool.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tools
}

// Probe starts or reaches one server and counts its tools, for doctor.
func Probe(ctx context.Context, name string, cfg ServerConfig) (tools int, err error) {
	s := newServer(name, cfg, Deps{Log: zap.NewNop()})
	l, err := s.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer l.close()
	list, err := s.list(ctx, l.session)
	for _, want := range cfg.Tools {
		if err == nil && !slices.ContainsFunc(list, func(t *sdk.Tool) bool { return t.Name == want }) {
			err = fmt.Errorf("it has no tool %q, which its tools name", want)
		}
	}
	return len(list), err
}

// listed takes in what a server has.
func (s *Servers) listed(one *server, tools []*sdk.Tool) {
	slices.SortFunc(tools, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	s.mu.Lock()
	defer s.mu.Unlock()
	before, _ := json.Marshal(s.known[one.name].Tools)
	after, err := json.Marshal(tools)
	if err == nil && bytes.Equal(before, after) {
		return
	}
	s.known[one.name] = remembered{Source: source(one.cfg), Tools: tools}
	s.tools = s.build()
	s.remember()
}

// build makes the tools of what is known.
func (s *Servers) build() []tool.Tool {
	var all []tool.Tool
	taken := map[string]bool{}
	for _, one := range s.servers {
		for _, t := range s.known[one.name].Tools {
			r := newRemote(one, t)
			if taken[r.spec.Name] {
				s.deps.Log.Warn("two tools of an MCP server have one name; the second is left out", zap.String("mcp_server", one.name), zap.String("tool", r.spec.Name))
				continue
			}
			taken[r.spec.Name] = true
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b tool.Tool) int { return strings.Compare(a.Spec().Name, b.Spec().Name) })
	return all
}

// source tells servers apart without telling their secrets.
func source(cfg ServerConfig) string {
	sum := sha256.Sum256([]byte(strings.Join(slices.Concat([]string{cfg.Command, cfg.URL}, cfg.Args, []string{"\x00"}, cfg.Tools), "\x00")))
	return hex.EncodeToString(sum[:8])
}

// recall reads what was remembered; without it the tools are there once their server
// is.
func (s *Servers) recall() {
	b, err := os.ReadFile(s.deps.Memory)
	var known map[string]remembered
	if err != nil || json.Unmarshal(b, &known) != nil {
		return
	}
	for _, one := range s.servers {
		if k := known[one.name]; k.Source == source(one.cfg) {
			k.Tools = slices.DeleteFunc(k.Tools, func(t *sdk.Tool) bool { return t == nil })
			s.known[one.name] = k
		}
	}
}

func (s *Servers) remember() {
	if s.deps.Memory == "" {
		return
	}
	b, err := json.Marshal(s.known)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.deps.Memory), 0o700)
	}
	temp := s.deps.Memory + "." + rand.Text()
	if err == nil {
		err = os.WriteFile(temp, b, 0o600)
	}
	if err == nil {
		err = os.Rename(temp, s.deps.Memory)
	}
	if err != nil {
		_ = os.Remove(temp)
		s.deps.Log.Warn("the tools of MCP servers are not remembered", zap.Error(err))
	}
}

// remote is one tool of a server.
type remote struct {
	server *server
	name   string // the server's own
	spec   tool.Spec
	// destroys is what the server says of it.
	destroys bool
}

func newRemote(s *server, t *sdk.Tool) *remote {
	r := &remote{server: s, name: t.Name}
	r.spec.ToolSpec = llm.ToolSpec{Name: toolName(s.name, t.Name), Description: describe(s.name, t), Schema: normalise(t.InputSchema)}
	r.spec.Needs = tool.Network | tool.Write
	if a := t.Annotations; a != nil {
		if a.ReadOnlyHint {
			r.spec.Needs, r.spec.ReadOnly, r.spec.Parallel = tool.Network, true, true
		}
		r.destroys = !a.ReadOnlyHint && a.DestructiveHint != nil && *a.DestructiveHint
	}
	return r
}

// Spec implements tool.Tool.
func (r *remote) Spec() tool.Spec { return r.spec }

// Run implements tool.Tool.
func (r *remote) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	return r.server.call(ctx, r.name, c.Arguments), nil
}

// Judge implements tool.Judged. What a server says of a tool can only make it ask
// more: it is the owner's configuration that trusts it at all.
func (r *remote) Judge(c tool.Call) tool.Judgement {
	j := tool.Judgement{Needs: r.spec.Needs, Pattern: r.spec.Name + " " + string(c.Arguments)}
	switch {
	case r.server.cfg.Ask:
		j.Danger, j.Reason = tool.Dangerous, "each call of the MCP server "+r.server.name+" is to be approved"
	case r.destroys:
		j.Danger, j.Reason = tool.Dangerous, "the MCP server "+r.server.name+" says that it destroys something"
	}
	return j
}

// Includes says whether a name in tools.enabled stands for a tool: by its own name, or
// as mcp_SERVER for all of a server.
func Includes(enabled string, t tool.Tool) bool {
	r, ok := t.(*remote)
	return ok && (enabled == r.spec.Name || enabled == "mcp_"+r.server.name)
}

// Names says whether a name in tools.enabled is one of these servers: all its tools
// (mcp_SERVER), or one of them.
func (c Config) Names(enabled string) bool {
	for name := range c {
		if enabled == "mcp_"+name || strings.HasPrefix(enabled, "mcp_"+name+"_") {
			return true
		}
	}
	return false
}
