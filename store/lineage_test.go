package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// append adds user rows to a session.
func (w *world) append(k talk, s record.SessionID, texts ...string) []record.Message {
	w.t.Helper()
	var msgs []record.Message
	for _, x := range texts {
		msgs = append(msgs, userRow(x))
	}
	out, err := w.AppendMessages(w.t.Context(), k.fence, s, msgs)
	w.check(err)
	return out
}

// effect applies a command's effect, without an inbox row.
func (w *world) effect(k talk, e record.Effect) record.Conversation {
	w.t.Helper()
	c, err := w.EndItems(w.t.Context(), k.fence, nil, "", e, nil)
	w.check(err)
	return c
}

func (w *world) session(id record.SessionID) record.Session {
	w.t.Helper()
	s, err := w.Session(w.t.Context(), id)
	w.check(err)
	return s
}

// compress folds all but the last keep rows of a session.
func (w *world) compress(k talk, s record.SessionID, keep int) record.Session {
	w.t.Helper()
	msgs := w.history(s)
	child, err := w.Compress(w.t.Context(), k.fence, record.Compression{
		Parent: w.session(s), Child: record.Session{SystemPrompt: "prompt"}, Summary: userRow("summary"),
		Tail: msgs[len(msgs)-keep:], UpTo: msgs[len(msgs)-1].Seq,
	})
	w.check(err)
	return child
}

// LIN-004, CMP-001: the child has everything that it needs: title, place in the tree,
// summary, tail and what was added meanwhile; copies remember where they came from.
func TestCompression(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	w.effect(k, record.SetTitle{Title: "travel"})
	rows := w.append(k, k.session, "one", "two", "three", "four")
	w.append(k, k.session, "newer")
	child, err := w.Compress(ctx, k.fence, record.Compression{
		Parent: w.session(k.session), Child: record.Session{SystemPrompt: "prompt", Ineffective: 1}, Summary: userRow("summary"),
		Tail: rows[2:], UpTo: rows[3].Seq,
		Facts: []record.Fact{{Scope: "person:fake:ann", Category: "taste", Key: "tea", Value: "green"}},
	})
	w.check(err)
	msgs := w.history(child.ID)
	if d := cmp.Diff([]string{"summary", "three", "four", "newer"}, contents(msgs)); d != "" {
		t.Fatal(d)
	}
	if msgs[0].Kind != record.KindSummary || msgs[1].OriginSession != k.session || msgs[3].OriginSession != k.session || msgs[3].OriginSeq != 5 {
		t.Errorf("rows %+v", msgs)
	}
	parent := w.session(k.session)
	if parent.EndedAt.IsZero() || w.work(k.fence).Conversation.Session != child.ID {
		t.Error("the parent is open, or the pointer has not moved")
	}
	want := record.Session{ID: child.ID, Conversation: k.fence.Conversation, Parent: k.session, Root: k.session, Reason: record.ReasonCompression,
		Title: "travel", Model: "fake/model", SystemPrompt: "prompt", Ineffective: 1, CreatedAt: child.CreatedAt}
	if d := cmp.Diff(want, child); d != "" {
		t.Error(d)
	}
	if facts, err := w.Facts(ctx, []string{"person:fake:ann"}, 10); err != nil || len(facts) != 1 {
		t.Errorf("facts %v, %v", facts, err)
	}
	if len(w.history(k.session)) != 5 {
		t.Error("the parent lost rows")
	}
	// A copy of a copy remembers the original, and the child's history is its own.
	second := w.compress(k, child.ID, 1)
	msgs = w.history(second.ID)
	if d := cmp.Diff([]string{"summary", "newer"}, contents(msgs)); d != "" || msgs[1].OriginSession != k.session {
		t.Errorf("%s %+v", d, msgs)
	}
	if next := w.append(k, second.ID, "next"); next[0].Seq <= msgs[1].Seq {
		t.Errorf("sequence %d after %d", next[0].Seq, msgs[1].Seq)
	}
	// So does a copy that comes along because it is newer than what was read.
	third, err := w.Compress(ctx, k.fence, record.Compression{Parent: w.session(second.ID), Summary: userRow("summary"), UpTo: msgs[0].Seq})
	w.check(err)
	msgs = w.history(third.ID)
	if d := cmp.Diff([]string{"summary", "newer", "next"}, contents(msgs)); d != "" || msgs[1].OriginSession != k.session || msgs[2].OriginSession != second.ID {
		t.Errorf("%s %+v", d, msgs)
	}
}

