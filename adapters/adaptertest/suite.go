package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/gateway/chat"
	"parley/gateway/markdown"
)

// Patience is how long the suite waits for what must happen.
const Patience = 20 * time.Second

// Failure is what a platform does to the next call that posts or edits.
type Failure int

// The failures. What is cut "after" took effect; the caller cannot know.
const (
	RateLimited Failure = iota // refused, with a wait of 3 s
	Blocked                    // the person blocked the bot
	BadGateway                 // a proxy's page with status 502
	CutBefore                  // the connection ends before the call took effect
	CutAfter                   // and after
	Refused                    // the content is refused for good
	LandsLate                  // the connection ends, and the call takes effect at Late's Land
)

// Platform is the far side of the adapter under test, on loopback.
type Platform interface {
	// Say posts a message of a person in the chat.
	Say(text string) chat.MessageID
	// Press presses the button with that data below a message.
	Press(on chat.MessageID, data string)
	// Shown is the plain text that people see of a message.
	Shown(id chat.MessageID) (text string, ok bool)
	// Fail makes the next call that posts or edits fail.
	Fail(f Failure)
	// Complaints are what the platform had to say against the calls so far, other
	// than failures that Fail ordered: refused markup, wrong parameters.
	Complaints() []string
}

// Late is a Platform on which LandsLate can be ordered. One whose adapter is a
// chat.Finder has to be.
type Late interface {
	// Land lets the calls take effect that have not yet.
	Land()
	// Standing is how many messages of the bot are in the chat.
	Standing() int
}

// Subject is what Run needs of an adapter.
type Subject struct {
	// New makes an adapter with the secret, on the platform. It is called many times.
	New func(t *testing.T, secret string) chat.Adapter
	// Start makes a fresh platform.
	Start func(t *testing.T) Platform
	// Chat is the direct chat of Say, on every platform that Start makes.
	Chat chat.Address
	// Secret is what the platform accepts, WrongSecret has its form but is unknown.
	// None of their parts may show in an error.
	Secret, WrongSecret string
	// Count is what the platform counts for a shown text.
	Count func(shown string) int
}

// Run holds an adapter to what chat.Adapter promises.
func Run(t *testing.T, s Subject) {
	for name, check := range map[string]func(*testing.T, Subject){
		"acknowledges what is durable": acknowledges,
		"ends with its context":        ends,
		"refused secret":               refusedSecret,
		"send edit delete":             sendEditDelete,
		"after a crash":                afterACrash,
		"landing after a crash":        landsLate,
		"failures":                     failures,
		"markup":                       markup,
		"buttons":                      buttons,
		"calls nobody":                 callsNobody,
	} {
		t.Run(name, func(t *testing.T) {
			old := goleak.IgnoreCurrent()
			t.Cleanup(func() { goleak.VerifyNone(t, old) }) // after the clean-ups of the subject
			check(t, s)
		})
	}
}

// collector is a sink that keeps what it is given.
type collector struct {
	mu     sync.Mutex
	refuse int // so many messages are refused first
	seen   []chat.Event
	events chan chat.Event
}

func newCollector() *collector { return &collector{events: make(chan chat.Event, 100)} }

func (c *collector) sink(_ context.Context, ev chat.Event) error {
	if _, ok := ev.(chat.ConnectionChanged); ok {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, ev)
	if c.refuse > 0 {
		c.refuse--
		return errors.New("the store is away")
	}
	c.events <- ev
	return nil
}

func (c *collector) next(t *testing.T) chat.Event {
	t.Helper()
	select {
	case ev := <-c.events:
		return ev
	case <-time.After(Patience):
		t.Fatal("no event came")
		return nil
	}
}

// start runs an adapter until the test, or stop, ends it.
func start(t *testing.T, a chat.Adapter, sink chat.Sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, sink) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				if err != nil {
					t.Errorf("Run ended with %v", err)
				}
			case <-time.After(2 * time.Second):
				t.Error("Run does not end with its context")
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// acknowledges: an event that the sink refuses comes again with the same key, here
// or to the next run, and nothing is lost or changes its order (DUP-001, DUP-004).
func acknowledges(t *testing.T, s Subject) {
	p := s.Start(t)
	first := newCollector()
	first.refuse = 1 << 30
	stop := start(t, s.New(t, s.Secret), first.sink)
	p.Say("one")
	p.Say("two")
	waitFor(t, func() bool { first.mu.Lock(); defer first.mu.Unlock(); return len(first.seen) >= 2 })
	stop()
	for _, ev := range first.seen {
		if ev.Meta().Key != first.seen[0].Meta().Key {
			t.Fatalf("after a refusal of %s came %s", first.seen[0].Meta().Key, ev.Meta().Key)
		}
	}
	second := newCollector()
	second.refuse = 1
	defer start(t, s.New(t, s.Secret), second.sink)()
	for _, want := range []string{"one", "two"} {
		m, ok := second.next(t).(chat.MessageReceived)
		if !ok || m.Text != want || !m.ForBot || m.Kind != chat.Direct || m.Address != s.Chat {
			t.Fatalf("got %+v, want %q", m, want)
		}
		if want == "one" && m.Key != first.seen[0].Meta().Key {
			t.Errorf("the key changed from %s to %s", first.seen[0].Meta().Key, m.Key)
		}
	}
}

