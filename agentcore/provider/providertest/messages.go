package providertest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// messagesAPI is Anthropic's Messages.
type messagesAPI struct{}

func (messagesAPI) key(h http.Header) string {
	if key := h.Get("X-Api-Key"); key != "" {
		return key
	}
	return bearer(h)
}

// problem is Anthropic's error object.
func (messagesAPI) problem(r *refusal) any {
	type object struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	kinds := map[int]string{
		http.StatusUnauthorized: "authentication_error", http.StatusPaymentRequired: "billing_error", http.StatusForbidden: "permission_error",
		http.StatusNotFound: "not_found_error", http.StatusRequestEntityTooLarge: "request_too_large", http.StatusTooManyRequests: "rate_limit_error",
		http.StatusInternalServerError: "api_error", http.StatusServiceUnavailable: "api_error", http.StatusGatewayTimeout: "timeout_error", 529: "overloaded_error",
	}
	o := object{Type: kinds[r.status], Message: r.message}
	switch {
	case o.Type == "":
		o.Type = "invalid_request_error"
	case r.code == "model_not_found":
		o.Message = "model: " + strings.Split(r.message, "`")[1]
	}
	return map[string]any{"type": "error", "error": o, "request_id": "req_fake"}
}

func (messagesAPI) failure() string {
	return `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`
}

func (messagesAPI) voice(p *player) voice { return &messagesVoice{player: p, index: -1} }

// messagesWire is the request's shape: every field of CreateMessageParams in
// Anthropic's specification.
type messagesWire struct {
	Model        string            `json:"model"`
	Messages     []messagesTurn    `json:"messages"`
	System       json.RawMessage   `json:"system"`
	MaxTokens    *int              `json:"max_tokens"`
	Tools        []messagesTool    `json:"tools"`
	ToolChoice   *messagesChoice   `json:"tool_choice"`
	Thinking     *messagesThinking `json:"thinking"`
	OutputConfig *messagesEffort   `json:"output_config"`
	Stream       *bool             `json:"stream"`
	messagesOther
}

// messagesOther are the fields that the fake does not look into.
type messagesOther struct {
	Container     json.RawMessage `json:"container"`
	InferenceGeo  json.RawMessage `json:"inference_geo"`
	Metadata      json.RawMessage `json:"metadata"`
	ServiceTier   json.RawMessage `json:"service_tier"`
	StopSequences json.RawMessage `json:"stop_sequences"`
	Temperature   json.RawMessage `json:"temperature"`
	TopK          json.RawMessage `json:"top_k"`
	TopP          json.RawMessage `json:"top_p"`
}

