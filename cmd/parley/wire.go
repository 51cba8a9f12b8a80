package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"parley/adapters/discord"
	"parley/adapters/slack"
	"parley/adapters/telegram"
	"parley/adapters/web"
	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/memory"
	"parley/agentcore/spending"
	"parley/agentcore/tool"
	"parley/agentcore/tool/file"
	"parley/agentcore/tool/mcp"
	shell "parley/agentcore/tool/terminal"
	"parley/config"
	"parley/config/secret"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/gateway/httpserver"
	"parley/store/record"
)

// parts is everything that answers messages, made and not yet running.
type parts struct {
	gateway *gateway.Gateway
	agent   *agentcore.Agent
	recall  *memory.Recaller
	servers *mcp.Servers
	shell   *shell.Terminal // nil if there is no terminal
	models  *models
	metrics *metrics
	// server is nil for chats without HTTP.
	server *httpserver.Server
	// page is the web chat, nil if it is off.
	page *web.Adapter
	// db is nil until everything behind the server is made.
	db atomic.Pointer[database]
}

// wiring is what parts are made from.
type wiring struct {
	config *config.Config
	db     *database
	log    *zap.Logger
	models *models
}

// platforms makes the adapters of all accounts that have a token. THE list of
// platforms; the chats that are built in are added where they are used.
func (w wiring) platforms() ([]chat.Adapter, error) {
	var adapters []chat.Adapter
	for _, c := range w.config.ActiveTelegram() {
		t, err := telegram.New(c, telegram.Deps{Log: w.log, PublicURL: w.config.HTTP.PublicURL})
		if err != nil {
			return nil, fmt.Errorf("platforms.telegram.%s: %w", c.Name, err)
		}
		adapters = append(adapters, t)
	}
	for _, c := range w.config.ActiveSlack() {
		s, err := slack.New(c, slack.Deps{
			Log: w.log, Commands: gateway.CommandInfos(), PublicURL: w.config.HTTP.PublicURL, NoStreams: w.config.Gateway.Streaming != gateway.StreamAuto,
		})
		if err != nil {
			return nil, fmt.Errorf("platforms.slack.%s: %w", c.Name, err)
		}
		adapters = append(adapters, s)
	}
	for _, c := range w.config.ActiveDiscord() {
		deps := discord.Deps{Log: w.log}
		for _, p := range slices.Concat(w.config.Gateway.Access.Admins, w.config.Gateway.Access.Allow) {
			deps.People = append(deps.People, chat.Person(p))
		}
		if w.db != nil {
			deps.Heard = w.db
		}
		d, err := discord.New(c, deps)
		if err != nil {
			return nil, fmt.Errorf("platforms.discord.%s: %w", c.Name, err)
		}
		adapters = append(adapters, d)
	}
	return adapters, nil
}

// wireDaemon makes everything that `serve` and `demo` run, behind the server that
// listens already.
func (p *parts) wireDaemon(ctx context.Context, w wiring) error {
	adapters, err := w.platforms()
	if err != nil {
		return err
	}
	if w.config.Platforms.Web.Enabled {
		token, err := pageToken(w.config)
		if err != nil {
			return err
		}
		p.page, err = web.New(w.config.Platforms.Web, web.Deps{
			Log: w.log, Timeline: w.db.Timeline(), Directory: w.db.Directory(), Token: token, Guard: httpserver.NewGuard(w.config.HTTP).Wrap,
		})
		if err != nil {
			return err
		}
		if err := w.own(ctx, web.Person); err != nil {
			return err
		}
		adapters = append(adapters, p.page)
	}
	if err := p.wire(w, adapters); err != nil {
		return err
	}
	routes := map[string]http.Handler{}
	for _, a := range adapters {
		if h, ok := a.(chat.Handlers); ok {
			for pattern, handler := range h.Routes() {
				routes[pattern] = handler
			}
		}
	}
	maps.Copy(routes, p.gateway.Routes())
	p.server.Mount(routes)
	p.db.Store(w.db)
	return nil
}

