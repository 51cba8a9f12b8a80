package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/adapters/adaptertest/fakeslack"
	"parley/agentcore/provider/providertest"
	"parley/gateway/chat"
)

// farSlack has, besides what all have: threads in the room (`ann@team/TS`, the thread
// of a message), and direct messages outside of the assistant pane (`ann@im`). Who
// writes to the bot alone does so in one thread of the pane, where answers are
// streams. What begins with a slash is written with "!", since Slack's client keeps
// the slash for itself.
type farSlack struct {
	server *fakeslack.Server

	mu     sync.Mutex
	faults map[string][]*fakeslack.Fault
}

const (
	slackRoom = "C0TEAM"
	slackPane = "1700000000.000001" // the thread in everybody's pane
	slackBot  = "<@" + fakeslack.BotUser + ">"
)

var slackPeople = map[string]fakeslack.User{
	"ann": {ID: "U0ANN", Name: "Ann"},
	"bob": {ID: "U0BOB", Name: "Bob"},
	"eve": {ID: "U0EVE", Name: "Eve"},
}

func newFarSlack(o farOptions) farSide {
	options := []fakeslack.Option{fakeslack.WithRetry(time.Second), fakeslack.WithLatency(o.latency)}
	if o.limited {
		options = append(options, fakeslack.WithLimits(fakeslack.Limits{}))
	}
	if o.brief {
		options = append(options, fakeslack.WithoutHistory())
	}
	if o.onChange != nil {
		options = append(options, fakeslack.OnChange(slackChanges(o.onChange)))
	}
	f := &farSlack{server: fakeslack.New(options...), faults: map[string][]*fakeslack.Fault{}}
	f.server.Fail(f.fault)
	f.server.Open(fakeslack.Room{ID: slackRoom, Kind: fakeslack.Channel, Name: "team"})
	for _, u := range slackPeople {
		f.server.Begin(f.server.OpenIM(u), slackPane)
	}
	return f
}

func slackChanges(tell func(farChange)) func(fakeslack.Change) {
	kinds := map[fakeslack.ChangeKind]farChangeKind{
		fakeslack.Connected: farConnected, fakeslack.Acknowledged: farHandedOut, fakeslack.MessageSent: farPosted, fakeslack.MessageEdited: farPosted,
	}
	return func(c fakeslack.Change) {
		if c.Kind == fakeslack.Connected || c.Channel != "" {
			tell(farChange{kind: kinds[c.Kind], chat: c.Channel, text: c.Text, at: c.At})
		}
	}
}

func (f *farSlack) settings() farSettings {
	return farSettings{
		platform: `slack: [ { bot_token: "${SLACK_BOT_TOKEN}", app_token: "${SLACK_APP_TOKEN}", api_base: "${SLACK}" } ]`,
		variables: map[string]string{
			"SLACK_BOT_TOKEN": f.server.BotToken(), "SLACK_APP_TOKEN": f.server.AppToken(), "SLACK": f.server.URL(), "BOT": slackBot, "SLACK_SECRET": f.server.SigningSecret(),
			"ANN": "slack:U0ANN", "BOB": "slack:U0BOB", "EVE": "slack:U0EVE",
			"ANN_ALONE": "slack/main/" + f.server.OpenIM(slackPeople["ann"]) + "/" + slackPane,
		},
		everybody: `"slack:*"`,
		secrets:   []string{f.server.BotToken(), f.server.AppToken(), f.server.SigningSecret()},
		places:    []string{"ann", "bob", "eve", "ann@team"},
	}
}

func (f *farSlack) taken(ctx context.Context) error {
	return f.server.Wait(ctx, func(s *fakeslack.Server) bool { return s.Due() == 0 })
}

// slackCalls are the methods that stand behind the words of all scripts.
var slackCalls = map[string]string{
	"chat.postMessage": "send", "chat.startStream": "send",
	"chat.update": "edit", "chat.appendStream": "edit", "chat.stopStream": "edit", "apps.connections.open": "receive",
}

