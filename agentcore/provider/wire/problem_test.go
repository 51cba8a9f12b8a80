package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"parley/agentcore/llm"
	"parley/config/secret"
)

// TestClassify reads testdata/errors.jsonl: what providers have answered, and what
// it means. It covers PRV-013, PRV-023, PRV-025, CTX-003, CTX-009, PST-011.
func TestClassify(t *testing.T) {
	raw, err := os.ReadFile("testdata/errors.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for lines.Scan() {
		var c struct {
			Name   string
			Status int
			Header map[string]string
			Body   string
			Kind   llm.ErrorKind
			Retry  string
			Window int
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			h := http.Header{}
			for k, v := range c.Header {
				h.Set(k, v)
			}
			e := Classify(c.Status, h, []byte(c.Body))
			retry, _ := time.ParseDuration(c.Retry)
			if e.Kind != c.Kind || e.RetryAfter != retry || e.Window != c.Window {
				t.Errorf("got kind %s, retry %s, window %d, want %s, %s, %d: %s", e.Kind, e.RetryAfter, e.Window, c.Kind, retry, c.Window, e.Message)
			}
			if strings.ContainsAny(e.Message, "<>") && strings.Contains(c.Body, "<html>") {
				t.Errorf("a web page in the message: %q", e.Message)
			}
		})
	}
}

// TestRetryAfterDate is PRV-025: an HTTP date is as good as seconds.
func TestRetryAfterDate(t *testing.T) {
	now := time.Date(2026, 7, 25, 12, 0, 0, 0, time.UTC)
	h := http.Header{"Retry-After": {"Sat, 25 Jul 2026 12:05:00 GMT"}}
	if d := retryHeader(h, now); d != 5*time.Minute {
		t.Errorf("got %s", d)
	}
	if d := retryHeader(nil, now); d != 0 {
		t.Errorf("absent: %s", d)
	}
}

func TestMessagesAreBoundedAndScrubbed(t *testing.T) {
	e := Classify(400, nil, []byte(strings.Repeat("é", 5000)))
	if len(e.Message) > maxMessage+len("…") || !strings.HasSuffix(e.Message, "é…") {
		t.Errorf("message of %d bytes", len(e.Message))
	}
	got := scrub("Incorrect key hunter2 or sk-abc***********wxyz", secret.New("hunter2"))
	if want := "Incorrect key [secret] or [secret]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
