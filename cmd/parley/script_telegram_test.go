package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/adapters/adaptertest/faketelegram"
)

var people = map[string]faketelegram.User{
	"ann": {ID: 1001, FirstName: "Ann"},
	"bob": {ID: 1002, FirstName: "Bob"},
	"eve": {ID: 1003, FirstName: "Eve"},
}

var rooms = map[string]int64{"ann": 1001, "bob": 1002, "eve": 1003, "team": -1000000000100, "forum": -1000000000200, "club": -300, "bigclub": -1000000000300}

func openRooms(s *faketelegram.Server) {
	for _, id := range []string{"bob", "eve", "team", "club"} {
		s.Open(faketelegram.Room{ID: rooms[id]})
	}
	s.Open(faketelegram.Room{ID: rooms["ann"], Topics: []int64{5}})
	s.Open(faketelegram.Room{ID: rooms["forum"], Forum: true, Topics: []int64{7, 8}})
}

// place is where somebody writes.
type place struct {
	who    faketelegram.User
	chat   int64
	thread int64
}

func placeOf(ts *testscript.TestScript, text string) place {
	name, room, elsewhere := strings.Cut(text, "@")
	who, ok := people[name]
	p := place{who: who, chat: who.ID}
	if elsewhere {
		room, thread, _ := strings.Cut(room, "/")
		p.chat = rooms[room]
		p.thread, _ = strconv.ParseInt(thread, 10, 64)
	}
	if !ok || p.chat == 0 {
		ts.Fatalf("there is no place %s", text)
	}
	return p
}

const sayUsage = "say PLACE [-reply ID] [-quote TEXT] [-doc NAME] [-photo] [-times N] TEXT"

func cmdSay(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) >= 2, sayUsage)
	p := placeOf(ts, args[0])
	in := faketelegram.Incoming{Chat: p.chat, From: p.who, Thread: p.thread}
	times := 1
	rest := args[1:]
	for ; len(rest) > 1; rest = rest[1:] {
		option := rest[0]
		if option == "-photo" {
			in.File = &faketelegram.File{Kind: "photo", Data: picture(ts)}
			continue
		}
		rest = rest[1:]
		switch option {
		case "-reply":
			in.ReplyTo = messageID(ts, rest[0])
		case "-quote":
			in.Quote = rest[0]
		case "-doc":
			in.File = &faketelegram.File{Name: rest[0], MIME: "text/plain", Data: []byte("what is in the file")}
		case "-times":
			times = int(messageID(ts, rest[0]))
		default:
			ts.Fatalf("usage: %s", sayUsage)
		}
	}
	positive(ts, false, len(rest) == 1, sayUsage)
	in.Text = strings.Repeat(rest[0], times)
	_, id := worldOf(ts).telegram.Post(in)
	ts.Setenv("message", strconv.FormatInt(id, 10))
}

func messageID(ts *testscript.TestScript, text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	ts.Check(err)
	return n
}

func picture(ts *testscript.TestScript) []byte {
	var b bytes.Buffer
	ts.Check(png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))))
	return b.Bytes()
}

func cmdEdit(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 3, "edit PLACE ID TEXT")
	worldOf(ts).telegram.Edit(placeOf(ts, args[0]).chat, messageID(ts, args[1]), args[2])
}

func cmdUpdate(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 1, "update FILE")
	worldOf(ts).telegram.Raw(ts.ReadFile(args[0]))
}

// messages are what the bot has visibly said at the place; of a whole chat if it
// names no topic.
func (p place) messages(c *faketelegram.Chat) []faketelegram.Message {
	return slices.DeleteFunc(c.Messages(), func(m faketelegram.Message) bool { return p.thread != 0 && m.Thread != p.thread })
}

// wait waits for a message at the place, the newest first.
func (p place) wait(w *world, ok func(faketelegram.Message) bool) (found faketelegram.Message, err error) {
	ctx, cancel := limited()
	defer cancel()
	err = w.telegram.Chat(p.chat).Wait(ctx, func(c *faketelegram.Chat) bool {
		for _, m := range slices.Backward(p.messages(c)) {
			if ok(m) {
				found = m
				return true
			}
		}
		return false
	})
	return found, err
}