// waitFor looks until it is so. The condition must not block.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(Patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
	}
}

// ends: Run returns nil soon after its context ended, and sending still works:
// deliveries are settled after intake has stopped.
func ends(t *testing.T, s Subject) {
	p := s.Start(t)
	a := s.New(t, s.Secret)
	c := newCollector()
	stop := start(t, a, c.sink)
	p.Say("hello")
	c.next(t)
	stop()
	id, err := a.Send(t.Context(), s.Chat, chat.Outgoing{Key: "k", Text: "late"})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := p.Shown(id); text != "late" {
		t.Errorf("shown %q", text)
	}
}

// refusedSecret: Run ends, says how to mend it, and does not show the secret.
func refusedSecret(t *testing.T, s Subject) {
	s.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	err := s.New(t, s.WrongSecret).Run(ctx, newCollector().sink)
	var cred *chat.CredentialError
	if !errors.As(err, &cred) || cred.Account != s.Chat.Account || cred.Fix == "" {
		t.Fatalf("Run ended with %v", err)
	}
	s.hides(t, err)
}

// hides checks an error for the secrets, in every way of printing it.
func (s Subject) hides(t *testing.T, err error) {
	t.Helper()
	for _, text := range []string{fmt.Sprintf("%v", err), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		for _, secret := range []string{s.Secret, s.WrongSecret} {
			for _, part := range strings.FieldsFunc(secret, func(r rune) bool { return r == ':' }) {
				if len(part) > 12 && strings.Contains(text, part) {
					t.Errorf("SEC-004: the secret shows in %q", strings.ReplaceAll(text, part, "…"))
				}
			}
		}
	}
}

// sendEditDelete: edits may be repeated (STR-005, STR-018), what is gone says so
// (STR-014), and deleting twice is no error.
func sendEditDelete(t *testing.T, s Subject) {
	p, ctx := s.Start(t), t.Context()
	a := s.New(t, s.Secret)
	id, err := a.Send(ctx, s.Chat, chat.Outgoing{Key: "k1", Text: "**one**", Live: true})
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := p.Shown(id); !ok || text != "one" {
		t.Errorf("sent: shown %q", text)
	}
	e, ok := a.(chat.Editor)
	if !ok {
		return
	}
	for _, text := range []string{"two", "two", "two\n", "three"} {
		if err := e.Edit(ctx, s.Chat, id, chat.Outgoing{Key: "k1", Text: text}); err != nil {
			t.Fatalf("edit to %q: %v", text, err)
		}
		if shown, _ := p.Shown(id); shown != strings.TrimSpace(text) {
			t.Errorf("edited to %q: shown %q", text, shown)
		}
	}
	d, ok := a.(chat.Deleter)
	if !ok {
		return
	}
	for range 2 {
		if err := d.Delete(ctx, s.Chat, id); err != nil {
			t.Fatalf("delete: %v", err)
		}
	}
	if _, ok := p.Shown(id); ok {
		t.Error("it is still shown")
	}
	if err := e.Edit(ctx, s.Chat, id, chat.Outgoing{Key: "k1", Text: "four"}); !errors.Is(err, chat.ErrGone) {
		t.Errorf("edit of what is gone: %v", err)
	}
	complaints(t, p)
}

