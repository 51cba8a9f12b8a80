package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/adapters/adaptertest/faketelegram"
	"parley/agentcore/provider/providertest"
	"parley/gateway/chat"
)

// farTelegram has, besides what all have: the groups team and club, which may become
// bigclub; a forum with the topics 7 and 8 (`ann@forum/7`); and a topic of Ann's own
// chat with the bot (`ann@ann/5`).
type farTelegram struct{ server *faketelegram.Server }

func newFarTelegram(o farOptions) farSide {
	options := []faketelegram.Option{faketelegram.WithLatency(o.latency)}
	if o.limited {
		options = append(options, faketelegram.WithLimits(faketelegram.Limits{}))
	}
	if o.brief {
		options = append(options, faketelegram.WithoutHistory())
	}
	if o.onChange != nil {
		options = append(options, faketelegram.OnChange(telegramChanges(o.onChange)))
	}
	s := faketelegram.New(options...)
	for _, name := range []string{"bob", "eve", "team", "club"} {
		s.Open(faketelegram.Room{ID: telegramRooms[name]})
	}
	s.Open(faketelegram.Room{ID: telegramRooms["ann"], Topics: []int64{5}})
	s.Open(faketelegram.Room{ID: telegramRooms["forum"], Forum: true, Topics: []int64{7, 8}})
	return &farTelegram{s}
}

var telegramPeople = map[string]faketelegram.User{
	"ann": {ID: 1001, FirstName: "Ann"},
	"bob": {ID: 1002, FirstName: "Bob"},
	"eve": {ID: 1003, FirstName: "Eve"},
}

var telegramRooms = map[string]int64{
	"ann": 1001, "bob": 1002, "eve": 1003, "team": -1000000000100, "forum": -1000000000200, "club": -300, "bigclub": -1000000000300,
}

// telegramPat is the id of the zeroth Pat.
const telegramPat = 1_000_000

func telegramChanges(tell func(farChange)) func(faketelegram.Change) {
	kinds := map[faketelegram.ChangeKind]farChangeKind{
		faketelegram.PollStarted: farConnected, faketelegram.UpdateTaken: farHandedOut,
		faketelegram.DraftShown: farDrafted, faketelegram.MessageSent: farPosted, faketelegram.MessageEdited: farPosted,
	}
	return func(c faketelegram.Change) {
		if kind, ok := kinds[c.Kind]; ok {
			tell(farChange{kind: kind, chat: strconv.FormatInt(c.Chat, 10), text: c.Text, at: c.At})
		}
	}
}

func (f *farTelegram) settings() farSettings {
	return farSettings{
		platform: `telegram: [ { token: "${TOKEN}", api_base: "${TELEGRAM}" } ]`,
		variables: map[string]string{
			"TOKEN": f.server.Token(), "TELEGRAM": f.server.URL(), "BOT": "@" + f.server.BotUsername(),
			"ANN": "telegram:1001", "BOB": "telegram:1002", "EVE": "telegram:1003",
			"ANN_ALONE": "telegram/main/1001",
		},
		everybody: `"telegram:*"`,
		secrets:   []string{f.server.Token()},
		places:    []string{"ann", "bob", "eve", "ann@team", "ann@forum", "ann@club", "ann@bigclub"},
	}
}

func (f *farTelegram) taken(ctx context.Context) error {
	return f.server.Wait(ctx, func(s *faketelegram.Server) bool { return len(s.Pending()) == 0 })
}

var telegramCalls = map[string]string{"send": "sendMessage", "edit": "editMessageText", "receive": "getUpdates"}

var telegramFaults = map[string]*faketelegram.Fault{
	"429": faketelegram.TooManyRequests(1), "502": faketelegram.BadGateway, "401": faketelegram.Unauthorized,
	"cut": faketelegram.CutBefore, "lost": faketelegram.CutAfter, "ok": nil,
}

func (f *farTelegram) fail(call string, faults []string) error {
	if method, ok := telegramCalls[call]; ok {
		call = method
	}
	for _, name := range faults {
		fault, ok := telegramFaults[name]
		if !ok {
			return fmt.Errorf("there is no fault %s", name)
		}
		f.server.FailNext(call, fault)
	}
	return nil
}

func (f *farTelegram) counts() farCounts {
	c := f.server.Counters()
	counts := farCounts{refused: c.Limited}
	for _, n := range c.Calls {
		counts.calls += n
	}
	return counts
}

func (f *farTelegram) violations() []string {
	var all []string
	for _, v := range f.server.Violations() {
		all = append(all, fmt.Sprint("Telegram: ", v))
	}
	return all
}

func (f *farTelegram) close() { f.server.Close() }

// place: see farTelegram.
func (f *farTelegram) place(text string) (spot, error) {
	p := &telegramSpot{server: f.server}
	if n, ok := strings.CutPrefix(text, "#"); ok {
		i, err := strconv.ParseInt(n, 10, 64)
		p.who = faketelegram.User{ID: telegramPat + i, FirstName: "Pat"}
		f.server.Open(faketelegram.Room{ID: p.who.ID})
		p.view = f.server.Chat(p.who.ID)
		return p, err
	}
	name, room, elsewhere := strings.Cut(text, "@")
	room, thread, _ := strings.Cut(room, "/")
	if !elsewhere {
		room = name
	}
	p.who, p.view = telegramPeople[name], f.server.Chat(telegramRooms[room])
	p.thread, _ = strconv.ParseInt(thread, 10, 64)
	if p.who.ID == 0 || p.view.ID() == 0 {
		return nil, fmt.Errorf("there is no place %s", text)
	}
	return p, nil
}

