package discord

import (
	"context"
	"net/http"
	"net/url"

	"parley/gateway/chat"
)

// reactions are the emoji of each state.
var reactions = map[chat.Reaction]string{chat.ReactSeen: "👀", chat.ReactWorking: "⏳", chat.ReactDone: "✅", chat.ReactFailed: "❌"}

// React implements chat.Reactor. A bot may set many reactions, so what it has set of
// its own is taken back first; Discord is asked what that is only where an earlier
// process may have done it.
func (a *Adapter) React(ctx context.Context, to chat.Address, id chat.MessageID, r chat.Reaction) error {
	where, message, ok := split(to, id)
	if !ok {
		return nil
	}
	path := "/channels/" + where + "/messages/" + message
	want := reactions[r]
	var err error
	s, _ := a.recent.get(message)
	set := []string{s.mark}
	if !s.marked {
		set, err = a.mine(ctx, path)
	}
	for _, emoji := range set {
		if err == nil && emoji != "" && emoji != want {
			_, err = call[none](ctx, a.api, http.MethodDelete, path+"/reactions/"+url.PathEscape(emoji)+"/@me", nil)
		}
	}
	if err == nil && want != "" {
		_, err = call[none](ctx, a.api, http.MethodPut, path+"/reactions/"+url.PathEscape(want)+"/@me", nil)
	}
	a.recent.mark(message, want, err == nil)
	if coded(err, codeNoPermission, codeNoEntry, codeUnknownMessage, codeUnknownReact, codeBlockedReacts) {
		return nil // some channels allow none: that is nobody's error
	}
	return deliveryError(err, repeated)
}

// mine are the reactions of this kind that the bot has set on a message.
func (a *Adapter) mine(ctx context.Context, path string) ([]string, error) {
	m, err := call[message](ctx, a.api, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	var set []string
	for _, r := range m.Reactions {
		for _, emoji := range reactions {
			if r.Me && r.Emoji.Name == emoji {
				set = append(set, emoji)
			}
		}
	}
	return set, nil
}
