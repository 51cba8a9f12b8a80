package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/agentcore/memory"
	"parley/agentcore/provider/embeddings"
	"parley/gateway/chat"
	"parley/gateway/gatewaytest"
	"parley/store/record"
	"parley/store/storetest"
)

// world is a running gateway whose model knows nothing: it summarises to a word, and
// answers with "ok", or by what a test has it do.
type world struct {
	*gatewaytest.Harness
	act  func(r *llm.Request, said string, say func(llm.Event) bool) bool
	said int
}

func newWorld(t *testing.T, o gatewaytest.Options) *world {
	t.Helper()
	w := &world{}
	o.Engine = engine.Config{Enabled: true, Threshold: 0.5, GatewayThreshold: 0.85, ProtectLastN: 2}
	w.Harness = gatewaytest.New(t, gatewaytest.NewModel(func(_ context.Context, r *llm.Request, say func(llm.Event) bool) error {
		text := "ok"
		switch said := gatewaytest.LastUser(r); {
		case len(r.Tools) == 0:
			text = "## Goal\nsmall talk"
		case w.act != nil && w.act(r, said, say):
			return nil
		}
		say(llm.TextDelta{Text: text})
		return nil
	}), o)
	return w
}

// tell says something and waits for the answer.
func (w *world) tell(u chat.User, text string) {
	w.T.Helper()
	w.wait(u, func() { w.Say(u, text) }, "an answer to "+text, func(p gatewaytest.Post) bool { return p.Out.Text != "" })
}

func (w *world) wait(u chat.User, do func(), what string, ok func(gatewaytest.Post) bool) {
	w.T.Helper()
	before := len(w.Platform.Posts(gatewaytest.Direct(u).Chat))
	do()
	w.Platform.Await(w.T, gatewaytest.Direct(u).Chat, what, func(ps []gatewaytest.Post) bool {
		return len(ps) > before && !ps[len(ps)-1].Out.Live && ok(ps[len(ps)-1])
	})
}

// compress folds all but the last words of a conversation.
func (w *world) compress(u chat.User) {
	w.T.Helper()
	for range 3 {
		w.said++
		w.tell(u, fmt.Sprintf("filler %d", w.said))
	}
	w.wait(u, func() { w.Say(u, "/compress") }, "a compression", func(p gatewaytest.Post) bool { return strings.Contains(p.Out.Text, "folded") })
}

// heard is the newest request that an answer was made of.
func (w *world) heard() llm.Request {
	w.T.Helper()
	rs := w.Model.Requests()
	for i := len(rs) - 1; i >= 0; i-- {
		if len(rs[i].Tools) > 0 {
			return rs[i]
		}
	}
	w.T.Fatal("the model was not asked")
	return llm.Request{}
}

