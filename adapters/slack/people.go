package slack

import (
	"context"
	"sync"
	"time"

	"parley/gateway/chat"
)

const (
	nameLimit  = 1500 * time.Millisecond // for asking for a name
	nameFresh  = 6 * time.Hour           // how long a name is believed
	nameFailed = 10 * time.Minute        // how long it is not asked for again
	namesMost  = 5000
)

// people remembers what people are called. Names are for display alone, so one that
// cannot be had is empty. It is safe for concurrent use.
type people struct {
	api *client

	mu    sync.Mutex
	names map[string]named
}

type named struct {
	name  string
	until time.Time
}

func newPeople(api *client) *people { return &people{api: api, names: map[string]named{}} }

// name returns the name of a member; people of other workspaces have one too, if
// they share a channel.
func (p *people) name(ctx context.Context, id string) string {
	if id == "" {
		return ""
	}
	now := time.Now()
	p.mu.Lock()
	known, ok := p.names[id]
	p.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.name
	}
	cctx, cancel := context.WithTimeout(ctx, nameLimit)
	defer cancel()
	u, err := p.api.GetUserInfoContext(cctx, id)
	n := named{until: now.Add(nameFailed)}
	if err == nil {
		n = named{name: u.Profile.DisplayName, until: now.Add(nameFresh)}
		if n.name == "" {
			n.name = u.RealName
		}
		if n.name == "" {
			n.name = u.Name
		}
		n.name = chat.OneLine(n.name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.names) >= namesMost {
		clear(p.names)
	}
	p.names[id] = n
	return n.name
}
