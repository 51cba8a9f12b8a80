package providertest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// responsesAPI is OpenAI's Responses.
type responsesAPI struct{}

func (responsesAPI) key(h http.Header) string { return bearer(h) }

func (responsesAPI) problem(r *refusal) any { return problem(r) }

func (responsesAPI) failure() string {
	return `{"type":"error","code":"server_error","message":"The server had an error while processing your request.","param":null,"sequence_number":9}`
}

func (responsesAPI) voice(p *player) voice { return &responsesVoice{player: p} }

// responsesWire is the request's shape: every field of CreateResponse in OpenAI's
// specification.
type responsesWire struct {
	Model           string            `json:"model"`
	Instructions    *string           `json:"instructions"`
	Input           []json.RawMessage `json:"input"`
	Tools           []responsesTool   `json:"tools"`
	ToolChoice      json.RawMessage   `json:"tool_choice"`
	Stream          *bool             `json:"stream"`
	Store           *bool             `json:"store"`
	Include         []string          `json:"include"`
	Reasoning       *responsesEffort  `json:"reasoning"`
	MaxOutputTokens *int              `json:"max_output_tokens"`
	PromptCacheKey  *string           `json:"prompt_cache_key"`
	responsesOther
}

// responsesOther are the fields that the fake does not look into.
type responsesOther struct {
	StreamOptions        json.RawMessage `json:"stream_options"`
	ParallelToolCalls    *bool           `json:"parallel_tool_calls"`
	Temperature          *float64        `json:"temperature"`
	TopP                 *float64        `json:"top_p"`
	Text                 json.RawMessage `json:"text"`
	Truncation           json.RawMessage `json:"truncation"`
	Metadata             json.RawMessage `json:"metadata"`
	User                 json.RawMessage `json:"user"`
	SafetyIdentifier     json.RawMessage `json:"safety_identifier"`
	ServiceTier          json.RawMessage `json:"service_tier"`
	MaxToolCalls         json.RawMessage `json:"max_tool_calls"`
	PromptCacheRetention json.RawMessage `json:"prompt_cache_retention"`
	PromptCacheOptions   json.RawMessage `json:"prompt_cache_options"`
	ContextManagement    json.RawMessage `json:"context_management"`
	Moderation           json.RawMessage `json:"moderation"`
	Background           json.RawMessage `json:"background"`
	TopLogprobs          json.RawMessage `json:"top_logprobs"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

type responsesEffort struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

// CheckResponses says whether the body of a Responses request is valid, as strictly
// as a Server does.
func CheckResponses(body []byte) error { return failed(responsesAPI{}.parse(body, nil, Options{})) }

func (responsesAPI) parse(raw []byte, _ http.Header, o Options) (Request, *refusal) {
	var req Request
	if r := readable(raw); r != nil {
		return req, r
	}
	var w responsesWire
	if err := strictly(raw, &w); err != nil {
		return req, refuse("", "Unknown parameter or wrong type: %v", err)
	}
	if r := o.known(w.Model); r != nil {
		return req, r
	}
	req.Model, req.Stream = w.Model, w.Stream != nil && *w.Stream
	if r := w.settings(&req); r != nil {
		return req, r
	}
	if r := w.tools(&req); r != nil {
		return req, r
	}
	if len(w.Input) == 0 {
		return req, refuse("input", "Invalid 'input': expected at least one item.")
	}
	h := itemHistory{model: w.Model, stored: w.Store == nil || *w.Store, calls: callBook{longest: 64}}
	if w.Instructions != nil {
		h.out = append(h.out, Message{Role: "system", Text: *w.Instructions})
	}
	for i, item := range w.Input {
		if r := h.add(fmt.Sprintf("input[%d]", i), item); r != nil {
			return req, r
		}
	}
	if r := h.end(); r != nil {
		return req, r
	}
	req.Messages = h.out
	return req, o.overflow(raw)
}

func (w *responsesWire) settings(req *Request) *refusal {
	includes := []string{"reasoning.encrypted_content", "message.input_image.image_url", "message.output_text.logprobs", "web_search_call.results"}
	for _, in := range w.Include {
		if !slices.Contains(includes, in) {
			return refuse("include", "Invalid value: '%s'.", in)
		}
	}
	if w.MaxOutputTokens != nil {
		if req.MaxTokens = *w.MaxOutputTokens; req.MaxTokens < 16 {
			return refuse("max_output_tokens", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", req.MaxTokens)
		}
	}
	if w.Reasoning != nil && w.Reasoning.Effort != nil {
		if req.ReasoningEffort = *w.Reasoning.Effort; !slices.Contains(efforts, req.ReasoningEffort) {
			return refuse("reasoning.effort", "Invalid value: '%s'.", req.ReasoningEffort)
		}
	}
	if w.PromptCacheKey != nil {
		req.CacheKey = *w.PromptCacheKey
	}
	if w.Instructions != nil && strings.TrimSpace(*w.Instructions) == "" {
		return refuse("instructions", "blank instructions")
	}
	return nil
}

func (w *responsesWire) tools(req *Request) *refusal {
	seen := map[string]bool{}
	for i, t := range w.Tools {
		param := fmt.Sprintf("tools[%d]", i)
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case t.Type != "function":
			return refuse(param+".type", "Invalid value: '%s'.", t.Type)
		case !toolNames.MatchString(t.Name):
			return refuse(param+".name", "Invalid '%s.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.", param)
		case seen[t.Name]:
			return refuse(param+".name", "Tool names must be unique: %s", t.Name)
		case t.Strict == nil:
			return refuse(param+".strict", "Missing required parameter: '%s.strict'.", param)
		case json.Unmarshal(t.Parameters, &schema) != nil || schema.Type != "object":
			return refuse(param+".parameters", "Invalid schema for function '%s': schema must be of 'type: \"object\"'.", t.Name)
		}
		seen[t.Name] = true
		tool := Tool{Name: t.Name, Schema: t.Parameters}
		if t.Description != nil {
			tool.Description = *t.Description
		}
		req.Tools = append(req.Tools, tool)
	}
	if len(w.ToolChoice) == 0 {
		return nil
	}
	if len(w.Tools) == 0 {
		return refuse("tool_choice", "Tool choice is only allowed when 'tools' are specified.")
	}
	if json.Unmarshal(w.ToolChoice, &req.ToolChoice) != nil || !slices.Contains([]string{"none", "auto", "required"}, req.ToolChoice) {
		return refuse("tool_choice", "Invalid value for 'tool_choice'.")
	}
	return nil
}

// encrypted is thinking that only the model can read which it is sealed for.
func encrypted(model, text string) string {
	return "enc_" + base64.RawURLEncoding.EncodeToString([]byte(model+"\n"+text))
}

func decrypts(sealed, model string) bool {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(sealed, "enc_"))
	return err == nil && strings.HasPrefix(sealed, "enc_") && strings.HasPrefix(string(b), model+"\n")
}

// responsesVoice writes the items of an answer.
type responsesVoice struct {
	*player
	number int      // of the next event
	done   []string // items
	kind   string   // of the open item: reasoning, message, function_call
	text   string   // of the open item
	open   Call
}

func (v *responsesVoice) event(kind, format string, args ...any) {
	_, _ = fmt.Fprintf(v.w, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", kind, kind, v.number, fmt.Sprintf(format, args...))
	v.number++
}

func (v *responsesVoice) begin() {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		v.event(kind, `"response":%s`, v.response("in_progress", "null", "null"))
	}
}

// item begins an item unless one of the kind is open.
func (v *responsesVoice) item(kind, head string) {
	if v.kind == kind && kind != "function_call" {
		return
	}
	v.close("completed")
	v.kind = kind
	v.event("response.output_item.added", `"output_index":%d,"item":{"id":%q,"type":%q,"status":"in_progress",%s}`, len(v.done), v.id(), kind, head)
}

func (v *responsesVoice) id() string { return fmt.Sprintf("item_%d_%d", v.req.N, len(v.done)) }

func (v *responsesVoice) think(word string) {
	v.item("reasoning", `"summary":[]`)
	v.text += word
	v.event("response.reasoning_summary_text.delta", `"item_id":%q,"output_index":%d,"summary_index":0,"delta":%s`, v.id(), len(v.done), quote(word))
}

func (v *responsesVoice) say(word string) {
	v.item("message", `"role":"assistant","phase":"final_answer","content":[]`)
	v.text += word
	v.event("response.output_text.delta", `"item_id":%q,"output_index":%d,"content_index":0,"delta":%s,"logprobs":[]`, v.id(), len(v.done), quote(word))
}

func (v *responsesVoice) comment(text string) {
	v.item("message", `"role":"assistant","phase":"commentary","content":[]`)
	v.event("response.output_text.delta", `"item_id":%q,"output_index":%d,"content_index":0,"delta":%s,"logprobs":[]`, v.id(), len(v.done), quote(text))
	v.finishItem(fmt.Sprintf(`{"id":%q,"type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":%s,"annotations":[],"logprobs":[]}]}`, v.id(), quote(text)))
}

func (v *responsesVoice) call(_ int, c Call) {
	v.item("function_call", fmt.Sprintf(`"call_id":%s,"name":%s,"arguments":""`, quote(c.ID), quote(c.Name)))
	v.open = c
}

func (v *responsesVoice) argue(part string) {
	v.text += part
	v.event("response.function_call_arguments.delta", `"item_id":%q,"output_index":%d,"delta":%s`, v.id(), len(v.done), quote(part))
}

// close ends the open item.
func (v *responsesVoice) close(status string) {
	switch v.kind {
	case "reasoning":
		v.finishItem(fmt.Sprintf(`{"id":%q,"type":"reasoning","summary":[{"type":"summary_text","text":%s}],"encrypted_content":%q}`,
			v.id(), quote(v.text), encrypted(v.req.Model, v.text)))
	case "message":
		v.finishItem(fmt.Sprintf(`{"id":%q,"type":"message","status":%q,"role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":%s,"annotations":[],"logprobs":[]}]}`,
			v.id(), status, quote(v.text)))
	case "function_call":
		v.event("response.function_call_arguments.done", `"item_id":%q,"output_index":%d,"arguments":%s`, v.id(), len(v.done), quote(v.text))
		v.finishItem(fmt.Sprintf(`{"id":%q,"type":"function_call","status":%q,"call_id":%s,"name":%s,"arguments":%s}`,
			v.id(), status, quote(v.open.ID), quote(v.open.Name), quote(v.text)))
	}
}

func (v *responsesVoice) finishItem(item string) {
	v.event("response.output_item.done", `"output_index":%d,"item":%s`, len(v.done), item)
	v.done = append(v.done, item)
	v.kind, v.text = "", ""
}

func (v *responsesVoice) end() {
	status, why := v.ended()
	v.close(status)
	v.event("response."+status, `"response":%s`, v.response(status, why, v.usage()))
}

func (v *responsesVoice) ended() (status, why string) {
	switch v.reason() {
	case "length":
		return "incomplete", `{"reason":"max_output_tokens"}`
	case "content_filter":
		return "incomplete", `{"reason":"content_filter"}`
	}
	return "completed", "null"
}

func (v *responsesVoice) usage() string {
	u := v.spent()
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d,"cache_write_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		u.Input, u.Cached, u.Output, u.Reasoning, u.Input+u.Output)
}

func (v *responsesVoice) response(status, why, usage string) string {
	return fmt.Sprintf(`{"id":"resp_%d","object":"response","created_at":%d,"status":%q,"error":null,"incomplete_details":%s,"model":%s,"output":[%s],"usage":%s}`,
		v.req.N, v.req.At.Unix(), status, why, quote(v.req.Model), strings.Join(v.done, ","), usage)
}

func (v *responsesVoice) whole() any {
	silent := *v
	copied := *v.player
	copied.w = discard{}
	silent.player = &copied
	if v.a.Reasoning != "" {
		silent.think(v.a.Reasoning)
	}
	if v.a.Text != "" {
		silent.say(v.a.Text)
	}
	for i, c := range v.named() {
		silent.call(i, c)
		silent.argue(c.Arguments)
	}
	status, why := v.ended()
	silent.close(status)
	return json.RawMessage(silent.response(status, why, v.usage()))
}

// discard is a response writer for what nobody reads.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
