package discord

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"parley/gateway/chat"
)

// command is a slash command as Discord registers it.
type command struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Kind        int      `json:"type"`
	Options     []option `json:"options"`
	Contexts    []int    `json:"contexts"`
	Installed   []int    `json:"integration_types"`
}

// option is the one argument of a command: everything that follows its name.
type option struct {
	Kind        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

const (
	commandText  = 100 // characters of a description
	chatInput    = 1   // the kind of command that begins with a slash
	stringOption = 3
)

// PublishCommands implements chat.CommandPublisher. Registering is limited to few a
// day, so it is done only if something has changed. Who may use what is decided by
// parley, not by Discord.
func (a *Adapter) PublishCommands(ctx context.Context, cmds []chat.CommandInfo) error {
	app, err := a.identity(ctx)
	if err != nil {
		return deliveryError(err, repeated)
	}
	want := []command{}
	for _, c := range cmds[:min(len(cmds), commandLimit)] {
		// Contexts: servers and direct chats with the bot; installed: in servers.
		one := command{Name: strings.ToLower(c.Name), Description: clip(c.Description, commandText), Kind: chatInput, Contexts: []int{0, 1}, Installed: []int{0}}
		if c.Args != "" {
			one.Options = []option{{stringOption, "text", clip(c.Args, commandText)}}
		}
		want = append(want, one)
	}
	path := "/applications/" + app + "/commands"
	have, err := call[[]command](ctx, a.api, http.MethodGet, path, nil)
	if err != nil {
		return deliveryError(err, repeated)
	}
	if reflect.DeepEqual(normal(have), normal(want)) {
		return nil
	}
	_, err = call[[]command](ctx, a.api, http.MethodPut, path, want)
	return deliveryError(err, repeated)
}

// normal makes two lists of commands comparable.
func normal(list []command) []command {
	out := slices.Clone(list)
	for i := range out {
		if len(out[i].Options) == 0 {
			out[i].Options = nil
		}
		slices.Sort(out[i].Contexts)
	}
	slices.SortFunc(out, func(a, b command) int { return strings.Compare(a.Name, b.Name) })
	return out
}
