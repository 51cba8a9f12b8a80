package responses

import (
	"encoding/json"
	"slices"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// fold turns recorded events into ours.
type fold struct {
	model  llm.ModelID
	ids    *wire.NewCalls
	slots  []*slot
	calls  int  // how many slots are calls
	said   bool // some text was
	mused  bool // some thinking was
	over   bool
	finish llm.FinishReason
	usage  llm.Usage
	events []llm.Event
}

var _ wire.Fold = (*fold)(nil)

func newFold(req *llm.Request, newID func() string) *fold {
	return &fold{model: req.Model, ids: wire.CallIDs(req, newID)}
}

// Add implements wire.Fold.
func (f *fold) Add(raw []byte) ([]llm.Event, error) {
	f.events = f.events[:0]
	var ev event
	if err := json.Unmarshal(raw, &ev); err != nil {
		return nil, &llm.Error{Kind: llm.KindNetwork, Message: "unreadable piece of an answer: " + wire.Bounded(string(raw), 200), Err: err}
	}
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		f.say(f.slot(&ev, kindMessage), ev.ContentIndex, ev.Delta)
	case "response.reasoning_summary_text.delta":
		f.muse(f.slot(&ev, kindReasoning), ev.SummaryIndex, ev.Delta)
	case "response.reasoning_text.delta":
		f.muse(f.slot(&ev, kindReasoning), ev.ContentIndex, ev.Delta)
	case "response.function_call_arguments.delta":
		f.argue(f.slot(&ev, kindCall), ev.Delta)
	case "response.function_call_arguments.done":
		s := f.slot(&ev, kindCall)
		f.argue(s, rest(ev.Arguments, s.shown.String()))
	case "response.output_item.added":
		return f.events, f.item(&ev, false)
	case "response.output_item.done":
		return f.events, f.item(&ev, true)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		return f.events, f.conclude(ev.Response)
	case "error":
		return nil, wire.Classify(0, nil, raw)
	case "":
		if ev.Object == "response" {
			return f.events, f.conclude(raw)
		}
		if len(ev.Error) > 0 && string(ev.Error) != "null" {
			return nil, wire.Classify(0, nil, raw)
		}
	}
	return f.events, nil
}

// Progress implements wire.Fold.
func (f *fold) Progress() wire.Progress {
	if f.over {
		return wire.Over
	}
	return wire.Running
}

func (f *fold) say(s *slot, part int, text string) {
	if text == "" {
		return
	}
	lead := ""
	if s.shown.Len() == 0 && f.said || s.shown.Len() > 0 && part != s.part {
		lead = "\n\n"
	}
	if s.shown.Len() > 0 {
		s.shown.WriteString(lead)
	}
	s.shown.WriteString(text)
	s.part, f.said = part, true
	f.events = append(f.events, llm.TextDelta{Text: lead + text})
}

func (f *fold) muse(s *slot, part int, text string) {
	if text == "" {
		return
	}
	lead := ""
	if s.shown.Len() == 0 && f.mused || s.shown.Len() > 0 && part != s.part {
		lead = "\n\n"
	}
	if s.shown.Len() > 0 {
		s.shown.WriteString(lead)
	}
	s.shown.WriteString(text)
	s.part, f.mused = part, true
	f.events = append(f.events, llm.ReasoningDelta{Text: lead + text})
}

// argue takes a part of a call's arguments and shows what can be shown: a call whose
// name has not come yet is held back.
func (f *fold) argue(s *slot, part string) {
	s.shown.WriteString(part)
	if s.name == "" || s.opened && part == "" {
		return
	}
	ev := llm.ToolCallDelta{Index: s.call, Arguments: part}
	if !s.opened {
		s.opened = true
		ev.ID, ev.Name, ev.Arguments = f.ids.Unique(s.callID), s.name, s.shown.String()
	}
	f.events = append(f.events, ev)
}

