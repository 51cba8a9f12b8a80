package store_test

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/gateway/chat"
	"parley/store/record"
)

// DUP-001, DUP-003, DUP-004, DUP-007, DUP-008, RST-002: an event is known by its key
// for ever, whatever brought it again, also after its end and a restart.
func TestDuplicateEventChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.talk()
	w.turn(k)
	again, err := w.other().Receive(t.Context(), w.request(said("1", "another text")), func(record.AccessFacts) record.Verdict {
		return record.Verdict{State: record.InboxReceived, Pair: true}
	})
	w.check(err)
	if d := cmp.Diff(record.Receipt{Duplicate: true}, again); d != "" {
		t.Fatal(d)
	}
	if n := query[int](w, `SELECT count(*) FROM inbox WHERE state = 'taken'`); n != 1 {
		t.Errorf("%d taken rows, want 1", n)
	}
	if n := query[int](w, `SELECT count(*) FROM pairings`); n != 0 {
		t.Errorf("the duplicate opened a pairing request")
	}
}

// A duplicate that would have opened a conversation leaves none behind.
func TestDuplicateLeavesNoConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.talk()
	ev := said("1", "hello")
	ev.Address.Chat = "elsewhere"
	rc, err := w.Receive(t.Context(), w.request(ev), accept)
	w.check(err)
	if !rc.Duplicate || query[int](w, `SELECT count(*) FROM conversations`) != 1 {
		t.Fatalf("receipt %+v", rc)
	}
}

// DUP-010, CON-011, CON-014: the same and different events at the same moment, on two
// replicas: each is taken once, in one conversation with one owner.
func TestParallelIntake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	replicas := []*world{w, w.other()}
	var mu sync.Mutex
	accepted := map[chat.EventKey]int{}
	owners := map[record.Fence]bool{}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			r := replicas[i%2]
			rc, err := r.Receive(t.Context(), r.request(said(string(rune('a'+i/4)), "x")), accept)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if !rc.Duplicate {
				accepted[rc.Item.Key]++
			}
			if rc.Mine {
				owners[rc.Fence] = true
			}
		})
	}
	wg.Wait()
	if len(accepted) != 10 {
		t.Errorf("%d events were taken, want 10", len(accepted))
	}
	for key, n := range accepted {
		if n != 1 {
			t.Errorf("%s was taken %d times", key, n)
		}
	}
	if len(owners) > 1 || query[int](w, `SELECT count(*) FROM conversations`) != 1 || query[int](w, `SELECT count(*) FROM sessions`) != 1 {
		t.Errorf("owners: %v", owners)
	}
}

// CON-001, CON-016: rows keep the order of arrival and stay apart, each with its own
// exact bytes.
func TestInboxKeepsOrderAndContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	texts := []string{"delete the draft", "no, keep it", "nul \x00 and bad \xff\xfe", strings.Repeat("日", 200_000)}
	var k talk
	for i, s := range texts {
		rc := w.receive(said(string(rune('1'+i)), s))
		k.fence = rc.Fence
	}
	work := w.work(k.fence)
	if len(work.Inbox) != len(texts) {
		t.Fatalf("%d rows, want %d", len(work.Inbox), len(texts))
	}
	for i, it := range work.Inbox {
		kind, want, err := chat.Encode(said(string(rune('1'+i)), texts[i]))
		w.check(err)
		if it.Kind != kind || !bytes.Equal(it.Payload, want) {
			t.Errorf("row %d is not what came in", i)
		}
		if i > 0 && it.Seq <= work.Inbox[i-1].Seq {
			t.Errorf("row %d has sequence %d after %d", i, it.Seq, work.Inbox[i-1].Seq)
		}
		if _, err := it.Event(); err != nil {
			t.Error(err)
		}
	}
}

