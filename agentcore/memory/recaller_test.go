package memory_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/agentcore/memory"
	"parley/agentcore/spending"
	"parley/agentcore/spending/spendingtest"
	"parley/store/record"
)

// shelf is a store with rows that wait for vectors.
type shelf struct {
	mu      sync.Mutex
	asked   record.RecallQuery
	rows    record.Recalled
	open    []record.Message
	vectors map[int64]int // the size of each stored vector
	broken  error
}

func (s *shelf) Recall(_ context.Context, q record.RecallQuery) (record.Recalled, error) {
	s.asked = q
	return s.rows, s.broken
}

func (s *shelf) Nearest(_ context.Context, q record.RecallQuery, model string, v []float32) ([]record.Message, error) {
	return []record.Message{said(1, llm.User, fmt.Sprintf("near in %s to %v, at most %d", model, v, q.Relevant))}, s.broken
}

func (s *shelf) Unembedded(_ context.Context, _ record.ConversationID, _ record.SessionID, _ string, limit int) ([]record.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []record.Message
	for _, m := range s.open {
		if _, ok := s.vectors[m.Seq]; !ok && len(rows) < limit {
			rows = append(rows, m)
		}
	}
	return rows, s.broken
}

func (s *shelf) SetEmbeddings(_ context.Context, _ string, all []record.Embedding) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range all {
		s.vectors[e.Seq] = len(e.Vector)
	}
	return s.broken
}

func (s *shelf) stored() map[int64]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[int64]int{}
	for k, v := range s.vectors {
		out[k] = v
	}
	return out
}

// embedder answers by a function.
type embedder func(ctx context.Context, texts []string) ([][]float32, llm.Usage, error)

func (f embedder) Embed(ctx context.Context, texts []string) ([][]float32, llm.Usage, error) {
	return f(ctx, texts)
}

// fine makes a vector of each text, unless a text has the word "refused".
func fine(_ context.Context, texts []string) ([][]float32, llm.Usage, error) {
	var out [][]float32
	for _, t := range texts {
		if strings.Contains(t, "refused") {
			return nil, llm.Usage{}, &llm.Error{Kind: llm.KindMalformed, Status: 400}
		}
		out = append(out, []float32{1, 2})
	}
	return out, llm.Usage{Input: 10 * len(texts)}, nil
}

func TestLegs(t *testing.T) {
	s := &shelf{rows: record.Recalled{Recent: speaking(3), Salient: speaking(1), Relevant: speaking(2)}}
	q := record.RecallQuery{Conversation: "c", Session: "s", Before: 7, Text: "what?"}
	got, err := memory.NewRecaller(memory.Deps{Store: s}).Recall(t.Context(), q, "x:1")
	if diff := cmp.Diff(memory.Sources{Recent: speaking(3), Salient: speaking(1), Relevant: speaking(2)}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	want := q
	want.Salience, want.Recent, want.Salient, want.Relevant = 0.8, 10, 5, 5
	if diff := cmp.Diff(want, s.asked); diff != "" {
		t.Error(diff)
	}
	r := memory.NewRecaller(memory.Deps{Store: s, Embedder: embedder(fine), Model: "m"})
	if got, err = r.Recall(t.Context(), q, "x:1"); err != nil || len(got.Similar) != 1 || got.Similar[0].Content != "near in m to [1 2], at most 5" {
		t.Errorf("%+v, %v", got.Similar, err)
	}
	for name, q := range map[string]record.RecallQuery{"blank": {Text: " \n"}, "nothing has left": {Text: "x"}} {
		if name != "blank" {
			s.rows = record.Recalled{}
		}
		if got, err = r.Recall(t.Context(), q, "x:1"); err != nil || got.Similar != nil {
			t.Errorf("%s: %+v, %v", name, got.Similar, err)
		}
	}
	s.broken = errors.New("no database")
	if _, err = r.Recall(t.Context(), q, "x:1"); !errors.Is(err, s.broken) {
		t.Error(err)
	}
}

// A server of vectors that is slow or down costs a turn three seconds and the
// similar rows, nothing else.
func TestRecallWithoutItsEmbedder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{rows: record.Recalled{Recent: speaking(2)}}
		hang := embedder(func(ctx context.Context, _ []string) ([][]float32, llm.Usage, error) {
			<-ctx.Done()
			return nil, llm.Usage{}, ctx.Err()
		})
		begun := time.Now()
		got, err := memory.NewRecaller(memory.Deps{Store: s, Embedder: hang}).Recall(t.Context(), record.RecallQuery{Text: "x"}, "x:1")
		if err != nil || len(got.Recent) != 2 || got.Similar != nil || time.Since(begun) != 3*time.Second {
			t.Errorf("%+v, %v after %s", got, err, time.Since(begun))
		}
	})
}