type (
	messagesTurn struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	messagesTool struct {
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"input_schema"`
		CacheControl *cacheMarker    `json:"cache_control"`
	}
	messagesChoice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	}
	messagesThinking struct {
		Type         string  `json:"type"`
		BudgetTokens int     `json:"budget_tokens"`
		Display      *string `json:"display"`
	}
	messagesEffort struct {
		Effort *string `json:"effort"`
	}
	cacheMarker struct {
		Type string `json:"type"`
		TTL  string `json:"ttl"`
	}
)

// maxMarkers is how many cache markers a request may have.
const maxMarkers = 4

// CheckMessages says whether the body of a Messages request is valid, as strictly as
// a Server does.
func CheckMessages(body []byte) error {
	return failed(messagesAPI{}.parse(body, http.Header{"Anthropic-Version": {"2023-06-01"}}, Options{}))
}

func (messagesAPI) parse(raw []byte, h http.Header, o Options) (Request, *refusal) {
	var req Request
	if r := readable(raw); r != nil {
		return req, r
	}
	if h.Get("Anthropic-Version") != "2023-06-01" {
		return req, refuse("", "anthropic-version: header is required")
	}
	var w messagesWire
	if err := strictly(raw, &w); err != nil {
		return req, refuse("", "Extra inputs are not permitted or wrong type: %v", err)
	}
	if r := o.known(w.Model); r != nil {
		return req, r
	}
	req.Model, req.Stream = w.Model, w.Stream != nil && *w.Stream
	t := turnHistory{model: w.Model, calls: callBook{longest: 64}}
	if w.Thinking != nil {
		t.thinking = w.Thinking.Type == "enabled"
	}
	for _, check := range []func() *refusal{
		func() *refusal { return w.settings(&req) },
		func() *refusal { return w.tools(&req, &t) },
		func() *refusal { return t.system(w.System) },
		func() *refusal { return t.turns(w.Messages) },
	} {
		if r := check(); r != nil {
			return req, r
		}
	}
	if t.markers > maxMarkers {
		return req, refuse("", "A maximum of 4 blocks with cache_control may be provided. Found %d.", t.markers)
	}
	req.Messages, req.Marks = t.out, marks(raw)
	r := o.overflow(raw)
	if r != nil {
		r.message = fmt.Sprintf("prompt is too long: %d tokens > %d maximum", len(raw)/4, o.Window)
	}
	return req, r
}

func (w *messagesWire) settings(req *Request) *refusal {
	if w.MaxTokens == nil {
		return refuse("", "max_tokens: Field required")
	}
	if req.MaxTokens = *w.MaxTokens; req.MaxTokens < 1 {
		return refuse("", "max_tokens: Input should be greater than or equal to 1")
	}
	if w.OutputConfig != nil && w.OutputConfig.Effort != nil {
		if req.ReasoningEffort = *w.OutputConfig.Effort; !slices.Contains([]string{"low", "medium", "high", "xhigh", "max"}, req.ReasoningEffort) {
			return refuse("", "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
		}
	}
	if t := w.Thinking; t != nil {
		switch {
		case t.Type == "enabled" && t.BudgetTokens < 1024:
			return refuse("", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		case t.Type == "enabled" && t.BudgetTokens >= req.MaxTokens:
			return refuse("", "`max_tokens` must be greater than `thinking.budget_tokens`.")
		case !slices.Contains([]string{"enabled", "adaptive", "disabled"}, t.Type):
			return refuse("", "thinking: Input tag '%s' found", t.Type)
		}
		if c := w.ToolChoice; c != nil && t.Type != "disabled" && (c.Type == "any" || c.Type == "tool") {
			return refuse("", "Thinking may not be enabled when tool_choice forces tool use.")
		}
	}
	return nil
}

func (w *messagesWire) tools(req *Request, t *turnHistory) *refusal {
	seen := map[string]bool{}
	for i, tool := range w.Tools {
		param := fmt.Sprintf("tools.%d", i)
		var schema map[string]json.RawMessage
		switch {
		case !toolNames.MatchString(tool.Name):
			return refuse("", "%s.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", param)
		case seen[tool.Name]:
			return refuse("", "tools: Tool names must be unique.")
		case json.Unmarshal(tool.InputSchema, &schema) != nil || string(schema["type"]) != `"object"`:
			return refuse("", "%s.input_schema.type: Input should be 'object'", param)
		case schema["oneOf"] != nil || schema["anyOf"] != nil || schema["allOf"] != nil:
			return refuse("", "%s.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", param)
		}
		if r := t.mark(param, tool.CacheControl); r != nil {
			return r
		}
		seen[tool.Name] = true
		req.Tools = append(req.Tools, Tool{tool.Name, tool.Description, tool.InputSchema})
	}
	if w.ToolChoice != nil {
		req.ToolChoice = w.ToolChoice.Type
		if len(w.Tools) == 0 {
			return refuse("", "tool_choice may only be specified while providing tools.")
		}
		if !slices.Contains([]string{"none", "auto", "any", "tool"}, req.ToolChoice) {
			return refuse("", "tool_choice: Input tag '%s' found", req.ToolChoice)
		}
	}
	return nil
}

var marker = regexp.MustCompile(`,?"cache_control":\{[^}]*\}`)

// marks are where the markers stand in the body without them.
func marks(raw []byte) (out []int) {
	removed := 0
	for _, at := range marker.FindAllIndex(raw, -1) {
		out = append(out, at[0]-removed)
		removed += at[1] - at[0]
	}
	return out
}

// Unmarked returns the body without its cache markers, which may move from request to
// request.
func (r Request) Unmarked() []byte { return marker.ReplaceAll(bytes.Clone(r.Body), nil) }

// signature is a seal that holds for one thought of one model.
func signature(model, thought string) string {
	sum := sha256.Sum256([]byte(model + "\n" + thought))
	return "sig_" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// messagesVoice writes the blocks of an answer.
type messagesVoice struct {
	*player
	index int    // of the last block
	kind  string // of the open block
	text  string // of the open thinking
}

func (v *messagesVoice) event(kind, format string, args ...any) {
	rest := fmt.Sprintf(format, args...)
	if rest != "" {
		rest = "," + rest
	}
	_, _ = fmt.Fprintf(v.w, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, rest)
}

func (v *messagesVoice) begin() {
	u := v.spent()
	v.event("message_start", `"message":{"id":"msg_%d","type":"message","role":"assistant","model":%s,"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":%d,"output_tokens":1}}`,
		v.req.N, quote(v.req.Model), u.Input-u.Cached, u.Cached)
	v.event("ping", "")
}

// block begins a block unless one of the kind is open.
func (v *messagesVoice) block(kind, head string) {
	if v.kind == kind && kind != "tool_use" {
		return
	}
	v.close()
	v.kind, v.text = kind, ""
	v.index++
	v.event("content_block_start", `"index":%d,"content_block":{"type":%q,%s}`, v.index, kind, head)
}

func (v *messagesVoice) close() {
	if v.kind == "thinking" {
		v.delta(`{"type":"signature_delta","signature":%s}`, quote(signature(v.req.Model, v.text)))
	}
	if v.kind != "" {
		v.event("content_block_stop", `"index":%d`, v.index)
	}
	v.kind = ""
}

func (v *messagesVoice) delta(format string, args ...any) {
	v.event("content_block_delta", `"index":%d,"delta":%s`, v.index, fmt.Sprintf(format, args...))
}

func (v *messagesVoice) think(word string) {
	v.block("thinking", `"thinking":"","signature":""`)
	v.text += word
	v.delta(`{"type":"thinking_delta","thinking":%s}`, quote(word))
}

func (v *messagesVoice) say(word string) {
	v.block("text", `"text":""`)
	v.delta(`{"type":"text_delta","text":%s}`, quote(word))
}

func (v *messagesVoice) comment(text string) {
	v.say(text)
	v.close()
}

func (v *messagesVoice) call(_ int, c Call) {
	v.block("tool_use", fmt.Sprintf(`"id":%s,"name":%s,"input":{}`, quote(c.ID), quote(c.Name)))
}

func (v *messagesVoice) argue(part string) {
	v.delta(`{"type":"input_json_delta","partial_json":%s}`, quote(part))
}

func (v *messagesVoice) end() {
	v.close()
	v.event("message_delta", `"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}`, v.stopReason(), v.spent().Output)
	v.event("message_stop", "")
}

func (v *messagesVoice) stopReason() string {
	words := map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
	if w := words[v.reason()]; w != "" {
		return w
	}
	return v.reason()
}

func (v *messagesVoice) whole() any {
	content := []map[string]any{}
	if v.a.Reasoning != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": v.a.Reasoning, "signature": signature(v.req.Model, v.a.Reasoning)})
	}
	if v.a.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": v.a.Text})
	}
	for _, c := range v.named() {
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Arguments)})
	}
	u := v.spent()
	return map[string]any{
		"id": fmt.Sprintf("msg_%d", v.req.N), "type": "message", "role": "assistant", "model": v.req.Model, "content": content,
		"stop_reason": v.stopReason(), "stop_sequence": nil,
		"usage": map[string]int{"input_tokens": u.Input - u.Cached, "cache_read_input_tokens": u.Cached, "output_tokens": u.Output},
	}
}
