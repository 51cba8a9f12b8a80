package providertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Answer is what the model does with one request. The zero value is an empty
// answer that ends well.
type Answer struct {
	// Reasoning, Text and Calls are streamed in this order.
	Reasoning string
	Text      string
	Calls     []Call
	// Finish is the finish reason; empty: tool_calls or stop.
	Finish string
	Usage  *Usage
	// FirstToken is the delay before anything comes, Rate the tokens (words) a second
	// after it; 0: the server's.
	FirstToken time.Duration
	Rate       float64

	// Status of 400 and more makes it an error with Header and Body; an empty Body is
	// made up.
	Status int
	Header map[string]string
	Body   string

	// End says how it ends, after After words of the text (0: after all).
	End   End
	After int
	// InStream is the error object of EndError; empty: a server error.
	InStream string
	// Raw is written as it is, in place of everything above but Header.
	Raw string
}

// Call is a tool call. An empty ID is made up.
type Call struct{ ID, Name, Arguments string }

// Usage is what the answer says it cost.
type Usage struct{ Input, Cached, Output, Reasoning int }

// End is how an answer ends.
type End int

// The ends.
const (
	EndWell   End = iota // finish reason, usage, [DONE]
	EndCut               // the connection is cut
	EndEarly             // the body ends without a finish reason
	EndSilent            // nothing more comes; the connection stays open
	EndError             // an error object inside the stream
)

// Words returns a text of n words, each of which streams as one token.
func Words(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("word")
		b.WriteString(strconv.Itoa(i))
	}
	return b.String()
}

// player writes one answer.
type player struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	x      *Exchange
	a      Answer
	req    Request

	flush  func() error
	timer  *time.Timer
	due    time.Time
	tokens int
	head   []byte // of each chunk
	buf    []byte
}

// play writes the answer. It ends early when the client leaves.
func (p *player) play() {
	for k, v := range p.a.Header {
		p.w.Header().Set(k, v)
	}
	p.flush = http.NewResponseController(p.w).Flush
	p.due = time.Now().Add(p.a.FirstToken)
	if p.a.FirstToken > 0 && !p.wait() {
		return
	}
	status := max(p.a.Status, http.StatusOK)
	p.server.update(func() { p.x.Status = status })
	switch {
	case status >= http.StatusBadRequest:
		p.fail(status)
	case p.a.Raw != "":
		p.raw(status)
	case !p.req.Stream:
		p.complete()
	default:
		p.stream()
	}
}

func (p *player) fail(status int) {
	if p.a.Body == "" {
		kind := "invalid_request_error"
		if status >= http.StatusInternalServerError {
			kind = "server_error"
		}
		reply(p.w, status, fmt.Sprintf(`{"error":{"message":%s,"type":%q,"param":null,"code":null}}`, quote(http.StatusText(status)), kind))
		return
	}
	if p.w.Header().Get("Content-Type") == "" {
		p.w.Header().Set("Content-Type", "application/json")
	}
	p.w.WriteHeader(status)
	_, _ = io.WriteString(p.w, p.a.Body)
}

func (p *player) raw(status int) {
	if p.w.Header().Get("Content-Type") == "" {
		p.w.Header().Set("Content-Type", "text/event-stream")
	}
	p.w.WriteHeader(status)
	_, _ = io.WriteString(p.w, p.a.Raw)
	p.finish()
}

func (p *player) stream() {
	p.w.Header().Set("Content-Type", "text/event-stream")
	p.head = fmt.Appendf(nil, `data: {"id":"chatcmpl-%d","object":"chat.completion.chunk","created":%d,"model":%s,"choices":[{"index":0,"delta":`,
		p.req.N, p.req.At.Unix(), quote(p.req.Model))
	p.chunk(`{"role":"assistant","content":""}`, "null")
	said := strings.SplitAfter(p.a.Text, " ")
	if p.a.Text == "" {
		said = nil
	}
	if p.a.After > 0 && p.a.After < len(said) {
		said = said[:p.a.After]
	}
	if p.a.Reasoning != "" {
		for _, word := range strings.SplitAfter(p.a.Reasoning, " ") {
			if !p.token(`{"reasoning_content":` + quote(word) + `}`) {
				return
			}
		}
	}
	for _, word := range said {
		if !p.token(`{"content":` + quote(word) + `}`) {
			return
		}
	}
	if p.a.End == EndWell && !p.calls() {
		return
	}
	p.finish()
}