// Vectors are made in the background, after turns; a refused text is left out once
// and for all, and a server that is down is asked again after a while.
func TestIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{vectors: map[int64]int{}, open: speaking(70)}
		s.open[40].Content, s.open[41].Content = "refused", strings.Repeat("ä", 9000)
		down := true
		longest := 0
		r := memory.NewRecaller(memory.Deps{Store: s, Embedder: embedder(func(ctx context.Context, texts []string) ([][]float32, llm.Usage, error) {
			for _, x := range texts {
				longest = max(longest, len(x))
			}
			if down {
				return nil, llm.Usage{}, &llm.Error{Kind: llm.KindOverloaded, Status: 503}
			}
			return fine(ctx, texts)
		})})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.Run(ctx) })
		r.Saved(record.Payer{Conversation: "c"}, "s")
		synctest.Wait()
		for range 1000 {
			r.Saved(record.Payer{Conversation: "c"}, "s") // more than the queue holds, while nothing is taken from it
		}
		down = false
		synctest.Wait()
		if n := len(s.stored()); n != 0 {
			t.Errorf("%d vectors before the server is asked again", n)
		}
		<-time.After(31 * time.Second)
		synctest.Wait()
		got := s.stored()
		if len(got) != 70 || got[1] != 2 || got[70] != 2 || got[41] != 0 || got[42] != 2 {
			t.Errorf("%v", got)
		}
		if longest != 6000 {
			t.Errorf("a text of %d bytes was sent", longest)
		}
		cancel()
		running.Wait()
	})
}

// Where every text is refused the request is wrong, not the texts.
func TestARefusalOfEverythingIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{vectors: map[int64]int{}, open: speaking(3)}
		r := memory.NewRecaller(memory.Deps{Store: s, Embedder: embedder(func(context.Context, []string) ([][]float32, llm.Usage, error) {
			return nil, llm.Usage{}, &llm.Error{Kind: llm.KindMalformed, Status: 400}
		})})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.Run(ctx) })
		r.Saved(record.Payer{Conversation: "c"}, "s")
		synctest.Wait()
		if n := len(s.stored()); n != 0 {
			t.Errorf("%d rows are marked", n)
		}
		cancel()
		running.Wait()
	})
}

// paying is a recaller whose vectors are booked in a purse, at one for a thousand
// tokens.
func paying(s *shelf, p *spendingtest.Purse) *memory.Recaller {
	return memory.NewRecaller(memory.Deps{Store: s, Embedder: embedder(fine), Model: "m", Book: spending.New(
		spending.Config{TotalDaily: p.Limit}, spending.Deps{Ledger: p, Price: func(llm.ModelID) llm.Price { return llm.Price{Input: 1000} }},
	)})
}

// Vectors are on the account of whoever asked, with what the server says they used.
func TestVectorsArePaidFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{rows: record.Recalled{Recent: speaking(1)}, vectors: map[int64]int{}, open: speaking(40)}
		p := &spendingtest.Purse{Limit: 100}
		r := paying(s, p)
		if _, err := r.Recall(t.Context(), record.RecallQuery{Conversation: "c", Text: "what?"}, "x:1"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.Run(ctx) })
		r.Saved(record.Payer{Conversation: "c", Person: "x:2"}, "s")
		synctest.Wait()
		spent, noted := p.Now()
		var got []string
		for _, e := range noted {
			got = append(got, fmt.Sprint(e.Conversation, " ", e.Person, " ", e.Purpose, " ", e.Model, " ", e.Usage.Input))
		}
		want := []string{"c x:1 embedding m 10", "c x:2 embedding m 320", "c x:2 embedding m 80"}
		if diff := cmp.Diff(want, got); diff != "" || spent < 0.409 || spent > 0.411 {
			t.Errorf("%s\nbooked %f", diff, spent)
		}
		cancel()
		running.Wait()
	})
}

// At a limit vectors pause: nothing is sent, recall has its other legs, other people's
// sessions do not wait, and what is missing is made once there is room.
func TestVectorsPauseAtALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{rows: record.Recalled{Recent: speaking(1)}, vectors: map[int64]int{}, open: speaking(3)}
		p := &spendingtest.Purse{Limit: 0.0001}
		r := paying(s, p)
		got, err := r.Recall(t.Context(), record.RecallQuery{Text: "what?"}, "x:1")
		if err != nil || len(got.Recent) != 1 || got.Similar != nil {
			t.Errorf("%+v, %v", got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.Run(ctx) })
		r.Saved(record.Payer{Conversation: "c"}, "s")
		synctest.Wait()
		if spent, noted := p.Now(); spent != 0 || noted != nil || len(s.stored()) != 0 {
			t.Errorf("booked %f, noted %v, %d vectors", spent, noted, len(s.stored()))
		}
		_ = p.AllowMore(t.Context(), time.Now(), "total", 1)
		begun := time.Now()
		r.Saved(record.Payer{Conversation: "c"}, "s")
		synctest.Wait()
		if len(s.stored()) != 3 || time.Since(begun) != 0 {
			t.Errorf("%d vectors after %s", len(s.stored()), time.Since(begun))
		}
		cancel()
		running.Wait()
	})
}
