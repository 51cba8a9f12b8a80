package chatcompletions

import (
	"encoding/json"
	"strings"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// calls puts the tool calls of an answer together. Servers number the pieces
// wrongly, or not at all; each call that comes out has an id of its own.
type calls struct {
	issuer string
	ids    *wire.NewCalls
	list   []*call
}

type call struct {
	wireID string
	index  int // as the server numbered it, -1 if it did not
	name   string
	args   strings.Builder
	extra  json.RawMessage
	shown  int // how much of args has been emitted
	opened bool
}

func newCalls(req *llm.Request, newID func() string) calls {
	return calls{issuer: string(req.Model), ids: wire.CallIDs(req, newID)}
}

func (c *calls) any() bool { return len(c.list) > 0 }

// add takes a piece of a call; whole says that it is all of it.
func (c *calls) add(events []llm.Event, d *callDelta, whole bool) []llm.Event {
	i := -1
	if !whole {
		i = c.find(d)
	}
	if i < 0 {
		i = len(c.list)
		c.list = append(c.list, &call{wireID: d.ID, index: -1})
		if d.Index != nil {
			c.list[i].index = *d.Index
		}
	}
	p := c.list[i]
	if p.wireID == "" {
		p.wireID = d.ID
	}
	if p.name == "" {
		p.name = d.Function.Name
	}
	p.args.WriteString(string(d.Function.Arguments))
	if present(d.ExtraContent) {
		p.extra = d.ExtraContent
	}
	if p.name == "" {
		return events // the name may come after the arguments (PST-022)
	}
	return c.show(events, i, present(d.ExtraContent))
}

// find returns the call that a piece belongs to, -1 for a new one. An id decides;
// without one the index does, and without that, or where the index is new, the
// piece goes to the call that was opened last (PST-007, 014, 020, 021).
func (c *calls) find(d *callDelta) int {
	last := len(c.list) - 1
	if d.ID != "" {
		for i := last; i >= 0; i-- {
			p := c.list[i]
			if p.wireID == d.ID && !otherIndex(p, d) && !p.startsAnew(d) {
				return i
			}
		}
		if last >= 0 && c.list[last].wireID == "" && !otherIndex(c.list[last], d) && !c.list[last].startsAnew(d) {
			return last
		}
		return -1
	}
	if d.Index != nil {
		for i := last; i >= 0; i-- {
			if c.list[i].index == *d.Index {
				if c.list[i].startsAnew(d) {
					return -1
				}
				return i
			}
		}
		if d.Function.Name != "" {
			return -1
		}
		return last
	}
	if last >= 0 && c.list[last].startsAnew(d) {
		return -1
	}
	return last
}

// otherIndex says whether the piece is numbered, and not as p.
func otherIndex(p *call, d *callDelta) bool {
	return d.Index != nil && p.index >= 0 && p.index != *d.Index
}

// startsAnew says whether a piece that looks like a part of p is a call of its own:
// it has a name although p has one, and p is complete or has another.
func (p *call) startsAnew(d *callDelta) bool {
	name := d.Function.Name
	if name == "" || p.name == "" {
		return false
	}
	if name != p.name {
		return true
	}
	return d.Function.Arguments != "" && json.Valid([]byte(p.args.String()))
}

// show emits what is new of a call.
func (c *calls) show(events []llm.Event, i int, extra bool) []llm.Event {
	p := c.list[i]
	ev := llm.ToolCallDelta{Index: i, Arguments: p.args.String()[p.shown:]}
	p.shown = p.args.Len()
	if !p.opened {
		p.opened, extra = true, len(p.extra) > 0
		ev.ID, ev.Name = c.ids.Unique(p.wireID), p.name
	}
	if extra {
		ev.Extra, ev.Issuer = p.extra, c.issuer
	}
	return append(events, ev)
}

// end emits what was held back: calls that never got a name, and {} for calls
// without arguments (PST-008) unless the answer was cut.
func (c *calls) end(events []llm.Event, cut bool) []llm.Event {
	for i, p := range c.list {
		if !cut && strings.TrimSpace(p.args.String()) == "" {
			p.args.WriteString("{}")
		}
		if p.name == "" {
			p.name = wire.UnnamedTool
		}
		if !p.opened || p.shown < p.args.Len() {
			events = c.show(events, i, false)
		}
	}
	return events
}

// cut says whether the last call's arguments end in the middle.
func (c *calls) cut() bool {
	return len(c.list) > 0 && wire.CutShort(c.list[len(c.list)-1].args.String())
}

// unfinished says whether the last call has no valid arguments.
func (c *calls) unfinished() bool {
	return len(c.list) > 0 && !json.Valid([]byte(c.list[len(c.list)-1].args.String()))
}
