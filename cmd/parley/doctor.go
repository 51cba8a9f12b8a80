package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/provider"
	shell "parley/agentcore/tool/terminal"
	"parley/config"
	"parley/gateway/chat"
	"parley/store"
)

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	return jsonFlag(&cobra.Command{
		Use:   "doctor",
		Short: "Try configuration, database, tokens and model, and say what to do",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.doctor(c.Context(), asJSON) },
	}, &asJSON)
}

// finding is one thing that was tried.
type finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	What  string `json:"what"`
	Fix   string `json:"fix,omitempty"`
}

// doctor tries everything that it can and fails if something is wrong. It changes
// nothing but for one test turn per model, which costs a few tokens.
func (a *app) doctor(ctx context.Context, asJSON bool) error {
	findings := a.examine(ctx)
	well, configured := true, true
	for _, f := range findings {
		well = well && f.OK
		configured = configured && (f.OK || f.Check != checkConfiguration)
	}
	if asJSON {
		if err := printJSON(a.stdout, struct {
			OK       bool      `json:"ok"`
			Findings []finding `json:"findings"`
		}{well, findings}); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			sign := "ok  "
			if !f.OK {
				sign = "FAIL"
			}
			fmt.Fprintf(a.stdout, "%s  %-14s %s\n", sign, f.Check, plain(f.What))
			if f.Fix != "" {
				fmt.Fprintf(a.stdout, "      %-14s → %s\n", "", plain(f.Fix))
			}
		}
	}
	switch {
	case !configured:
		return errReportedConfig
	case !well:
		return errReported
	}
	return nil
}

// checkConfiguration is the check without which nothing else is tried.
const checkConfiguration = "configuration"

func (a *app) examine(ctx context.Context) []finding {
	cfg, err := a.loadConfig()
	if err == nil {
		err = checkTools(cfg)
	}
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		var findings []finding
		for _, p := range wrong.Problems {
			one := &config.Error{File: wrong.File, Problems: []config.Problem{p}}
			findings = append(findings, finding{Check: checkConfiguration, What: one.Error(), Fix: "correct the line; nothing else was tried"})
		}
		return findings
	} else if err != nil {
		return []finding{{Check: checkConfiguration, What: err.Error()}}
	}
	findings := []finding{{Check: checkConfiguration, OK: true, What: sourceOf(cfg)}}
	for _, w := range cfg.Warnings() {
		findings = append(findings, finding{Check: checkConfiguration, OK: true, What: "note: " + w})
	}
	log, err := newLogger(config.LogConfig{Level: "error", Format: "console"}, a.stderr, cfg.Redact)
	if err != nil {
		return append(findings, finding{Check: "log", What: err.Error()})
	}
	w := wiring{config: cfg, log: log}
	findings = append(findings, w.examineDatabase(ctx))
	findings = append(findings, w.examineModels(ctx)...)
	findings = append(findings, examineSandbox(cfg))
	findings = append(findings, w.examineAccounts(ctx)...)
	findings = append(findings, w.examineTools(ctx)...)
	return append(findings, examineHTTP(ctx, cfg))
}

func (w wiring) examineDatabase(ctx context.Context) finding {
	const check = "database"
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	url, stop, err := databaseURL(ctx, w.config, w.log)
	if err != nil {
		fix := "see the log in data_dir, or set database.url to a server of your own"
		if errors.Is(err, store.ErrNoPostgres) {
			fix = "install PostgreSQL's programs (Debian: apt-get install postgresql), or set database.url"
		}
		return finding{Check: check, What: err.Error(), Fix: fix}
	}
	current, target, err := store.Versions(ctx, url)
	if stopErr := stop(); err == nil {
		err = stopErr
	}
	shown := config.RedactURL(url)
	switch {
	case err != nil:
		return finding{Check: check, What: fmt.Sprintf("%s: %v", shown, err), Fix: "start the server, or correct database.url"}
	case current > target:
		return finding{Check: check, What: fmt.Sprintf("its schema has version %d, this program knows %d", current, target), Fix: "use the newer parley that migrated it"}
	case current < target:
		return finding{Check: check, OK: true, What: fmt.Sprintf("%s answers; its schema goes from version %d to %d at the next start", shown, current, target)}
	}
	return finding{Check: check, OK: true, What: fmt.Sprintf("%s answers; schema version %d", shown, current)}
}

