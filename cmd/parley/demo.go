package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"parley/agentcore/provider"
	"parley/config"
	"parley/store"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Try everything offline: private database, web chat, demo model",
		Long:  "Run the daemon with nothing set up: a private database in a folder of its own, the web chat, and a model that is only a demo. It ignores the configuration.",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.demo(c.Context()) },
	}
}

func (a *app) demo(ctx context.Context) error {
	cfg := config.Default()
	home, ok := a.env("HOME")
	if !ok {
		home = a.dir
	}
	cfg.DataDir = filepath.Join(home, ".parley", "demo")
	cfg.Log.Level = "warn"
	cfg.Model = "demo/demo"
	cfg.Providers = map[string]provider.Config{"demo": {}}
	cfg.HTTP.Listen = freeAddress(ctx, cfg.HTTP.Listen)
	where := cfg.DataDir
	if server, err := store.PrivateDir(cfg.DataDir); err == nil && !strings.HasPrefix(server, where) {
		where += " and " + server
	}
	return a.daemon(ctx, cfg, func(_ context.Context, p *parts) {
		fmt.Fprintf(a.stdout, `This is a demo: the model is a script that needs no key, and what you write stays on this machine.
Its data is in %s; delete that to begin anew. Stop it with Ctrl-C.

Open in your browser:  %s
Write help there, and the demo model tells what it can show.

`, where, p.pageURL())
	})
}

// freeAddress is the wanted address, or one with a free port if that one is taken.
func freeAddress(ctx context.Context, wanted string) string {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", wanted)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return wanted
}
