package llm

import (
	"context"
	"iter"
	"sort"
	"strings"
)

// Collector folds a stream's events into a Response. The zero value is ready.
type Collector struct {
	text, thought strings.Builder
	calls         map[int]*callParts
	raw           ReasoningItem
	finished      *Finished
}

type callParts struct {
	call ToolCall
	args strings.Builder
}

// Add takes the next event.
func (c *Collector) Add(ev Event) {
	switch ev := ev.(type) {
	case TextDelta:
		c.text.WriteString(ev.Text)
	case ReasoningDelta:
		c.thought.WriteString(ev.Text)
	case ToolCallDelta:
		c.addCall(ev)
	case ReasoningItem:
		c.raw = ev
	case Restarted:
		*c = Collector{}
	case Finished:
		c.finished = &ev
	}
}

func (c *Collector) addCall(ev ToolCallDelta) {
	if c.calls == nil {
		c.calls = map[int]*callParts{}
	}
	p := c.calls[ev.Index]
	if p == nil {
		p = &callParts{}
		c.calls[ev.Index] = p
	}
	if ev.ID != "" {
		p.call.ID = ev.ID
	}
	if ev.Name != "" {
		p.call.Name = ev.Name
	}
	if len(ev.Extra) > 0 {
		p.call.Extra, p.call.Issuer = ev.Extra, ev.Issuer
	}
	p.args.WriteString(ev.Arguments)
}

// Response returns what was collected; ok is false unless Finished was seen.
func (c *Collector) Response() (r Response, ok bool) {
	r.Message.Role = Assistant
	if s := c.text.String(); s != "" {
		r.Message.Parts = []Part{{Text: s}}
	}
	if c.thought.Len() > 0 || len(c.raw.Raw) > 0 {
		r.Message.Reasoning = &Reasoning{Text: c.thought.String(), Raw: c.raw.Raw, Issuer: c.raw.Issuer}
	}
	idx := make([]int, 0, len(c.calls))
	for i := range c.calls {
		idx = append(idx, i)
	}
	sort.Ints(idx)
	for _, i := range idx {
		p := c.calls[i]
		p.call.Arguments = p.args.String()
		r.Message.ToolCalls = append(r.Message.ToolCalls, p.call)
	}
	if c.finished == nil {
		return r, false
	}
	r.Finish, r.Usage, r.Model = c.finished.Reason, c.finished.Usage, c.finished.Model
	return r, true
}

// Collect makes a stream non-streaming. A sequence that ends without Finished is
// a *Error of KindNetwork: the answer was cut.
func Collect(ctx context.Context, seq iter.Seq2[Event, error]) (Response, error) {
	var c Collector
	for ev, err := range seq {
		if err != nil {
			return Response{}, err
		}
		c.Add(ev)
	}
	r, ok := c.Response()
	if !ok {
		if err := ctx.Err(); err != nil {
			return Response{}, err
		}
		return Response{}, &Error{Kind: KindNetwork, Message: "the answer was cut off"}
	}
	return r, nil
}
