package store_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/store/record"
)

// recall asks as a turn of the session would, whose window begins at a sequence.
func (w *world) recall(k talk, s record.SessionID, before int64, text string) record.Recalled {
	w.t.Helper()
	r, err := w.Recall(w.t.Context(), record.RecallQuery{
		Conversation: k.fence.Conversation, Session: s, Before: before, Text: text, Salience: 0.8, Recent: 3, Salient: 2, Relevant: 2,
	})
	w.check(err)
	return r
}

// all are the contents of the whole lineage before a sequence, oldest first.
func (w *world) all(k talk, s record.SessionID, before int64) []string {
	w.t.Helper()
	r, err := w.Recall(w.t.Context(), record.RecallQuery{Conversation: k.fence.Conversation, Session: s, Before: before, Recent: 1000})
	w.check(err)
	slices.Reverse(r.Recent)
	return contents(r.Recent)
}

func same(t *testing.T, want, got []string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func numbered(from, to int) []string {
	var texts []string
	for i := from; i <= to; i++ {
		texts = append(texts, fmt.Sprintf("n%d", i))
	}
	return texts
}

// Mission 4.8: the three legs see everything that left the window, over any number
// of compressions, each row once.
func TestRecallAcrossCompressions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	important := userRow("remember: the vault's code is 4711")
	important.Importance = 0.85
	_, err := w.AppendMessages(t.Context(), k.fence, k.session, []record.Message{
		userRow("my cat is called Minka"), important, {Role: llm.ToolRole, Content: "a cat, says the tool", ToolCallID: "x"},
		{Role: llm.Assistant, Content: "let me look for the cat", ToolCalls: []llm.ToolCall{{ID: "x", Name: "f", Arguments: "{}"}}},
		{Role: llm.Assistant, Kind: record.KindNotice, Content: "the cat's turn was stopped"},
	})
	w.check(err)
	s := k.session
	for round := range 3 {
		w.append(k, s, numbered(10*round, 10*round+9)...)
		s = w.compress(k, s, 2).ID
	}
	window := w.history(s)
	before := window[1].Seq
	r := w.recall(k, s, before, "What is my cat called, and what is its age?")
	same(t, []string{"n27", "n26", "n25"}, contents(r.Recent))
	same(t, []string{"remember: the vault's code is 4711"}, contents(r.Salient))
	same(t, []string{"my cat is called Minka"}, contents(r.Relevant))
	all := w.all(k, s, before)
	if want := append([]string{"my cat is called Minka", "remember: the vault's code is 4711"}, numbered(0, 27)...); !cmp.Equal(want, all) {
		t.Errorf("the lineage is %v", all)
	}
	if r := w.recall(k, s, before, " \x00🙂 "); len(r.Relevant) != 0 || len(r.Recent) != 3 {
		t.Errorf("without words: %v", r)
	}
}

// A root knows nothing of the session before it, and nobody knows another
// conversation's, whatever session is named.
func TestRecallStaysInItsLineage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	w.append(k, k.session, "the secret of the first life", "a", "b")
	child := w.compress(k, k.session, 1)
	root := w.effect(k, record.BeginRoot{Reason: record.ReasonNew}).Session
	w.append(k, root, "the secret of the second life", "c", "d")
	second := w.compress(k, root, 1)
	const end = math.MaxInt64
	same(t, []string{"the secret of the first life", "a", "b"}, w.all(k, child.ID, end))
	same(t, []string{"the secret of the second life", "c", "d"}, w.all(k, second.ID, end))
	same(t, []string{"the secret of the second life"}, contents(w.recall(k, second.ID, end, "secret life").Relevant))

	ev := said("1", "hello")
	ev.Key, ev.Address.Chat, ev.From.ID = "message/bob/1", "bob", "fake:bob"
	other := w.receive(ev)
	o := talk{Receipt: other, fence: other.Fence, session: other.Conversation.Session}
	w.append(o, o.session, "the secret of somebody else")
	same(t, []string{}, w.all(o, child.ID, end))
	same(t, []string{"the secret of somebody else"}, w.all(o, o.session, end))
	// A session that was continued from another conversation has its rows in view,
	// but what had left them stays where it was said.
	w.exec(`UPDATE sessions SET parent_id = $2, reason = 'resume', fork_seq = 100 WHERE id = $1`, o.session, child.ID)
	same(t, []string{"the secret of somebody else"}, w.all(o, o.session, end))
}

