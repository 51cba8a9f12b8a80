package discord

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/gateway/chat"
)

// permissions are what the bot needs in a server, and what for.
var permissions = []struct {
	bit  int64
	name string
}{
	{discordgo.PermissionViewChannel, "View Channels"},
	{discordgo.PermissionSendMessages, "Send Messages"},
	{discordgo.PermissionCreatePublicThreads, "Create Public Threads"},
	{discordgo.PermissionSendMessagesInThreads, "Send Messages in Threads"},
	{discordgo.PermissionReadMessageHistory, "Read Message History"},
	{discordgo.PermissionAttachFiles, "Attach Files"},
	{discordgo.PermissionAddReactions, "Add Reactions"},
}

// invite is the link that brings the bot into a server with exactly the permissions
// it needs.
func invite(app string) string {
	var bits int64
	for _, p := range permissions {
		bits |= p.bit
	}
	q := url.Values{"client_id": {app}, "scope": {"bot applications.commands"}, "permissions": {strconv.FormatInt(bits, 10)}}
	return "https://discord.com/oauth2/authorize?" + q.Encode()
}

// Probe implements chat.Prober.
func (a *Adapter) Probe(ctx context.Context) ([]chat.Finding, error) {
	app, err := call[application](ctx, a.api, http.MethodGet, "/applications/@me", nil)
	if cred, ok := errors.AsType[*chat.CredentialError](a.credential(err)); ok {
		return []chat.Finding{{What: cred.Reason, Fix: cred.Fix}}, nil
	}
	if err != nil {
		return nil, deliveryError(err, repeated)
	}
	a.introduce(app.Bot, app.ID)
	fs := []chat.Finding{{OK: true, What: fmt.Sprintf("token of %s (application %s)", chat.OneLine(app.Bot.Username), app.ID)}}
	if app.readsContent() {
		fs = append(fs, chat.Finding{OK: true, What: "the message content intent is on"})
	} else {
		fs = append(fs, chat.Finding{OK: true, What: "the message content intent is off: in servers the bot reads only messages that mention it, not what follows in its threads", Fix: contentFix})
	}
	guilds, err := a.probeGuilds(ctx, app.ID)
	if err != nil {
		return fs, deliveryError(err, repeated)
	}
	fs = append(fs, guilds...)
	limit, err := a.probeStarts(ctx)
	if err != nil {
		return fs, deliveryError(err, repeated)
	}
	return append(fs, limit...), nil
}

// probeGuilds looks at the permissions in each server.
func (a *Adapter) probeGuilds(ctx context.Context, app string) ([]chat.Finding, error) {
	type guild struct {
		Name        string `json:"name"`
		Permissions string `json:"permissions"`
	}
	guilds, err := call[[]guild](ctx, a.api, http.MethodGet, "/users/@me/guilds", nil)
	if err != nil {
		return nil, err
	}
	if len(guilds) == 0 {
		return []chat.Finding{{What: "the bot is in no server", Fix: "Open " + invite(app) + " and choose your server"}}, nil
	}
	var fs []chat.Finding
	for _, g := range guilds {
		has, err := strconv.ParseInt(g.Permissions, 10, 64)
		var missing []string
		for _, p := range permissions {
			if err == nil && has&p.bit == 0 && has&discordgo.PermissionAdministrator == 0 {
				missing = append(missing, p.name)
			}
		}
		name := chat.OneLine(g.Name)
		if len(missing) > 0 {
			fs = append(fs, chat.Finding{What: fmt.Sprintf("in %s the bot lacks: %s", name, strings.Join(missing, ", ")), Fix: "Open " + invite(app) + " and choose that server again: it gives the bot's role what is missing"})
			continue
		}
		fs = append(fs, chat.Finding{OK: true, What: "the permissions in " + name})
	}
	return fs, nil
}

// probeStarts warns before the day's connections are used up.
func (a *Adapter) probeStarts(ctx context.Context) ([]chat.Finding, error) {
	type start struct {
		Limit struct {
			Remaining  int   `json:"remaining"`
			ResetAfter int64 `json:"reset_after"` // ms
		} `json:"session_start_limit"`
	}
	got, err := call[start](ctx, a.api, http.MethodGet, "/gateway/bot", nil)
	if err != nil {
		return nil, err
	}
	const few = 50
	if got.Limit.Remaining >= few {
		return nil, nil
	}
	return []chat.Finding{{
		What: fmt.Sprintf("only %d connections to the gateway are left for the next %d minutes", got.Limit.Remaining, got.Limit.ResetAfter/60000),
		Fix:  "find out what restarts so often; when none is left Discord resets the token",
	}}, nil
}
