package slack

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"parley/gateway/chat"
)

// botScopes are all that the bot token needs, each for what the adapter does.
var botScopes = []string{
	"app_mentions:read", // to be mentioned
	"assistant:write",   // status, titles and prompts of the assistant pane
	"channels:history",  // threads in public channels
	"channels:read",
	"chat:write",     // to answer
	"commands",       // slash commands
	"files:read",     // what people attach
	"files:write",    // what the bot attaches
	"groups:history", // threads in private channels
	"groups:read",
	"im:history", // direct messages
	"im:read",
	"im:write",
	"mpim:history", // direct messages of several people
	"mpim:read",
	"reactions:write", // seen, working, done
	"users:read",      // names
}

// botEvents are all that the adapter needs. It understands assistant_thread_started
// too, which apps with the older assistant view have instead of app_home_opened.
var botEvents = []string{
	"agent_session_stopped", "app_home_opened", "app_mention", "message.channels", "message.groups", "message.im", "message.mpim",
}

// reserved are the names that Slack keeps for itself: they are reached through the
// app's own command.
var reserved = []string{"help", "status", "search", "topic", "who", "me", "leave", "open", "join", "invite", "remind", "feed", "away", "active", "call", "dnd", "mute"}

// slashNames are the commands that the manifest offers by their own name.
func slashNames(cmds []chat.CommandInfo) []chat.CommandInfo {
	return slices.DeleteFunc(slices.Clone(cmds), func(c chat.CommandInfo) bool { return slices.Contains(reserved, c.Name) })
}

// Manifest is the app's description for Slack: everything that has to be switched on,
// in one piece. publicURL is empty for Socket Mode.
type Manifest struct {
	Display struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"display_information"`
	Features struct {
		Home struct {
			HomeTab      bool `json:"home_tab_enabled"`
			MessagesTab  bool `json:"messages_tab_enabled"`
			MessagesRead bool `json:"messages_tab_read_only_enabled"`
		} `json:"app_home"`
		Bot struct {
			Name   string `json:"display_name"`
			Online bool   `json:"always_online"`
		} `json:"bot_user"`
		Agent struct {
			Description string   `json:"agent_description"`
			Prompts     []Prompt `json:"suggested_prompts"`
		} `json:"agent_view"`
		Commands []SlashCommand `json:"slash_commands"`
	} `json:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	} `json:"oauth_config"`
	Settings struct {
		Events struct {
			URL string   `json:"request_url,omitempty"`
			Bot []string `json:"bot_events"`
		} `json:"event_subscriptions"`
		Interactivity struct {
			Enabled bool   `json:"is_enabled"`
			URL     string `json:"request_url,omitempty"`
		} `json:"interactivity"`
		Deploy     bool `json:"org_deploy_enabled"`
		SocketMode bool `json:"socket_mode_enabled"`
		Rotation   bool `json:"token_rotation_enabled"`
	} `json:"settings"`
}

// Prompt is a suggestion for the first message.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// SlashCommand is one command of a manifest.
type SlashCommand struct {
	Command     string `json:"command"`
	URL         string `json:"url,omitempty"`
	Description string `json:"description"`
	Usage       string `json:"usage_hint,omitempty"`
	Escape      bool   `json:"should_escape"`
}

// NewManifest describes the app with these commands. requestURL is where Slack sends
// events to; empty: Socket Mode.
func NewManifest(cmds []chat.CommandInfo, requestURL string) Manifest {
	var m Manifest
	m.Display.Name, m.Display.Description = "parley", "An agent to talk with: mention it, or write to it."
	m.Features.Home.MessagesTab = true
	m.Features.Bot.Name, m.Features.Bot.Online = "parley", true
	m.Features.Agent.Description = "Ask, and go on asking: each thread is a conversation."
	for _, p := range prompts {
		m.Features.Agent.Prompts = append(m.Features.Agent.Prompts, Prompt{p.Title, p.Message})
	}
	m.Features.Commands = []SlashCommand{{
		Command: "/" + ownCommand, URL: requestURL, Description: "any command by its name; help lists them", Usage: "help", Escape: true,
	}}
	for _, c := range slashNames(cmds) {
		m.Features.Commands = append(m.Features.Commands, SlashCommand{
			Command: "/" + c.Name, URL: requestURL, Description: c.Description, Usage: c.Args, Escape: true,
		})
	}
	m.OAuth.Scopes.Bot = slices.Clone(botScopes)
	m.Settings.Events.URL, m.Settings.Events.Bot = requestURL, slices.Clone(botEvents)
	m.Settings.Interactivity.Enabled, m.Settings.Interactivity.URL = true, requestURL
	m.Settings.SocketMode = requestURL == ""
	return m
}

// Link opens Slack's page for a new app with the manifest filled in.
func (m Manifest) Link() (string, error) {
	b, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("slack: manifest: %w", err)
	}
	return "https://api.slack.com/apps?new_app=1&manifest_json=" + url.QueryEscape(string(b)), nil
}

// requestURL is where Slack reaches this account in mode events.
func (a *Adapter) requestURL() string {
	if a.cfg.Mode != modeEvents {
		return ""
	}
	return strings.TrimRight(a.deps.PublicURL, "/") + "/webhook/slack/" + a.cfg.Name
}