// afterACrash settles a delivery whose outcome the dead process did not note, with an
// adapter that has just been made and does not run: what was sent is found, or sent
// again without being there twice (DEL-004, DEL-008).
func afterACrash(t *testing.T, s Subject) {
	p, ctx := s.Start(t), t.Context()
	m := chat.Outgoing{Key: "of the dead process", Text: "once"}
	sent, err := s.New(t, s.Secret).Send(ctx, s.Chat, m)
	if err != nil {
		t.Fatal(err)
	}
	f, ok := s.New(t, s.Secret).(chat.Finder)
	if !ok {
		return // shown once more with a mark
	}
	found, ok, err := f.Find(ctx, s.Chat, attempt(m.Key, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		if found, err = f.(chat.Adapter).Send(ctx, s.Chat, m); err != nil {
			t.Fatal(err)
		}
	}
	if found != sent {
		t.Errorf("message %s was sent, and then %s", sent, found)
	}
	complaints(t, p)
}

// attempt is one that was made so long ago.
func attempt(key string, age time.Duration) chat.Attempt {
	at := time.Now().Add(-age)
	return chat.Attempt{Key: key, First: at, Last: at}
}

// landsLate settles a delivery that was still on its way when its process died: who
// looks for it at once does not see it, and it must not be there twice when it has
// landed (DEL-004).
func landsLate(t *testing.T, s Subject) {
	p, ctx := s.Start(t), t.Context()
	a := s.New(t, s.Secret)
	f, ok := s.New(t, s.Secret).(chat.Finder)
	if !ok {
		return // shown once more with a mark
	}
	late, m := p.(Late), chat.Outgoing{Key: "of the dead process", Text: "once"}
	p.Fail(LandsLate)
	if _, err := a.Send(ctx, s.Chat, m); !errors.Is(err, chat.ErrAmbiguous) {
		t.Fatalf("sent: %v", err)
	}
	_, found, err := f.Find(ctx, s.Chat, attempt(m.Key, 0))
	if found || errors.Is(err, chat.ErrAmbiguous) {
		t.Fatalf("found before it has landed: %t, %v", found, err)
	}
	if err == nil { // sending it again does no harm
		if _, err := f.(chat.Adapter).Send(ctx, s.Chat, m); err != nil {
			t.Fatal(err)
		}
	}
	late.Land()
	if err != nil {
		if _, found, err := f.Find(ctx, s.Chat, attempt(m.Key, time.Minute)); !found || err != nil {
			t.Errorf("found after it has landed: %t, %v", found, err)
		}
	}
	if n := late.Standing(); n != 1 {
		t.Errorf("it is there %d times", n)
	}
	complaints(t, p)
}

func complaints(t *testing.T, p Platform) {
	t.Helper()
	for _, c := range p.Complaints() {
		t.Errorf("the platform complains: %s", c)
	}
}

// failures: each becomes the error that the gateway acts on (DEL-004, DEL-010).
func failures(t *testing.T, s Subject) {
	limited := func(err error) bool {
		var e *chat.RateLimitError
		return errors.As(err, &e) && e.RetryAfter == 3*time.Second
	}
	refused := func(err error) bool { var e *chat.RejectedError; return errors.As(err, &e) && e.Reason != "" }
	gone := func(err error) bool { return errors.Is(err, chat.ErrGone) }
	unknown := func(err error) bool { return errors.Is(err, chat.ErrAmbiguous) }
	plain := func(err error) bool { return !limited(err) && !refused(err) && !gone(err) && !unknown(err) }
	for _, tc := range []struct {
		name       string
		f          Failure
		send, edit func(error) bool
	}{
		{"rate limited", RateLimited, limited, limited},
		{"blocked", Blocked, gone, gone},
		{"refused", Refused, refused, refused},
		{"bad gateway", BadGateway, unknown, plain},
		{"cut before", CutBefore, unknown, plain},
		{"cut after", CutAfter, unknown, plain},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := s.Start(t)
			a := s.New(t, s.Secret)
			id, err := a.Send(t.Context(), s.Chat, chat.Outgoing{Key: "a", Text: "first"})
			if err != nil {
				t.Fatal(err)
			}
			p.Fail(tc.f)
			if _, err = a.Send(t.Context(), s.Chat, chat.Outgoing{Key: "b", Text: "second"}); err == nil || !tc.send(err) {
				t.Errorf("send: %v", err)
			}
			s.hides(t, err)
			e, ok := a.(chat.Editor)
			if !ok {
				return
			}
			p.Fail(tc.f)
			if err = e.Edit(t.Context(), s.Chat, id, chat.Outgoing{Key: "a", Text: "changed"}); err == nil || !tc.edit(err) {
				t.Errorf("edit: %v", err)
			}
			s.hides(t, err)
		})
	}
}

// texts are CommonMark that has broken chat gateways.
var texts = []string{
	"plain", "a < b && c > d \"e\"", "<h1>x</h1><br><details>y</details><!-- z -->", "**bold _both** italic_ ***x***",
	"> Hello\n>\n> > you", "1. Foo:\n   ```go\n   x < y\n   ```\n2. Bar", "> |a|b|\n> |-|-|\n> |c|d|", "`**antique_identifier**`",
	"https://x.example/a_b_c_d * - 2 > 1 [", "[a\"b](https://x.example/?q=\"1\"&r=<2>) [rel](/path) [](https://e.example)",
	"- [x] done\n- [ ] open\n  1. deep\n     - deeper", "# Head **bold**\n\ntext\n\n---\n", "&amp; &lt;b&gt; &#0; &nbsp;x", "~~gone~~ __strong__",
	"line one\nline two", "\u202eright to left 👨‍👩‍👧‍👦 e\u0301 猫", "(1/3) *a* [b]", "![pic](https://x.example/p.png)", "```\nunclosed < fence",
	strings.Repeat("😀", 5000), strings.Repeat("> quoted **line**\n", 1250), "```go\n" + strings.Repeat("x := []string{\"a<b\"}\n", 800) + "```",
	strings.Repeat("| a | b |\n|---|---|\n| 1 | 2 |\n\n", 200), strings.Repeat("word ", 4000), strings.Repeat("[l](https://x.example/a) ", 900),
}

