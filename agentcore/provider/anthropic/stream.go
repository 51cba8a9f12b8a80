package anthropic

import (
	"encoding/json"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// fold turns recorded events into ours.
type fold struct {
	model  llm.ModelID
	signed bool // thinking without a signature is worth nothing
	ids    *wire.NewCalls
	parts  []*part
	calls  int  // how many parts are calls
	said   bool // some text was
	mused  bool // some thinking was
	over   bool
	finish llm.FinishReason
	usage  usage
	events []llm.Event
}

var _ wire.Fold = (*fold)(nil)

func newFold(req *llm.Request, native bool, newID func() string) *fold {
	return &fold{model: req.Model, signed: native, ids: wire.CallIDs(req, newID)}
}

// event is one event of a stream, or a whole message: a superset of what we look at.
// Everything is optional.
type event struct {
	Type         string          `json:"type"`
	Index        *int            `json:"index"`
	Delta        delta           `json:"delta"`
	ContentBlock json.RawMessage `json:"content_block"`
	Message      *message        `json:"message"`
	Usage        *usage          `json:"usage"`
	Error        json.RawMessage `json:"error"`
	// Content and StopReason are those of a whole message.
	Content    []json.RawMessage `json:"content"`
	StopReason string            `json:"stop_reason"`
}

type delta struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Thinking    string `json:"thinking"`
	Signature   string `json:"signature"`
	PartialJSON string `json:"partial_json"`
	StopReason  string `json:"stop_reason"`
}

type message struct {
	Usage *usage `json:"usage"`
}

// usage is nil where an event does not say.
type usage struct {
	Input      *int `json:"input_tokens"`
	Output     *int `json:"output_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
}

// Add implements wire.Fold.
func (f *fold) Add(raw []byte) ([]llm.Event, error) {
	f.events = f.events[:0]
	var ev event
	if err := json.Unmarshal(raw, &ev); err != nil {
		return nil, &llm.Error{Kind: llm.KindNetwork, Message: "unreadable piece of an answer: " + wire.Bounded(string(raw), 200), Err: err}
	}
	f.usage.update(ev.Usage)
	switch ev.Type {
	case "content_block_delta":
		f.delta(&ev)
	case "content_block_start":
		f.begin(ev.Index, ev.ContentBlock)
	case "message_start":
		if ev.Message != nil {
			f.usage.update(ev.Message.Usage)
		}
	case "message_delta":
		f.stop(ev.Delta.StopReason)
	case "message_stop":
		f.stop("")
		f.over = true
	case "message":
		for _, b := range ev.Content {
			f.begin(nil, b)
		}
		f.stop(ev.StopReason)
		f.over = true
	case "error":
		return nil, wire.Classify(0, nil, raw)
	case "":
		if len(ev.Error) > 0 && string(ev.Error) != "null" {
			return nil, wire.Classify(0, nil, raw)
		}
	}
	return f.events, nil
}

// Progress implements wire.Fold.
func (f *fold) Progress() wire.Progress {
	switch {
	case f.over:
		return wire.Over
	case f.finish != "":
		return wire.Settling
	}
	return wire.Running
}

func (f *fold) stop(reason string) {
	if r := wire.FinishReason(reason); r != "" {
		f.finish = r
	}
}

func (f *fold) say(p *part, text string) {
	if text == "" {
		return
	}
	p.text.WriteString(text)
	if p.text.Len() == len(text) && f.said {
		text = "\n\n" + text
	}
	f.said = true
	f.events = append(f.events, llm.TextDelta{Text: text})
}

func (f *fold) muse(p *part, text string) {
	if text == "" {
		return
	}
	p.text.WriteString(text)
	if p.text.Len() == len(text) && f.mused {
		text = "\n\n" + text
	}
	f.mused = true
	f.events = append(f.events, llm.ReasoningDelta{Text: text})
}

func (f *fold) argue(p *part, arguments string) {
	if arguments == "" {
		return
	}
	p.text.WriteString(arguments)
	f.events = append(f.events, llm.ToolCallDelta{Index: p.call, Arguments: arguments})
}

func (f *fold) delta(ev *event) {
	p := f.find(ev.Index)
	if p == nil {
		return
	}
	d := &ev.Delta
	switch {
	case d.Type == "text_delta" && p.kind == kindText:
		f.say(p, d.Text)
	case d.Type == "thinking_delta" && p.kind == kindThinking:
		f.muse(p, d.Thinking)
	case d.Type == "signature_delta" && p.kind == kindThinking:
		p.signature += d.Signature
	case d.Type == "input_json_delta" && p.kind == kindCall:
		f.argue(p, d.PartialJSON)
	case p.kind == kindOther:
		p.spoiled = true
	}
}

// End implements wire.Fold.
func (f *fold) End(bool) ([]llm.Event, error) {
	if f.finish == "" && !f.over {
		return nil, wire.ErrCut
	}
	f.events = f.events[:0]
	last := (*part)(nil)
	for _, p := range f.parts {
		if p.kind == kindCall {
			last = p
		}
	}
	switch {
	case last != nil && wire.CutShort(last.text.String()):
		f.finish = llm.FinishLength
	case last != nil && f.finish == llm.FinishStop, last != nil && f.finish == "":
		f.finish = llm.FinishToolCalls
	case f.finish == "":
		f.finish = llm.FinishStop
	}
	var layout wire.Layout
	for _, p := range f.parts {
		if p.kind == kindCall && wire.Blank(p.text.String()) && f.finish != llm.FinishLength {
			f.argue(p, p.input)
		}
		if piece, ok := p.piece(f.signed); ok {
			layout = append(layout, piece)
		}
	}
	if raw := layout.Encode(); raw != nil {
		f.events = append(f.events, llm.ReasoningItem{Raw: raw, Issuer: string(f.model)})
	}
	return append(f.events, llm.Finished{Reason: f.finish, Usage: f.usage.tokens(), Model: f.model}), nil
}

func (u *usage) update(v *usage) {
	if v == nil {
		return
	}
	for _, field := range []struct{ to, from **int }{
		{&u.Input, &v.Input}, {&u.Output, &v.Output}, {&u.CacheRead, &v.CacheRead}, {&u.CacheWrite, &v.CacheWrite},
	} {
		if *field.from != nil {
			*field.to = *field.from
		}
	}
}

// tokens makes the usage ours: the API counts what it read from the cache, and what it
// wrote there, apart from the rest of the input.
func (u *usage) tokens() llm.Usage {
	n := func(p *int) int {
		if p == nil {
			return 0
		}
		return *p
	}
	return llm.Usage{
		Input: n(u.Input) + n(u.CacheRead) + n(u.CacheWrite), CachedInput: n(u.CacheRead), CacheWrite: n(u.CacheWrite), Output: n(u.Output),
	}
}
