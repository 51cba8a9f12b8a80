package config_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/config"
)

func TestWhereTheFileIsLookedFor(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	env := environment{"HOME": home}
	find := func(path string) string {
		t.Helper()
		c, err := config.Load(config.Options{Path: path, Env: env.lookup, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return c.File()
	}
	if got := find(""); got != "" {
		t.Errorf("without a file: %q", got)
	}
	for _, f := range []string{
		filepath.Join(home, ".parley", "parley.yaml"), filepath.Join(dir, "parley.yaml"), filepath.Join(dir, "env.yaml"),
	} {
		write(t, f, "log: {}\n")
		if strings.HasSuffix(f, "env.yaml") {
			env["PARLEY_CONFIG"] = "env.yaml"
		}
		if got := find(""); got != f {
			t.Errorf("found %q, want %q", got, f)
		}
	}
	write(t, filepath.Join(dir, "named.yaml"), "log: {}\n")
	if got := find("named.yaml"); got != filepath.Join(dir, "named.yaml") {
		t.Errorf("--config: %q", got)
	}
	_, err := config.Load(config.Options{Path: "gone.yaml", Env: env.lookup, Dir: dir})
	if want := filepath.Join(dir, "gone.yaml") + ": cannot be read: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("a named file that is not there: %v, want %s", err, want)
	}
}

func TestEnvironmentAlone(t *testing.T) {
	c, err := config.Load(config.Options{Dir: t.TempDir(), Env: environment{
		"HOME": "/home/ada", "ANTHROPIC_API_KEY": "sk-ant", "TELEGRAM_BOT_TOKEN": "123:abc",
		"SLACK_BOT_TOKEN": "xoxb", "SLACK_APP_TOKEN": "xapp", "DISCORD_BOT_TOKEN": "disc",
		"PARLEY_DATABASE_URL": "postgres://db/parley", "PARLEY_ALLOW": "telegram:1, slack:U2",
	}.lookup})
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]any{
		"model":    {string(c.Model), "anthropic/claude-sonnet-4-5"},
		"key":      {c.Providers["anthropic"].APIKey.Reveal(), "sk-ant"},
		"telegram": {c.Platforms.Telegram[0].Token.Reveal(), "123:abc"},
		"account":  {c.Platforms.Telegram[0].Name, "main"},
		"slack":    {c.Platforms.Slack[0].AppToken.Reveal(), "xapp"},
		"discord":  {c.Platforms.Discord[0].Token.Reveal(), "disc"},
		"database": {c.Database.URL, "postgres://db/parley"},
		"data_dir": {c.DataDir, "/home/ada/.parley"},
		"web":      {c.Platforms.Web.Enabled, true},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s is %v, want %v", what, pair[0], pair[1])
		}
	}
	if diff := cmp.Diff([]string{"telegram:1", "slack:U2"}, c.Gateway.Access.Allow); diff != "" {
		t.Errorf("allow (-want +got):\n%s", diff)
	}
	if err := c.CheckModel(keyed(c)); err != nil {
		t.Error(err)
	}
}

func TestWithAFileThePlatformsAreItsOwn(t *testing.T) {
	c := mustLoad(t, "log: { level: warn }\n", environment{"TELEGRAM_BOT_TOKEN": "123:abc", "OPENAI_API_KEY": "sk-1"})
	if len(c.Platforms.Telegram) != 0 {
		t.Error("a token in the environment started an account that the file does not have")
	}
	if c.Model != "openai/gpt-5-mini" {
		t.Errorf("model is %q", c.Model)
	}
}

func TestKeyOfTheEnvironmentGoesToItsOwnProviderOnly(t *testing.T) {
	c := mustLoad(t, "providers: { openai: { base_url: \"http://elsewhere.example/v1\" } }\n", environment{"OPENAI_API_KEY": "sk-1"})
	if !c.Providers["openai"].APIKey.Empty() {
		t.Error("the key would be sent to another address")
	}
}

// keyed is the providers' word on a model, as the composition root gives it.
func keyed(c *config.Config) func(llm.ModelID) error {
	return func(m llm.ModelID) error {
		name, _ := m.Split()
		if c.Providers[name].APIKey.Empty() {
			return errors.New("its api_key is empty")
		}
		return nil
	}
}