// markup: every text arrives, part by part, with markup that the platform takes,
// and what Limits.Size says is at least what the platform counts (MKD-002, MKD-003,
// MKD-013, SPL-005, SPL-006, SPL-007, SPL-014).
func markup(t *testing.T, s Subject) {
	p := s.Start(t)
	a := s.New(t, s.Secret)
	limits := a.Limits()
	for _, text := range texts {
		for i, part := range markdown.Split(text, limits) {
			id, err := a.Send(t.Context(), s.Chat, chat.Outgoing{Key: fmt.Sprint("m", i), Text: part})
			if err != nil {
				t.Errorf("%.40q, part %d: %v", text, i, err)
				break
			}
			shown, ok := p.Shown(id)
			if got, counted := limits.Size(part), s.Count(shown); !ok || counted == 0 || got < counted {
				t.Errorf("%.40q, part %d: %d units by Limits, %d by the platform", text, i, got, counted)
			}
		}
	}
	complaints(t, p)
}

// buttons: what was sent as data comes back with the press, which can be answered.
func buttons(t *testing.T, s Subject) {
	p := s.Start(t)
	a := s.New(t, s.Secret)
	if a.Limits().NoButtons {
		return
	}
	c := newCollector()
	defer start(t, a, c.sink)()
	const data = "approve:0123456789abcdef0123456789abcdef0123456789abcdef01234567"
	id, err := a.Send(t.Context(), s.Chat, chat.Outgoing{Key: "b", Text: "Run it?", Buttons: [][]chat.Button{
		{{Label: "Yes", Data: data, Style: chat.Primary}, {Label: "No", Data: "deny", Style: chat.Danger}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	p.Press(id, data)
	press, ok := c.next(t).(chat.ButtonPressed)
	if !ok || press.Data != data || press.Message != id || press.Address != s.Chat || press.Key == "" {
		t.Fatalf("got %+v", press)
	}
	if acker, ok := a.(chat.ButtonAcker); ok {
		if err := acker.AckButton(t.Context(), press, "Done"); err != nil {
			t.Error(err)
		}
	}
	complaints(t, p)
}

// calls are what calls people somewhere, if a model writes it.
var calls = []string{
	"@everyone and @here", "@channel", "<!channel> <!here> <!everyone|x> <!subteam^S012ABC|team>", "<@U012ABCDEF> <@W012ABC> <#C012ABCDEF|general>",
	"<@123456789012345678> <@!123456789012345678> <@&123456789012345678>", "[you](tg://user?id=1001) and **[you](tg://user?id=1001)**",
	"> @everyone\n\n- <!here>\n\n`@here <!channel>`\n\n```\n<@U012ABCDEF> @everyone\n```", "| <!here> | @everyone |\n|---|---|\n| @here | <!channel> |",
	"[@everyone](https://x.example/@channel) \\<!channel> &lt;!channel&gt; &#64;everyone &commat;&#101;veryone",
}

// callsNobody: whatever a model or a tool writes, nobody is called by it, in a message,
// an edit, a line of progress or a button; and the words are still there to be read
// (MEN-007). The platform complains about a call.
func callsNobody(t *testing.T, s Subject) {
	p := s.Start(t)
	a := s.New(t, s.Secret)
	for i, text := range calls {
		m := chat.Outgoing{Key: fmt.Sprint("c", i), Text: text, Live: true, Progress: []string{"⚙ " + strings.ReplaceAll(text, "\n", " ")}}
		if !a.Limits().NoButtons {
			m.Buttons = [][]chat.Button{{{Label: text[:min(len(text), 30)], Data: "x"}}}
		}
		id, err := a.Send(t.Context(), s.Chat, m)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if e, ok := a.(chat.Editor); ok {
			m.Live, m.Progress, m.Text = false, nil, text+" again"
			if err := e.Edit(t.Context(), s.Chat, id, m); err != nil {
				t.Errorf("%q: %v", text, err)
			}
		}
		shown, _ := p.Shown(id)
		for _, word := range []string{"everyone", "here", "channel"} {
			if strings.Contains(text, word) && !strings.Contains(shown, word) {
				t.Errorf("%q: %s is not there to be read: %q", text, word, shown)
			}
		}
	}
	complaints(t, p)
}
