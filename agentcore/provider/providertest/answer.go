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
	// Commentary is said before the text, as a message of its own where the API knows
	// that (Responses).
	Commentary string
	// Finish is the finish reason in the words of chat completions; empty: tool_calls
	// or stop.
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

// voice writes an answer in the form of an API. Each method writes one piece.
type voice interface {
	begin()
	think(word string)
	say(word string)
	// comment says all of the commentary.
	comment(text string)
	// call begins the call of that index; argue gives the next part of its arguments.
	call(i int, c Call)
	argue(part string)
	// end ends a good answer.
	end()
	// whole is an answer that is not streamed.
	whole() any
}

// player plays one answer.
type player struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	x      *Exchange
	a      Answer
	req    Request
	api    api

	flush  func() error
	timer  *time.Timer
	due    time.Time
	tokens int
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
		reply(p.w, http.StatusOK, p.api.voice(p).whole())
	default:
		p.stream(p.api.voice(p))
	}
}

func (p *player) fail(status int) {
	if p.a.Body == "" {
		reply(p.w, status, p.api.problem(&refusal{status: status, message: http.StatusText(status)}))
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
	p.finish(nil)
}

func (p *player) stream(v voice) {
	p.w.Header().Set("Content-Type", "text/event-stream")
	v.begin()
	if p.a.Reasoning != "" && !p.words(p.a.Reasoning, v.think) {
		return
	}
	if p.a.Commentary != "" {
		v.comment(p.a.Commentary)
	}
	said := strings.SplitAfter(p.a.Text, " ")
	if p.a.After > 0 && p.a.After < len(said) {
		said = said[:p.a.After]
	}
	if p.a.Text != "" && !p.words(strings.Join(said, ""), v.say) {
		return
	}
	if p.a.End == EndWell && !p.calls(v) {
		return
	}
	p.finish(v)
}

func (p *player) words(text string, write func(string)) bool {
	for _, word := range strings.SplitAfter(text, " ") {
		if !p.token(func() { write(word) }) {
			return false
		}
	}
	return true
}

// calls streams the tool calls: the head of each, then its arguments in two pieces.
func (p *player) calls(v voice) bool {
	for i, c := range p.named() {
		half := len(c.Arguments) / 2
		for half > 0 && c.Arguments[half]&0xC0 == 0x80 {
			half--
		}
		if !p.token(func() { v.call(i, c) }) {
			return false
		}
		for _, part := range []string{c.Arguments[:half], c.Arguments[half:]} {
			if !p.token(func() { v.argue(part) }) {
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

// token writes one piece when it is due; false: the client has left.
func (p *player) token(write func()) bool {
	if p.tokens > 0 && p.a.Rate > 0 {
		p.due = p.due.Add(time.Duration(float64(time.Second) / p.a.Rate))
		if !p.wait() {
			return false
		}
	}
	p.tokens++
	write()
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

func (p *player) finish(v voice) {
	switch p.a.End {
	case EndWell:
		if v != nil {
			v.end()
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
			object = p.api.failure()
		}
		_, _ = io.WriteString(p.w, "data: "+object+"\n\n")
	case EndEarly:
	}
}

// reason is the finish reason in the words of chat completions.
func (p *player) reason() string {
	switch {
	case p.a.Finish != "":
		return p.a.Finish
	case len(p.a.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// spent is what the answer says it cost.
func (p *player) spent() Usage {
	if p.a.Usage != nil {
		return *p.a.Usage
	}
	return Usage{Input: len(p.req.Body)/4 + 1, Output: max(p.tokens, len(strings.Fields(p.a.Text)))}
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
