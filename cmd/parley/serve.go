package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mdp/qrterminal/v3"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"parley/config"
	"parley/gateway/chat"
)

func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.serve(c.Context()) },
	}
}

func (a *app) serve(ctx context.Context) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	return a.daemon(ctx, cfg, func(ctx context.Context, p *parts) {
		fmt.Fprintf(a.stdout, "parley %s\n", versionText())
		if p.page != nil {
			fmt.Fprintf(a.stdout, "Web chat: %s\n", p.pageURL())
		}
		a.printClaimLinks(ctx, p)
	})
}

// pageURL opens the web chat and signs the browser in.
func (p *parts) pageURL() string { return p.server.URL() + p.page.StartPath() }

// daemon runs until ctx ends: server, store, agent, gateway, adapters, each after what
// it stands on, and down again in reverse. The server is first, so that a taken port is
// known at once and that /readyz says what is waited for. announce is called once
// everything can be reached; it may use the network and is waited for.
func (a *app) daemon(ctx context.Context, cfg *config.Config, announce func(context.Context, *parts)) error {
	log, err := newLogger(cfg.Log, a.stderr, cfg.Redact)
	if err != nil {
		return err
	}
	for _, line := range cfg.Warnings() {
		log.Warn(line)
	}
	models, err := loadModels(cfg, log)
	if err != nil {
		return err
	}
	p := &parts{models: models, metrics: newMetrics()}
	if err := p.listen(ctx, cfg, log); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	var serverErr error
	var server sync.WaitGroup
	server.Go(func() {
		serverErr = p.server.Run(serving)
		stop()
	})
	closeServer := func() {
		stopServing()
		server.Wait()
	}
	err = a.behind(ctx, p, wiring{config: cfg, log: log, models: models}, announce, closeServer)
	closeServer()
	return errors.Join(err, serverErr)
}

// behind opens the database, which may take as long as it likes, and runs what stands
// behind the server. closeServer is called before the database is closed: the server
// outlives the gateway, so that the end of running turns can still be seen.
func (a *app) behind(ctx context.Context, p *parts, w wiring, announce func(context.Context, *parts), closeServer func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var err error
	if w.db, err = openDatabase(ctx, w.config, w.log); err != nil {
		return stopped(ctx, err)
	}
	defer w.db.Close()
	defer closeServer()
	if err := p.wireDaemon(ctx, w); err != nil {
		return stopped(ctx, err)
	}
	w.log.Info("parley starts", zap.String("version", versionText()), zap.String("configuration", sourceOf(w.config)), zap.String("model", string(w.config.Model)))
	var announcing sync.WaitGroup
	announcing.Go(func() { announce(ctx, p) })
	err = stopped(ctx, p.answer(ctx, a.hurry))
	stop()
	announcing.Wait()
	return err
}

// stopped turns an error that is only due to a signal into an orderly end.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// printClaimLinks prints, for each account without an owner, the link by which the
// owner claims it.
func (a *app) printClaimLinks(ctx context.Context, p *parts) {
	err := p.gateway.ClaimLinks(ctx, func(account chat.AccountID, link string) {
		fmt.Fprintf(a.stdout, "\n%s has no owner yet. Open this link within an hour to own it:\n  %s\n", account, link)
		printQR(a.stdout, link)
	})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(a.stderr, "No claim link could be made: %v\n", err)
	}
}

// printQR draws a link for a telephone to scan.
func printQR(w io.Writer, link string) {
	qrterminal.GenerateWithConfig(link, qrterminal.Config{Level: qrterminal.L, Writer: w, HalfBlocks: true, QuietZone: 2,
		BlackChar: qrterminal.BLACK_BLACK, WhiteChar: qrterminal.WHITE_WHITE, BlackWhiteChar: qrterminal.BLACK_WHITE, WhiteBlackChar: qrterminal.WHITE_BLACK})
}
