package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"parley/agentcore"
	"parley/agentcore/tool"
	"parley/agentcore/tool/hook"
	"parley/agentcore/tool/mcp"
	shell "parley/agentcore/tool/terminal"
	fetch "parley/agentcore/tool/web"
)

// terminalTools are those that run commands. A container without a shell, or without
// the sandbox that is asked for, still has an agent.
func (w wiring) terminalTools(p *parts, space tool.Workspace) []tool.Tool {
	self, err := os.Executable()
	if err != nil {
		w.log.Warn("the sandbox is weaker: this program cannot start itself", zap.Error(err))
	}
	t, err := shell.New(w.config.Tools.Terminal, shell.Deps{Workspace: space, Private: private(w.config), Launcher: self})
	if err != nil {
		w.log.Warn("the tool terminal is off", zap.Error(err))
		return nil
	}
	p.shell = t
	return t.Tools()
}

// webTools are web_fetch and, where a provider for it is configured, web_search.
func (w wiring) webTools(enabled func(string) bool) ([]tool.Tool, error) {
	var tools []tool.Tool
	if enabled("web_fetch") {
		chain := w.models.chain("")
		if aux := w.config.Auxiliary.WebExtract; aux.Model != "" {
			chain = aux
		}
		t, err := fetch.NewFetch(w.config.Tools.Web, fetch.Deps{Extract: agentcore.Extractor{
			Model: w.models.set.Chain(chain), ID: chain.Model, Window: w.models.Window(chain), Book: w.book(),
		}})
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	if off := w.config.Tools.WebSearch.Off(); off != "" {
		w.log.Debug("the tool web_search is off", zap.String("why", off))
	} else if enabled("web_search") {
		s, err := fetch.NewSearch(w.config.Tools.WebSearch)
		if err != nil {
			return nil, err
		}
		t, err := s.Tool()
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}

// policy is what every call of a tool passes.
func (w wiring) policy() (tool.Policy, error) {
	p := tool.Policy{Mode: tool.Verdict(w.config.Gateway.Approvals.Mode)}
	hooks, err := hook.New(w.config.Hooks, hook.Deps{Dir: hookFolder(w.config), Log: w.log})
	if hooks != nil {
		p.Hook = hooks
	}
	return p, err
}

// mcpServers are the servers of mcp_servers; nothing runs yet.
func (w wiring) mcpServers() (*mcp.Servers, error) {
	return mcp.New(w.config.MCPServers, mcp.Deps{Log: w.log, Version: versionText(), Memory: filepath.Join(w.config.DataDir, "mcp-tools.json")})
}

// moreTools are the servers' tools, those of tools.enabled if it names any tool at all.
func (w wiring) moreTools(servers *mcp.Servers) func() []tool.Tool {
	if len(w.config.MCPServers) == 0 {
		return nil
	}
	enabled := w.config.Tools.Enabled
	return func() []tool.Tool {
		all := servers.Tools()
		if len(enabled) == 0 {
			return all
		}
		return slices.DeleteFunc(slices.Clone(all), func(t tool.Tool) bool {
			return !slices.ContainsFunc(enabled, func(name string) bool { return mcp.Includes(name, t) })
		})
	}
}

// examineTools tries what tools stand on outside of the program.
func (w wiring) examineTools(ctx context.Context) []finding {
	var findings []finding
	if cfg := w.config.Tools.WebSearch; cfg.Off() == "" {
		f := finding{Check: "web_search", OK: true, What: cfg.Provider + " answers"}
		s, err := fetch.NewSearch(cfg)
		if err == nil {
			err = s.Probe(ctx)
		}
		if err != nil {
			f = finding{Check: f.Check, What: err.Error(), Fix: "check api_key and base_url of tools.web_search, and the network"}
		}
		findings = append(findings, f)
	}
	for _, name := range slices.Sorted(maps.Keys(w.config.MCPServers)) {
		cfg := w.config.MCPServers[name]
		began := time.Now()
		n, err := mcp.Probe(ctx, name, cfg)
		f := finding{Check: "mcp " + name, OK: true, What: fmt.Sprintf("it has %d tools, told in %s", n, time.Since(began).Round(time.Millisecond))}
		if err != nil {
			fix := fmt.Sprintf("try the command of mcp_servers.%s by hand: it must speak MCP on its standard input and output", name)
			if cfg.URL != "" {
				fix = fmt.Sprintf("check url and headers of mcp_servers.%s, and that the server runs", name)
			}
			f = finding{Check: f.Check, What: strings.TrimSpace(err.Error()), Fix: fix}
		}
		findings = append(findings, f)
	}
	return findings
}