func cmdPress(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 2, "press PLACE LABEL")
	w, p := worldOf(ts), placeOf(ts, args[0])
	var data string
	m, err := p.wait(w, func(m faketelegram.Message) bool {
		for _, b := range slices.Concat(m.Keyboard...) {
			if b.Text == args[1] {
				data = b.Data
				return true
			}
		}
		return false
	})
	if err != nil {
		ts.Fatalf("no button %s", args[1])
	}
	w.telegram.Press(p.chat, m.ID, data, p.who)
}

func cmdAnswers(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 2, "answers PLACE PATTERN")
	cmdSees(ts, false, args)
	worldOf(ts).awaitRest(ts)
	w, p, want := worldOf(ts), placeOf(ts, args[0]), expression(ts, args[1])
	if !slices.ContainsFunc(p.messages(w.telegram.Chat(p.chat)), func(m faketelegram.Message) bool { return want.MatchString(m.Text) }) {
		ts.Fatalf("%s was there and is not any more", args[1])
	}
}

func cmdSees(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, false, len(args) == 2, "[!] sees PLACE PATTERN")
	w, p, want := worldOf(ts), placeOf(ts, args[0]), expression(ts, args[1])
	if neg {
		if slices.ContainsFunc(p.messages(w.telegram.Chat(p.chat)), func(m faketelegram.Message) bool { return want.MatchString(m.Text) }) {
			ts.Fatalf("%s is there", args[1])
		}
		return
	}
	m, err := p.wait(w, func(m faketelegram.Message) bool { return want.MatchString(m.Text) })
	if err != nil {
		ts.Fatalf("no message says %s", args[1])
	}
	ts.Setenv("answer", strconv.FormatInt(m.ID, 10))
	setMatch(ts, want.FindStringSubmatch(m.Text))
}

// busy counts what is still to be posted, and the turns that wait for nobody.
const busy = `SELECT (SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending', 'unknown'))
	+ (SELECT count(*) FROM turns t WHERE ended_at IS NULL AND NOT EXISTS (SELECT FROM approvals a WHERE a.turn_id = t.id AND a.state = 'open'))`

// awaitRest waits until nothing is being done any more.
func (w *world) awaitRest(ts *testscript.TestScript) {
	if !eventually(func() bool { n, err := w.query(busy); return err == nil && n == "0" }) {
		ts.Fatalf("something is still going on")
	}
}

func cmdChat(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 1 || len(args) == 2, "chat PLACE [ID]")
	w, p := worldOf(ts), placeOf(ts, args[0])
	w.awaitRest(ts)
	if len(args) == 1 {
		fmt.Fprint(ts.Stdout(), transcript(p.messages(w.telegram.Chat(p.chat))))
		return
	}
	m, ok := w.telegram.Chat(p.chat).Message(messageID(ts, args[1]))
	if !ok {
		ts.Fatalf("there is no message %s", args[1])
	}
	for _, v := range m.Versions {
		fmt.Fprintln(ts.Stdout(), strings.ReplaceAll(v.Text, "\n", "⏎"))
	}
}

