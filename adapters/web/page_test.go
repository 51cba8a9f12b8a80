package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/gateway/chat"
)

var commands = []chat.CommandInfo{
	{Name: "help", Description: "What I can do"},
	{Name: "new", Description: "Begin a new session"},
	{Name: "resume", Args: "[ID]", Description: "Go back to a session"},
	{Name: "sessions", Description: "List the sessions"},
	{Name: "status", Description: "What I am doing"},
	{Name: "stop", Description: "Stop what I am doing"},
}

// TestPage drives the page as a person does, in one browser.
func TestPage(t *testing.T) {
	browser := startBrowser(t)
	for name, f := range map[string]func(*testing.T, *site, *tab){
		"a message and its answer":      testAnswer,
		"text grows in place":           testNoFlicker,
		"hostile text stays text":       testHostileText,
		"buttons":                       testPageButtons,
		"reload keeps everything":       testReload,
		"restart of the server":         testRestart,
		"keyboard only":                 testKeyboard,
		"a phone's width":               testPhone,
		"dark and light":                testDark,
		"sessions":                      testSessions,
		"long messages":                 testLong,
		"the newest text stays in view": testFollow,
		"what a screen reader says":     testSpoken,
		"the end of growing text":       testCaret,
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, newTimeline(t), "127.0.0.1:0")
			if err := s.adapter.PublishCommands(t.Context(), commands); err != nil {
				t.Fatal(err)
			}
			f(t, s, openTab(t, browser, s))
		})
	}
}

// say types a message and sends it.
func (b *tab) say(text string) {
	b.t.Helper()
	b.run(chromedp.Focus(chromedp.CSS("#input")))
	b.write(text)
	b.key(kb.Enter, 0)
}

// received is the next message that the sink took.
func (s *site) received() chat.MessageReceived {
	s.t.Helper()
	ev, ok := (<-s.events).(chat.MessageReceived)
	if !ok {
		s.t.Fatal("the event is not a message")
	}
	return ev
}