// whole is all that a request says to a model.
func whole(r llm.Request) string {
	var b strings.Builder
	b.WriteString(r.System)
	for _, m := range r.Messages {
		b.WriteString("\n")
		for _, p := range m.Parts {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Mission 4.8: a salient and a relevant message from three compressions ago are seen
// in the request that the model gets, beside the newest message and in no later
// prefix twice; another conversation's never, and nothing from before /new. What is
// recalled is not shown, not searched and not summarised.
func TestRecallReachesTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gatewaytest.Options{})
	me, other := gatewaytest.Owner, gatewaytest.User
	w.tell(other, "my cat is called Zorro")
	w.tell(other, "Remember: the code of my vault is 9999, that is important")
	w.compress(other)

	w.tell(me, "Remember: the code of the vault is 4711, that is important")
	w.tell(me, "my cat is called Minka")
	for range 3 {
		w.compress(me)
	}
	w.tell(me, "tell me how my cats were called")
	r := w.heard()
	last := r.Messages[len(r.Messages)-1].Text()
	for _, want := range []string{"tell me how my cats were called\n\n[Recalled", `"text":"my cat is called Minka"`, "4711", "filler"} {
		if !strings.Contains(last, want) {
			t.Errorf("%q is missing in\n%s", want, last)
		}
	}
	if all := whole(r); strings.Contains(all, "Zorro") || strings.Contains(all, "9999") {
		t.Errorf("another conversation is in\n%s", all)
	}
	w.tell(me, "and now?")
	again := w.heard()
	if got := again.Messages[len(r.Messages)-1].Text(); got != last {
		t.Errorf("frozen as\n%s\nbut replayed as\n%s", last, got)
	}
	if n := strings.Count(whole(again), "Minka"); n != 1 {
		t.Errorf("recalled %d times:\n%s", n, whole(again))
	}

	w.compress(me)
	for _, r := range w.Model.Requests() {
		if len(r.Tools) == 0 && strings.Contains(whole(r), "[Recalled") {
			t.Error("what was recalled is summarised")
		}
	}
	hits, err := w.Store.Search(t.Context(), w.conversation(me), "Recalled earlier conversation", 10)
	if err != nil || len(hits) != 0 {
		t.Errorf("what was recalled is found: %v, %v", hits, err)
	}
	for _, p := range w.Platform.Posts("") {
		if strings.Contains(p.Out.Text, "Recalled") {
			t.Error("what was recalled is shown")
		}
	}

	w.wait(me, func() { w.Say(me, "/new") }, "a new session", func(p gatewaytest.Post) bool { return strings.Contains(p.Out.Text, "new session") })
	w.tell(me, "a fresh start")
	w.compress(me)
	w.tell(me, "what is my cat called, and the code of the vault?")
	all := whole(w.heard())
	if strings.Contains(all, "Minka") || strings.Contains(all, "4711") || !strings.Contains(all, "a fresh start") {
		t.Errorf("from before /new:\n%s", all)
	}
}

func (w *world) conversation(u chat.User) record.ConversationID {
	w.T.Helper()
	all, err := w.Store.Conversations(w.T.Context(), 10)
	if err != nil {
		w.T.Fatal(err)
	}
	for _, c := range all {
		if c.Key.Participant == u.ID {
			return c.ID
		}
	}
	w.T.Fatal("no such conversation")
	return ""
}

// What no word leads to is found by its meaning, through an endpoint as servers have
// it, with vectors that were made after the turns.
func TestRecallByMeaning(t *testing.T) {
	t.Parallel()
	// A model with two thoughts: animals, and everything else.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/v1/embeddings" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		var data []string
		for i, text := range asked.Input {
			v := "[0,1]"
			if strings.Contains(text, "Minka") || strings.Contains(text, "animal") {
				v = "[3,0.5]"
			}
			data = append(data, fmt.Sprintf(`{"index":%d,"embedding":%s}`, i, v))
		}
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(data, ","))
	}))
	defer server.Close()
	client, err := embeddings.New(embeddings.Config{BaseURL: server.URL + "/v1", Model: "local/thoughts"})
	if err != nil {
		t.Fatal(err)
	}
	db := storetest.New(t)
	r := memory.NewRecaller(memory.Deps{Store: db, Embedder: client, Model: "local/thoughts"})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	w := newWorld(t, gatewaytest.Options{Store: db, Agent: func(_ *agentcore.Config, d *agentcore.Deps) { d.Recall = r }})
	defer client.Close()
	defer running.Wait()
	defer cancel()

	me := gatewaytest.Owner
	w.tell(me, "little Minka sleeps all day")
	for range 4 { // so that it is not among the newest ones either
		w.compress(me)
	}
	session := w.session(me)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for {
		open, err := db.Unembedded(t.Context(), w.conversation(me), session, "local/thoughts", 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(open) == 0 {
			break
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("the vectors were not made")
		}
	}
	w.tell(me, "which animal?")
	if last := gatewaytest.LastUser(new(w.heard())); !strings.Contains(last, "little Minka sleeps all day") {
		t.Errorf("not found by meaning:\n%s", last)
	}
}

func (w *world) session(u chat.User) record.SessionID {
	w.T.Helper()
	list, err := w.Store.Sessions(w.T.Context(), w.conversation(u), 1)
	if err != nil || len(list) != 1 {
		w.T.Fatal(list, err)
	}
	return list[0].ID
}

// ACC-005: what the model has noted about one person is in that person's next
// session, and in nobody else's request: not in another direct chat, nor in a room
// where the person speaks.
func TestMemoryOfOnePersonReachesNobodyElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, gatewaytest.Options{})
	noted := false
	w.act = func(r *llm.Request, said string, say func(llm.Event) bool) bool {
		if !strings.Contains(said, "note this about me") || noted {
			return false
		}
		noted = true
		say(llm.ToolCallDelta{Index: 0, ID: "a", Name: "memory", Arguments: `{"action":"add","target":"user","content":"CANARY-PROFILE"}`})
		say(llm.ToolCallDelta{Index: 1, ID: "b", Name: "memory", Arguments: `{"action":"set_fact","target":"user","category":"c","key":"k","value":"CANARY-FACT"}`})
		say(llm.ToolCallDelta{Index: 2, ID: "c", Name: "memory", Arguments: `{"action":"add","target":"memory","content":"CANARY-NOTES"}`})
		return true
	}
	me, other := gatewaytest.Owner, gatewaytest.User
	w.tell(me, "note this about me")
	w.wait(me, func() { w.Say(me, "/new") }, "a new session", func(p gatewaytest.Post) bool { return strings.Contains(p.Out.Text, "new session") })
	w.tell(me, "who am I?")
	own := w.heard()
	for _, want := range []string{"CANARY-PROFILE", "CANARY-FACT", "CANARY-NOTES"} {
		if !strings.Contains(own.System, want) {
			t.Errorf("%s is not in the person's own next session:\n%s", want, own.System)
		}
	}
	before := len(w.Model.Requests())
	w.tell(other, "who am I, and what do you know about Olga?")
	w.SayIn("room", me, "who am I?")
	w.Platform.Await(t, "room", "an answer", func(ps []gatewaytest.Post) bool { return len(ps) > 0 && !ps[len(ps)-1].Out.Live })
	later := w.Model.Requests()[before:]
	if len(later) != 2 {
		t.Errorf("%d requests", len(later))
	}
	for _, r := range later {
		if all := whole(r); strings.Contains(all, "CANARY") {
			t.Errorf("somebody else's request has it:\n%s", all)
		}
	}
}
