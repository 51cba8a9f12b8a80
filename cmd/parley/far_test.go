package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/gateway/chat"
)

// farSides are the platforms that scripts, the crash test and the benchmark run on,
// by the name under which they are configured.
var farSides = map[string]func(farOptions) farSide{
	"discord":  newFarDiscord,
	"slack":    newFarSlack,
	"telegram": newFarTelegram,
}

// farNames are the platforms in a fixed order.
func farNames() []string { return slices.Sorted(maps.Keys(farSides)) }

// farSide is a fake of a platform, in the words of those who write there: in it are
// ann, an admin, bob, who may talk to the bot, eve, whom it does not know, and any
// number of people called Pat; and the room team. Its methods are safe for
// concurrent use.
type farSide interface {
	settings() farSettings
	// place finds where somebody writes: `ann`, to the bot alone; `ann@team`; `#7`, the
	// seventh Pat, to the bot alone; and what else the platform has.
	place(text string) (spot, error)
	// taken returns once the bot has taken in all that was written, for good.
	taken(ctx context.Context) error
	// fail makes the next calls go wrong, one fault each. The call is send, edit,
	// receive (how the bot hears of what is written) or the platform's own name of a
	// call; the faults are 429, 502, 401, cut (before it takes effect), lost (after
	// it) and ok.
	fail(call string, faults []string) error
	counts() farCounts
	// violations are what a correct client would not have done.
	violations() []string
	// command runs the platform's own command in a script.
	command(ts *testscript.TestScript, args []string)
	close()
}

// person does in one place what people do.
type person interface {
	say(saying) (message string)
	edit(message, text string)
	remove(message string)
	press(message, label string)
}

// spot is a place in which somebody writes, and sees what the bot writes.
type spot interface {
	person
	// chat is the chat's id, as in the column of that name.
	chat() string
	// again delivers a message once more, by whichever way the platform does.
	again(message string)
	// messages are the bot's visible messages, oldest first; of all threads if the
	// place is a chat.
	messages() []shown
	// reaction is the bot's reaction to a message.
	reaction(message string) chat.Reaction
	// wait returns once ok is true, which is asked after each change of the chat. It may
	// call all methods.
	wait(ctx context.Context, ok func() bool) error
}

// drafter is a spot where people see a text that no message says yet.
type drafter interface{ drafts() []string }

// farOptions say how a fake is to be.
type farOptions struct {
	limited  bool          // the real server's rates are enforced
	latency  time.Duration // of each call
	brief    bool          // what a message said before is forgotten
	onChange func(farChange)
}

// farSettings are how the program reaches the fake.
type farSettings struct {
	// platform is the part of the configuration below "platforms", in one line; it may
	// name variables.
	platform  string
	variables map[string]string
	// everybody are the entries of access.allow that let everybody talk to the bot.
	everybody string
	secrets   []string
	// places are those to show when a script fails.
	places []string
}

// expanded is the platform's configuration with the variables' values.
func (s farSettings) expanded() string {
	return os.Expand(s.platform, func(name string) string { return s.variables[name] })
}

// farCounts are totals.
type farCounts struct {
	calls   int // that the bot has made
	refused int // for their rate
}

// farChange tells of what has just happened.
type farChange struct {
	kind farChangeKind
	chat string
	text string // that is visible now
	at   time.Time
}

type farChangeKind int

const (
	farConnected farChangeKind = iota // the bot takes in events now
	farHandedOut                      // the bot was given what somebody wrote in the chat
	farDrafted                        // a text is visible that no message says yet
	farPosted                         // a message was posted or edited
)

// saying is what somebody writes.
type saying struct {
	text           string
	replyTo, quote string
	doc            string // the name of a file with the text "what is in the file"
	photo          bool
	album          string // that this is a part of
	voice          string // what a voice note says
	// command says that the text is a command that the bot is to take for its own, in
	// whichever way people give it there.
	command bool
}

// shown is a message of the bot as people see it.
type shown struct {
	id       string
	text     string // without markup
	replyTo  string
	buttons  [][]string
	versions []string // all that it said, the first and the newest included
}

// has says that there is a button of that label.
func (m shown) has(label string) bool {
	return slices.ContainsFunc(m.buttons, func(row []string) bool { return slices.Contains(row, label) })
}

const sayUsage = "say PLACE [-reply ID] [-quote TEXT] [-doc NAME] [-voice SAID] [-photo] [-album ID] [-times N] TEXT"