var slackFaults = map[string]*fakeslack.Fault{
	"429": fakeslack.TooManyRequests(1), "502": fakeslack.BadGateway, "401": fakeslack.Refusal("invalid_auth"),
	"cut": fakeslack.CutBefore, "lost": fakeslack.CutAfter, "ok": nil,
}

// fail: the bot hears over a socket, so its way in is cut first.
func (f *farSlack) fail(call string, faults []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range faults {
		fault, ok := slackFaults[name]
		if !ok {
			return fmt.Errorf("there is no fault %s", name)
		}
		f.faults[call] = append(f.faults[call], fault)
	}
	if call == "receive" {
		f.server.Cut()
	}
	return nil
}

// fault is what happens to a call.
func (f *farSlack) fault(c fakeslack.Call) *fakeslack.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range []string{c.Method, slackCalls[c.Method]} {
		if queued := f.faults[name]; len(queued) > 0 {
			f.faults[name] = queued[1:]
			return queued[0]
		}
	}
	return nil
}

func (f *farSlack) counts() farCounts {
	counts := farCounts{refused: f.server.Limited()}
	for _, n := range f.server.Counts() {
		counts.calls += n
	}
	return counts
}

func (f *farSlack) violations() []string {
	var all []string
	for _, v := range f.server.Violations() {
		all = append(all, fmt.Sprint("Slack: ", v))
	}
	return all
}

func (f *farSlack) close() { f.server.Close() }

// place: see farSlack.
func (f *farSlack) place(text string) (spot, error) {
	p := &slackSpot{server: f.server}
	if n, ok := strings.CutPrefix(text, "#"); ok {
		if _, err := strconv.Atoi(n); err != nil {
			return nil, err
		}
		p.who = fakeslack.User{ID: "U0PAT" + n, Name: "Pat"}
		p.channel, p.thread = f.server.OpenIM(p.who), slackPane
		f.server.Begin(p.channel, slackPane)
		return p, nil
	}
	name, room, elsewhere := strings.Cut(text, "@")
	room, thread, _ := strings.Cut(room, "/")
	who, ok := slackPeople[name]
	p.who, p.channel, p.thread = who, slackRoom, thread
	switch {
	case !ok || elsewhere && room != "team" && room != "im":
		return nil, fmt.Errorf("there is no place %s", text)
	case !elsewhere:
		p.channel, p.thread = f.server.OpenIM(who), slackPane
	case room == "im":
		p.channel = f.server.OpenIM(who)
	}
	return p, nil
}

// slackSpot is where somebody writes in Slack.
type slackSpot struct {
	server          *fakeslack.Server
	who             fakeslack.User
	channel, thread string
}

func (p *slackSpot) chat() string { return p.channel }

// slackEscape is what Slack does to what people type.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slackText is a text as Slack delivers it; the bot's name in it is a mention.
func slackText(s string) string {
	return strings.ReplaceAll(slackEscape.Replace(s), slackEscape.Replace(slackBot), slackBot)
}

// say: a command in the room is written in the thread where something was said last.
func (p *slackSpot) say(s saying) string {
	text := slackText(s.text)
	if rest, ok := strings.CutPrefix(text, "/"); ok {
		text = "!" + rest
	}
	in := fakeslack.Incoming{Channel: p.channel, From: p.who, Thread: p.thread, Text: text}
	if all := p.server.Messages(p.channel); s.command && p.channel == slackRoom && p.thread == "" && len(all) > 0 {
		in.Thread = all[len(all)-1].Thread
	}
	switch {
	case s.photo:
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
			panic(err)
		}
		in.File = &fakeslack.File{Name: "photo.jpg", MIME: "image/jpeg", Data: b.Bytes()}
	case s.voice != "":
		in.File = &fakeslack.File{Name: "audio.ogg", MIME: "audio/ogg", Subtype: "slack_audio", Data: []byte(providertest.Recording(s.voice))}
	case s.doc != "":
		in.File = &fakeslack.File{Name: s.doc, MIME: "text/plain", Data: []byte("what is in the file")}
	case s.replyTo != "":
		m, _ := p.server.Message(p.channel, s.replyTo)
		quoted := s.quote
		if quoted == "" {
			quoted = m.Text
		}
		in.Attachments, _ = json.Marshal([]map[string]any{{
			"is_share": true, "is_msg_unfurl": true, "author_id": fakeslack.BotUser, "ts": s.replyTo, "text": slackEscape.Replace(quoted),
		}})
	}
	return p.server.Post(in)
}