// telegramSpot is where somebody writes in Telegram.
type telegramSpot struct {
	server *faketelegram.Server
	view   *faketelegram.Chat
	who    faketelegram.User
	thread int64
}

func (p *telegramSpot) chat() string { return strconv.FormatInt(p.view.ID(), 10) }

// say: a command in a group is written as the group's command menu does.
func (p *telegramSpot) say(s saying) string {
	in := faketelegram.Incoming{Chat: p.view.ID(), From: p.who, Thread: p.thread, Text: s.text, Quote: s.quote, Album: s.album}
	if s.replyTo != "" {
		in.ReplyTo = telegramID(s.replyTo)
	}
	if s.command && in.Chat != p.who.ID {
		in.Text += "@" + p.server.BotUsername()
	}
	switch {
	case s.photo:
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
			panic(err)
		}
		in.File = &faketelegram.File{Kind: "photo", Data: b.Bytes()}
	case s.voice != "":
		in.File = &faketelegram.File{Kind: "voice", MIME: "audio/ogg", Data: []byte(providertest.Recording(s.voice))}
	case s.doc != "":
		in.File = &faketelegram.File{Name: s.doc, MIME: "text/plain", Data: []byte("what is in the file")}
	}
	_, id := p.server.Post(in)
	return strconv.FormatInt(id, 10)
}

func (p *telegramSpot) edit(message, text string) {
	p.server.Edit(p.view.ID(), telegramID(message), text)
}

func (p *telegramSpot) remove(message string) { p.server.Remove(p.view.ID(), telegramID(message)) }

func (p *telegramSpot) again(message string) { p.server.Again(p.view.ID(), telegramID(message)) }

func (p *telegramSpot) press(message, label string) {
	m, _ := p.view.Message(telegramID(message))
	for _, b := range slices.Concat(m.Keyboard...) {
		if b.Text == label {
			p.server.Press(p.view.ID(), m.ID, b.Data, p.who)
			return
		}
	}
}

func (p *telegramSpot) messages() []shown {
	var all []shown
	for _, m := range p.view.Messages() {
		if p.thread != 0 && m.Thread != p.thread {
			continue
		}
		s := shown{id: strconv.FormatInt(m.ID, 10), text: m.Text}
		if m.ReplyTo != 0 {
			s.replyTo = strconv.FormatInt(m.ReplyTo, 10)
		}
		for _, row := range m.Keyboard {
			var labels []string
			for _, b := range row {
				labels = append(labels, b.Text)
			}
			s.buttons = append(s.buttons, labels)
		}
		for _, v := range m.Versions {
			s.versions = append(s.versions, v.Text)
		}
		all = append(all, s)
	}
	return all
}

func (p *telegramSpot) drafts() []string {
	var all []string
	for _, d := range p.view.Drafts() {
		if p.thread == 0 || d.Thread == p.thread {
			all = append(all, d.Text)
		}
	}
	return all
}

var telegramReactions = map[string]chat.Reaction{"👀": chat.ReactSeen, "✍": chat.ReactWorking, "👌": chat.ReactDone, "👎": chat.ReactFailed}

func (p *telegramSpot) reaction(message string) chat.Reaction {
	if all := p.view.Reactions(telegramID(message)); len(all) > 0 {
		return telegramReactions[all[0]]
	}
	return chat.ReactNone
}

func (p *telegramSpot) wait(ctx context.Context, ok func() bool) error {
	return p.view.Wait(ctx, func(*faketelegram.Chat) bool { return ok() })
}

func telegramID(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("no message of Telegram: " + text)
	}
	return n
}

// command has what only Telegram's scripts need.
func (f *farTelegram) command(ts *testscript.TestScript, args []string) {
	ctx, cancel := limited()
	defer cancel()
	switch args[0] {
	case "update":
		f.server.Raw(ts.ReadFile(args[1]))
	case "upgrade":
		f.server.Migrate(telegramRooms["club"], telegramRooms["bigclub"], telegramPeople[args[1]])
	case "rival":
		res, err := http.Get(f.server.URL() + "/bot" + f.server.Token() + "/getUpdates")
		ts.Check(err)
		ts.Check(res.Body.Close())
	case "menu":
		ts.Check(f.server.Wait(ctx, func(s *faketelegram.Server) bool {
			return slices.ContainsFunc(s.Commands(), func(c faketelegram.Command) bool { return c.Command == args[1] })
		}))
	case "draft":
		p, want := placeOf(ts, args[1]), expression(ts, args[2])
		if err := p.wait(ctx, func() bool { return slices.ContainsFunc(p.(drafter).drafts(), want.MatchString) }); err != nil {
			ts.Fatalf("no draft says %s", args[2])
		}
	case "drafts":
		if got := placeOf(ts, args[1]).(drafter).drafts(); strconv.Itoa(len(got)) != args[2] {
			ts.Fatalf("the drafts are %q", got)
		}
	case "webhook":
		want := expression(ts, args[1])
		ts.Check(f.server.Wait(ctx, func(s *faketelegram.Server) bool { return want.MatchString(s.Webhook()) }))
	case "close":
		p := placeOf(ts, args[1]).(*telegramSpot)
		f.server.CloseTopic(p.view.ID(), p.thread)
	case "delete":
		p := placeOf(ts, args[1]).(*telegramSpot)
		f.server.DeleteTopic(p.view.ID(), p.thread)
	case "block":
		f.server.Block(telegramRooms[args[1]], telegramPeople[args[1]])
	default:
		ts.Fatalf("there is no telegram %s", args[0])
	}
}
