package store_test

import (
	"testing"
	"time"

	"parley/store/record"
)

// crowd gives a conversation many rows, in a line of fifty compressed sessions whose
// newest it returns: every one has "common", every second "word", every tenth "usual",
// and every hundredth a number of its own.
func (w *world) crowd(k talk, rows int) record.SessionID {
	w.t.Helper()
	const sessions = 50
	ids := []record.SessionID{k.session}
	for i := 1; i < sessions; i++ {
		id := record.SessionID(record.NewID())
		w.exec(`INSERT INTO sessions (id, conversation_id, parent_id, root_id, reason) VALUES ($1, $2, $3, $4, 'compression')`,
			id, k.fence.Conversation, ids[i-1], k.session)
		ids = append(ids, id)
	}
	w.exec(`
		INSERT INTO messages (session_id, seq, role, content, importance, created_at)
		SELECT ($1::uuid[])[1 + (i - 1) * $3::int / $2::int], i, CASE i % 2 WHEN 0 THEN 'user' ELSE 'assistant' END,
			'a common text' || CASE WHEN i % 2 = 0 THEN ' with a word' ELSE '' END || CASE WHEN i % 10 = 0 THEN ' that is usual' ELSE '' END
				|| ' and others around it' || CASE WHEN i % 100 = 0 THEN ', number ' || i ELSE '' END || repeat(' so it goes on', 5 + i % 20),
			CASE WHEN i % 1000 = 0 THEN 0.85 ELSE 0.3 END, now() - make_interval(secs => $2::int - i)
		FROM generate_series(1, $2::int) i`, ids, rows, sessions)
	w.exec(`UPDATE sessions s SET next_seq = 1 + (SELECT max(seq) FROM messages m WHERE m.session_id = s.id) WHERE conversation_id = $1`, k.fence.Conversation)
	w.exec(`ANALYZE messages`)
	return ids[len(ids)-1]
}

// Searching and recalling by words that stand in most of 100,000 messages.
func BenchmarkCommonWords(b *testing.B) {
	w := newWorld(b)
	k := w.talk()
	newest := w.crowd(k, 100_000)
	q := record.RecallQuery{Conversation: k.fence.Conversation, Session: newest, Before: 100_001, Text: "is the usual word common, or number 7700?",
		Salience: 0.8, Recent: 10, Salient: 5, Relevant: 5}
	for name, run := range map[string]func() error{
		"Search": func() error { _, err := w.Search(b.Context(), q.Conversation, "usual word common", 20); return err },
		"Recall": func() error { _, err := w.Recall(b.Context(), q); return err },
	} {
		b.Run(name, func(b *testing.B) {
			var longest time.Duration
			for b.Loop() {
				begun := time.Now()
				if err := run(); err != nil {
					b.Fatal(err)
				}
				longest = max(longest, time.Since(begun))
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/op")
			b.ReportMetric(float64(longest.Milliseconds()), "worst-ms")
		})
	}
}

// Where common words are bounded the best match is still found: the one row with a
// rare word, however old, among thousands with the others, and a row with all of the
// words before those with some.
func TestTheBestMatchAmongCommonWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	newest := w.crowd(k, 20_000)
	// Words of which neither is rare, and that stand together once.
	w.exec(`UPDATE messages SET content = content || CASE WHEN seq % 3 = 0 THEN ' lantern' ELSE ' harbour' END || CASE WHEN seq = 4197 THEN ' harbour' ELSE '' END`)
	for text, want := range map[string]int64{"common word number 700": 700, "lantern harbour": 4197} {
		hits, err := w.Search(t.Context(), k.fence.Conversation, text, 5)
		w.check(err)
		if len(hits) != 5 || hits[0].Seq != want {
			t.Errorf("%q finds %+v", text, hits)
		}
	}
	for text, want := range map[string]int64{"what was the common word for number 700?": 700, "lantern, harbour": 4197} {
		r := w.recall(k, newest, 20_001, text)
		if len(r.Relevant) == 0 || r.Relevant[0].Seq != want {
			t.Errorf("%q recalls %q", text, contents(r.Relevant))
		}
	}
	if r := w.recall(k, newest, 20_001, "it goes on"); len(r.Relevant) != 0 {
		t.Errorf("words that stand everywhere recall %q", contents(r.Relevant))
	}
	// Of equals the newest come first, though more match than are ranked.
	hits, err := w.Search(t.Context(), k.fence.Conversation, "goes", 3)
	w.check(err)
	if len(hits) != 3 || hits[2].Seq < 19_000 {
		t.Errorf("the last of %d is row %d", len(hits), hits[len(hits)-1].Seq)
	}
}