func (p *slackSpot) edit(message, text string) {
	p.server.Edit(p.channel, message, slackText(text))
}

func (p *slackSpot) remove(message string) { p.server.Remove(p.channel, message) }

func (p *slackSpot) again(message string) { p.server.Again(p.channel, message) }

// slackStop is how scripts name Slack's own stop control, which a stream has.
const slackStop = "⏹ Stop"

func (p *slackSpot) press(message, label string) {
	m, _ := p.server.Message(p.channel, message)
	if m.Streaming && label == slackStop {
		p.server.PressStop(p.channel, m.Thread, p.who)
		return
	}
	for _, b := range slices.Concat(m.Buttons...) {
		if b.Label == label {
			p.server.Press(p.channel, message, b.Value, p.who)
			return
		}
	}
}

func (p *slackSpot) messages() []shown {
	var all []shown
	for _, m := range p.server.Messages(p.channel) {
		if p.channel == slackRoom && p.thread != "" && m.Thread != p.thread || m.Only != "" && m.Only != p.who.ID {
			continue
		}
		s := shown{id: m.TS, text: m.Text}
		for _, row := range m.Buttons {
			var labels []string
			for _, b := range row {
				labels = append(labels, b.Label)
			}
			s.buttons = append(s.buttons, labels)
		}
		if m.Streaming {
			s.buttons = append(s.buttons, []string{slackStop})
		}
		for _, v := range m.Versions {
			s.versions = append(s.versions, v.Text)
		}
		all = append(all, s)
	}
	return all
}

var slackReactions = map[string]chat.Reaction{
	"eyes": chat.ReactSeen, "hourglass_flowing_sand": chat.ReactWorking, "white_check_mark": chat.ReactDone, "x": chat.ReactFailed,
}

func (p *slackSpot) reaction(message string) chat.Reaction {
	all := p.server.Reactions(p.channel, message)
	if len(all) == 1 {
		return slackReactions[all[0]]
	}
	return chat.Reaction(strings.Join(all, " "))
}

func (p *slackSpot) wait(ctx context.Context, ok func() bool) error {
	return p.server.Wait(ctx, func(*fakeslack.Server) bool { return ok() })
}

// command has what only Slack's scripts need.
func (f *farSlack) command(ts *testscript.TestScript, args []string) {
	switch args[0] {
	case "slash": // PLACE COMMAND [TEXT]
		s, err := f.place(args[1])
		ts.Check(err)
		p := s.(*slackSpot)
		f.server.Command(p.channel, p.who, args[2], optional(args, 3, ""))
	case "event": // FILE
		var inner map[string]any
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &inner))
		f.server.Raw(inner)
	case "envelope": // FILE
		f.server.Frame(ts.ReadFile(args[1]))
	case "disconnect":
		f.server.Disconnect("refresh_requested")
	case "push": // to the daemon, from now on
		ts.Check(f.server.SetRequestURL(worldOf(ts).daemon(ts, optional(args, 1, "one")).address(ts) + "/webhook/slack/main"))
	case "silence":
		f.server.Silence()
	default:
		ts.Fatalf("there is no slack %s", args[0])
	}
}