func TestModelThatCannotBeTold(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		env  environment
		want string
	}{
		"no key":   {"", nil, "model: none is named; write model: provider/model, or set exactly one of OPENAI_API_KEY"},
		"two keys": {"", environment{"OPENAI_API_KEY": "a", "ANTHROPIC_API_KEY": "b"}, "model: none is named"},
		"unset": {"model: openai/gpt-5\nproviders: { openai: { api_key: \"${MY_KEY}\" } }\n", nil,
			"parley.yaml:1: model: openai/gpt-5 cannot be called: MY_KEY is not set"},
		"empty": {"log: {}\nmodel: openai/gpt-5\n", nil, "parley.yaml:2: model: openai/gpt-5 cannot be called: its api_key is empty"},
	} {
		c := mustLoad(t, test.text, test.env)
		if err := c.CheckModel(keyed(c)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	c := mustLoad(t, "model: openai/gpt-5\nfallback_providers: [ anthropic/claude-sonnet-4-5 ]\nproviders: { anthropic: { api_key: k } }\n", nil)
	if err := c.CheckModel(keyed(c)); err != nil {
		t.Errorf("a fallback that can be called is not enough: %v", err)
	}
}

func TestProvidersThatNeedOnlyTheirName(t *testing.T) {
	c := mustLoad(t, "model: ollama/llama3.3\nfallback_providers: [ demo/demo, local/a/b ]\nproviders: { local: { base_url: \"http://127.0.0.1:1/v1\" } }\n", nil)
	want := map[string]string{"ollama": "http://127.0.0.1:11434/v1", "demo": "", "local": "http://127.0.0.1:1/v1"}
	got := map[string]string{}
	for name, p := range c.Providers {
		got[name] = p.BaseURL
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("warnings: %q", w)
	}
	off := mustLoad(t, "providers: { local: { base_url: \"http://127.0.0.1:1/v1\", api_key: \"\" } }\n", nil)
	if !off.Providers["local"].Off("local") || c.Providers["local"].Off("local") {
		t.Error("an empty key does not switch a provider off, or a missing one does")
	}
	shown, err := c.Show()
	if err != nil || !strings.Contains(string(shown), "api_mode: chat_completions") {
		t.Errorf("config show does not resolve the API mode (%v):\n%s", err, shown)
	}
}

func TestUnsetVariablesAreOneError(t *testing.T) {
	_, err := load(t, `
http: { public_url: "https://${HOST}", admin_token: "${ADMIN}" }
agent: { max_turns: "${TURNS}", personality: "literal $${HOST}" }
clarify: { timeout: "${TURNS}" }
platforms: { telegram: [ { token: "${BOT}" } ] }
`, nil)
	want := []config.Problem{{Line: 2, Text: "the environment variables HOST, TURNS are not set"}}
	if diff := cmp.Diff(want, problems(t, err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c := mustLoad(t, "agent: { max_turns: \"${TURNS}\", personality: \"literal $${HOST}\" }\nplatforms: { telegram: [ { token: \"${BOT}\" }, { name: b, token: \"\" } ] }\n",
		environment{"TURNS": "3"})
	if c.Agent.MaxTurns != 3 || c.Agent.Personality != "literal ${HOST}" {
		t.Errorf("agent: %+v", c.Agent)
	}
	wantWarnings := []string{"platforms.telegram.main is off: BOT is not set", "platforms.telegram.b is off: its token is empty"}
	if diff := cmp.Diff(wantWarnings, c.Warnings()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if len(c.ActiveTelegram()) != 0 {
		t.Error("an account without a token is active")
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "secrets", "bot"), "123:from-file\n")
	write(t, filepath.Join(dir, "soul.md"), "You are kind.\n")
	file := filepath.Join(dir, "etc", "parley.yaml")
	load := func(text string) (*config.Config, error) {
		write(t, file, text)
		return config.Load(config.Options{Path: file, Env: environment{"HOME": dir}.lookup, Dir: "/"})
	}
	c, err := load("agent: { personality: \"file:../soul.md\" }\nplatforms: { telegram: [ { token: \"file:~/secrets/bot\" } ] }\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Platforms.Telegram[0].Token.Reveal(); got != "123:from-file" {
		t.Errorf("token: %q", got)
	}
	if c.Agent.Personality != "You are kind." {
		t.Errorf("personality: %q", c.Agent.Personality)
	}
	// A key that can be read again where it comes from, once it is refused.
	write(t, filepath.Join(dir, "key"), "sk-1\n")
	c, err = load("providers: { openai: { api_key: \"command:cat ../key\" }, groq: { api_key: \"file:../key\" } }\n")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "key"), "sk-2\n")
	for _, name := range []string{"openai", "groq"} {
		key := c.Providers[name].APIKey
		next, err := key.Again(t.Context())
		if err != nil || key.Reveal() != "sk-1" || next.Reveal() != "sk-2" {
			t.Errorf("%s: %q, then %q, %v", name, key.Reveal(), next.Reveal(), err)
		}
	}
	_, err = load("providers: { openai: { api_key: \"command:echo sk-1; exit 4\" } }\n")
	if got := problems(t, err); len(got) != 1 || got[0].Text != "providers.openai.api_key: the command that prints the secret failed: exit status 4" {
		t.Errorf("problems: %+v", got)
	}
	_, err = load("agent:\n  personality: \"file:gone.md\"\nplatforms:\n  telegram:\n    - { name: a, token: \"file:gone\" }\n")
	got := problems(t, err)
	if len(got) != 2 || got[0].Line != 2 || got[1].Line != 5 || !strings.HasPrefix(got[1].Text, "platforms.telegram.a.token: cannot read the file") {
		t.Errorf("problems: %+v", got)
	}
}

// TestStartupWarnings: ACC-007 and ACC-009, and the doors that stand open.
func TestStartupWarnings(t *testing.T) {
	const telegram = "platforms: { telegram: [ { name: main, token: \"1:a\" } ] }\n"
	for text, want := range map[string]string{
		telegram + "access: { pairing: false }\n":                             "nobody can reach the bot on telegram: put telegram:ID into access.allow, or set access.pairing to true",
		telegram + "access: { pairing: false, allow: [ \"slack:U1\" ] }\n":    "nobody can reach the bot on telegram: put telegram:ID into access.allow, or set access.pairing to true",
		telegram + "access: { allow: [ \"telegram:*\" ] }\n":                  `access.allow has "telegram:*": everybody on telegram may use the bot, and spend your money`,
		"approvals: { mode: allow }\n":                                        "approvals.mode is allow: dangerous tools run without a question",
		"http: { listen: \":8080\" }\n":                                       "http.listen is open to the network and http.admin_token is empty: /metrics answers on loopback only",
		telegram + "access: { pairing: false, admins: [ \"telegram:1\" ] }\n": "",
		telegram: "",
		"platforms: { slack: [ { name: main, bot_token: x, app_token: y } ] }\naccess: { pairing: false }\n":            "nobody can reach the bot on slack: put slack:ID into access.allow, or set access.pairing to true",
		"platforms: { discord: [ { name: main, token: x } ] }\n":                                                        "access.admins and access.allow have nobody of discord: write to the bot there, and it says how it comes to know you",
		"platforms: { discord: [ { name: main, token: x } ] }\naccess: { admins: [ \"discord:80351110224678912\" ] }\n": "",
		"http: { listen: \"[::1]:8080\" }\n":                                                                            "",
		"http: { listen: \"0.0.0.0:80\", admin_token: \"${ADM}\" }\n":                                                   "",
	} {
		got := strings.Join(mustLoad(t, text, environment{"ADM": "token-x"}).Warnings(), "\n")
		if got != want {
			t.Errorf("%s\ngot  %q\nwant %q", text, got, want)
		}
	}
}

func TestWrongValuesOfTheOtherSections(t *testing.T) {
	_, err := load(t, `log: { level: loud, format: xml }
streaming: fast
tools: { terminal: { sandbox: maybe } }
models: { nameless: { context_window: -1 } }
delegation: { max_iterations: 0 }
budgets: { total_daily: -1 }
mcp_servers: { a: {} }
platforms:
  telegram: [ { name: "a b", token: t, mode: webhook }, { name: x, token: t }, { name: x, token: t } ]
  slack: [ { name: s, api_base: slack.com, mode: pigeon } ]
  discord: [ { name: d, api_base: "" } ]
`, nil)
	if got := problems(t, err); len(got) != 15 {
		t.Errorf("%d problems:\n%s", len(got), err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"model: openai/gpt-5\n", "a: &a [*a]\n", "? {x: y}\n: z\n", "<<: {model: a}\n", "access: { allow: [ ~, 1e9, 0x1F ] }\n",
		"providers: { openai: { api_key: \"${KEY}\" } }\n", "log: !!binary aGk=\n", "platforms: { telegram: [ {}, null, 3 ] }\n",
	} {
		f.Add(seed)
	}
	const secret = "sk-hidden-from-messages"
	f.Fuzz(func(t *testing.T, text string) {
		c, err := load(t, text, environment{"KEY": secret})
		if err != nil {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows a secret: %v", err)
			}
			problems(t, err)
			return
		}
		shown, err := c.Show()
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(shown), secret) && !strings.Contains(text, "personality") {
			t.Errorf("config show prints a secret")
		}
		c.Warnings()
	})
}