// item takes an item that begins or is done. What is done is the truth: whatever of
// it did not come in pieces is made up for.
func (f *fold) item(ev *event, done bool) error {
	var it item
	if err := json.Unmarshal(ev.Item, &it); err != nil {
		return &llm.Error{Kind: llm.KindNetwork, Message: "unreadable item of an answer: " + wire.Bounded(string(ev.Item), 200), Err: err}
	}
	kind := kindOf(it.Type)
	if kind == kindOther {
		return nil
	}
	if ev.ItemID == "" {
		ev.ItemID = it.ID
	}
	var s *slot
	if done {
		s = f.slot(ev, kind)
	} else {
		s = f.open(ev, kind)
	}
	if it.Phase != "" {
		s.phase = it.Phase
	}
	f.fill(s, &it, ev.Item, done)
	s.done = s.done || done
	return nil
}

func (f *fold) fill(s *slot, it *item, raw json.RawMessage, done bool) {
	switch s.kind {
	case kindMessage:
		f.say(s, s.part, rest(it.text(), s.shown.String()))
	case kindReasoning:
		f.muse(s, s.part, rest(it.thought(), s.shown.String()))
		if done && it.EncryptedContent != "" {
			s.sealed = seal(raw)
		}
	case kindCall:
		if s.name == "" {
			s.name, s.callID = it.Name, it.CallID
		}
		f.argue(s, rest(it.Arguments, s.shown.String()))
	case kindOther:
	}
}

// conclude takes the response that ends an answer.
func (f *fold) conclude(raw json.RawMessage) error {
	var r response
	if err := json.Unmarshal(raw, &r); err != nil {
		return &llm.Error{Kind: llm.KindNetwork, Message: "unreadable end of an answer: " + wire.Bounded(string(raw), 200), Err: err}
	}
	streamed := len(f.slots) > 0
	for i, raw := range r.Output {
		ev := event{OutputIndex: &i, Item: raw}
		if s := f.find(&ev, kindOther); streamed && (s == nil || s.done) {
			continue
		}
		if err := f.item(&ev, true); err != nil {
			return err
		}
	}
	if r.Usage != nil {
		f.usage = r.Usage.tokens()
	}
	switch r.Status {
	case "failed", "cancelled":
		return wire.Classify(0, nil, r.problem())
	case "in_progress", "queued":
		return wire.ErrCut
	case "incomplete":
		f.finish = llm.FinishLength
		if d := r.IncompleteDetails; d != nil && wire.FinishReason(d.Reason) == llm.FinishFilter {
			f.finish = llm.FinishFilter
		}
	}
	f.over = true
	return nil
}

// problem is the error object of a response that failed.
func (r *response) problem() []byte {
	if len(r.Error) > 0 && string(r.Error) != "null" {
		return r.Error
	}
	return []byte(`{"code":"server_error","message":"the provider broke off the answer"}`)
}

// End implements wire.Fold.
func (f *fold) End(bool) ([]llm.Event, error) {
	if !f.over {
		return nil, wire.ErrCut
	}
	f.events = f.events[:0]
	var layout wire.Layout
	last := (*slot)(nil)
	for _, s := range f.slots {
		if s.kind == kindCall {
			last = s
		}
	}
	if f.finish == "" && last != nil {
		f.finish = llm.FinishToolCalls
	}
	if last != nil && wire.CutShort(last.shown.String()) {
		f.finish = llm.FinishLength
	}
	for _, s := range f.slots {
		if s.kind == kindCall {
			f.settle(s)
		}
		if p, ok := s.piece(); ok {
			layout = append(layout, p)
		}
	}
	if raw := layout.Encode(); raw != nil {
		f.events = append(f.events, llm.ReasoningItem{Raw: raw, Issuer: string(f.model)})
	}
	switch {
	case f.finish != "":
	case f.silent():
		f.finish = llm.FinishSilent
	default:
		f.finish = llm.FinishStop
	}
	return append(f.events, llm.Finished{Reason: f.finish, Usage: f.usage, Model: f.model}), nil
}

// silent says that the model closed a message without a word in it, which is an
// answer. One that only thought has none.
func (f *fold) silent() bool {
	return !f.said && slices.ContainsFunc(f.slots, func(s *slot) bool { return s.kind == kindMessage && s.done && s.phase != "commentary" })
}

// settle shows what was held back of a call: one that never got a name, and {} for
// one without arguments (PST-008) unless the answer was cut.
func (f *fold) settle(s *slot) {
	if s.name == "" {
		s.name = wire.UnnamedTool
	}
	missing := ""
	if wire.Blank(s.shown.String()) && f.finish != llm.FinishLength {
		missing = "{}"
	}
	f.argue(s, missing)
}