// listen makes the server and binds its address, before there is a database.
func (p *parts) listen(ctx context.Context, c *config.Config, log *zap.Logger) (err error) {
	p.server, err = httpserver.New(c.HTTP, httpserver.Deps{Log: log, Metrics: p.metrics.registry, Ready: p.problems})
	if err != nil {
		return err
	}
	if err := p.server.Listen(ctx); err != nil {
		return fmt.Errorf("%w; set http.listen to another address", err)
	}
	return nil
}

// wire makes the agent and the gateway between the given adapters.
func (p *parts) wire(w wiring, adapters []chat.Adapter) error {
	var err error
	p.recall = newRecaller(w)
	if p.servers, err = w.mcpServers(); err != nil {
		return err
	}
	if p.agent, err = newAgent(w, p); err != nil {
		return err
	}
	space, err := tool.NewWorkspace(workspace(w.config))
	if err != nil {
		return err
	}
	p.gateway, err = gateway.New(w.config.Gateway, gateway.Deps{
		Store: w.db, Agent: p.agent, Adapters: adapters, Metrics: p.metrics, Log: w.log,
		Model: w.config.Model, CheckModel: w.models.Check, Facts: w.models.Facts,
		CompressAt: w.config.Compression.GatewayThreshold, MaxTurns: w.config.Agent.MaxTurns, Now: time.Now,
		Outbox: filepath.Join(w.config.DataDir, "outbox"), Workspace: space, Transcriber: w.transcriber(), Titler: w.titler(),
	})
	return err
}

// titler names sessions, if a model for it is configured: it is one more call for each
// session.
func (w wiring) titler() gateway.Titler {
	chain := w.config.Auxiliary.Title
	if chain.Model == "" {
		return nil
	}
	return agentcore.Titler{Model: w.models.set.Chain(chain), ID: chain.Model, Book: w.book()}
}

// own makes whoever sits at a built-in chat an owner: they hold its token, or the
// machine itself.
func (w wiring) own(ctx context.Context, p chat.Person) error {
	return w.db.SetMember(ctx, record.Member{ID: p, Name: "you", Role: record.RoleOwner})
}

// toolNames are the tools there are, the agent's own ones included. The names of
// `tools.enabled` are of these.
var toolNames = []string{
	"clarify", "current_time", "delegate_task", "memory", "schedule", "send_file", "session_search", "skill", "todo",
	"terminal",
	"edit_file", "list_files", "read_file", "search_files", "write_file",
	"web_fetch", "web_search",
}

// checkTools reports a name in tools.enabled that is none.
func checkTools(c *config.Config) error {
	for _, name := range c.Tools.Enabled {
		if !slices.Contains(toolNames, name) && !c.MCPServers.Names(name) {
			return c.Wrong(fmt.Errorf("tools.enabled: there is no tool %q; there are %s", name, strings.Join(toolNames, ", ")))
		}
	}
	return nil
}

