package providertest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// chatAPI is OpenAI's chat completions.
type chatAPI struct{}

func (chatAPI) parse(raw []byte, _ http.Header, o Options) (Request, *refusal) { return parse(raw, o) }

func (chatAPI) key(h http.Header) string { return bearer(h) }

func (chatAPI) problem(r *refusal) any { return problem(r) }

func (chatAPI) failure() string {
	return `{"error":{"message":"The server had an error while processing your request.","type":"server_error","code":null}}`
}

func (chatAPI) voice(p *player) voice {
	return &chatVoice{player: p, head: fmt.Appendf(nil,
		`data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":%d,"model":%s,"choices":[{"index":0,"delta":`,
		p.req.N, p.req.At.Unix(), quote(p.req.Model))}
}

func bearer(h http.Header) string { return strings.TrimPrefix(h.Get("Authorization"), "Bearer ") }

// problem is OpenAI's error object.
func problem(r *refusal) any {
	type object struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	o := object{Message: r.message, Type: "invalid_request_error"}
	if r.status >= http.StatusInternalServerError {
		o.Type = "server_error"
	}
	if r.param != "" {
		o.Param = &r.param
	}
	if r.code != "" {
		o.Code = &r.code
	}
	return map[string]any{"error": o}
}

// chatVoice writes chunks.
type chatVoice struct {
	*player
	head  []byte // of each chunk
	buf   []byte
	index int // of the call that is being made
}

func (v *chatVoice) begin() { v.chunk(`{"role":"assistant","content":""}`, "null") }

func (v *chatVoice) think(word string) { v.chunk(`{"reasoning_content":`+quote(word)+`}`, "null") }

func (v *chatVoice) say(word string) { v.chunk(`{"content":`+quote(word)+`}`, "null") }

func (v *chatVoice) comment(text string) { v.say(text + "\n\n") }

func (v *chatVoice) call(i int, c Call) {
	v.index = i
	v.chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`,
		i, quote(c.ID), quote(c.Name)), "null")
}

func (v *chatVoice) argue(part string) {
	v.chunk(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, v.index, quote(part)), "null")
}

func (v *chatVoice) chunk(delta, reason string) {
	v.buf = append(v.buf[:0], v.head...)
	v.buf = append(v.buf, delta...)
	v.buf = append(v.buf, `,"finish_reason":`...)
	v.buf = append(v.buf, reason...)
	v.buf = append(v.buf, "}]}\n\n"...)
	_, _ = v.w.Write(v.buf)
}

func (v *chatVoice) end() {
	v.chunk("{}", quote(v.reason()))
	_, _ = fmt.Fprintf(v.w, "data: {\"id\":\"chatcmpl-%d\",\"object\":\"chat.completion.chunk\",\"model\":%s,\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n",
		v.req.N, quote(v.req.Model), v.usage())
}

func (v *chatVoice) usage() string {
	u := v.spent()
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		u.Input, u.Output, u.Input+u.Output, u.Cached, u.Reasoning)
}

func (v *chatVoice) whole() any {
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type call struct {
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	type message struct {
		Role             string  `json:"role"`
		Content          *string `json:"content"`
		ReasoningContent string  `json:"reasoning_content,omitempty"`
		ToolCalls        []call  `json:"tool_calls,omitempty"`
	}
	m := message{Role: "assistant", ReasoningContent: v.a.Reasoning}
	if v.a.Text != "" {
		m.Content = &v.a.Text
	}
	for _, c := range v.named() {
		m.ToolCalls = append(m.ToolCalls, call{c.ID, "function", function{c.Name, c.Arguments}})
	}
	type choice struct {
		Index        int     `json:"index"`
		Message      message `json:"message"`
		FinishReason string  `json:"finish_reason"`
	}
	return struct {
		ID      string          `json:"id"`
		Object  string          `json:"object"`
		Created int64           `json:"created"`
		Model   string          `json:"model"`
		Choices []choice        `json:"choices"`
		Usage   json.RawMessage `json:"usage"`
	}{
		fmt.Sprintf("chatcmpl-%d", v.req.N), "chat.completion", v.req.At.Unix(), v.req.Model,
		[]choice{{0, m, v.reason()}}, json.RawMessage(v.usage()),
	}
}
