package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"parley/adapters/slack"
	"parley/gateway"
)

var writeManifest = flag.Bool("write-manifest", false, "write deploy/slack-manifest.yaml anew")

const manifestHead = `# parley's Slack app, with every scope, event and command that it uses, for Socket
# Mode. Paste it at https://api.slack.com/apps (Create New App, From a manifest), or
# open the link that "parley doctor" prints. docs/slack.md goes through it step by
# step. For mode events: settings.socket_mode_enabled false, and
# https://YOUR-ADDRESS/webhook/slack/main as request_url of event_subscriptions and
# interactivity and as url of each command.
`

// TestSlackManifest holds the file to what the adapter asks for and to the list of
// commands.
func TestSlackManifest(t *testing.T) {
	path := filepath.Join("..", "..", "deploy", "slack-manifest.yaml")
	want, err := json.Marshal(slack.NewManifest(gateway.CommandInfos(), ""))
	if err != nil {
		t.Fatal(err)
	}
	if *writeManifest {
		var doc yaml.Node
		if err := yaml.Unmarshal(want, &doc); err != nil {
			t.Fatal(err)
		}
		plainStyle(&doc)
		text, err := yaml.Marshal(&doc)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append([]byte(manifestHead), text...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var asked, written any
	if err := json.Unmarshal(want, &asked); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(asked, written); d != "" || !strings.HasPrefix(string(text), manifestHead) {
		t.Errorf("deploy/slack-manifest.yaml is not what is used; `go test ./cmd/parley -run TestSlackManifest -write-manifest` writes it anew:\n%s", d)
	}
}

// plainStyle makes YAML out of what was JSON.
func plainStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		plainStyle(c)
	}
}

// TestSlackLimitsOfAManifest: what Slack refuses when the app is made would be found by
// nobody else.
func TestSlackLimitsOfAManifest(t *testing.T) {
	m := slack.NewManifest(gateway.CommandInfos(), "https://parley.example/webhook/slack/main")
	if n := len(m.Features.Commands); n < 10 || n > 50 {
		t.Errorf("%d commands", n)
	}
	for _, c := range m.Features.Commands {
		if len(c.Command) > 32 || len(c.Description) == 0 || len(c.Description) > 2000 || len(c.Usage) > 1000 || c.URL == "" {
			t.Errorf("%+v", c)
		}
	}
	if n := len(m.Display.Description); n > 140 {
		t.Errorf("a description of %d characters", n)
	}
	link, err := m.Link()
	if err != nil || len(link) > 8000 {
		t.Errorf("a link of %d characters: %v", len(link), err)
	}
}