// newAgent makes the agent. THE list of tools.
func newAgent(w wiring, p *parts) (*agentcore.Agent, error) {
	enabled := func(name string) bool {
		return len(w.config.Tools.Enabled) == 0 || slices.Contains(w.config.Tools.Enabled, name)
	}
	var tools []tool.Tool
	space, err := tool.NewWorkspace(workspace(w.config))
	if err != nil {
		return nil, err
	}
	if enabled("terminal") {
		tools = append(tools, w.terminalTools(p, space)...)
	}
	files, err := file.New(file.Deps{Workspace: space})
	if err != nil {
		return nil, err
	}
	tools = append(tools, slices.DeleteFunc(files, func(t tool.Tool) bool { return !enabled(t.Spec().Name) })...)
	pages, err := w.webTools(enabled)
	if err != nil {
		return nil, err
	}
	tools = append(tools, pages...)
	set, err := tool.NewSet(tools...)
	if err != nil {
		return nil, err
	}
	summaries := w.models.chain("")
	if aux := w.config.Auxiliary.Compression; aux.Model != "" {
		summaries = aux
	}
	compressor, err := engine.New(w.config.Compression, engine.Deps{
		Summarise: w.models.set.Chain(summaries), Model: summaries.Model, Window: w.models.Window(summaries), Book: w.book(),
	})
	if err != nil {
		return nil, err
	}
	for _, m := range []llm.ModelID{w.config.Agent.Routing.Fast, w.config.Agent.Routing.Smart} {
		if err := w.models.Check(m); m != "" && err != nil {
			w.log.Warn("agent.routing: the primary model answers in its place", zap.Error(err))
		}
	}
	notes, skills := w.instructions()
	policy, err := w.policy()
	if err != nil {
		return nil, err
	}
	deps := agentcore.Deps{
		Model: counted{w.models, p.metrics}, DefaultModel: w.config.Model, Facts: w.models.Facts, Engine: compressor, Tools: set, More: w.moreTools(p.servers),
		Policy: policy, Asker: agentcore.DenyAsker{},
		Book: w.book(), Recall: p.recall, Skills: skills, Context: notes,
		ApprovalTimeout: w.config.Gateway.Approvals.Timeout, ClarifyTimeout: w.config.Gateway.Clarify.Timeout,
		Redact: w.config.Redact, Log: w.log, Now: time.Now, Location: machineZone(),
	}
	deps.Sight = w.sight(space)
	if enabled("schedule") {
		deps.Schedules = w.db
	}
	if enabled("delegate_task") {
		deps.Delegation = w.config.Delegation
	}
	if enabled("memory") {
		deps.Notes = w.db
	}
	if enabled("session_search") {
		deps.Searcher = w.db
	}
	deps.SendFiles = enabled("send_file")
	if enabled("todo") {
		deps.Todos = w.db
	}
	return agentcore.New(w.config.Agent, deps)
}

// book keeps what models cost; everything that asks them has one.
func (w wiring) book() *spending.Book {
	return spending.New(w.config.Budgets, spending.Deps{
		Ledger: w.db, Price: func(m llm.ModelID) llm.Price { return w.models.Facts(m).Price }, Now: time.Now, Log: w.log,
	})
}

// problems are what keeps the daemon from being ready.
func (p *parts) problems(ctx context.Context) []httpserver.Problem {
	var problems []httpserver.Problem
	db := p.db.Load()
	if db == nil {
		return []httpserver.Problem{{Component: "database", Reason: "parley is starting and waits for it; the log says why"}}
	}
	if err := db.Ping(ctx); err != nil {
		problems = append(problems, httpserver.Problem{Component: "database", Reason: err.Error()})
	}
	if err := p.models.Ready(); err != nil {
		problems = append(problems, httpserver.Problem{Component: "model", Reason: err.Error()})
	}
	for _, g := range p.gateway.Problems() {
		problems = append(problems, httpserver.Problem(g))
	}
	return problems
}

// pageToken is the secret of the web chat's URL. It outlives a restart, so that the
// browser stays signed in: derived from the admin token, which all replicas have,
// else kept in the data folder, else, where nothing can be written, new each time.
func pageToken(c *config.Config) (secret.String, error) {
	if !c.HTTP.AdminToken.Empty() {
		sum := sha256.Sum256([]byte("web chat\x00" + c.HTTP.AdminToken.Reveal()))
		return secret.New(hex.EncodeToString(sum[:16])), nil
	}
	path := filepath.Join(c.DataDir, "web-token")
	if b, err := os.ReadFile(path); err == nil && len(b) >= 20 {
		return secret.New(strings.TrimSpace(string(b))), nil
	}
	token := rand.Text()
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return secret.New(token), nil
	}
	err := os.WriteFile(path, []byte(token+"\n"), 0o600)
	if err != nil && !errors.Is(err, os.ErrPermission) {
		return secret.String{}, fmt.Errorf("data_dir: %w", err)
	}
	return secret.New(token), nil
}