// examineModels runs a real turn with each model of the chain.
func (w wiring) examineModels(ctx context.Context) []finding {
	const check = "model"
	m, err := loadModels(w.config, w.log)
	if err != nil {
		return []finding{{Check: check, What: err.Error(), Fix: "set the key that is missing, or name another model"}}
	}
	w.models = m
	var findings []finding
	for _, id := range append([]llm.ModelID{w.config.Model}, w.config.FallbackProviders...) {
		if err := m.Check(id); err != nil {
			findings = append(findings, finding{Check: check, What: fmt.Sprintf("%s: %v", id, err), Fix: "set its key, or take it out of the chain"})
			continue
		}
		began := time.Now()
		if err := w.testTurn(ctx, id); err != nil {
			findings = append(findings, finding{Check: check, What: string(id) + ": " + strings.TrimPrefix(err.Error(), string(id)+": "), Fix: words(err)})
			continue
		}
		findings = append(findings, finding{Check: check, OK: true, What: fmt.Sprintf("%s answered a test turn in %s", id, time.Since(began).Round(time.Millisecond))})
	}
	return findings
}

// testTurn asks one model, without fallback, the way a chat would: with the system
// prompt and the tools.
func (w wiring) testTurn(ctx context.Context, id llm.ModelID) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var last error
	asked := observed{w.models.set.Chain(provider.Chain{Model: id}), &last}
	compressor, err := engine.New(w.config.Compression, engine.Deps{Summarise: asked, Model: id, Window: w.models.Facts(id).ContextWindow})
	if err != nil {
		return err
	}
	agent, err := agentcore.New(w.config.Agent, agentcore.Deps{
		Model: asked, DefaultModel: id, Facts: w.models.Facts, Engine: compressor, Asker: agentcore.DenyAsker{}, Log: zap.NewNop(), Now: time.Now,
	})
	if err != nil {
		return err
	}
	text, err := agent.Chat(ctx, "This is a test of the connection. Answer with the one word: ready")
	switch {
	case last != nil:
		return last
	case err != nil:
		return err
	case text == "":
		return errors.New("the answer was empty")
	}
	return nil
}

// examineAccounts asks each platform about the token and the settings there.
func (w wiring) examineAccounts(ctx context.Context) []finding {
	var findings []finding
	adapters, err := w.platforms()
	if err != nil {
		return []finding{{Check: "platforms", What: err.Error()}}
	}
	for _, ad := range adapters {
		prober, ok := ad.(chat.Prober)
		if !ok {
			continue
		}
		check := string(ad.Account())
		found, err := w.probe(ctx, prober)
		if err != nil {
			findings = append(findings, finding{Check: check, What: err.Error(), Fix: "check the network and api_base"})
		}
		for _, f := range found {
			findings = append(findings, finding{Check: check, OK: f.OK, What: f.What, Fix: f.Fix})
		}
	}
	if len(adapters) == 0 && !w.config.Platforms.Web.Enabled {
		findings = append(findings, finding{Check: "platforms", What: "no account has a token and the web chat is off", Fix: "set TELEGRAM_BOT_TOKEN, or DISCORD_BOT_TOKEN, or SLACK_BOT_TOKEN and SLACK_APP_TOKEN, or platforms.web.enabled: true"})
	}
	return findings
}

func (w wiring) probe(ctx context.Context, p chat.Prober) ([]chat.Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return p.Probe(ctx)
}

// examineSandbox says what the commands of the terminal tool run in.
func examineSandbox(cfg *config.Config) finding {
	const check = "sandbox"
	self, err := os.Executable()
	if err != nil {
		self = ""
	}
	what, any, err := shell.InForce(cfg.Tools.Terminal, self)
	switch {
	case err != nil:
		return finding{Check: check, What: err.Error(), Fix: "install bubblewrap, use a kernel with Landlock, or set tools.terminal.sandbox: auto"}
	case !any && cfg.Tools.Terminal.Sandbox != "off":
		return finding{Check: check, OK: true, What: "note: " + what, Fix: "install bubblewrap, or use Linux 5.13 or newer"}
	}
	return finding{Check: check, OK: true, What: "commands run in: " + what}
}

// examineHTTP tells a free address from a running parley and from somebody else.
func examineHTTP(ctx context.Context, cfg *config.Config) finding {
	const check = "http"
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", cfg.HTTP.Listen)
	if err == nil {
		_ = l.Close()
		return finding{Check: check, OK: true, What: cfg.HTTP.Listen + " is free"}
	}
	req, reqErr := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+cfg.HTTP.Listen+"/healthz", nil)
	if reqErr == nil {
		if res, getErr := http.DefaultClient.Do(req); getErr == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return finding{Check: check, OK: true, What: cfg.HTTP.Listen + ": parley is running"}
			}
		}
	}
	return finding{Check: check, What: err.Error(), Fix: "set http.listen to a free address"}
}