func cmdSay(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) >= 2, sayUsage)
	p := placeOf(ts, args[0])
	var in saying
	times := 1
	rest := args[1:]
	for ; len(rest) > 1; rest = rest[1:] {
		option := rest[0]
		if option == "-photo" {
			in.photo = true
			continue
		}
		rest = rest[1:]
		switch option {
		case "-reply":
			in.replyTo = rest[0]
		case "-quote":
			in.quote = rest[0]
		case "-doc":
			in.doc = rest[0]
		case "-voice":
			in.voice = rest[0]
		case "-album":
			in.album = rest[0]
		case "-times":
			_, err := fmt.Sscan(rest[0], &times)
			ts.Check(err)
		default:
			ts.Fatalf("usage: %s", sayUsage)
		}
	}
	positive(ts, false, len(rest) == 1, sayUsage)
	in.text = strings.Repeat(rest[0], times)
	ts.Setenv("message", p.say(in))
}

func placeOf(ts *testscript.TestScript, text string) spot {
	p, err := worldOf(ts).far.place(text)
	ts.Check(err)
	return p
}

func cmdEdit(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 3, "edit PLACE ID TEXT")
	placeOf(ts, args[0]).edit(args[1], args[2])
}

func cmdRemove(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 2, "remove PLACE ID")
	placeOf(ts, args[0]).remove(args[1])
}

func cmdAgain(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 2, "again PLACE ID")
	placeOf(ts, args[0]).again(args[1])
}

// awaitMessage waits for a message at the place, the newest first.
func awaitMessage(p spot, ok func(shown) bool) (found shown, err error) {
	ctx, cancel := limited()
	defer cancel()
	err = p.wait(ctx, func() bool {
		for _, m := range slices.Backward(p.messages()) {
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
	p := placeOf(ts, args[0])
	m, err := awaitMessage(p, func(m shown) bool { return m.has(args[1]) })
	if err != nil {
		ts.Fatalf("no button %s", args[1])
	}
	p.press(m.id, args[1])
}

// cmdAnswers: $answer is the message that is there in the end, never the draft
// before it, which nobody can reply to.
func cmdAnswers(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 2, "answers PLACE PATTERN")
	cmdSees(ts, false, args)
	worldOf(ts).awaitRest(ts)
	p, want := placeOf(ts, args[0]), expression(ts, args[1])
	if !found(ts, p.messages(), want) {
		ts.Fatalf("%s was there and is not any more", args[1])
	}
}

func cmdSees(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, false, len(args) == 2, "[!] sees PLACE PATTERN")
	p, want := placeOf(ts, args[0]), expression(ts, args[1])
	if neg {
		if slices.ContainsFunc(seen(p), func(m shown) bool { return want.MatchString(m.text) }) {
			ts.Fatalf("%s is there", args[1])
		}
		return
	}
	ctx, cancel := limited()
	defer cancel()
	if err := p.wait(ctx, func() bool { return found(ts, seen(p), want) }); err != nil {
		ts.Fatalf("no message says %s", args[1])
	}
}

// found looks for the newest message that says so and makes it $answer.
func found(ts *testscript.TestScript, messages []shown, want *regexp.Regexp) bool {
	for _, m := range slices.Backward(messages) {
		if groups := want.FindStringSubmatch(m.text); groups != nil {
			ts.Setenv("answer", m.id)
			setMatch(ts, groups)
			return true
		}
	}
	return false
}

// seen is what people see at a place: the messages, and what is still being written.
func seen(p spot) []shown {
	all := p.messages()
	if d, ok := p.(drafter); ok {
		for _, text := range d.drafts() {
			all = append(all, shown{text: text})
		}
	}
	return all
}

// busy counts what is still to be posted, and the turns that wait for nobody.
const busy = `SELECT (SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending', 'unknown'))
	+ (SELECT count(*) FROM turns t WHERE ended_at IS NULL AND parent_id IS NULL AND NOT EXISTS (SELECT FROM approvals a WHERE a.turn_id = t.id AND a.state = 'open'))`

// awaitRest waits until nothing is being done any more.
func (w *world) awaitRest(ts *testscript.TestScript) {
	if !eventually(func() bool { n, err := w.query(busy); return err == nil && n == "0" }) {
		ts.Fatalf("something is still going on")
	}
}

func cmdChat(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 1 || len(args) == 2, "chat PLACE [ID]")
	p := placeOf(ts, args[0])
	worldOf(ts).awaitRest(ts)
	all := p.messages()
	if len(args) == 1 {
		fmt.Fprint(ts.Stdout(), transcript(all))
		return
	}
	i := slices.IndexFunc(all, func(m shown) bool { return m.id == args[1] })
	if i < 0 {
		ts.Fatalf("there is no message %s", args[1])
	}
	for _, v := range all[i].versions {
		fmt.Fprintln(ts.Stdout(), strings.ReplaceAll(v, "\n", "⏎"))
	}
}