// transcript is what the bot's visible messages say, with the message that each
// answers and the buttons below it.
func transcript(messages []faketelegram.Message) string {
	var b strings.Builder
	for _, m := range messages {
		if m.ReplyTo != 0 {
			fmt.Fprintf(&b, "(to %d) ", m.ReplyTo)
		}
		b.WriteString(m.Text + "\n")
		for _, row := range m.Keyboard {
			for i, button := range row {
				if i > 0 {
					b.WriteByte(' ')
				}
				b.WriteString("[" + button.Text + "]")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func cmdHalt(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 1, "halt PLACE")
	w, p := worldOf(ts), placeOf(ts, args[0])
	turn, err := w.query(`SELECT id FROM turns WHERE ended_at IS NULL AND chat = $1`, strconv.FormatInt(p.chat, 10))
	ts.Check(err)
	before := w.telegram.Chat(p.chat).Messages()
	stop := "/stop"
	if p.chat != p.who.ID {
		stop += "@" + w.telegram.BotUsername() // as a group's command menu writes it
	}
	began := time.Now()
	w.telegram.Post(faketelegram.Incoming{Chat: p.chat, From: p.who, Thread: p.thread, Text: stop})
	if turn != "" {
		if !eventually(func() bool {
			ended, err := w.query(`SELECT ended_at FROM turns WHERE id = $1 AND ended_at IS NOT NULL`, turn)
			return err == nil && ended != ""
		}) {
			ts.Fatalf("the turn does not end")
		}
		judge(ts, time.Since(began))
	}
	if _, err := p.wait(w, func(m faketelegram.Message) bool {
		known := slices.ContainsFunc(before, func(b faketelegram.Message) bool { return b.ID == m.ID })
		return !known && strings.HasPrefix(m.Text, "⏹")
	}); err != nil {
		ts.Fatalf("nobody says that it has stopped")
	}
	if turn == "" {
		judge(ts, time.Since(began))
	}
}

// judge holds the time that letting go took against the limit.
func judge(ts *testscript.TestScript, took time.Duration) {
	ts.Logf("released after %s", took.Round(time.Millisecond))
	if took >= stopLimit {
		ts.Fatalf("it took %s to let go", took)
	}
}

var telegramFaults = map[string]*faketelegram.Fault{
	"429": faketelegram.TooManyRequests(1), "502": faketelegram.BadGateway, "401": faketelegram.Unauthorized,
	"cut": faketelegram.CutBefore, "lost": faketelegram.CutAfter, "ok": nil,
}

func cmdTelegram(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) > 0, "telegram fail|confirmed|menu|reaction|rival|upgrade|block|remove|limited ...")
	w := worldOf(ts)
	switch args[0] {
	case "fail":
		for _, name := range args[2:] {
			f, ok := telegramFaults[name]
			if !ok {
				ts.Fatalf("there is no fault %s", name)
			}
			w.telegram.FailNext(args[1], f)
		}
	case "confirmed":
		ctx, cancel := limited()
		defer cancel()
		ts.Check(w.telegram.Wait(ctx, func(s *faketelegram.Server) bool { return len(s.Pending()) == 0 }))
	case "upgrade":
		w.telegram.Migrate(rooms["club"], rooms["bigclub"], people[args[1]])
	case "rival":
		res, err := http.Get(w.telegram.URL() + "/bot" + w.telegram.Token() + "/getUpdates")
		ts.Check(err)
		ts.Check(res.Body.Close())
	case "menu":
		ctx, cancel := limited()
		defer cancel()
		ts.Check(w.telegram.Wait(ctx, func(s *faketelegram.Server) bool {
			return slices.ContainsFunc(s.Commands(), func(c faketelegram.Command) bool { return c.Command == args[1] })
		}))
	case "reaction":
		p, id := placeOf(ts, args[1]), messageID(ts, args[2])
		ctx, cancel := limited()
		defer cancel()
		ts.Check(w.telegram.Chat(p.chat).Wait(ctx, func(c *faketelegram.Chat) bool { return slices.Equal(c.Reactions(id), args[3:]) }))
	case "block":
		w.telegram.Block(rooms[args[1]], people[args[1]])
	case "remove":
		w.telegram.Remove(placeOf(ts, args[1]).chat, messageID(ts, args[2]))
	case "limited":
		w.telegram.Close()
		w.telegram = faketelegram.New(faketelegram.WithLimits(faketelegram.Limits{}))
		openRooms(w.telegram)
		ts.Setenv("TELEGRAM", w.telegram.URL())
	default:
		ts.Fatalf("there is no telegram %s", args[0])
	}
}