// calls streams the tool calls: the head of each, then its arguments in two pieces.
func (p *player) calls() bool {
	for i, c := range p.named() {
		half := len(c.Arguments) / 2
		for half > 0 && c.Arguments[half]&0xC0 == 0x80 {
			half--
		}
		head := fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":"function","function":{"name":%s,"arguments":""}}]}`, i, quote(c.ID), quote(c.Name))
		if !p.token(head) {
			return false
		}
		for _, piece := range []string{c.Arguments[:half], c.Arguments[half:]} {
			if !p.token(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(piece))) {
				return false
			}
		}
	}
	return true
}

func (p *player) named() []Call {
	out := make([]Call, len(p.a.Calls))
	for i, c := range p.a.Calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", p.req.N, i)
		}
		if c.Arguments == "" {
			c.Arguments = "{}"
		}
		out[i] = c
	}
	return out
}

// token writes one chunk when it is due; false: the client has left.
func (p *player) token(delta string) bool {
	if p.tokens > 0 && p.a.Rate > 0 {
		p.due = p.due.Add(time.Duration(float64(time.Second) / p.a.Rate))
		if !p.wait() {
			return false
		}
	}
	p.tokens++
	p.chunk(delta, "null")
	now := time.Now()
	p.server.mu.Lock()
	if p.x.LastToken = now; p.x.FirstToken.IsZero() {
		p.x.FirstToken = now
	}
	p.server.mu.Unlock()
	if p.a.Rate > 0 || p.tokens == 1 {
		return p.flush() == nil
	}
	return true
}

func (p *player) chunk(delta, reason string) {
	p.buf = append(p.buf[:0], p.head...)
	p.buf = append(p.buf, delta...)
	p.buf = append(p.buf, `,"finish_reason":`...)
	p.buf = append(p.buf, reason...)
	p.buf = append(p.buf, "}]}\n\n"...)
	_, _ = p.w.Write(p.buf)
}

func (p *player) finish() {
	switch p.a.End {
	case EndWell:
		if p.a.Raw == "" {
			p.chunk("{}", quote(p.reason()))
			_, _ = fmt.Fprintf(p.w, "data: {\"id\":\"chatcmpl-%d\",\"object\":\"chat.completion.chunk\",\"model\":%s,\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n",
				p.req.N, quote(p.req.Model), p.usage())
		}
	case EndCut:
		_ = p.flush()
		panic(http.ErrAbortHandler)
	case EndSilent:
		_ = p.flush()
		<-p.r.Context().Done()
		p.gone()
	case EndError:
		object := p.a.InStream
		if object == "" {
			object = `{"error":{"message":"The server had an error while processing your request.","type":"server_error","code":null}}`
		}
		_, _ = io.WriteString(p.w, "data: "+object+"\n\n")
	case EndEarly:
	}
}

func (p *player) reason() string {
	switch {
	case p.a.Finish != "":
		return p.a.Finish
	case len(p.a.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (p *player) usage() string {
	u := p.a.Usage
	if u == nil {
		u = &Usage{Input: len(p.req.Body)/4 + 1, Output: max(p.tokens, len(strings.Fields(p.a.Text)))}
	}
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		u.Input, u.Output, u.Input+u.Output, u.Cached, u.Reasoning)
}

// complete answers a request that is not streamed.
func (p *player) complete() {
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
	m := message{Role: "assistant", ReasoningContent: p.a.Reasoning}
	if p.a.Text != "" {
		m.Content = &p.a.Text
	}
	for _, c := range p.named() {
		m.ToolCalls = append(m.ToolCalls, call{c.ID, "function", function{c.Name, c.Arguments}})
	}
	type choice struct {
		Index        int     `json:"index"`
		Message      message `json:"message"`
		FinishReason string  `json:"finish_reason"`
	}
	reply(p.w, http.StatusOK, struct {
		ID      string          `json:"id"`
		Object  string          `json:"object"`
		Created int64           `json:"created"`
		Model   string          `json:"model"`
		Choices []choice        `json:"choices"`
		Usage   json.RawMessage `json:"usage"`
	}{
		fmt.Sprintf("chatcmpl-%d", p.req.N), "chat.completion", p.req.At.Unix(), p.req.Model,
		[]choice{{0, m, p.reason()}}, json.RawMessage(p.usage()),
	})
}

// wait waits for the next moment; false: the client has left.
func (p *player) wait() bool {
	if p.timer == nil {
		p.timer = time.NewTimer(time.Until(p.due))
	} else {
		p.timer.Reset(time.Until(p.due))
	}
	select {
	case <-p.timer.C:
		return true
	case <-p.r.Context().Done():
		p.timer.Stop()
		p.gone()
		return false
	}
}

func (p *player) gone() { p.server.update(func() { p.x.Gone = true }) }

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""`
	}
	return string(b)
}
