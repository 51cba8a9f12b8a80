package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/adapters/adaptertest/fakediscord"
	"parley/agentcore/provider/providertest"
	"parley/gateway/chat"
)

// farDiscord has, besides what all have: threads in the room (`ann@team/ID`, the
// thread of that message, which whoever writes there first begins). What is a command is a slash command of Discord's own;
// that of the room is used in the thread that was begun last.
type farDiscord struct {
	seen   sync.Map // of what was read already: a content and what people see of it
	server *fakediscord.Server
	team   string

	mu     sync.Mutex
	faults map[string][]*fakediscord.Fault
}

var discordPeople = map[string]fakediscord.User{
	"ann": {ID: "100000000000001001", Username: "ann", Name: "Ann"},
	"bob": {ID: "100000000000001002", Username: "bob", Name: "Bob"},
	"eve": {ID: "100000000000001003", Username: "eve", Name: "Eve"},
}

func newFarDiscord(o farOptions) farSide {
	options := []fakediscord.Option{fakediscord.WithLatency(o.latency)}
	if o.limited {
		options = append(options, fakediscord.WithLimits(fakediscord.RealLimits()))
	}
	if o.brief {
		options = append(options, fakediscord.WithoutHistory())
	}
	if o.onChange != nil {
		options = append(options, fakediscord.OnChange(discordChanges(o.onChange)))
	}
	f := &farDiscord{server: fakediscord.New(options...), faults: map[string][]*fakediscord.Fault{}}
	f.server.Fail(f.fault)
	f.team = f.server.AddChannel(f.server.AddGuild("Team"), "team", fakediscord.Text)
	return f
}

func discordChanges(tell func(farChange)) func(fakediscord.Change) {
	kinds := map[fakediscord.ChangeKind]farChangeKind{
		fakediscord.Connected: farConnected, fakediscord.HandedOut: farHandedOut, fakediscord.TextPosted: farPosted,
	}
	return func(c fakediscord.Change) {
		tell(farChange{kind: kinds[c.Kind], chat: c.Channel, text: c.Text, at: c.At})
	}
}

func (f *farDiscord) settings() farSettings {
	return farSettings{
		platform: `discord: [ { token: "${DISCORD_BOT_TOKEN}", api_base: "${DISCORD}" } ]`,
		variables: map[string]string{
			"DISCORD_BOT_TOKEN": f.server.CurrentToken(), "DISCORD": f.server.URL(), "BOT": "<@" + fakediscord.BotID + ">",
			"ANN": "discord:" + discordPeople["ann"].ID, "BOB": "discord:" + discordPeople["bob"].ID, "EVE": "discord:" + discordPeople["eve"].ID,
			"ANN_ALONE": "discord/main/" + f.server.OpenDM(discordPeople["ann"]),
		},
		everybody: discordEverybody(),
		secrets:   []string{f.server.CurrentToken()},
		places:    []string{"ann", "bob", "eve", "ann@team"},
	}
}

func (f *farDiscord) taken(ctx context.Context) error { return f.server.Taken(ctx) }

// discordCalls are the calls that stand behind the words of all scripts.
var discordCalls = map[string]*regexp.Regexp{
	"send":    regexp.MustCompile(`^POST /channels/\d+/messages$`),
	"edit":    regexp.MustCompile(`^PATCH /channels/\d+/messages/\d+$`),
	"receive": regexp.MustCompile(`^GET /gateway$`),
}

var discordFaults = map[string]*fakediscord.Fault{
	"429": fakediscord.TooManyRequests(1), "502": fakediscord.BadGateway, "401": fakediscord.Refusal(401, 0, "401: Unauthorized"),
	"cut": fakediscord.CutBefore, "lost": fakediscord.CutAfter, "ok": nil,
}

// fail: the bot hears over a socket, which is cut, and closed again after the next
// tries to resume.
func (f *farDiscord) fail(call string, faults []string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, name := range faults {
		fault, ok := discordFaults[name]
		switch {
		case !ok || discordCalls[call] == nil:
			return fmt.Errorf("there is no fault %s of %s", name, call)
		case call == "receive" && name == "401":
			f.server.RefuseNext(4004)
		case call == "receive" && i > 0:
			f.server.RefuseNext(4000)
		default:
			f.faults[call] = append(f.faults[call], fault)
		}
	}
	if call == "receive" {
		f.faults[call] = nil
		go f.server.Cut() // the fake asks for faults under its lock
	}
	return nil
}

