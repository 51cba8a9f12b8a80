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

// daemon runs until ctx ends: store, agent, gateway, adapters, each after what it
// stands on, and down again in reverse. announce is called once HTTP can be
// reached; it may use the network and is waited for.
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
	db, err := openDatabase(ctx, cfg, log)
	if err != nil {
		return stopped(ctx, err)
	}
	defer db.Close()
	p, err := wireDaemon(ctx, wiring{config: cfg, db: db, log: log, models: models})
	if err != nil {
		return stopped(ctx, err)
	}
	if err := p.server.Listen(ctx); err != nil {
		return fmt.Errorf("%w; set http.listen to another address", err)
	}
	log.Info("parley starts", zap.String("version", versionText()), zap.String("configuration", sourceOf(cfg)), zap.String("model", string(cfg.Model)))
	return a.run(ctx, p, announce)
}

// run runs the server and the gateway. The server outlives the gateway, so that the
// end of running turns can still be seen.
func (a *app) run(ctx context.Context, p *parts, announce func(context.Context, *parts)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	var serverErr error
	var server, announcing sync.WaitGroup
	server.Go(func() {
		serverErr = p.server.Run(serving)
		stop()
	})
	announcing.Go(func() { announce(ctx, p) })
	err := stopped(ctx, p.answer(ctx, a.hurry))
	stop()
	announcing.Wait()
	stopServing()
	server.Wait()
	return errors.Join(err, serverErr)
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