// KEY-001: people do not share a conversation; in groups the scope decides.
func TestConversationKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	bob := said("b1", "hi")
	bob.From.ID, bob.Key = "fake:bob", "message/bob/1"
	a, b := w.receive(said("1", "hi")), w.receive(bob)
	if a.Conversation.ID == b.Conversation.ID {
		t.Error("two people share a conversation in the same chat")
	}
	group := func(id string, from chat.Person, thread chat.ThreadID, scope chat.Scope) record.ConversationID {
		ev := said(id, "hi")
		ev.Key, ev.Kind, ev.From.ID, ev.Address = chat.EventKey("message/room/"+id), chat.Group, from, chat.Address{Account: "fake/main", Chat: "room", Thread: thread}
		r := w.request(ev)
		r.Scope = scope
		rc, err := w.Receive(t.Context(), r, accept)
		w.check(err)
		return rc.Conversation.ID
	}
	one := group("1", ann, "t1", chat.ScopeThread)
	if group("2", "fake:bob", "t1", chat.ScopeThread) != one {
		t.Error("a thread has two conversations")
	}
	if group("3", ann, "t2", chat.ScopeThread) == one {
		t.Error("two threads share a conversation")
	}
	if p := group("4", ann, "t1", chat.ScopePerson); p == one || group("5", "fake:bob", "t1", chat.ScopePerson) == p {
		t.Error("people share a conversation though each has their own by configuration")
	}
}

// A group that became a supergroup keeps its conversations, whoever they are for.
func TestMoveChat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	said := func(room chat.ChatID, from chat.Person, scope chat.Scope) record.ConversationID {
		ev := said(string(from), "hi")
		ev.Key, ev.Kind, ev.From.ID = chat.EventKey(record.NewID()), chat.Group, from
		ev.Address = chat.Address{Account: "fake/main", Chat: room}
		r := w.request(ev)
		r.Scope = scope
		rc, err := w.Receive(t.Context(), r, accept)
		w.check(err)
		return rc.Conversation.ID
	}
	shared, anns, other := said("old", ann, chat.ScopeThread), said("old", ann, chat.ScopePerson), said("elsewhere", ann, chat.ScopeThread)
	bobs, early := said("old", "fake:bob", chat.ScopePerson), said("new", "fake:bob", chat.ScopePerson)
	for range 2 { // a platform tells it again
		w.check(w.MoveChat(t.Context(), "fake/main", "old", "new"))
	}
	if said("new", ann, chat.ScopeThread) != shared || said("new", ann, chat.ScopePerson) != anns || said("elsewhere", ann, chat.ScopeThread) != other {
		t.Error("a conversation was left behind or mistaken")
	}
	if said("new", "fake:bob", chat.ScopePerson) != early || said("old", "fake:bob", chat.ScopePerson) != bobs {
		t.Error("a conversation that the new chat had already was replaced")
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	receive := func(id string, v record.Verdict) record.Receipt {
		t.Helper()
		rc, err := w.Receive(t.Context(), w.request(said(id, "secret words")), func(record.AccessFacts) record.Verdict { return v })
		w.check(err)
		return rc
	}
	t.Run("refused leaves key and reason only", func(t *testing.T) {
		rc := receive("r", record.Verdict{State: record.InboxRefused, Reason: "not allowed"})
		if rc.Item.State != record.InboxRefused || rc.Conversation.ID != "" || rc.Mine {
			t.Errorf("receipt %+v", rc)
		}
		if query[bool](w, `SELECT payload IS NOT NULL OR person <> '' FROM inbox WHERE message = 'r'`) {
			t.Error("something of a refused message was kept")
		}
		why, err := w.Explain(t.Context(), "fake/main", "", "r")
		w.check(err)
		if why.Item.Reason != "not allowed" {
			t.Errorf("reason %q", why.Item.Reason)
		}
	})
	t.Run("counted leaves a number only", func(t *testing.T) {
		for _, id := range []string{"c1", "c2"} {
			receive(id, record.Verdict{State: record.InboxRefused, Reason: "not for the bot", Count: true})
		}
		if n := query[int](w, `SELECT count FROM ignored_counts WHERE reason = 'not for the bot'`); n != 2 {
			t.Errorf("counted %d, want 2", n)
		}
		if query[int](w, `SELECT count(*) FROM inbox WHERE message LIKE 'c%'`) != 0 {
			t.Error("a counted message left a row")
		}
	})
	t.Run("no verdict", func(t *testing.T) {
		if _, err := w.Receive(t.Context(), w.request(said("n", "x")), func(record.AccessFacts) record.Verdict { return record.Verdict{} }); err == nil {
			t.Error("an empty verdict was accepted")
		}
		if query[int](w, `SELECT count(*) FROM inbox WHERE message = 'n'`) != 0 {
			t.Error("it left a row")
		}
	})
	if n := query[int](w, `SELECT count(*) FROM conversations`); n != 0 {
		t.Errorf("%d conversations were opened for strangers", n)
	}
}

func TestAccessFacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var facts record.AccessFacts
	see := func(id string) {
		t.Helper()
		_, err := w.Receive(t.Context(), w.request(said(id, "x")), func(f record.AccessFacts) record.Verdict {
			facts = f
			return record.Verdict{State: record.InboxHeld, Pair: true}
		})
		w.check(err)
	}
	see("1")
	if facts.Member != nil || facts.Claimed || facts.Conversation != nil || facts.Asked {
		t.Errorf("facts of an empty database: %+v", facts)
	}
	w.check(w.SetMember(t.Context(), record.Member{ID: "other:ann", Role: record.RoleOwner}))
	see("2")
	if facts.Claimed || !facts.Asked {
		t.Errorf("facts after a request, with an owner elsewhere: %+v", facts)
	}
	w.check(w.SetMember(t.Context(), record.Member{ID: ann, Name: "Ann", Role: record.RoleAdmin}))
	w.receive(said("3", "x"))
	see("4")
	if facts.Member == nil || facts.Member.Role != record.RoleAdmin || !facts.Claimed || facts.Conversation == nil {
		t.Errorf("facts of a member: %+v", facts)
	}
}

// A stranger's request is opened once, and again when it has expired; what they
// wrote within a day comes in when they are let in, in order.
func TestHeldMessagesOfAStranger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := "AAAA2222"
	hold := func(id string) record.Receipt {
		t.Helper()
		r := w.request(said(id, "let me in"))
		r.PairingCode = code
		rc, err := w.Receive(t.Context(), r, func(record.AccessFacts) record.Verdict {
			return record.Verdict{State: record.InboxHeld, Reason: "waits for an admin", Pair: true}
		})
		w.check(err)
		return rc
	}
	first := hold("1")
	if first.Pairing == nil || first.Pairing.Code != code || first.Pairing.Person != ann || first.Pairing.State != record.PairingOpen {
		t.Fatalf("pairing %+v", first.Pairing)
	}
	if rc := hold("2"); rc.Pairing != nil {
		t.Error("a second request was opened")
	}
	w.exec(`UPDATE pairings SET expires_at = now() - interval '1 minute'`)
	code = "BBBB3333"
	if rc := hold("3"); rc.Pairing == nil || rc.Pairing.Code != code {
		t.Error("no request was opened after the first had expired")
	}

	w.exec(`UPDATE inbox SET received_at = now() - interval '25 hours' WHERE message = '1'`)
	hold("4")
	if query[bool](w, `SELECT payload IS NOT NULL OR state <> 'refused' FROM inbox WHERE message = '1'`) {
		t.Error("a stranger's words were kept for longer than a day")
	}
	fences, err := w.ReceiveHeld(t.Context(), w.replica, ann)
	w.check(err)
	if len(fences) != 1 {
		t.Fatalf("%d conversations, want 1", len(fences))
	}
	var ids []chat.MessageID
	for _, it := range w.work(fences[0]).Inbox {
		ev, err := it.Event()
		w.check(err)
		ids = append(ids, ev.Meta().Message)
	}
	if d := cmp.Diff([]chat.MessageID{"2", "3", "4"}, ids); d != "" {
		t.Error(d)
	}
	if fences, err = w.ReceiveHeld(t.Context(), w.replica, ann); err != nil || len(fences) != 0 {
		t.Errorf("a second time: %v, %v", fences, err)
	}
}