// fault is what happens to a call.
func (f *farDiscord) fault(r fakediscord.Request) *fakediscord.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for call, pattern := range discordCalls {
		if queued := f.faults[call]; len(queued) > 0 && pattern.MatchString(r.Method+" "+r.Path) {
			f.faults[call] = queued[1:]
			return queued[0]
		}
	}
	return nil
}

func (f *farDiscord) counts() farCounts {
	return farCounts{calls: f.server.Made(), refused: f.server.Limited()}
}

func (f *farDiscord) violations() []string {
	var all []string
	for _, v := range f.server.Violations() {
		all = append(all, "Discord: "+v)
	}
	return all
}

func (f *farDiscord) close() { f.server.Close() }

// place: see farDiscord.
func (f *farDiscord) place(text string) (spot, error) {
	if n, ok := strings.CutPrefix(text, "#"); ok {
		i, err := strconv.Atoi(n)
		who := fakediscord.User{ID: strconv.Itoa(200000000000000000 + i), Username: "pat", Name: "Pat"}
		return &discordSpot{far: f, who: who, channel: f.server.OpenDM(who)}, err
	}
	name, room, elsewhere := strings.Cut(text, "@")
	room, thread, _ := strings.Cut(room, "/")
	who, ok := discordPeople[name]
	switch {
	case !ok || elsewhere && room != "team":
		return nil, fmt.Errorf("there is no place %s", text)
	case !elsewhere:
		return &discordSpot{far: f, who: who, channel: f.server.OpenDM(who)}, nil
	case thread != "":
		return &discordSpot{far: f, who: who, channel: thread, thread: true}, nil
	}
	return &discordSpot{far: f, who: who, channel: f.team}, nil
}

// discordSpot is where somebody writes in Discord.
type discordSpot struct {
	far     *farDiscord
	who     fakediscord.User
	channel string
	thread  bool // of the message that the channel is named after; who writes there first begins it
}

func (p *discordSpot) server() *fakediscord.Server { return p.far.server }

func (p *discordSpot) chat() string {
	if t, ok := p.server().Thread(p.channel); ok {
		return t.Parent
	}
	return p.channel
}

// channels are the place's channel and its threads.
func (p *discordSpot) channels() []string {
	return append([]string{p.channel}, p.server().Threads(p.channel)...)
}

// holding is the channel in which a message stands.
func (p *discordSpot) holding(message string) string {
	for _, c := range p.channels() {
		if _, ok := p.server().Message(c, message); ok {
			return c
		}
	}
	return p.channel
}

// say: Discord has no quote of a part, so that the whole message is pointed at.
func (p *discordSpot) say(s saying) string {
	if name, ok := strings.CutPrefix(s.text, "/"); ok && s.command {
		all := p.channels()
		return p.server().Invoke(all[len(all)-1], name, "", p.who)
	}
	var options []fakediscord.SayOption
	if s.replyTo != "" {
		options = append(options, fakediscord.ReplyTo(s.replyTo))
	}
	switch {
	case s.photo:
		var b bytes.Buffer
		if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
			panic(err)
		}
		options = append(options, fakediscord.WithFile("photo.jpg", "image/jpeg", b.Bytes()))
	case s.doc != "":
		options = append(options, fakediscord.WithFile(s.doc, "text/plain", []byte("what is in the file")))
	case s.voice != "":
		options = append(options, fakediscord.WithFile("voice-message.ogg", "audio/ogg", []byte(providertest.Recording(s.voice))), fakediscord.AsVoice())
	}
	if _, known := p.server().Thread(p.channel); p.thread && !known {
		p.server().StartThread(p.far.team, p.channel, "talk", p.who.ID)
	}
	return p.server().Say(p.channel, p.who, s.text, options...)
}

func (p *discordSpot) edit(message, text string) {
	p.server().EditAs(p.holding(message), message, text)
}

func (p *discordSpot) remove(message string) { p.server().DeleteAs(p.holding(message), message) }

