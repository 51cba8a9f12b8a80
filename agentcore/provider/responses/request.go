package responses

import (
	"encoding/json"

	openai "github.com/sashabaranov/go-openai"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

const (
	// maxID is the longest tool call id that the API takes.
	maxID = 64
	// maxImage bounds an encoded image.
	maxImage = 20 << 20
	// leastOutput is the smallest limit of an answer.
	leastOutput = 16
)

// body is the request as it is sent. What grows stands at the end of what stays, and
// what may differ between two calls of a conversation behind it, so that a cache of
// prefixes sees the same bytes.
type body struct {
	Model           string                    `json:"model"`
	Instructions    string                    `json:"instructions,omitempty"`
	Tools           []function                `json:"tools,omitempty"`
	Input           []any                     `json:"input"`
	ToolChoice      string                    `json:"tool_choice,omitempty"`
	Include         []openai.ResponseInclude  `json:"include,omitempty"`
	Reasoning       *openai.ResponseReasoning `json:"reasoning,omitempty"`
	MaxOutputTokens int                       `json:"max_output_tokens,omitempty"`
	PromptCacheKey  string                    `json:"prompt_cache_key,omitempty"`
	Store           bool                      `json:"store"`
	Stream          bool                      `json:"stream"`
}

type function struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// functionCall is an input item that the library has no type for.
type functionCall struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// newBody translates a request. The messages must be legal already; what is mended
// here is the form only.
func newBody(req *llm.Request, q quirk) *body {
	_, model := req.Model.Split()
	b := &body{Model: model, Input: input(req, q), Stream: true}
	if !wire.Blank(req.System) {
		b.Instructions = req.System
	}
	b.tools(req, q)
	if !q.has(quirkNoEncrypted) {
		b.Include = []openai.ResponseInclude{openai.ResponseIncludeReasoningEncryptedContent}
	}
	if req.Reasoning != "" && !q.has(quirkNoEffort) {
		b.Reasoning = &openai.ResponseReasoning{Effort: req.Reasoning}
		if !q.has(quirkNoSummary) {
			b.Reasoning.Summary = "auto"
		}
	}
	if req.MaxOutput > 0 && !q.has(quirkNoLimit) {
		b.MaxOutputTokens = max(req.MaxOutput, leastOutput)
	}
	if !q.has(quirkNoCacheKey) {
		b.PromptCacheKey = req.CacheKey
	}
	return b
}

func (b *body) tools(req *llm.Request, q quirk) {
	if req.NoTools && q.has(quirkNoToolChoice) {
		return
	}
	for _, t := range req.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		b.Tools = append(b.Tools, function{Type: "function", Name: t.Name, Description: t.Description, Parameters: schema})
	}
	if req.NoTools && len(b.Tools) > 0 {
		b.ToolChoice = "none"
	}
}

// translation is the state of translating a history.
type translation struct {
	issuer string
	quirks quirk
	ids    *wire.IDs
	out    []any
}

func input(req *llm.Request, q quirk) []any {
	t := &translation{issuer: string(req.Model), quirks: q, ids: wire.NewIDs(wire.IDRule{Max: maxID})}
	for i, m := range req.Messages {
		ephemeral := ""
		if i == len(req.Messages)-1 {
			ephemeral = req.Ephemeral
		}
		switch m.Role {
		case llm.Assistant:
			t.assistant(m)
		case llm.ToolRole:
			t.result(m, ephemeral)
		default:
			t.out = append(t.out, openai.ResponseInputMessage{Type: "message", Role: string(m.Role), Content: t.parts(m, wire.EmptyMessage, ephemeral)})
		}
	}
	return t.out
}

// assistant says an answer as it was given. A thought wants something to follow it;
// where nothing does, a placeholder is said (PRV-010).
func (t *translation) assistant(m llm.Message) {
	pieces, _ := wire.LayoutOf(m, t.issuer)
	t.ids.Turn()
	said := false
	pieces.Walk(m, func(p wire.Piece, text string, call *llm.ToolCall) {
		switch {
		case call != nil:
			t.out = append(t.out, functionCall{"function_call", t.ids.Call(call.ID), wire.ToolName(call.Name), wire.Arguments(call.Arguments)})
			said = true
		case len(p.Item) > 0 && !t.quirks.has(quirkNoReplay):
			t.out = append(t.out, p.Item)
			said = false
		case !wire.Blank(text):
			t.say(text, p.Phase)
			said = true
		}
	})
	if !said {
		t.say(wire.EmptyMessage, "")
	}
}

func (t *translation) say(text, phase string) {
	if t.quirks.has(quirkNoPhase) {
		phase = ""
	}
	t.out = append(t.out, openai.ResponseInputMessage{Type: "message", Role: string(llm.Assistant), Content: text, Phase: phase})
}

// result takes the images of a result along (PRV-031).
func (t *translation) result(m llm.Message, ephemeral string) {
	out := openai.ResponseFunctionCallOutput{Type: "function_call_output", CallID: t.ids.Result(m.ToolCallID)}
	pictured := false
	for _, p := range m.Parts {
		pictured = pictured || p.Image != nil
	}
	if pictured {
		out.Output = t.parts(m, wire.EmptyResult, ephemeral)
	} else {
		text := m.Text()
		if wire.Blank(text) {
			text = wire.EmptyResult
		}
		out.Output = wire.Paragraphs(text, ephemeral)
	}
	t.out = append(t.out, out)
}

// parts returns the message's parts that are not blank, or else the placeholder, and
// the notice.
func (t *translation) parts(m llm.Message, placeholder, ephemeral string) []any {
	var out []any
	for _, p := range m.Parts {
		switch {
		case p.Image != nil:
			out = append(out, t.image(p.Image))
		case !wire.Blank(p.Text):
			out = append(out, inputText(p.Text))
		}
	}
	if len(out) == 0 {
		out = append(out, inputText(placeholder))
	}
	if ephemeral != "" {
		out = append(out, inputText(ephemeral))
	}
	return out
}

func (t *translation) image(i *llm.Image) any {
	if t.quirks.has(quirkNoImages) {
		return inputText(wire.BlindNotice)
	}
	mime, data, notice := wire.Picture(i, maxImage)
	if notice != "" {
		return inputText(notice)
	}
	return openai.ResponseInputImage{Type: "input_image", Detail: "auto", ImageURL: "data:" + mime + ";base64," + data}
}

func inputText(s string) openai.ResponseInputText {
	return openai.ResponseInputText{Type: "input_text", Text: s}
}