// PGS-010: keys of any length are told apart; an event with ids that no index
// holds is refused with a reason and acknowledged, or it would come for ever.
func TestLongKeysAndIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("ж", 3000)
	for i, key := range []string{long + "1", long + "2"} {
		ev := said(string(rune('1'+i)), "x")
		ev.Key = chat.EventKey(key)
		if rc := w.receive(ev); rc.Duplicate {
			t.Error("two long keys were taken for one")
		}
		if rc := w.receive(ev); !rc.Duplicate {
			t.Error("a long key was not known again")
		}
	}
	for i, change := range []func(*chat.Origin){
		func(o *chat.Origin) { o.Address.Chat = chat.ChatID(long) },
		func(o *chat.Origin) { o.Address.Account = chat.AccountID(long) },
		func(o *chat.Origin) { o.From.ID = chat.Person(long) },
		func(o *chat.Origin) { o.Message = chat.MessageID(long) },
	} {
		ev := said("long"+string(rune('1'+i)), "x")
		change(&ev.Origin)
		if rc := w.receive(ev); rc.Verdict.State != record.InboxRefused || rc.Verdict.Reason == "" {
			t.Errorf("verdict %+v", rc.Verdict)
		}
	}
}

// CON-005, CON-008, CON-017: a release that meets an intake either sees its row or is
// over before it; a message is never left behind in a conversation without owner.
func TestReleaseMeetsIntake(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fence := w.talk().fence
	w.exec(`UPDATE inbox SET state = 'done'`)
	for i := range 50 {
		var wg sync.WaitGroup
		var released bool
		var rc record.Receipt
		wg.Go(func() {
			var err error
			if released, err = w.Release(t.Context(), fence, false); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			var err error
			if rc, err = w.Receive(t.Context(), w.request(said("race"+string(rune('0'+i)), "x")), accept); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if t.Failed() {
			return
		}
		if !rc.Mine || released != (rc.Fence.Epoch > fence.Epoch) {
			t.Fatalf("released %v, epoch %d before and %+v after", released, fence.Epoch, rc.Fence)
		}
		fence = rc.Fence
		if got := query[*string](w, `SELECT owner::text FROM conversations`); got == nil {
			t.Fatal("the conversation has work and no owner")
		}
		w.exec(`UPDATE inbox SET state = 'done'`)
	}
}

// A message for another's conversation wakes its owner; one for a dead owner's takes
// it over.
func TestIntakeAndTheOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.other()
	woken := o.listening()
	k := w.talk()
	w.turn(k)
	if rc := o.receive(said("2", "from the other replica")); rc.Mine || rc.Conversation.ID != k.fence.Conversation {
		t.Fatalf("receipt %+v", rc)
	}
	// The listener was o's; the owner is w, whose channel nobody listens to here.
	select {
	case id := <-woken:
		t.Fatalf("the wrong replica was woken for %q", id)
	default:
	}
	w.die()
	rc := o.receive(said("3", "after its death"))
	if !rc.Mine || rc.Fence.Epoch != k.fence.Epoch+1 || rc.Fence.Replica != o.replica {
		t.Fatalf("receipt %+v", rc)
	}
	if n := o.work(rc.Fence).Turn.Crashes; n != 1 {
		t.Errorf("%d crashes, want 1", n)
	}
}

// PGS-004, RST-001, RST-008: an event is stored although its caller has gone.
func TestReceiveWithoutACaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rc, err := w.Receive(cancelled(), w.request(said("1", "x")), accept)
	w.check(err)
	if rc.Item.ReceivedAt.Before(time.Now().Add(-time.Minute)) || len(w.work(rc.Fence).Inbox) != 1 {
		t.Errorf("receipt %+v", rc)
	}
}