// LIN-001: a compression that fails half-way has changed nothing.
func TestCompressionIsAllOrNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	rows := w.append(k, k.session, "one", "two", "three")
	c := record.Compression{Parent: w.session(k.session), Summary: userRow("summary"), Tail: rows[2:], UpTo: 3,
		Facts: []record.Fact{{Scope: "s", Category: "c", Key: "k", Value: "v"}}}
	broken := c
	broken.Tail = []record.Message{rows[2], rows[2]}
	_, err := w.Compress(ctx, k.fence, broken)
	w.want(err, record.ErrConflict)

	w.effect(k, record.BeginRoot{Reason: record.ReasonNew})
	_, err = w.Compress(ctx, k.fence, c)
	w.want(err, record.ErrConflict)
	w.effect(k, record.MoveTo{Session: k.session})

	// A turn that runs on the parent and does not move along would write to a closed
	// session.
	w.turn(k)
	_, err = w.Compress(ctx, k.fence, c)
	w.want(err, record.ErrConflict)

	if w.session(k.session).EndedAt != (time.Time{}) || query[int](w, `SELECT count(*) FROM sessions WHERE reason = 'compression'`) != 0 ||
		query[int](w, `SELECT count(*) FROM facts`) != 0 {
		t.Error("a failed compression changed something")
	}
}

// CMP-004: a compression inside a turn moves it along, and the results of its open
// calls find their places in the child.
func TestCompressionInsideATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k, turn, runs := w.planned(2)
	w.check(w.StartTool(ctx, k.fence, runs[0]))
	w.check(w.FinishTool(ctx, k.fence, k.session, runs[0], result(runs[0], "first")))
	w.append(k, k.session, "steered")
	seen := w.history(k.session)
	child, err := w.Compress(ctx, k.fence, record.Compression{Parent: w.session(k.session), Summary: userRow("summary"),
		Tail: []record.Message{seen[1], seen[3]}, UpTo: seen[3].Seq, Turn: turn.ID}) // read before the first result came
	w.check(err)
	if got := w.work(k.fence).Turn; got.Session != child.ID {
		t.Fatalf("the turn stands at %s, want %s", got.Session, child.ID)
	}
	w.check(w.StartTool(ctx, k.fence, runs[1]))
	w.check(w.FinishTool(ctx, k.fence, child.ID, runs[1], result(runs[1], "second")))
	w.check(w.EndTurn(ctx, k.fence, record.TurnEnd{Turn: turn.ID, State: record.TurnDone, Messages: []record.Message{{Role: llm.Assistant, Content: "answer"}}}))
	if d := cmp.Diff([]string{"summary", "", "first", "second", "steered", "answer"}, contents(w.history(child.ID))); d != "" {
		t.Error(d)
	}
}

// fork makes a child that inherits its parent's history up to a sequence.
func (w *world) fork(parent record.SessionID, reason record.SessionReason, seq int64) record.SessionID {
	w.t.Helper()
	return record.SessionID(query[string](w, `INSERT INTO sessions (id, conversation_id, parent_id, root_id, fork_seq, next_seq, reason)
		SELECT $2, conversation_id, id, root_id, $3::bigint, $3::bigint + 1, $4 FROM sessions WHERE id = $1 RETURNING id::text`, parent, record.NewID(), seq, reason))
}

func TestHistoryOfForks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	w.append(k, k.session, "a1", "a2", "a3", "a4", "a5")
	branch := w.fork(k.session, record.ReasonBranch, 4)
	w.append(k, branch, "b5", "b6")
	undo := w.fork(branch, record.ReasonUndo, 5)
	w.append(k, undo, "c6")
	far := w.fork(branch, record.ReasonUndo, 2)
	w.append(k, far, "d3")
	empty := w.fork(k.session, record.ReasonDelegation, 0)
	for s, want := range map[record.SessionID]string{
		k.session: "a1 a2 a3 a4 a5",
		branch:    "a1 a2 a3 a4 b5 b6",
		undo:      "a1 a2 a3 a4 b5 c6",
		far:       "a1 a2 d3",
		empty:     "",
	} {
		if got := strings.Join(contents(w.history(s)), " "); got != want {
			t.Errorf("history %q, want %q", got, want)
		}
	}
	// A compression of a branch folds what it inherited, and inherits nothing more.
	w.exec(`UPDATE conversations SET session_id = $1`, branch)
	child := w.compress(k, branch, 3)
	if got := strings.Join(contents(w.history(child.ID)), " "); got != "summary a4 b5 b6" {
		t.Errorf("history of the compressed branch: %q", got)
	}
}

