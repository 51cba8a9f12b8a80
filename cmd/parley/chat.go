package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"parley/adapters/terminal"
	"parley/config"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/store/record"
)

func (a *app) chatCommand() *cobra.Command {
	var resume bool
	c := &cobra.Command{
		Use:   "chat [--resume [SESSION]]",
		Short: "Talk to the agent in this terminal",
		Long: "Talk to the same agent in this terminal, in a new session or, with --resume, in the last one or the one named.\n" +
			"Lines that are piped in are answered one after another. Ctrl-C stops an answer, and ends the program when there is none.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && !resume {
				return fmt.Errorf("what is %q? A session is named with --resume SESSION", args[len(args)-1])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return a.chat(c.Context(), resume, strings.Join(args, ""))
		},
	}
	c.Flags().BoolVar(&resume, "resume", false, "go on with the last session, or the one named")
	return c
}

// chat runs a gateway whose only adapter is the terminal, until the input ends.
func (a *app) chat(ctx context.Context, resume bool, session string) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	// The screen belongs to the conversation: only what is wrong is logged.
	log, err := newLogger(config.LogConfig{Level: "warn", Format: cfg.Log.Format}, a.stderr, cfg.Redact)
	if err != nil {
		return err
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
	w := wiring{config: cfg, db: db, log: log, models: models}
	if err := w.own(ctx, terminal.Person); err != nil {
		return stopped(ctx, err)
	}
	first, err := opening(ctx, db, resume, session)
	if err != nil {
		return stopped(ctx, err)
	}
	return a.converse(ctx, w, first)
}

// opening is the command that chooses the session, typed before anything else. It
// fails if there is no such session, so that what was meant for it is not said in
// another one.
func opening(ctx context.Context, db *database, resume bool, session string) (string, error) {
	id, err := db.ConversationOf(ctx, chat.ConversationKey{Address: chat.Address{Account: terminal.Account, Chat: "main"}, Participant: terminal.Person})
	if err != nil {
		return "", err
	}
	var sessions []record.SessionSummary
	if id != "" {
		if sessions, err = db.Sessions(ctx, id, gateway.Resumable); err != nil {
			return "", err
		}
	}
	switch {
	case session != "":
		found, _, ok := gateway.FindSession(sessions, session)
		if !ok {
			return "", noSession(session)
		}
		_, err := db.Session(ctx, found)
		if errors.Is(err, record.ErrNotFound) {
			err = noSession(session)
		}
		return "/resume " + session + "\n", err
	case resume || len(sessions) == 0 || sessions[0].Messages == 0:
		return "", nil
	}
	return "/new\n", nil
}

func (a *app) converse(ctx context.Context, w wiring, first string) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	tty := isTerminal(a.stdin) && isTerminal(a.stdout)
	screen, err := terminal.New(terminal.Deps{
		Log: w.log, Timeline: w.db.Timeline(), In: io.MultiReader(strings.NewReader(first), a.stdin), Out: a.stdout,
		TTY: tty, Sequential: !isTerminal(a.stdin),
	})
	if err != nil {
		return err
	}
	defer a.interrupts.to(screen.Interrupt)()
	p := &parts{models: w.models, metrics: newMetrics()}
	if err := p.wire(w, []chat.Adapter{leaving{screen, leave}}); err != nil {
		return err
	}
	return stopped(ctx, p.answer(ctx, a.hurry))
}

// leaving is the terminal whose end ends the program.
type leaving struct {
	*terminal.Adapter
	leave func()
}

// Run implements chat.Adapter.
func (l leaving) Run(ctx context.Context, sink chat.Sink) error {
	defer l.leave()
	return l.Adapter.Run(ctx, sink)
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
