package chatcompletions

import (
	"encoding/json"
	"strings"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// fold turns recorded chunks into events. It is pure but for the ids that it makes
// for calls that have none; it does no I/O and knows no clock.
type fold struct {
	model  llm.ModelID
	limit  int
	calls  calls
	think  thinkFilter
	keep   bool // reasoning_content is to be replayed
	finish llm.FinishReason
	usage  llm.Usage
	// details and thought are what the issuer wants back.
	details details
	thought strings.Builder
	events  []llm.Event
}

func newFold(req *llm.Request, d dialect, newID func() string) *fold {
	return &fold{
		model: req.Model, limit: req.MaxOutput, keep: d.reasoningContent,
		calls: newCalls(req, newID),
	}
}

// Add implements wire.Fold.
func (f *fold) Add(raw []byte) ([]llm.Event, error) {
	f.events = f.events[:0]
	ck, err := decode(raw)
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindNetwork, Message: "unreadable piece of an answer: " + wire.Bounded(string(raw), 200), Err: err}
	}
	if ck.failed() {
		return nil, wire.Classify(0, nil, raw)
	}
	f.count(&ck)
	if len(ck.Choices) == 0 {
		return f.events, nil
	}
	ch := &ck.Choices[0]
	if d := ch.Message; d != nil {
		f.delta(d, true)
	}
	if d := ch.Delta; d != nil {
		f.delta(d, false)
	}
	return f.events, f.reason(ch.FinishReason)
}

func (f *fold) count(ck *chunk) {
	for _, u := range []*usage{ck.Usage, ck.usageElsewhere()} {
		if u != nil {
			f.usage = u.tokens()
			return
		}
	}
}

func (ck *chunk) usageElsewhere() *usage {
	if ck.XGroq != nil {
		return ck.XGroq.Usage
	}
	if len(ck.Choices) > 0 {
		return ck.Choices[0].Usage
	}
	return nil
}

func (f *fold) reason(s string) error {
	switch s {
	case "error":
		return &llm.Error{Kind: llm.KindOverloaded, Message: "the provider broke off the answer"}
	case "insufficient_system_resource":
		return &llm.Error{Kind: llm.KindOverloaded, Message: "the provider has not enough resources"}
	}
	if r := wire.FinishReason(s); r != "" {
		f.finish = r
	}
	return nil
}

// delta takes a piece of the message; whole says that it is all of it.
func (f *fold) delta(d *delta, whole bool) {
	f.reasoning(d)
	if d.Content.thought != "" {
		f.muse(d.Content.thought)
	}
	if d.Content.said != "" {
		thought, said := f.think.add(d.Content.said)
		f.muse(thought)
		f.say(said)
	}
	f.say(d.Refusal) // a refusal is an answer (PRV-009)
	for i := range d.ToolCalls {
		f.events = f.calls.add(f.events, &d.ToolCalls[i], whole)
	}
}

// reasoning takes the thinking, of which servers send up to three copies.
func (f *fold) reasoning(d *delta) {
	plain := f.details.add(d.ReasoningDetails)
	switch {
	case d.ReasoningContent.said != "":
		plain = d.ReasoningContent.said
		if f.keep {
			f.thought.WriteString(plain)
		}
	case d.Reasoning.said != "":
		plain = d.Reasoning.said
	}
	f.muse(plain)
}

func (f *fold) muse(s string) {
	if s != "" {
		f.events = append(f.events, llm.ReasoningDelta{Text: s})
	}
}

func (f *fold) say(s string) {
	if s != "" {
		f.events = append(f.events, llm.TextDelta{Text: s})
	}
}

// Progress implements wire.Fold.
func (f *fold) Progress() wire.Progress {
	if f.finish != "" {
		return wire.Settling
	}
	return wire.Running
}

// End implements wire.Fold.
func (f *fold) End(done bool) ([]llm.Event, error) {
	if f.finish == "" && !done {
		return nil, wire.ErrCut
	}
	f.events = f.events[:0]
	thought, said := f.think.end()
	f.muse(thought)
	f.say(said)
	f.conclude()
	f.events = f.calls.end(f.events, f.finish == llm.FinishLength)
	if item := f.item(); item != nil {
		f.events = append(f.events, llm.ReasoningItem{Raw: item, Issuer: string(f.model)})
	}
	f.events = append(f.events, llm.Finished{Reason: f.finish, Usage: f.usage, Model: f.model})
	return f.events, nil
}

// conclude settles why the model stopped. A missing reason is a stop; some servers
// say stop with calls; a last call that ends in the middle was cut by the limit
// whatever the server says (PRV-019).
func (f *fold) conclude() {
	switch {
	case f.calls.cut() || f.limit > 0 && f.usage.Output >= f.limit && f.calls.unfinished():
		f.finish = llm.FinishLength
	case f.finish == "" || f.finish == llm.FinishStop:
		f.finish = llm.FinishStop
		if f.calls.any() {
			f.finish = llm.FinishToolCalls
		}
	}
}

// item is what the issuer wants back, nil for nothing.
func (f *fold) item() json.RawMessage {
	var r replay
	if s := f.thought.String(); s != "" {
		r.ReasoningContent = &s
	}
	r.ReasoningDetails = f.details.join()
	if r.ReasoningContent == nil && r.ReasoningDetails == nil {
		return nil
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return raw
}