// LIN-005: /resume follows compressions, not sessions that merely came later, and
// never leaves the conversation.
func TestMoveTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	w.append(k, k.session, "one", "two", "three")
	child := w.compress(k, k.session, 1)
	grandchild := w.compress(k, child.ID, 1)
	root := w.effect(k, record.BeginRoot{Reason: record.ReasonReset, Title: "fresh"})
	s := w.session(root.Session)
	if s.Parent != "" || s.Previous != grandchild.ID || s.Root != s.ID || s.Title != "fresh" || s.Model != "fake/model" {
		t.Errorf("root %+v", s)
	}
	if w.session(grandchild.ID).EndedAt.IsZero() {
		t.Error("the session that was left is open")
	}
	w.fork(grandchild.ID, record.ReasonBranch, 1)
	moved := w.effect(k, record.MoveTo{Session: k.session})
	if moved.Session != grandchild.ID {
		t.Errorf("moved to %s, want the newest compression %s", moved.Session, grandchild.ID)
	}
	if !w.session(grandchild.ID).EndedAt.IsZero() || w.session(s.ID).EndedAt.IsZero() {
		t.Error("the session moved to is closed, or the one left is open")
	}
	if again := w.effect(k, record.MoveTo{Session: s.ID}); again.Session != s.ID {
		t.Errorf("moved to %s, want %s: what came before a root is no parent", again.Session, s.ID)
	}

	bob := said("b", "x")
	bob.From.ID, bob.Key = "fake:bob", "b"
	foreign := w.receive(bob).Conversation.Session
	item := w.receive(said("cmd", "/resume")).Item
	for _, id := range []record.SessionID{foreign, record.SessionID(record.NewID()), "", "x; DROP TABLE"} {
		_, err := w.EndItems(t.Context(), k.fence, []record.InboxItem{item}, "resumed", record.MoveTo{Session: id}, nil)
		w.want(err, record.ErrNotFound)
	}
	work := w.work(k.fence)
	if work.Conversation.Session != s.ID || !w.session(s.ID).EndedAt.IsZero() || len(work.Inbox) != 2 {
		t.Errorf("a refused move changed something: %+v", work)
	}
}

// A command's effect, its reply and the end of its row are one thing, done once.
func TestEndItems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	queued := w.receive(said("2", "queued")).Item
	button := chat.ButtonPressed{Origin: said("3", "").Origin, Data: "x"}
	button.Key = "button/3"
	pressed := w.receive(button).Item
	stop := w.receive(said("4", "/stop")).Item
	later := w.receive(said("5", "later")).Item
	reply := record.Delivery{Kind: record.DeliverControl, Key: "reply/4", Address: k.Conversation.Key.Address, Out: chat.Outgoing{Text: "stopped"}, State: record.DeliveryPending}
	end := func(replies ...record.Delivery) error {
		_, err := w.EndItems(ctx, k.fence, []record.InboxItem{stop}, "/stop", record.Withdraw{UpTo: stop.Seq, Reason: "withdrawn by /stop"}, replies)
		return err
	}
	w.check(end(reply))
	w.want(end(), record.ErrConflict)
	work := w.work(k.fence)
	var open []chat.EventKey
	for _, it := range work.Inbox {
		open = append(open, it.Key)
	}
	if d := cmp.Diff([]chat.EventKey{pressed.Key, later.Key}, open); d != "" {
		t.Error(d)
	}
	if len(work.Deliveries) != 1 || work.Deliveries[0].Out.Text != "stopped" {
		t.Errorf("replies %+v", work.Deliveries)
	}
	for id, reason := range map[chat.MessageID]string{"2": "withdrawn by /stop", "4": "/stop"} {
		if why, err := w.Explain(ctx, "fake/main", "", id); err != nil || why.Item.Reason != reason {
			t.Errorf("message %s: %q, %v", id, why.Item.Reason, err)
		}
	}
	_ = queued

	changed := later
	changed.Payload = []byte(`{"text":"changed"}`)
	w.effect(k, record.Rewrite{Item: changed})
	if inbox := w.work(k.fence).Inbox; string(inbox[len(inbox)-1].Payload) != string(changed.Payload) {
		t.Errorf("a changed message has the payload %s", inbox[len(inbox)-1].Payload)
	}
	_, err := w.EndItems(ctx, k.fence, nil, "", record.Rewrite{Item: stop}, nil)
	w.want(err, record.ErrConflict)

	long := strings.Repeat("title \x00", 500)
	w.effect(k, record.SetTitle{Title: long})
	w.effect(k, record.SetModel{Model: "other/model"})
	w.effect(k, record.SetVerbose{Level: record.VerboseAll})
	c := w.effect(k, record.ShowReasoning{On: true})
	if c.Model != "other/model" || c.Verbose != record.VerboseAll || !c.Reasoning {
		t.Errorf("conversation %+v", c)
	}
	if s := w.session(k.session); s.Title != strings.ReplaceAll(long, "\x00", "\uFFFD") {
		t.Error("the title is not what was set")
	}
}

// A changed message keeps its place and gets its new words, until it is taken.
func TestRewrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	w.receive(said("2", "second"))
	item := k.Item
	var err error
	item.Kind, item.Payload, err = chat.Encode(said("1", "changed"))
	w.check(err)
	w.effect(k, record.Rewrite{Item: item})
	inbox := w.work(k.fence).Inbox
	if len(inbox) != 2 || inbox[0].Seq != k.Item.Seq || !strings.Contains(string(inbox[0].Payload), "changed") {
		t.Errorf("inbox %+v", inbox)
	}
	w.turn(k)
	_, err = w.EndItems(t.Context(), k.fence, nil, "", record.Rewrite{Item: item}, nil)
	w.want(err, record.ErrConflict)
}

// LIN-002, LIN-007: the list has each session once, the current one marked, what was
// compressed as one, ordered by when something was last said.
func TestSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	w.append(k, k.session, "first words", "two", "three")
	child := w.compress(k, k.session, 1)
	w.append(k, child.ID, "four")
	w.effect(k, record.BeginRoot{Reason: record.ReasonNew}) // nothing is ever said in it
	named := w.effect(k, record.BeginRoot{Reason: record.ReasonNew, Title: "plans"}).Session
	current := w.effect(k, record.BeginRoot{Reason: record.ReasonReset}).Session
	w.append(k, current, "now")
	w.append(k, child.ID, "late") // the newest message of all
	w.exec(`UPDATE messages SET created_at = now() + interval '1 hour' WHERE content = 'late'`)

	list, err := w.Sessions(ctx, k.fence.Conversation, 10)
	w.check(err)
	type row struct {
		ID       record.SessionID
		Title    string
		Opening  string
		Messages int
		Current  bool
	}
	var got []row
	for _, s := range list {
		got = append(got, row{s.ID, s.Title, s.Opening, s.Messages, s.Current})
	}
	want := []row{{child.ID, "", "first words", 5, false}, {current, "", "now", 1, true}, {named, "plans", "", 0, false}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if list, err = w.Sessions(ctx, k.fence.Conversation, 1); err != nil || len(list) != 1 {
		t.Errorf("limited to one: %d, %v", len(list), err)
	}
	infos, err := w.Directory().Sessions(ctx, k.Conversation.Key, 10)
	w.check(err)
	if len(infos) != 3 || infos[0].Title != "first words" || !infos[1].Current || infos[2].Title != "plans" {
		t.Errorf("directory %+v", infos)
	}
	if infos, err = w.Directory().Sessions(ctx, chat.ConversationKey{}, 10); err != nil || len(infos) != 0 {
		t.Errorf("sessions of nobody: %v, %v", infos, err)
	}
	all, err := w.Conversations(ctx, 10)
	w.check(err)
	if len(all) != 1 || all[0].Session != current {
		t.Errorf("conversations %+v", all)
	}
}

func TestSessionState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k := w.talk()
	s := w.session(k.session)
	s.Model, s.SystemPrompt, s.PromptTokens, s.PromptSeq, s.Ineffective = "m/x", "you are\x00", 5, 6, 7
	s.CoolUntil, s.FailedCompressions = time.Now().Add(time.Minute).Round(time.Millisecond), 2
	w.check(w.SetSession(ctx, k.fence, s))
	s.SystemPrompt = "you are\uFFFD"
	if d := cmp.Diff(s, w.session(k.session)); d != "" {
		t.Error(d)
	}
	s.ID = record.SessionID(record.NewID())
	w.want(w.SetSession(ctx, k.fence, s), record.ErrNotFound)
	_, err := w.Session(ctx, s.ID)
	w.want(err, record.ErrNotFound)

	w.append(k, k.session, "said")
	w.check(w.SetWire(ctx, k.fence, k.session, 1, "sent"))
	w.check(w.SetWire(ctx, k.fence, k.session, 1, "sent otherwise"))
	if got := w.history(k.session)[0].Wire; got != "sent" {
		t.Errorf("what was sent is %q, want the first", got)
	}
	w.want(w.SetWire(ctx, k.fence, k.session, 2, "x"), record.ErrNotFound)

	if _, err = w.SessionIn(ctx, k.fence.Conversation, k.session); err != nil {
		t.Error(err)
	}
	_, err = w.SessionIn(ctx, record.ConversationID(record.NewID()), k.session)
	w.want(err, record.ErrNotFound)
	_, err = w.SessionIn(ctx, k.fence.Conversation, record.SessionID(fmt.Sprint(cutOff)))
	w.want(err, record.ErrNotFound)
}

// Every refusal in a turn and in those of its subagents is told with who or what
// refused and why, in the order in which it happened; what ran is not, nor a question
// about money that nobody's word ended.
func TestExplainTellsRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	k, turn, runs := w.planned(6)
	ask := func(call string, kind record.ApprovalKind, to record.ApprovalState, by chat.Person) {
		t.Helper()
		a, _, err := w.OpenApproval(ctx, k.fence, record.Approval{Turn: turn.ID, CallID: call, Kind: kind, Question: "About " + call, ExpiresAt: time.Now().Add(time.Hour)},
			record.Delivery{Kind: record.DeliverCard, Key: "card/" + call, State: record.DeliveryPending})
		w.check(err)
		if to != record.ApprovalOpen {
			_, _, err = w.DecideApproval(ctx, k.fence, a.ID, to, by, "")
			w.check(err)
		}
	}
	finish := func(s record.SessionID, r record.ToolRun, outcome string, by record.Refuser, why string) {
		t.Helper()
		r.Outcome, r.RefusedBy, r.Reason = outcome, by, why
		w.check(w.FinishTool(ctx, k.fence, s, r, result(r, "x")))
	}
	finish(k.session, runs[0], "ok", "", "")
	finish(k.session, runs[1], "denied", record.RefusedByPolicy, "never allowed")
	finish(k.session, runs[2], "denied", record.RefusedByHook, "no such words")
	ask("call3", record.AskApproval, record.ApprovalDenied, ann)
	finish(k.session, runs[3], "denied", record.RefusedByPeople, "it wants to write")
	ask("call4", record.AskClarify, record.ApprovalExpired, "")
	finish(k.session, runs[4], "denied", "", "")

	child, err := w.Delegate(ctx, k.fence, record.Delegation{
		Parent: turn.ID, CallID: "call5", Turn: record.Turn{Trust: record.TrustUser}, Message: userRow("task"),
	})
	w.check(err)
	sub := child.Turn
	_, below, err := w.PlanTools(ctx, k.fence, sub.Session, record.Message{Role: llm.Assistant, Turn: sub.ID},
		[]record.ToolRun{{Turn: sub.ID, Iteration: 1, CallID: "call0", Tool: "sub", Arguments: []byte("{}")}})
	w.check(err)
	ask(string(sub.ID)+"/call0", record.AskApproval, record.ApprovalWithdrawn, ann)
	finish(sub.Session, below[0], "denied", record.RefusedByPeople, "it wants to run commands")
	ask("spending/1", record.AskSpending, record.ApprovalApproved, ann)
	ask("spending/2", record.AskSpending, record.ApprovalDenied, ann)
	ask("spending/3", record.AskSpending, record.ApprovalOpen, "")
	w.check(w.EndTurn(ctx, k.fence, record.TurnEnd{Turn: turn.ID, State: record.TurnDone}))

	why, err := w.Explain(ctx, "fake/main", k.fence.Conversation, "1")
	w.check(err)
	const args = `{"n":1}`
	want := []record.Refusal{
		{By: record.RefusedByPolicy, Tool: "t", Arguments: args, Reason: "never allowed"},
		{By: record.RefusedByHook, Tool: "t", Arguments: args, Reason: "no such words"},
		{By: record.RefusedByPeople, Tool: "t", Arguments: args, Reason: "it wants to write", Decision: record.ApprovalDenied, Decider: ann},
		{Tool: "t", Arguments: args, Decision: record.ApprovalExpired},
		{By: record.RefusedByPeople, Tool: "sub", Arguments: "{}", Reason: "it wants to run commands", Decision: record.ApprovalWithdrawn, Decider: ann},
		{By: record.RefusedBySpending, Arguments: "About spending/2", Decision: record.ApprovalDenied, Decider: ann},
	}
	if d := cmp.Diff(want, why.Refusals); d != "" {
		t.Error(d)
	}
	kept, err := w.ToolRuns(ctx, turn.ID)
	w.check(err)
	if r := kept[2]; r.RefusedBy != record.RefusedByHook || r.Reason != "no such words" {
		t.Errorf("kept: %+v", r)
	}
}