func (p *discordSpot) again(message string) { p.server().Again(p.holding(message), message) }

func (p *discordSpot) press(message, label string) {
	where := p.holding(message)
	m, _ := p.server().Message(where, message)
	for _, row := range m.Components {
		for _, b := range row.Components {
			if b.Label == label {
				p.server().Press(where, message, b.CustomID, p.who)
				return
			}
		}
	}
}

// shown is what people see of a content. Whoever waits reads all messages after each
// change, so each content is read once.
func (f *farDiscord) shown(content string) string {
	if text, ok := f.seen.Load(content); ok {
		return text.(string)
	}
	text := fakediscord.Shown(content)
	f.seen.Store(content, text)
	return text
}

func (p *discordSpot) messages() []shown {
	var all []shown
	for _, c := range p.channels() {
		for _, m := range p.server().Messages(c) {
			if m.Author.ID != fakediscord.BotID || m.Content == "" {
				continue // a person's, or "is thinking"
			}
			s := shown{id: m.ID, text: p.far.shown(m.Content), replyTo: m.Reference}
			for _, row := range m.Components {
				var labels []string
				for _, b := range row.Components {
					labels = append(labels, b.Label)
				}
				s.buttons = append(s.buttons, labels)
			}
			for _, v := range m.Everything {
				s.versions = append(s.versions, p.far.shown(v))
			}
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b shown) int { return strings.Compare(a.id, b.id) })
	return all
}

var discordReactions = map[string]chat.Reaction{"👀": chat.ReactSeen, "⏳": chat.ReactWorking, "✅": chat.ReactDone, "❌": chat.ReactFailed}

func (p *discordSpot) reaction(message string) chat.Reaction {
	m, _ := p.server().Message(p.holding(message), message)
	if len(m.Reactions) == 1 {
		return discordReactions[m.Reactions[0]]
	}
	return chat.Reaction(strings.Join(m.Reactions, " "))
}

func (p *discordSpot) wait(ctx context.Context, ok func() bool) error {
	return p.server().Wait(ctx, ok)
}

// command has what only Discord's scripts need.
func (f *farDiscord) command(ts *testscript.TestScript, args []string) {
	ctx, cancel := limited()
	defer cancel()
	await := func(ok func() bool) { ts.Check(f.server.Wait(ctx, ok)) }
	switch args[0] {
	case "slash": // PLACE COMMAND [TEXT]; then $message is the interaction
		s, err := f.place(args[1])
		ts.Check(err)
		await(func() bool { return f.server.Link().Connected })
		ts.Setenv("message", f.server.Invoke(s.(*discordSpot).channel, args[2], optional(args, 3, ""), s.(*discordSpot).who))
	case "hidden": // ID PATTERN: what only the person sees of an interaction
		want := expression(ts, args[2])
		await(func() bool {
			a := f.server.Answered(args[1])
			return want.MatchString(a.Notice) || a.Hidden && want.MatchString(a.Text)
		})
	case "menu": // COMMAND: is registered
		await(func() bool {
			return slices.ContainsFunc(f.server.Commands(), func(c fakediscord.Command) bool { return c.Name == args[1] })
		})
	case "invalidate":
		f.server.Invalidate()
	case "reconnect":
		f.server.AskReconnect()
	case "cut":
		f.server.Cut()
	case "revoke":
		f.server.Revoke()
		f.server.Cut()
	case "archive": // THREAD [locked]
		f.server.Archive(args[1], optional(args, 2, "") == "locked")
	case "content": // on|off
		f.server.AllowContent(args[1] == "on")
	case "age": // DURATION: ids and interactions are older by so much
		d, err := time.ParseDuration(args[1])
		ts.Check(err)
		f.server.Advance(d)
	default:
		ts.Fatalf("there is no discord %s", args[0])
	}
}

// discordEverybody names the first of all Pats too: what somebody writes to a bot that
// is away, for the first time, is found only of people whom the configuration names.
func discordEverybody() string {
	entries := []string{`"discord:*"`}
	for i := range 18 {
		entries = append(entries, fmt.Sprintf(`"discord:%d"`, 200000000000000000+i))
	}
	return strings.Join(entries, ", ")
}
