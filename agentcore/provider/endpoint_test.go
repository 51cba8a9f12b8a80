package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/config/secret"
)

// door answers those who know the key, which may change.
type door struct {
	mu    sync.Mutex
	key   string
	tried []string // keys and models, in order
	meet  *sync.WaitGroup
}

// client is a provider that has one key for good.
type client struct {
	door   *door
	key    string
	closed bool
}

func (c *client) Close() { c.closed = true }

func (c *client) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		d := c.door
		d.mu.Lock()
		d.tried = append(d.tried, fmt.Sprintf("%s:%s", req.Model, c.key))
		fits := c.key == d.key
		meet := d.meet
		d.mu.Unlock()
		if !fits {
			if meet != nil {
				meet.Done()
				meet.Wait()
			}
			yield(nil, &llm.Error{Kind: llm.KindAuth, Status: 401, Model: req.Model})
			return
		}
		_ = yield(llm.TextDelta{Text: "ok"}, nil) && yield(llm.Finished{Reason: llm.FinishStop, Model: req.Model}, nil)
	}
}

// doors makes providers a and b at one door; a has the key from the source.
func doors(t *testing.T, d *door, from secret.Source) (*Set, *[]*client) {
	t.Helper()
	key, err := secret.Read(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	var made []*client
	s, err := Build(map[string]Config{"a": {APIKey: key, BaseURL: "http://a"}, "b": {APIKey: secret.New("b"), BaseURL: "http://b"}},
		map[Mode]Factory{ChatCompletions: func(name string, c Config) (llm.Provider, error) {
			if name == "b" {
				return &scripted{steps: map[llm.ModelID][]step{"b/m": {good}}}, nil
			}
			made = append(made, &client{door: d, key: c.APIKey.Reveal()})
			return made[len(made)-1], nil
		}}, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return s, &made
}

func keep(t *testing.T, file, key string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Mission 3, first row: a refused key is read again, once; if it is the same, or
// cannot be read, or the new one is refused as well, the next model is asked.
func TestRefusedKeyIsReadAgain(t *testing.T) {
	for _, c := range []struct {
		name, door string
		change     func(file string)
		tried      []string
		model      llm.ModelID
	}{
		{"another key", "new", func(f string) { keep(t, f, "new") }, []string{"a/m:old", "a/m:new"}, "a/m"},
		{"the same key", "new", func(string) {}, []string{"a/m:old"}, "b/m"},
		{"another wrong key", "new", func(f string) { keep(t, f, "wrong") }, []string{"a/m:old", "a/m:wrong"}, "b/m"},
		{"no file", "new", func(f string) { _ = os.Remove(f) }, []string{"a/m:old"}, "b/m"},
		{"an empty file", "new", func(f string) { keep(t, f, "\n") }, []string{"a/m:old"}, "b/m"},
	} {
		for kind, from := range map[string]func(file string) secret.Source{
			"file":    func(f string) secret.Source { return secret.File(f) },
			"command": func(f string) secret.Source { return secret.Command{Line: "cat " + f + " 2>&1"} },
		} {
			t.Run(c.name+"/"+kind, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "key")
				keep(t, file, "old")
				d := &door{key: c.door}
				s, made := doors(t, d, from(file))
				c.change(file)
				chain := s.Chain(Chain{Model: "a/m", Fallback: []llm.ModelID{"b/m"}})
				r, err := llm.Collect(t.Context(), chain.Stream(t.Context(), &llm.Request{}))
				if err != nil || r.Model != c.model {
					t.Errorf("%s answered, %v, want %s", r.Model, err, c.model)
				}
				if kind == "command" && c.name == "no file" {
					return // cat's error counts as a key here: it is tried, as it should be
				}
				if diff := cmp.Diff(c.tried, d.tried); diff != "" {
					t.Errorf("tried (-want +got):\n%s", diff)
				}
				for i, m := range *made {
					if last := i == len(*made)-1; m.closed == last {
						t.Errorf("client %d of %d: closed %v", i, len(*made), m.closed)
					}
				}
			})
		}
	}
}

// A key that is another one each time is tried once all the same.
func TestKeyIsReadAgainOnce(t *testing.T) {
	d := &door{key: "9"}
	s, _ := doors(t, d, secret.Command{Line: "echo >>n; grep -c '' n", Dir: t.TempDir()})
	chain := s.Chain(Chain{Model: "a/m", Fallback: []llm.ModelID{"b/m"}})
	r, err := llm.Collect(t.Context(), chain.Stream(t.Context(), &llm.Request{}))
	if diff := cmp.Diff([]string{"a/m:1", "a/m:2"}, d.tried); err != nil || r.Model != "b/m" || diff != "" {
		t.Errorf("%s answered, %v, tried (-want +got):\n%s", r.Model, err, diff)
	}
}

// Without a source and without a fallback the user is told at once.
func TestWrittenKeyIsNotTriedAgain(t *testing.T) {
	d := &door{key: "other"}
	s, err := Build(map[string]Config{"a": {APIKey: secret.New("old"), BaseURL: "http://a"}},
		map[Mode]Factory{ChatCompletions: func(string, Config) (llm.Provider, error) { return &client{door: d, key: "old"}, nil }}, Deps{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = llm.Collect(t.Context(), s.Chain(Chain{Model: "a/m"}).Stream(t.Context(), &llm.Request{}))
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.KindAuth || len(d.tried) != 1 {
		t.Errorf("%v after %v", err, d.tried)
	}
}

// Many calls that are refused at once read the key once.
func TestKeyIsReadOnceForAllCalls(t *testing.T) {
	const calls = 8
	dir := t.TempDir()
	file, count := filepath.Join(dir, "key"), filepath.Join(dir, "count")
	keep(t, file, "old")
	d := &door{key: "new", meet: &sync.WaitGroup{}}
	d.meet.Add(calls)
	s, made := doors(t, d, secret.Command{Line: "echo >>count; cat key", Dir: dir})
	keep(t, file, "new")
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if _, err := llm.Collect(t.Context(), s.Chain(Chain{Model: "a/m"}).Stream(t.Context(), &llm.Request{})); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b, err := os.ReadFile(count)
	if err != nil || len(b) != 2 || len(*made) != 2 || len(d.tried) != 2*calls {
		t.Errorf("read %d times, %d clients, %d calls, %v", len(b), len(*made), len(d.tried), err)
	}
}

// The reading of a key, and the wait for somebody else's, end with the context.
func TestStopEndsTheReadingOfAKey(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "begun")
	d := &door{key: "new"}
	s, _ := doors(t, d, secret.Command{Line: "echo old; if test -p begun; then echo >begun; sleep 60; fi", Dir: dir})
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, all *sync.WaitGroup) {
		all.Go(func() {
			if _, err := llm.Collect(ctx, s.Chain(Chain{Model: "a/m"}).Stream(ctx, &llm.Request{})); !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v", err)
			}
		})
	}
	var reader, waiters sync.WaitGroup
	reading, stopReading := context.WithCancel(t.Context())
	ask(reading, &reader)
	if _, err := os.ReadFile(pipe); err != nil { // until the command runs
		t.Fatal(err)
	}
	waiting, stopWaiting := context.WithCancel(t.Context())
	var refused sync.WaitGroup
	refused.Add(3)
	d.mu.Lock()
	d.meet = &refused
	d.mu.Unlock()
	for range 3 {
		ask(waiting, &waiters)
	}
	refused.Wait()
	for _, end := range []struct {
		stop context.CancelFunc
		all  *sync.WaitGroup
	}{{stopWaiting, &waiters}, {stopReading, &reader}} {
		begun := time.Now()
		end.stop()
		end.all.Wait()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("released after %s", took)
		}
	}
	if s.providers["a"].gate.running != 0 || len(s.providers["a"].renewing) != 0 {
		t.Error("something is held")
	}
}
