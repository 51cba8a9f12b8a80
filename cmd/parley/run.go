package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"parley/config"
	"parley/store"
)

// The exit codes, on which service managers rely.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2
	exitConfig = 78 // EX_CONFIG: starting again does not help (CFG-009)
)

// process is what a command touches of the world around it.
type process struct {
	args           []string
	env            func(string) (string, bool)
	dir            string // the working folder; empty: the process's
	stdin          io.Reader
	stdout, stderr io.Writer
	interrupts     *interrupts // nil: Ctrl-C ends the program
}

// errReported ends a command that has said what is wrong already; errReportedConfig
// one whose configuration is wrong.
var (
	errReported       = errors.New("reported")
	errReportedConfig = errors.New("reported: the configuration is wrong")
)

// run executes the command line and returns the exit code. ctx ends at the first
// signal: commands wind up in order. hurry ends at the second: they stop at once.
func run(ctx, hurry context.Context, p process) int {
	a := &app{process: p, hurry: hurry}
	root := a.root()
	root.SetArgs(p.args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	command, err := root.ExecuteContextC(ctx)
	wrong, isConfig := errors.AsType[*config.Error](err)
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errReportedConfig):
		return exitConfig
	case isConfig:
		fmt.Fprintln(p.stderr, wrong)
		return exitConfig
	case !a.begun:
		fmt.Fprintf(p.stderr, "parley: %v\nSee %s --help.\n", err, command.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(p.stderr, "parley: %v\n", err)
	return exitFailed
}

// app is what the commands share.
type app struct {
	process
	hurry      context.Context
	configPath string
	// begun says that the command line was understood: errors from then on are not
	// of usage.
	begun bool
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:               "parley",
		Short:             "One LLM agent behind your chats",
		Long:              "parley puts one LLM agent behind Telegram, Slack, Discord and a web chat of its own.\n\nTry it with nothing set up:  parley demo",
		Args:              cobra.NoArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRun:  func(*cobra.Command, []string) { a.begun = true },
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.PersistentFlags().StringVar(&a.configPath, "config", "", "configuration `FILE` (default: $PARLEY_CONFIG, ./parley.yaml, ~/.parley/parley.yaml)")
	root.AddCommand(
		a.serveCommand(), a.demoCommand(), a.chatCommand(), a.doctorCommand(), a.configCommand(), a.migrateCommand(),
		a.sessionsCommand(), a.pairingCommand(), a.whyCommand(), a.versionCommand(),
	)
	return root
}

// loadConfig loads the configuration that the command line and the environment
// point to.
func (a *app) loadConfig() (*config.Config, error) {
	c, err := config.Load(config.Options{Path: a.configPath, Env: a.env, Dir: a.dir})
	if err != nil || c.Database.URL == "" {
		return c, err
	}
	if err := store.CheckURL(c.Database.URL); err != nil {
		return nil, c.Wrong(err)
	}
	return c, nil
}

// prepare loads the configuration for a command that looks at the database, and
// makes a logger that only speaks up when something is wrong.
func (a *app) prepare() (*config.Config, *zap.Logger, error) {
	c, err := a.loadConfig()
	if err != nil {
		return nil, nil, err
	}
	log, err := newLogger(config.LogConfig{Level: "warn", Format: c.Log.Format}, a.stderr, c.Redact)
	return c, log, err
}

// withDatabase opens the database for the time of f.
func (a *app) withDatabase(ctx context.Context, f func(*database) error) error {
	c, log, err := a.prepare()
	if err != nil {
		return err
	}
	db, err := openDatabase(ctx, c, log)
	if err != nil {
		return err
	}
	defer db.Close()
	return f(db)
}

// group makes a command that only has subcommands.
func group(use, short string, subcommands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(subcommands...)
	return c
}

// jsonFlag adds --json to a command.
func jsonFlag(c *cobra.Command, asJSON *bool) *cobra.Command {
	c.Flags().BoolVar(asJSON, "json", false, "print JSON")
	return c
}
