package wire

import (
	"context"
	"errors"
	"io"
	"testing"

	"parley/agentcore/llm"
)

// stages is a fold whose progress is that of the last event: "r", "s" or "o".
type stages struct{ progress Progress }

func (s *stages) Add(raw []byte) ([]llm.Event, error) {
	s.progress = map[byte]Progress{'r': Running, 's': Settling, 'o': Over}[raw[0]]
	return []llm.Event{llm.TextDelta{Text: string(raw)}}, nil
}

func (s *stages) Progress() Progress { return s.progress }

func (s *stages) End(done bool) ([]llm.Event, error) {
	if s.progress == Running && !done {
		return nil, ErrCut
	}
	return []llm.Event{llm.Finished{}}, nil
}

// TestPlay: only what the server says ends an answer, and what it says first counts.
func TestPlay(t *testing.T) {
	reset := errors.New("connection reset")
	for _, c := range []struct {
		name   string
		events string
		done   bool
		ends   error // of the connection
		want   error
		seen   int
	}{
		{"a good end", "rro", false, io.EOF, nil, 4},
		{"what comes after the end does not matter", "ror", false, reset, nil, 3},
		{"the reason has come, the connection breaks", "rs", false, reset, nil, 3},
		{"[DONE] has come, the connection breaks", "rr", true, reset, nil, 3},
		{"the connection breaks", "rr", false, reset, reset, 2},
		{"the connection ends", "rr", false, io.EOF, ErrCut, 2},
		{"PST-017 nothing came", "", true, io.EOF, errEmpty, 0},
	} {
		_, x := Begin(context.Background(), nil)
		x.done, x.body, x.watch = c.done, eof{}, newWatch(1<<40, 1<<40, x.cancel)
		rest, seen := c.events, 0
		next := func() ([]byte, error) {
			if rest == "" {
				return nil, c.ends
			}
			ev := rest[:1]
			rest = rest[1:]
			return []byte(ev), nil
		}
		err := x.Play(next, &stages{}, func(llm.Event) bool { seen++; return true })
		if !errors.Is(err, c.want) || seen != c.seen {
			t.Errorf("%s: %v after %d events, want %v after %d", c.name, err, seen, c.want, c.seen)
		}
		x.watch.stop()
		x.End()
	}
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }
