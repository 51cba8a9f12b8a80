package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/gateway/chat"
)

// Probe implements chat.Prober: tokens, scopes and the way in, each with the next
// step. What is wrong with the app itself is mended by its manifest, so the link to
// it comes with it.
func (a *Adapter) Probe(ctx context.Context) ([]chat.Finding, error) {
	link, err := NewManifest(a.deps.Commands, a.requestURL()).Link()
	if err != nil {
		return nil, err
	}
	cctx, cancel := limited(ctx)
	defer cancel()
	self, err := a.api.AuthTestContext(cctx)
	if cred, ok := errors.AsType[*chat.CredentialError](a.credential(err, false)); ok {
		return []chat.Finding{{What: cred.Reason, Fix: cred.Fix + ". A new app is made with one click: " + link}}, nil
	}
	if err != nil {
		return nil, deliveryError(err, repeated)
	}
	fs := []chat.Finding{{OK: true, What: fmt.Sprintf("bot token of %s in the workspace %s", self.User, self.Team)}}
	fs = append(fs, a.probeScopes(strings.Split(self.Header.Get("X-OAuth-Scopes"), ","), link))
	if a.cfg.Mode == modeEvents {
		return append(fs, a.probeEvents()), nil
	}
	return append(fs, a.probeSocket(ctx)), nil
}

// probeScopes compares what was granted with what the manifest asks for.
func (a *Adapter) probeScopes(granted []string, link string) chat.Finding {
	missing := slices.DeleteFunc(slices.Clone(botScopes), func(s string) bool {
		return slices.ContainsFunc(granted, func(g string) bool { return strings.TrimSpace(g) == s })
	})
	if len(missing) == 0 {
		return chat.Finding{OK: true, What: fmt.Sprintf("all %d scopes are granted", len(botScopes))}
	}
	return chat.Finding{
		What: "the bot token lacks the scopes " + strings.Join(missing, ", "),
		Fix:  "put deploy/slack-manifest.yaml into the app's page App Manifest, save, and install the app again: scopes count from the next installation. Or make a new app: " + link,
	}
}

func (a *Adapter) probeEvents() chat.Finding {
	if a.deps.PublicURL == "" {
		return chat.Finding{What: "mode events needs http.public_url", Fix: "set http.public_url to the https address under which Slack reaches parley"}
	}
	return chat.Finding{OK: true, What: "events come to " + a.requestURL() + "; this must stand as Request URL in Event Subscriptions, Interactivity and each command"}
}

func (a *Adapter) probeSocket(ctx context.Context) chat.Finding {
	ctx, cancel := limited(ctx)
	defer cancel()
	err := error(errNoAppToken)
	if !a.cfg.AppToken.Empty() {
		_, _, err = a.api.StartSocketModeContext(ctx)
	}
	if cred, ok := errors.AsType[*chat.CredentialError](a.credential(err, true)); ok {
		return chat.Finding{What: cred.Reason, Fix: cred.Fix}
	}
	if err != nil {
		return chat.Finding{What: "Socket Mode: " + explain(err), Fix: "switch it on: the app's page, Socket Mode"}
	}
	return chat.Finding{OK: true, What: "the app-level token opens sockets"}
}
