package agentcore

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/provider/chatcompletions"
	"parley/gateway/chat"
	"parley/store/record"
)

// nobody is a model that is never asked.
type nobody struct{}

func (nobody) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] { return nil }

// longTurn is a turn of a session with so many rows, warm.
func longTurn(b *testing.B, n int) *turn {
	b.Helper()
	eng, err := engine.New(engine.DefaultConfig(), engine.Deps{Summarise: nobody{}, Model: "test/small"})
	if err != nil {
		b.Fatal(err)
	}
	a, err := New(DefaultConfig(), Deps{Model: nobody{}, DefaultModel: "test/model", Engine: eng, Asker: DenyAsker{}})
	if err != nil {
		b.Fatal(err)
	}
	var rows []record.Message
	at := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	add := func(m record.Message) {
		m.CreatedAt = at.Add(time.Duration(len(rows)) * time.Second)
		rows = append(rows, m)
	}
	for i := 0; len(rows) < n; i++ {
		id := fmt.Sprintf("call_%d", i)
		add(record.Message{Role: llm.User, From: "x:1", FromName: "Ada", Content: "please look at item " + id})
		add(record.Message{Role: llm.Assistant, Content: "I look.", ToolCalls: []llm.ToolCall{{ID: id, Name: "read_file", Arguments: `{"path":"src/main.go","lines":[1,200]}`}}})
		add(record.Message{Role: llm.ToolRole, ToolCallID: id, ToolName: "read_file", Content: strings.Repeat("func main() { run(\"x\") }\n", 20)})
		add(record.Message{Role: llm.Assistant, Content: "Item " + id + " is fine. " + strings.Repeat("It does what it says. ", 10)})
	}
	rows = append(rows[:n-1:n-1], record.Message{Role: llm.User, Content: "and now?", CreatedAt: at.Add(time.Hour)})
	j := NewMemoryJournal(record.Conversation{Kind: chat.Group}, rows...)
	t, err := a.reading(b.Context(), CompactRequest{Conversation: j.Conversation(), Journal: j})
	if err != nil {
		b.Fatal(err)
	}
	t.session.SystemPrompt = strings.Repeat("You are kind. ", 500)
	return t
}

// next is what stands between the stored rows and the model: the estimate, and the
// request.
func (t *turn) next() *llm.Request {
	t.a.deps.Engine.Decide(engine.State{Session: t.session, Messages: t.rows, Window: t.window, Tools: t.tools.Specs(), Trigger: engine.Preflight})
	return t.request()
}

// BenchmarkAssemble2000 is the request of a session of 2,000 messages: made, and with
// the bytes that go to the provider. At most 2 ms.
func BenchmarkAssemble2000(b *testing.B) {
	t := longTurn(b, 2000)
	b.Run("request", func(b *testing.B) {
		median(b, func() time.Duration {
			begun := time.Now()
			if r := t.next(); len(r.Messages) < 1900 {
				b.Fatal(len(r.Messages))
			}
			return time.Since(begun)
		})
	})
	b.Run("bytes", func(b *testing.B) {
		var sent time.Time
		client, err := chatcompletions.New(chatcompletions.Config{Name: "test", BaseURL: "http://test"}, chatcompletions.Deps{
			HTTP: &http.Client{Transport: moment(func() { sent = time.Now() })},
		})
		if err != nil {
			b.Fatal(err)
		}
		median(b, func() time.Duration {
			begun := time.Now()
			for _, err := range client.Stream(b.Context(), t.next()) {
				_ = err // only the moment of the request is measured
			}
			return sent.Sub(begun)
		})
	})
}

// moment is a transport that tells when a request is there.
type moment func()

func (m moment) RoundTrip(*http.Request) (*http.Response, error) {
	m()
	return nil, io.EOF
}

// median reports the middle of what the calls of f took.
func median(b *testing.B, f func() time.Duration) {
	b.Helper()
	b.ReportAllocs()
	var took []time.Duration
	for b.Loop() {
		took = append(took, f())
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
}