// transcript is what the bot's visible messages say, with the message that each
// answers and the buttons below it.
func transcript(messages []shown) string {
	var b strings.Builder
	for _, m := range messages {
		if m.replyTo != "" {
			fmt.Fprintf(&b, "(to %s) ", m.replyTo)
		}
		b.WriteString(m.text + "\n")
		for _, row := range m.buttons {
			b.WriteString("[" + strings.Join(row, "] [") + "]\n")
		}
	}
	return b.String()
}

func cmdHalt(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 1, "halt PLACE")
	w, p := worldOf(ts), placeOf(ts, args[0])
	turn, err := w.query(`SELECT id FROM turns WHERE ended_at IS NULL AND parent_id IS NULL AND chat = $1`, p.chat())
	ts.Check(err)
	before := p.messages()
	began := time.Now()
	p.say(saying{text: "/stop", command: true})
	if turn != "" {
		if !eventually(func() bool {
			ended, err := w.query(`SELECT ended_at FROM turns WHERE id = $1 AND ended_at IS NOT NULL`, turn)
			return err == nil && ended != ""
		}) {
			ts.Fatalf("the turn does not end")
		}
		judge(ts, time.Since(began))
	}
	if _, err := awaitMessage(p, func(m shown) bool {
		known := slices.ContainsFunc(before, func(b shown) bool { return b.id == m.id })
		return !known && strings.HasPrefix(m.text, "⏹")
	}); err != nil {
		ts.Fatalf("nobody says that it has stopped")
	}
	if turn == "" {
		judge(ts, time.Since(began))
	}
	w.awaitRest(ts) // what the turn had shown so far is gone, and is not taken for what comes
}

// judge holds the time that letting go took against the limit.
func judge(ts *testscript.TestScript, took time.Duration) {
	ts.Logf("released after %s", took.Round(time.Millisecond))
	if took >= stopLimit {
		ts.Fatalf("it took %s to let go", took)
	}
}

func cmdReaction(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 3, "reaction PLACE ID seen|working|done|failed|none")
	p := placeOf(ts, args[0])
	ctx, cancel := limited()
	defer cancel()
	if err := p.wait(ctx, func() bool { return cmp.Or(string(p.reaction(args[1])), "none") == args[2] }); err != nil {
		ts.Fatalf("the reaction is %q", p.reaction(args[1]))
	}
}

func cmdConfirmed(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 0, "confirmed")
	ctx, cancel := limited()
	defer cancel()
	ts.Check(worldOf(ts).far.taken(ctx))
}

func cmdFail(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) >= 2, "fail CALL FAULT...")
	ts.Check(worldOf(ts).far.fail(args[0], args[1:]))
}

func cmdLimited(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 0, "limited")
	w := worldOf(ts)
	w.far.close()
	w.far = farSides[w.platform](farOptions{limited: true})
	for name, value := range w.far.settings().variables {
		ts.Setenv(name, value)
	}
}

// cmdOwn is the command that is named like a platform.
func cmdOwn(name string) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		positive(ts, neg, len(args) > 0 && worldOf(ts).platform == name, name+" ..., in a script of that platform")
		worldOf(ts).far.command(ts, args)
	}
}

// TestEachPlatformHasItsRoom holds the fakes to what all scripts count on.
func TestEachPlatformHasItsRoom(t *testing.T) {
	for _, name := range farNames() {
		f := farSides[name](farOptions{})
		for _, text := range []string{"ann", "bob@team", "eve", "#7"} {
			p, err := f.place(text)
			if err != nil || p.chat() == "" || len(p.messages()) > 0 {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
		if _, err := f.place("nobody@nowhere"); err == nil {
			t.Errorf("%s: nobody is nowhere", name)
		}
		f.close()
	}
}