// What a branch or an undo left behind stays behind, on both sides of a compression.
func TestRecallOfForks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	const end = math.MaxInt64
	fork := func(reason record.SessionReason, upTo int64) record.SessionID {
		return w.effect(k, record.Fork{ID: record.SessionID(record.NewID()), Reason: reason, UpTo: upTo}).Session
	}
	w.append(k, k.session, numbered(1, 6)...)
	child := w.compress(k, k.session, 3) // n4 n5 n6
	w.append(k, child.ID, "n7", "n8")

	branch := fork(record.ReasonBranch, 7)
	w.append(k, branch, "b8")
	same(t, append(numbered(1, 7), "b8"), w.all(k, branch, end))
	same(t, numbered(1, 3), w.all(k, branch, 4))
	deep := w.compress(k, branch, 1)
	w.append(k, deep.ID, "b9")
	same(t, append(numbered(1, 7), "b8", "b9"), w.all(k, deep.ID, end))

	w.effect(k, record.MoveTo{Session: child.ID})
	undone := fork(record.ReasonUndo, 4) // takes back copies: n5 n6, and n7 n8
	same(t, numbered(1, 4), w.all(k, undone, end))
	w.effect(k, record.MoveTo{Session: child.ID})
	nothing := fork(record.ReasonUndo, 0)
	same(t, []string{}, w.all(k, nothing, end))

	// A compression in the middle of a turn keeps the newest question at a sequence
	// that is not its own.
	root := w.effect(k, record.BeginRoot{Reason: record.ReasonNew}).Session
	rows := w.append(k, root, numbered(1, 6)...)
	kept := rows[2]
	kept.OriginSession, kept.OriginSeq, kept.Seq = root, 3, 5
	c, err := w.Compress(t.Context(), k.fence, record.Compression{
		Parent: w.session(root), Summary: userRow("summary"), Tail: []record.Message{kept, rows[5]}, UpTo: 6,
	})
	w.check(err)
	same(t, numbered(1, 6), w.all(k, c.ID, end))
	same(t, numbered(1, 2), w.all(k, fork(record.ReasonUndo, 4), end))
}

// One rare word finds a row among many that share only common ones; endings do not
// matter, nor do spaces where a language has none; a long row that has everything
// does not win.
func TestRelevance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	w.append(k, k.session, "Codename: BLUEBIRD", "私の猫の名前はミンカです", "we met the neighbours' children twice", "Ärger mit der Heizung")
	long := ""
	for i := range 400 {
		long += fmt.Sprintf("what was the name of the thing %d ", i)
	}
	w.append(k, k.session, long)
	w.append(k, k.session, "we flew to Zanzibar")
	for i := range 8 {
		w.append(k, k.session, fmt.Sprintf("the blue house number %d", i))
	}
	for i := range 60 {
		w.append(k, k.session, fmt.Sprintf("and what was the answer to the question %d again?", i))
	}
	for query, want := range map[string]string{
		"what was the codename of the project again?": "Codename: BLUEBIRD",
		"bluebirds":                                  "Codename: BLUEBIRD",
		"is there a blue house in Zanzibar?":         "we flew to Zanzibar",
		"猫は何という名前？":                                  "私の猫の名前はミンカです",
		"did I ever meet a neighbour's child there?": "we met the neighbours' children twice",
		"ärgerlich, die heizungen":                   "Ärger mit der Heizung",
		"question 17, please":                        "and what was the answer to the question 17 again?",
	} {
		got := contents(w.recall(k, k.session, math.MaxInt64, query).Relevant)
		if len(got) == 0 || got[0] != want {
			t.Errorf("%q finds %.80q", query, got)
		}
	}
	if got := w.recall(k, k.session, math.MaxInt64, "what was the").Relevant; len(got) != 0 {
		t.Errorf("only common words find %q", contents(got))
	}
	for _, odd := range []string{"'", `\`, "a:* & !b | (c)", "it's 'quoted' \\ %_", "\xff\x00", "🙂"} {
		w.recall(k, k.session, math.MaxInt64, odd)
	}
}

// Vectors are bytes of the model that made them; those of another model or size are
// never compared, and a message without a direction is not asked about again.
func TestEmbeddings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	rows := w.append(k, k.session, "north", "north-east", "east", "south", "nowhere", "other size", "in view")
	child := w.compress(k, k.session, 1)
	q := record.RecallQuery{Conversation: k.fence.Conversation, Session: child.ID, Before: rows[6].Seq, Relevant: 2}

	open, err := w.Unembedded(ctx, q.Conversation, child.ID, "m", 3)
	w.check(err)
	same(t, []string{"in view", "other size", "nowhere"}, contents(open))
	at := func(i int, v ...float32) record.Embedding {
		return record.Embedding{Session: k.session, Seq: rows[i].Seq, Vector: v}
	}
	w.check(w.SetEmbeddings(ctx, "m", []record.Embedding{at(0, 0, 5), at(1, 1, 1), at(2, 1, 0), at(3, 0, -1), at(4, 0, 0), at(5, 1, 0, 0), at(6, 0, 1)}))
	w.check(w.SetEmbeddings(ctx, "other", []record.Embedding{at(2, 0, 1)}))
	w.check(w.SetEmbeddings(ctx, "m", []record.Embedding{at(3, 0, 1)})) // it keeps the first one
	if open, err = w.Unembedded(ctx, q.Conversation, child.ID, "m", 9); err != nil || len(open) != 0 {
		t.Errorf("%q, %v", contents(open), err)
	}
	near, err := w.Nearest(ctx, q, "m", []float32{0.1, 7})
	w.check(err)
	same(t, []string{"north", "north-east"}, contents(near))
	if raw := query[[]byte](w, `SELECT vector FROM message_embeddings WHERE seq = $1 AND model = 'm'`, rows[0].Seq); !cmp.Equal(raw, []byte{0, 0, 0, 0, 0, 0, 0x80, 0x3f}) {
		t.Errorf("stored as %x", raw)
	}
	for _, none := range [][]float32{{0, 0}, {}, nil, {float32(math.NaN()), 1}} {
		if near, err := w.Nearest(ctx, q, "m", none); err != nil || len(near) != 0 {
			t.Errorf("%v finds %q, %v", none, contents(near), err)
		}
	}
	if near, err := w.Nearest(ctx, q, "m", []float32{-1, -1}); err != nil || len(near) != 1 || near[0].Content != "south" {
		t.Errorf("%q, %v", contents(near), err)
	}
}