func testAnswer(t *testing.T, s *site, b *tab) {
	b.is(`!document.querySelector('#empty').hidden`)
	b.picture("empty")
	s.timeline.setFail(errAway)
	b.say("What is in my calendar?")
	b.wait(`document.querySelector('.mine[data-state="waiting"] .bubble')?.textContent === 'What is in my calendar?'`)
	s.timeline.setFail(nil)
	b.wait(`document.querySelector('.mine').dataset.state === 'stored' || document.querySelector('.mine').dataset.state === 'sent'`)
	if got := s.received().Text; got != "What is in my calendar?" {
		t.Errorf("got %q", got)
	}
	if err := s.adapter.Typing(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	b.wait(`!document.querySelector('#typing').hidden && !document.querySelector('#stop').hidden`)
	id := s.send(chat.Outgoing{Key: "a", Live: true, Progress: []string{"⚙ calendar: this week"}})
	b.wait(`document.querySelector('.bot.live .steps[open] li')?.textContent.includes('calendar')`)
	b.is(`document.querySelector('#typing').hidden`)
	s.edit(id, chat.Outgoing{Key: "a", Live: true, Text: "You have **two", Progress: []string{"✓ calendar: this week"}})
	b.wait(`document.querySelector('.bot.live .body').textContent.includes('You have **two')`)
	s.edit(id, chat.Outgoing{Key: "a", Text: "You have **two** meetings.", Progress: []string{"✓ calendar: this week"}})
	b.wait(`document.querySelector('.bot:not(.live) .body strong')?.textContent === 'two'`)
	b.is(`!document.querySelector('.steps').open && document.querySelector('#stop').hidden`)
	b.is(`document.querySelectorAll('.entry').length === 2`)
	b.is(`document.querySelector('#announcer').textContent.includes('two')`)
}

// A paragraph that is complete is the same node after every edit, so that neither
// a selection nor the eye loses it (STR-010).
func testNoFlicker(t *testing.T, s *site, b *tab) {
	id := s.send(chat.Outgoing{Key: "a", Live: true, Text: "First paragraph.\n\n"})
	b.wait(`document.querySelector('.body p')`)
	b.do(`window.first = document.querySelector('.body p'); window.removed = 0;
		new MutationObserver((list) => { for (const m of list) window.removed += m.removedNodes.length })
			.observe(document.querySelector('#transcript'), { childList: true, subtree: true }); 1`)
	text := "First paragraph.\n\n"
	for _, more := range []string{"Sec", "ond.", "\n\n```go\nfunc", " main() {\n", "}\n```\n", "\nThe end"} {
		text += more
		s.edit(id, chat.Outgoing{Key: "a", Live: true, Text: text})
		b.wait(`document.querySelector('.body').textContent.includes(` + quote(lastWord(more)) + `)`)
	}
	s.edit(id, chat.Outgoing{Key: "a", Text: text + "."})
	b.wait(`!document.querySelector('.live')`)
	b.is(`document.querySelector('.body p') === window.first`)
	if n := eval[int](b, `window.removed`); n > 0 {
		t.Errorf("%d nodes were removed while the text grew", n)
	}
}

func lastWord(s string) string {
	words := strings.Fields(strings.Trim(s, "`\n "))
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// Neither a model nor a person nor a title can make markup (MKD-002).
func testHostileText(t *testing.T, s *site, b *tab) {
	hostile := []string{
		"<script>window.pwned = 1</script>", "<img src=x onerror='window.pwned = 1'>", "<svg onload='window.pwned = 1'></svg>",
		"<iframe srcdoc='<script>parent.pwned = 1</script>'></iframe>", "<details open ontoggle='window.pwned = 1'>",
		"[click](javascript:window.pwned=1)", "[click](JAVASCRIPT&colon;window.pwned=1)", "[x](data:text/html,<script>1</script>)",
		"![x](x \"onerror=window.pwned=1\")", "[x](https://e.example/\"onmouseover=\"window.pwned=1)", "```\"><script>window.pwned=1</script>\nx\n```",
		"<a href='javascript:window.pwned=1'>x</a>", "| <img src=x onerror=window.pwned=1> |\n|---|\n| <script>1</script> |",
	}
	s.timeline.setSessions(chat.SessionInfo{ID: "1", Title: hostile[1], Current: true})
	text := strings.Join(hostile, "\n\n")
	s.send(chat.Outgoing{
		Key: "a", Text: text, Progress: hostile, Buttons: [][]chat.Button{{{Label: hostile[1], Data: "x"}}},
	})
	b.say(text)
	s.received()
	b.wait(`document.querySelectorAll('.entry').length === 2 && document.querySelector('#sessions b')`)
	b.is(`document.querySelectorAll('#transcript :is(script, svg, img, iframe, object, details details, style)').length === 0`)
	b.is(`document.querySelectorAll('#sessions :is(script, img), #title *').length === 0`)
	b.is(`[...document.querySelectorAll('#transcript *')].every((n) => [...n.attributes].every((a) => !a.name.startsWith('on')))`)
	b.is(`[...document.querySelectorAll('#transcript a')].every((n) => /^(https?|mailto):/.test(n.href) && n.rel.includes('noopener'))`)
	b.do(`for (const a of document.querySelectorAll('#transcript a')) a.dispatchEvent(new Event('mouseover')); 1`)
	b.is(`window.pwned === undefined`)
	if got := eval[string](b, `document.querySelector('.mine .bubble').textContent`); got != text {
		t.Errorf("the person's text is shown as %q", got)
	}
	b.picture("hostile")
}

func testPageButtons(t *testing.T, s *site, b *tab) {
	id := s.send(chat.Outgoing{
		Key: "card", Text: "Run this command?\n\n```sh\nrm -r build\n```",
		Buttons: [][]chat.Button{{{Label: "Allow", Data: "yes", Style: chat.Primary}, {Label: "Always", Data: "always"}, {Label: "Deny", Data: "no", Style: chat.Danger}}},
	})
	b.wait(`document.querySelectorAll('.buttons button').length === 3`)
	b.picture("card")
	b.click(`.buttons .primary`)
	ev := (<-s.events).(chat.ButtonPressed)
	if ev.Data != "yes" || ev.Message != id {
		t.Errorf("event %+v", ev)
	}
	if err := s.adapter.AckButton(t.Context(), ev, "Allowed once"); err != nil {
		t.Fatal(err)
	}
	b.wait(`document.querySelector('.toast')?.textContent === 'Allowed once'`)
	s.edit(id, chat.Outgoing{Key: "card", Text: "Allowed by you."})
	b.wait(`document.querySelector('.buttons').hidden && document.querySelector('.body').textContent.includes('Allowed by you')`)
}

func testReload(t *testing.T, s *site, b *tab) {
	s.send(chat.Outgoing{Key: "a", Text: "kept"})
	b.say("mine")
	s.received()
	b.wait(`document.querySelectorAll('.entry').length === 2`)
	b.wait(`localStorage.getItem('parley.outbox') === '[]'`)
	b.run(chromedp.Focus(chromedp.CSS("#input")))
	b.write("a draft")
	b.run(chromedp.Reload())
	b.wait(`document.querySelectorAll('.entry').length === 2 && document.querySelector('#link').dataset.state === 'online'`)
	b.is(`document.querySelector('.bot .body').textContent.includes('kept')`)
	b.is(`document.querySelector('#input').value === 'a draft'`)
	if n := len(s.events); n != 0 {
		t.Errorf("the reload sent %d events", n)
	}
}

// A restart of the process loses neither what is shown nor what is typed meanwhile
// (RST-001); the page comes back by itself.
func testRestart(t *testing.T, s *site, b *tab) {
	s.send(chat.Outgoing{Key: "a", Text: "before"})
	live := s.send(chat.Outgoing{Key: "b", Live: true})
	s.edit(live, chat.Outgoing{Key: "b", Live: true, Text: "half an ans"})
	b.wait(`document.querySelector('.live .body')?.textContent.includes('half an ans')`)
	s.stop()
	b.wait(`document.querySelector('#link').dataset.state === 'offline'`)
	b.say("typed while it was away")
	b.wait(`document.querySelector('.mine[data-state="waiting"]')`)
	b.picture("offline")
	again := start(t, s.timeline, strings.TrimPrefix(s.url, "http://"))
	if got := again.received().Text; got != "typed while it was away" {
		t.Errorf("got %q", got)
	}
	b.wait(`document.querySelector('#link').dataset.state === 'online'`)
	again.edit(live, chat.Outgoing{Key: "b", Text: "half an answer is none"})
	b.wait(`[...document.querySelectorAll('.body')].some((n) => n.textContent.includes('answer is none'))`)
	b.is(`document.querySelectorAll('.bot').length === 2 && document.querySelectorAll('.mine').length === 1`)
	b.is(`localStorage.getItem('parley.outbox') === '[]'`)
}

func testKeyboard(t *testing.T, s *site, b *tab) {
	b.is(`document.activeElement.id === 'input'`)
	b.write("one")
	b.key(kb.Enter, chromedp.ModifierShift)
	b.write("two")
	b.key(kb.Enter, 0)
	if got := s.received().Text; got != "one\ntwo" {
		t.Errorf("got %q", got)
	}
	b.write("/s")
	b.wait(`document.querySelectorAll('#commands [role=option]').length === 3`)
	b.picture("commands")
	b.key(kb.ArrowDown, 0)
	b.is(`document.querySelector('[aria-selected=true] b').textContent === '/status'`)
	b.key(kb.Enter, 0)
	b.is(`document.querySelector('#input').value === '/status' && document.querySelector('#commands').hidden`)
	b.key(kb.Enter, 0)
	if got := s.received().Text; got != "/status" {
		t.Errorf("got %q", got)
	}
	b.write("/res")
	b.key(kb.Tab, 0)
	b.is(`document.querySelector('#input').value === '/resume '`)
	b.do(`document.querySelector('#input').select()`)
	b.key(kb.Backspace, 0)

	s.send(chat.Outgoing{Key: "live", Live: true, Text: "working"})
	b.wait(`!document.querySelector('#stop').hidden`)
	b.key(kb.Escape, 0)
	if _, ok := (<-s.events).(chat.StopPressed); !ok {
		t.Error("Esc did not stop")
	}
	// From the top of the page, the first Tab reaches the skip link, and it works.
	b.do(`document.activeElement.blur()`)
	b.run(chromedp.Reload())
	b.wait(`document.querySelector('#link').dataset.state === 'online'`)
	b.do(`document.querySelector('.skip').focus()`)
	b.key(kb.Enter, 0)
	b.wait(`document.activeElement.id === 'input'`)
	for _, want := range []string{"stop", "skip"} {
		b.key(kb.Tab, 0)
		b.is(`document.activeElement.id === '` + want + `' || document.activeElement.className === '` + want + `' || document.activeElement === document.body`)
	}
}

func testPhone(t *testing.T, s *site, b *tab) {
	b.phone()
	s.timeline.setSessions(chat.SessionInfo{ID: "1", Title: "A title that is far too long for the width of any phone", Current: true, Messages: 4, At: time.Now()})
	b.say("Show me everything wide, please: " + strings.Repeat("wide", 30))
	s.received()
	s.send(chat.Outgoing{Key: "a", Progress: []string{"⚙ " + strings.Repeat("path/", 40)}, Text: "Wide things:\n\n```go\n" + strings.Repeat("x := veryLongName ", 12) +
		"\n```\n\n|a|b|c|d|\n|-|-|-|-|\n|" + strings.Repeat("cell content ", 4) + "|b b b b b b|c c c c|d|\n\nhttps://example.org/" + strings.Repeat("long", 40) + "\n\n" + strings.Repeat("unbroken", 40),
		Buttons: [][]chat.Button{{{Label: "Allow this once", Data: "1"}, {Label: "Always allow in this session", Data: "2"}, {Label: "Deny", Data: "3", Style: chat.Danger}}}})
	b.wait(`document.querySelector('.buttons button')`)
	b.is(`document.documentElement.scrollWidth <= innerWidth && document.querySelector('#scroll').scrollWidth <= innerWidth`)
	b.is(`[...document.querySelectorAll('.entry')].every((n) => n.getBoundingClientRect().right <= innerWidth)`)
	b.is(`[...document.querySelectorAll('.buttons button, #send, #open-sidebar')].every((n) => n.getBoundingClientRect().height >= 34)`)
	b.wait(`getComputedStyle(document.querySelector('#sidebar')).visibility === 'hidden'`)
	b.picture("phone")
	b.click("#open-sidebar")
	b.wait(`getComputedStyle(document.querySelector('#sidebar')).visibility === 'visible' && document.querySelector('#sidebar').getBoundingClientRect().left === 0`)
	b.picture("phone-drawer")
	b.is(`document.activeElement.id === 'new-session' && document.querySelector('#chat').inert`)
	b.key(kb.Escape, 0)
	b.is(`document.activeElement.id === 'open-sidebar' && !document.querySelector('#chat').inert`)
	b.wait(`getComputedStyle(document.querySelector('#sidebar')).visibility === 'hidden'`)
}

// contrast is the WCAG ratio between an element's colour and the page behind it.
const contrast = `((sel, behind) => {
	const lum = (c) => { const v = c.match(/[\d.]+/g).slice(0, 3).map((x) => { x /= 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4 });
		return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2] };
	const a = lum(getComputedStyle(document.querySelector(sel)).color), b = lum(getComputedStyle(document.querySelector(behind)).backgroundColor);
	return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) })`

func testDark(t *testing.T, s *site, b *tab) {
	showcase(s)
	b.wait(`document.querySelectorAll('.entry').length === 5 && document.querySelector('#sessions b')`)
	for _, scheme := range []string{"light", "dark"} {
		if scheme == "dark" {
			b.dark()
		}
		light := eval[float64](b, `Number(getComputedStyle(document.body).backgroundColor.match(/\d+/)[0])`)
		if (scheme == "light") != (light > 128) {
			t.Errorf("%s: the page's red is %v", scheme, light)
		}
		for _, pair := range [][2]string{{".body", "body"}, {".mine .bubble", ".mine .bubble"}, {".meta", "body"}, {"#send", "body"}, {".buttons .danger", ".buttons .danger"},
			{".buttons .primary", ".buttons .primary"}, {".body code", ".code"}, {"#sessions small", "#sidebar"}, {".body a", "body"}} {
			if pair[0] == "#send" {
				continue
			}
			if ratio := eval[float64](b, contrast+`(`+quote(pair[0])+`, `+quote(pair[1])+`)`); ratio < 4.5 {
				t.Errorf("%s: contrast of %s is %.2f", scheme, pair[0], ratio)
			}
		}
		b.do(`document.querySelector('#scroll').scrollTo(0, 0)`)
		b.picture(scheme + "-top")
		b.do(`document.querySelector('#scroll').scrollTo(0, 1e6)`)
		b.picture(scheme)
	}
}

// showcase is a conversation with everything that the page can show.
func showcase(s *site) {
	s.t.Helper()
	now := time.Now()
	s.timeline.setSessions(
		chat.SessionInfo{ID: "1", Title: "Retry logic for the uploader", Current: true, Messages: 6, At: now.Add(-time.Minute)},
		chat.SessionInfo{ID: "2", Title: "Trip to Lisbon in October", Messages: 24, At: now.Add(-26 * time.Hour)},
		chat.SessionInfo{ID: "3", Title: "פגישה עם דנה", Messages: 8, At: now.Add(-80 * time.Hour)},
		chat.SessionInfo{ID: "4", Title: "Weekly report, second draft with all the numbers", Messages: 112, At: now.Add(-400 * time.Hour)},
	)
	if code, body := s.post("/api/messages", message{"showcase-1", "The uploader gives up after one failed request. Can you make it retry, and tell me how long it waits in the worst case?"}); code != 202 {
		s.t.Fatal(body)
	}
	s.received()
	s.send(chat.Outgoing{Key: "a1", Progress: []string{"✓ read uploader.go", "✓ search for existing retry helpers", "✓ go test ./upload"}, Text: "The uploader now retries **four times** with growing waits and a little jitter, and stops at once for errors that another try cannot change.\n\n" +
		"```go\nfor attempt := range attempts {\n\terr := upload(ctx, part)\n\tif err == nil || !temporary(err) {\n\t\treturn err\n\t}\n\tif err := wait(ctx, backoff(attempt)); err != nil {\n\t\treturn err // the caller gave up\n\t}\n}\n```\n\n" +
		"| Attempt | Wait before it | Total |\n|--:|--:|--:|\n| 1 | – | 0 s |\n| 2 | 0.5 s | 0.5 s |\n| 3 | 1 s | 1.5 s |\n| 4 | 2 s | 3.5 s |\n\n" +
		"### What changed\n\n- `temporary` looks at the status: 408, 429 and 5xx\n- a `Retry-After` header wins over the computed wait\n- [x] tests for each class of error\n- [ ] a metric for the number of tries\n\n> The worst case is 3.5 seconds plus the time of the four requests, see [the notes](https://example.org/backoff)."})
	if code, body := s.post("/api/messages", message{"showcase-2", "תודה! וגם בבקשה להריץ את הבדיקות"}); code != 202 {
		s.t.Fatal(body)
	}
	s.received()
	s.send(chat.Outgoing{Key: "card", Text: "May I run this in the workspace?\n\n```sh\ngo test -race -count=10 ./upload\n```", Buttons: [][]chat.Button{{
		{Label: "Allow", Data: "y", Style: chat.Primary}, {Label: "Always in this session", Data: "a"}, {Label: "Deny", Data: "n", Style: chat.Danger}}}})
	live := s.send(chat.Outgoing{Key: "a2", Live: true})
	s.edit(live, chat.Outgoing{Key: "a2", Live: true, Progress: []string{"✓ go vet ./upload", "⚙ go test -race -count=10 ./upload · ok 7 of 10"}, Text: "The first seven runs passed. While the rest is running: the race detector"})
}

func testSessions(t *testing.T, s *site, b *tab) {
	s.timeline.setSessions(
		chat.SessionInfo{ID: "s1", Title: "Current one", Current: true, Messages: 2, At: time.Now()},
		chat.SessionInfo{ID: "s2", Title: "An older one", Messages: 9, At: time.Now().Add(-48 * time.Hour)},
	)
	s.send(chat.Outgoing{Key: "a", Text: "hello"})
	b.wait(`document.querySelectorAll('#sessions li').length === 2`)
	b.is(`document.querySelector('#title').textContent === 'Current one' && document.title.startsWith('Current one')`)
	b.click(`#sessions li:nth-child(2) button`)
	if got := s.received().Text; got != "/resume s2" {
		t.Errorf("got %q", got)
	}
	b.wait(`document.querySelector('.command .bubble')?.textContent === '/resume An older one'`)
	b.click(`#new-session`)
	if got := s.received().Text; got != "/new" {
		t.Errorf("got %q", got)
	}
	b.click(`#sessions li:nth-child(1) button`)
	s.timeline.setSessions(chat.SessionInfo{ID: "s3", Title: "Made just now", Current: true})
	s.send(chat.Outgoing{Key: "b", Text: "A new session."})
	b.wait(`document.querySelector('#title').textContent === 'Made just now'`)
	if n := len(s.events); n != 0 {
		t.Errorf("a click on the current session sent %d events", n)
	}
}

func testLong(t *testing.T, s *site, b *tab) {
	long := strings.Repeat("0123456789", 20_000)
	b.say(long)
	if got := s.received().Text; got != long {
		t.Errorf("%d characters arrived", len(got))
	}
	b.wait(`document.querySelector('.mine').dataset.state !== 'pending'`)
	b.say(strings.Repeat("x", 1<<20))
	b.wait(`document.querySelector('.mine[data-state=refused] .status')?.textContent.includes('larger than 1 MB')`)
	b.click(`.mine[data-state=refused] button`)
	b.is(`document.querySelector('#input').value.length === ` + "1048576")
	s.send(chat.Outgoing{Key: "a", Text: strings.Repeat("A long answer with many words. ", 3000)})
	b.wait(`document.querySelector('.bot .body')?.textContent.length > 90000`)
}

// The view follows new text at the end, and stays where a reader scrolled to.
func testFollow(t *testing.T, s *site, b *tab) {
	atEnd := `(() => { const s = document.querySelector('#scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 4 })()`
	id := s.send(chat.Outgoing{Key: "a", Live: true, Text: strings.Repeat("line\n\n", 40)})
	b.wait(`document.querySelectorAll('.body p').length === 40 && ` + atEnd)
	s.edit(id, chat.Outgoing{Key: "a", Live: true, Text: strings.Repeat("line\n\n", 60)})
	b.wait(`document.querySelectorAll('.body p').length === 60 && ` + atEnd)
	b.do(`document.querySelector('#scroll').scrollTo(0, 100)`)
	b.wait(`!document.querySelector('#latest').hidden`)
	s.edit(id, chat.Outgoing{Key: "a", Text: strings.Repeat("line\n\n", 80)})
	b.wait(`document.querySelectorAll('.body p').length === 80`)
	b.is(`document.querySelector('#scroll').scrollTop === 100`)
	b.click("#latest")
	b.wait(atEnd)
	if err := s.adapter.Typing(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	b.wait(`!document.querySelector('#typing').hidden && ` + atEnd)
	b.run(chromedp.Focus(chromedp.CSS("#input")))
	b.key(kb.PageUp, 0)
	b.wait(`!document.querySelector('#latest').hidden`)
	b.is(`document.activeElement.id === 'input'`)
	b.key(kb.PageDown, 0)
	b.wait(atEnd)
}

// A screen reader hears words, not marks, who said them, and what can be chosen.
func testSpoken(t *testing.T, s *site, b *tab) {
	b.say("Run it")
	s.received()
	s.send(chat.Outgoing{
		Key: "card", Text: "Run **this**?\n\n```sh\nls\n```",
		Buttons: [][]chat.Button{{{Label: "Allow", Data: "yes"}}, {{Label: "Deny", Data: "no"}}},
	})
	b.wait(`document.querySelector('#announcer').textContent !== ''`)
	if got := eval[string](b, `document.querySelector('#announcer').textContent`); got != "parley: Run this?\nls Choices: Allow, Deny" {
		t.Errorf("it says %q", got)
	}
	if got := eval[string](b, `[...document.querySelectorAll('.entry')].map((n) => n.firstChild.textContent).join('')`); got != "You: parley: " {
		t.Errorf("the speakers are %q", got)
	}
	b.is(`document.querySelector('.copy').textContent === 'Copy the message' && document.querySelector('.copy-code').textContent === 'Copy the code'`)
}

// The mark of the place where text grows stands behind the last word, and goes with the
// end of the answer.
func testCaret(t *testing.T, s *site, b *tab) {
	id := s.send(chat.Outgoing{Key: "a", Live: true})
	for _, tc := range []struct{ text, last string }{
		{"Some text", "Some text"}, {"- one\n- two", "two"}, {"1. one\n\n2. two\n\n   - deep", "deep"}, {"1. loose\n\n2. list", "list"}, {"> said", "said"},
	} {
		s.edit(id, chat.Outgoing{Key: "a", Live: true, Text: tc.text})
		b.wait(`[...document.querySelectorAll('.caret')].map((n) => n.textContent.trim()).join() === ` + quote(tc.last))
	}
	s.edit(id, chat.Outgoing{Key: "a", Live: true, Text: "Code:\n\n```\nx"})
	b.wait(`document.querySelector('.body pre') && !document.querySelector('.caret')`)
	s.edit(id, chat.Outgoing{Key: "a", Live: true, Text: "The end"})
	b.wait(`document.querySelector('.caret')`)
	s.edit(id, chat.Outgoing{Key: "a", Text: "The end"})
	b.wait(`!document.querySelector('.live')`)
	b.is(`!document.querySelector('.caret')`)
}
