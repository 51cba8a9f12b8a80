package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"parley/adapters/discord"
	"parley/adapters/slack"
	"parley/adapters/telegram"
	"parley/agentcore/llm"
	"parley/agentcore/provider"
	"parley/config"
	"parley/config/secret"
	"parley/gateway"
)

// environment is a test's own; nothing of the process's leaks into it.
type environment map[string]string

func (e environment) lookup(name string) (string, bool) {
	v, ok := e[name]
	return v, ok
}

// load loads text as parley.yaml of a folder of its own.
func load(t *testing.T, text string, env environment) (*config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "parley.yaml"), text)
	return config.Load(config.Options{Env: env.lookup, Dir: dir})
}

func mustLoad(t *testing.T, text string, env environment) *config.Config {
	t.Helper()
	c, err := load(t, text, env)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// problems are the lines of the error, "LINE: text".
func problems(t *testing.T, err error) []config.Problem {
	t.Helper()
	var e *config.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *config.Error", err)
	}
	return e.Problems
}

func TestExampleIsTheDefaults(t *testing.T) {
	example, err := config.Load(config.Options{
		Path: "../deploy/parley.example.yaml",
		Env:  environment{"HOME": "/home/ada", "OPENAI_API_KEY": "sk-test-key"}.lookup,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	if diff := cmp.Diff(want.Gateway, example.Gateway, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("gateway (-default +example):\n%s", diff)
	}
	if diff := cmp.Diff(want.Agent, example.Agent); diff != "" {
		t.Errorf("agent (-default +example):\n%s", diff)
	}
	if want.Compression != example.Compression || want.HTTP != example.HTTP || want.Log != example.Log {
		t.Error("compression, http or log of the example are not the defaults")
	}
	if example.DataDir != "/home/ada/.parley" {
		t.Errorf("data_dir is %q", example.DataDir)
	}
	if got := example.Warnings(); len(got) != 4 {
		t.Errorf("warnings: %q, want the four that are off", got)
	}
}

// TestExampleNamesEveryKey: what `config show` prints of the defaults, the example says too.
func TestExampleNamesEveryKey(t *testing.T) {
	example, err := os.ReadFile("../deploy/parley.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := config.Default()
	all.Providers["openai"] = provider.Config{}
	all.Facts = map[llm.ModelID]config.FactsConfig{"openai/gpt-5-mini": {}}
	all.Platforms.Telegram = []telegram.Config{{}}
	all.Platforms.Slack = []slack.Config{{}}
	all.Platforms.Discord = []discord.Config{{}}
	shown, err := all.Show()
	if err != nil {
		t.Fatal(err)
	}
	said := keys(t, example)
	for key := range keys(t, shown) {
		if !said[key] {
			t.Errorf("deploy/parley.example.yaml does not say %s", key)
		}
	}
}

func TestDocsNameEveryProvider(t *testing.T) {
	docs, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range provider.KnownProviders() {
		if !strings.Contains(string(docs), "`"+k.Name+"`") {
			t.Errorf("docs/configuration.md does not name %s", k.Name)
		}
	}
}

// keys are the paths of all keys of a YAML document.
func keys(t *testing.T, document []byte) map[string]bool {
	t.Helper()
	var root any
	if err := yaml.Unmarshal(document, &root); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, below := range v {
				found[path+k] = true
				walk(path+k+".", below)
			}
		case []any:
			for _, below := range v {
				walk(path, below)
			}
		}
	}
	walk("", root)
	return found
}

func TestEveryKeyOfTheContractIsRead(t *testing.T) {
	c := mustLoad(t, `
database: { url: "postgres://u:p@h/db" }
data_dir: ./data
http: { listen: "0.0.0.0:9000", public_url: "https://x.example", admin_token: "adm-token" }
log: { level: debug, format: json }
model: openai/gpt-5-mini
providers:
  openai: { api_key: "sk-literal", base_url: "http://127.0.0.1:1/v1", api_mode: "chat_completions" }
fallback_providers: [ anthropic/claude-sonnet-4-5 ]
auxiliary:
  compression: { model: openai/gpt-5-nano, fallback: [ openai/gpt-5-mini ] }
  vision: { model: openai/gpt-5-mini }
  web_extract: { model: openai/gpt-5-mini }
  title: { model: openai/gpt-5-mini }
models:
  openai/gpt-5-mini: { context_window: 400000, max_output_tokens: 128000, vision: true, price: { input: 0.25, output: 2 } }
agent:
  max_turns: 7
  iterations: { trigger: {initial: 1, step: 2, cap: 3}, schedule: {initial: 4, step: 5, cap: 6} }
  personality: "You are brief."
  routing: { fast: openai/gpt-5-nano, smart: "" }
delegation: { max_iterations: 5, max_concurrent: 2, max_depth: 1 }
compression: { enabled: false, threshold: 0.4, gateway_threshold: 0.8, protect_first_n: 1, protect_last_n: 2 }
conversations: { busy: steer, group_scope: person, idle_timeout: 1m }
access: { allow: [ "telegram:12345" ], admins: [ "telegram:1" ], pairing: false, groups: all }
approvals: { mode: deny, timeout: 10s }
clarify: { timeout: 2h }
shutdown: { grace: 5s }
budgets: { currency: EUR, person_daily: 1, conversation_daily: 2.5, total_daily: 3 }
embeddings: { model: "openai/text-embedding-3-small" }
transcription: { model: "openai/whisper-1" }
streaming: edit
tools: { enabled: [ terminal ], workspace: "~/work", terminal: { sandbox: off }, web_search: { provider: "brave", api_key: "k" } }
hooks: { pre_tool: [ ./audit ], post_tool: [] }
webhooks: { deploys: { secret: "0123456789abcdef", prompt: p, deliver: "telegram/main/12345" } }
mcp_servers: { files: { command: mcp-files, args: [ /srv ], env: { A: b } } }
skills: { dir: ./skills }
platforms:
  telegram: [ { name: main, token: "123:abcdef", api_base: "http://127.0.0.1:2", mode: poll } ]
  slack: [ { name: main, bot_token: "xoxb-1", app_token: "xapp-1", signing_secret: "s", api_base: "https://slack.com/api/", mode: events } ]
  discord: [ { name: main, token: "d", api_base: "https://discord.com/api/v9" } ]
  web: { enabled: false }
`, environment{"HOME": "/home/ada"})
	dir := filepath.Dir(c.File())
	want := gateway.Config{
		Conversations: gateway.ConversationsConfig{Busy: gateway.BusySteer, GroupScope: "person", IdleTimeout: time.Minute},
		Access:        gateway.AccessConfig{Allow: []string{"telegram:12345"}, Admins: []string{"telegram:1"}, Groups: "all"},
		Approvals:     gateway.ApprovalsConfig{Mode: "deny", Timeout: 10 * time.Second},
		Clarify:       gateway.ClarifyConfig{Timeout: 2 * time.Hour},
		Shutdown:      gateway.ShutdownConfig{Grace: 5 * time.Second}, Streaming: gateway.StreamEdit,
		Webhooks: map[string]gateway.WebhookConfig{"deploys": {Secret: secret.New("0123456789abcdef"), Prompt: "p", Deliver: "telegram/main/12345"}},
	}
	if diff := cmp.Diff(want, c.Gateway, cmp.Comparer(func(a, b secret.String) bool { return a.Reveal() == b.Reveal() })); diff != "" {
		t.Errorf("gateway (-want +got):\n%s", diff)
	}
	for what, pair := range map[string][2]any{
		"data_dir":   {c.DataDir, filepath.Join(dir, "data")},
		"workspace":  {c.Tools.Workspace, "/home/ada/work"},
		"max_turns":  {c.Agent.MaxTurns, 7},
		"cap":        {c.Agent.Iterations.Schedule.Cap, 6},
		"window":     {c.ModelFacts()["openai/gpt-5-mini"].ContextWindow, 400000},
		"price":      {c.ModelFacts()["openai/gpt-5-mini"].Price.Output, 2.0},
		"token":      {c.Platforms.Telegram[0].Token.Reveal(), "123:abcdef"},
		"admin":      {c.HTTP.AdminToken.Reveal(), "adm-token"},
		"web":        {c.Platforms.Web.Enabled, false},
		"slack mode": {c.Platforms.Slack[0].Mode, "events"},
		"embeddings": {c.Embeddings.Model, llm.ModelID("openai/text-embedding-3-small")},
		"fast":       {c.Agent.Routing.Fast, llm.ModelID("openai/gpt-5-nano")},
		"skills":     {c.Skills.Dir, filepath.Join(dir, "skills")},
		"hook":       {c.Hooks.PreTool[0], "./audit"},
		"mcp env":    {c.MCPServers["files"].Env["A"].Reveal(), "b"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
}

// TestEveryMistakeAtOnce covers unknown, doubled and misplaced keys, wrong types
// and wrong values, each at its line, in one go.
func TestEveryMistakeAtOnce(t *testing.T) {
	_, err := load(t, `modle: openai/gpt-5-mini
http:
  listn: "127.0.0.1:1"
  listen: 8080
agent: { max_turns: many }
agent: {}
conversations:
  busy: later
  idle_timeout: 15
token: "123:abc"
access:
  allow:
    - telegram: 12345
  pairing: yes
fallback_providers: openai/gpt-5-mini
compression: [ 1 ]
providers:
  opnai: { api_key: k, base_url: "ftp://x" }
model: openia/gpt-5
platforms:
  telegram: { name: main }
`, nil)
	want := []config.Problem{
		{Line: 1, Text: "modle: there is no such key; did you mean model?"},
		{Line: 3, Text: "http.listn: there is no such key; did you mean listen?"},
		{Line: 4, Text: `http.listen: "8080" is not host:port`},
		{Line: 5, Text: "agent.max_turns: expected a whole number, found text"},
		{Line: 6, Text: "agent: the key is given twice, first in line 5"},
		{Line: 8, Text: `conversations.busy: "later" is not one of interrupt, queue, steer`},
		{Line: 9, Text: "conversations.idle_timeout: expected a duration such as 30s or 15m, found a number"},
		{Line: 10, Text: "token: there is no such key; known here: access, agent"},
		{Line: 13, Text: "access.allow.0: expected text, found a section (a colon followed by a space makes a section; put the text in quotes)"},
		{Line: 14, Text: "access.pairing: expected true or false, found text"},
		{Line: 15, Text: "fallback_providers: expected a list, found text"},
		{Line: 16, Text: "compression: expected a section of keys, found a list"},
		{Line: 18, Text: `providers.opnai.base_url: "ftp://x" is not an http or https URL`},
		{Line: 19, Text: `model: there is no provider "openia"; did you mean openai/gpt-5?`},
		{Line: 21, Text: "platforms.telegram: expected a list, found a section (begin each entry with a dash)"},
	}
	got := problems(t, err)
	for i := range got {
		got[i].Text, _, _ = strings.Cut(got[i].Text, ", approvals")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if !strings.Contains(err.Error(), "parley.yaml:3: http.listn") {
		t.Errorf("the text has no file and line: %s", err)
	}
}

func TestKeyInTheWrongPlaceIsPointedToItsOwn(t *testing.T) {
	_, err := load(t, "telegram: []\n", nil)
	got := problems(t, err)[0].Text
	if want := "telegram: there is no such key; did you mean platforms.telegram?"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNotYAML(t *testing.T) {
	for text, want := range map[string]config.Problem{
		"model: [":                {Line: 1, Text: "not valid YAML: did not find expected node content"},
		"a:\n\tb: 2\n":            {Line: 2, Text: "not valid YAML: found character that cannot start any token; YAML is indented with spaces, not tabs, and a value that begins with @ or ` must be in quotes"},
		"a: 1\n\tb: 2\n":          {Line: 2, Text: "not valid YAML: found a tab character that violates indentation"},
		"log: {}\n---\nlog: {}\n": {Text: "the file has more than one YAML document; keep one"},
		"- model\n":               {Line: 1, Text: "the file: expected a section of keys, found a list"},
		"x: &a {}\nmodel: *a\n":   {Line: 2, Text: "model: YAML aliases are not supported; write the value out"},
		"model: *sk-anchor\n":     {Text: "not valid YAML: a value that begins with * must be in quotes"},
	} {
		_, err := load(t, text, nil)
		if got := problems(t, err); got[len(got)-1] != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}

// TestIDsKeepTheirDigits: CFG-001. An id without quotes is kept exactly; one in
// scientific notation is refused with its key.
func TestIDsKeepTheirDigits(t *testing.T) {
	c := mustLoad(t, "access: { allow: [ discord:1234567890123456789 ] }\nplatforms: { telegram: [ { name: 12345678901234567890, token: 99999999999999999999 } ] }\n", nil)
	if got := c.Gateway.Access.Allow[0]; got != "discord:1234567890123456789" {
		t.Errorf("allow: %s", got)
	}
	if got := c.Platforms.Telegram[0].Name; got != "12345678901234567890" {
		t.Errorf("name: %s", got)
	}
	if got := c.Platforms.Telegram[0].Token.Reveal(); got != "99999999999999999999" {
		t.Errorf("token: %s", got)
	}
	_, err := load(t, "access:\n  allow: [ 1.2345678901234568e+18 ]\n  admins: [ \"discord:1.2345678901234568e+18\" ]\n", nil)
	want := []config.Problem{
		{Line: 2, Text: "access.allow.0: the number is in scientific notation and has lost digits; write it in full, in quotes"},
		{Line: 3, Text: `access.admins: "discord:1.2345678901234568e+18": this is no discord id; use the number that Discord copies as user id`},
	}
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNamesAreNoIDs: ACC-004.
func TestNamesAreNoIDs(t *testing.T) {
	for entry, want := range map[string]string{
		"telegram:@alice":   "is a name, which can change hands",
		"telegram:alice":    "this is no telegram id",
		"telegram:-1001234": "this is no telegram id",
		"slack:alice":       "this is no slack id",
		"discord:alice":     "this is no discord id",
		"telegarm:1":        `there is no platform "telegarm"`,
		"12345":             "is not platform:id",
	} {
		_, err := load(t, "access:\n  allow:\n    - \""+entry+"\"\n", nil)
		if got := problems(t, err); len(got) != 1 || !strings.Contains(got[0].Text, want) {
			t.Errorf("%s: got %+v, want %q", entry, got, want)
		}
	}
	mustLoad(t, `access: { allow: [ "telegram:1", "slack:U1AB", "discord:123456789012345678", "web:anybody", "telegram:*" ] }`, nil)
}

func TestSecretsAreNeverShown(t *testing.T) {
	const key, token = "sk-very-secret-value", "123456:telegram-secret"
	env := environment{"KEY": key, "DB": "postgres://u:database-password@h/db"}
	_, err := load(t, `
model: ${KEY}
http: { listen: "`+token+`", admin_token: [ "`+token+`" ] }
providers: { openai: { api_key: "${KEY}", base_url: "`+key+`" } }
platforms: { telegram: [ { name: main, token: "`+token+`", mode: "`+token+`" } ] }
`, env)
	for _, secret := range []string{key, token} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %s:\n%s", secret, err)
		}
	}
	c := mustLoad(t, `
database: { url: "${DB}" }
providers: { openai: { api_key: "${KEY}" } }
platforms: { telegram: [ { token: "`+token+`" } ] }
mcp_servers: { a: { command: c, env: { K: "`+key+`" } } }
`, env)
	shown, err := c.Show()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{key, token, "database-password"} {
		if strings.Contains(string(shown), secret) {
			t.Errorf("config show prints %s", secret)
		}
	}
	if !strings.Contains(string(shown), "postgres://u:xxxxx@h/db") || !strings.Contains(string(shown), "idle_timeout: 15m0s") {
		t.Errorf("config show lacks the effective values:\n%s", shown)
	}
}
