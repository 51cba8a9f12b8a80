package main

// The scripts in testdata/script run the real program against a strict fake of a
// platform, a strict OpenAI server and a real PostgreSQL. Each has a world of its own,
// and its first line says what it shows. At the end of every script all daemons are
// stopped, and then: the model server has refused no request, the platform has seen
// nothing that a correct client does not do, no work is open in the database, and no
// log shows a secret.
//
// A script runs on Telegram, or on the platforms that a line of it names:
// "# platforms: all", or "# platforms: NAME..."; of these, a line may be for one
// alone: "[NAME] ...". One that is not for all says in its first line why, unless
// its name does. `go test -run 'TestScripts/NAME'` runs those of one platform.
//
// The configuration is testdata/script/parley.yaml with the platform, followed by the
// script's own more.yaml if it has one, whose sections replace those of the same name; a script that has a parley.yaml brings it
// whole. $PORT is a port for http.listen, where an address must be known beforehand.
//
// There are ann, an admin, bob, who may talk to the bot, and eve, whom it does not
// know, whose ids are $ANN, $BOB and $EVE; to mention the bot is $BOT, and where ann writes to
// it alone is $ANN_ALONE, as a configuration names a chat. A PLACE is
// where somebody writes: `ann` (to the bot alone), `ann@team` (a room), and what else
// the platform has: see farTelegram and its like. A waiting command waits for what can
// be seen and fails after waitLimit.
//
// The program:
//
//	parley ARG...            run it to its end; then stdout, stderr and `code N`
//	serve [NAME]             run the daemon beside the script, as the one of that name
//	term [NAME]              send it a signal to stop, and wait for its exit code 0
//	[!] log PATTERN [NAME]   wait until its log says so, the first group of which is
//	                         $match; with !, it does not now
//	[!] out PATTERN [NAME]   the same for what it prints
//	get PATH STATUS [PATTERN] [NAME]
//	                         wait until its HTTP server answers so
//	hook NAME STATUS SECRET BODY [DAEMON]
//	                         send a webhook, signed as GitHub does, and want that answer
//	web say TEXT, web sees PATTERN
//	                         write in the web chat, wait until it shows something
//
// People:
//
//	say PLACE [-reply ID] [-quote TEXT] [-doc NAME] [-voice SAID] [-photo] [-album ID] [-times N] TEXT
//	                         write a message, which is $message
//	edit PLACE ID TEXT       change it
//	remove PLACE ID          remove a message, the bot's too
//	again PLACE ID           deliver a message once more
//	press PLACE LABEL        wait for a button of that label and press the newest
//	[!] sees PLACE PATTERN   wait until a message of the bot says so, which is
//	                         $answer, its first group $match; with !, none does now.
//	                         A draft is seen too
//	answers PLACE PATTERN    the same, and wait until nothing is being done any more:
//	                         what is seen before that may still change
//	chat PLACE [ID]          print what the bot's messages there say, or all that
//	                         one of them said, once nothing is being done any more
//	halt PLACE               send /stop, and measure until the turn has ended in the
//	                         database, or where none runs until the chat says so:
//	                         less than stopLimit
//	reaction PLACE ID STATE  wait until the bot's reaction to a message is that: seen,
//	                         working, done, failed, none
//
// The platform:
//
//	confirmed                wait until the bot has taken in all that was written
//	fail CALL FAULT...       make the next calls go wrong: see farSide.fail
//	limited                  a server that enforces the real one's rates
//
// Telegram alone:
//
//	telegram update FILE     deliver an update as it is
//	telegram menu COMMAND    wait until the command menu has it
//	telegram rival           poll once, as a second process with the same token
//	telegram upgrade PERSON  the person makes the group club the supergroup bigclub
//	telegram block PERSON    the person blocks the bot
//	telegram close PLACE, telegram delete PLACE
//	                         somebody closes or deletes the topic
//	telegram draft PLACE PATTERN
//	                         wait until a draft there says so
//	telegram drafts PLACE N  there are as many drafts now
//	telegram webhook PATTERN wait until updates are pushed to such an address
//
// Slack alone:
//
//	slack slash PLACE COMMAND [TEXT]
//	                         invoke a slash command
//	slack event FILE         deliver an inner event as it is
//	slack envelope FILE      write a frame to the socket as it is
//	slack disconnect         ask the bot to leave its socket
//	slack silence            let nothing through any more, unnoticed
//	slack push [NAME]        send events to the daemon over HTTP from now on
//
// The model, which answers by its keywords (providertest.Keywords):
//
//	model next KEY=VALUE...  how it answers the next request instead: text, words,
//	                         rate, first, status, after, end (cut, early, silent,
//	                         error), call (NAME:JSON), and header.NAME
//	model asked N            wait until it was asked N times
//	model last               print what it was asked last
//	model down, model up [window=N]
//
// The web, as tools see it:
//
//	site                     serve the folder site at $SITE; /to?URL redirects there,
//	                         and /search is a search API
//	mcp                      run an MCP server over HTTP at $MCPURL, for the bearer of
//	                         $MCPTOKEN; $MCP is a program that is one over stdio
//
// The database, in whose queries " stands for ':
//
//	sql QUERY                print the rows
//	await QUERY WANT         wait until it gives that
//	database private         use a server that this script alone has
//	database down, database up
//	database kick            end all connections

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/zap"

	"parley/agentcore/provider/providertest"
	"parley/agentcore/tool/mcp/mcptest"
	shell "parley/agentcore/tool/terminal"
	"parley/store"
	"parley/store/storetest"
)

const (
	// stopLimit is how long anything may take to let go after /stop.
	stopLimit = time.Second
	modelKey  = "sk-the-key-of-the-scripts"
)

// TestMain lets more scripts run beside each other than there are processors: they
// wait far longer than they compute.
func TestMain(m *testing.M) {
	mcptest.Main() // this binary is an MCP server too
	if code, ran := shell.Helper(os.Args[1:]); ran {
		os.Exit(code)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestScripts(t *testing.T) { runScripts(t, false) }

// TestMeasuredScripts runs those that measure a time by themselves.
func TestMeasuredScripts(t *testing.T) { runScripts(t, true) }

func runScripts(t *testing.T, measured bool) {
	commands := map[string]func(*testscript.TestScript, bool, []string){
		"parley": cmdParley, "code": cmdCode, "serve": cmdServe, "term": cmdTerm, "log": cmdLog, "out": cmdOut, "get": cmdGet, "hook": cmdHook, "web": cmdWeb,
		"say": cmdSay, "edit": cmdEdit, "remove": cmdRemove, "again": cmdAgain, "press": cmdPress,
		"sees": cmdSees, "answers": cmdAnswers, "chat": cmdChat, "halt": cmdHalt, "reaction": cmdReaction,
		"confirmed": cmdConfirmed, "fail": cmdFail, "limited": cmdLimited,
		"model": cmdModel, "sql": cmdSQL, "await": cmdAwait, "database": cmdDatabase,
		"site": cmdSite, "mcp": cmdMCP,
	}
	for _, name := range farNames() {
		commands[name] = cmdOwn(name)
	}
	for _, platform := range farNames() {
		t.Run(platform, func(t *testing.T) {
			if !measured {
				t.Parallel()
			}
			files := slices.DeleteFunc(scriptsOf(t, platform), func(path string) bool { return strings.HasPrefix(filepath.Base(path), "stop") != measured })
			if len(files) == 0 {
				t.Fatal("no scripts")
			}
			testscript.Run(t, testscript.Params{
				Files:     files,
				Setup:     func(e *testscript.Env) error { return setUp(e, platform) },
				Condition: func(name string) (bool, error) { return name == platform, knownPlatform(name) },
				Cmds:      commands,
			})
		})
	}
}

var platformsLine = regexp.MustCompile(`(?m)^# platforms: (.+)$`)

// scriptsOf are the scripts that run on a platform.
func scriptsOf(t *testing.T, platform string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(path string) bool {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		named := []string{"telegram"}
		if line := platformsLine.FindSubmatch(text); line != nil {
			named = strings.Fields(string(line[1]))
		}
		return !slices.Contains(named, platform) && !slices.Contains(named, "all")
	})
}

func knownPlatform(name string) error {
	if farSides[name] == nil {
		return fmt.Errorf("there is no platform %s", name)
	}
	return nil
}

// world is everything around one script.
type world struct {
	t        testing.TB
	dir      string
	platform string
	far      farSide
	model    *providertest.Server
	models   []*providertest.Server // all that there were
	url      string                 // of the database
	conn     *pgx.Conn              // of the script itself; nil before its first query
	private  *store.Private
	daemons  map[string]*scriptDaemon
	code     int // of the last command
}

type worldKey struct{}

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

// setUp makes a script's world.
func setUp(e *testscript.Env, platform string) error {
	w := &world{t: e.T().(testing.TB), dir: e.WorkDir, platform: platform, daemons: map[string]*scriptDaemon{}}
	e.Values[worldKey{}] = w
	w.far = farSides[platform](farOptions{})
	if err := w.configure(); err != nil {
		return err
	}
	w.startModel(providertest.Options{})
	w.url = storetest.URL(w.t)
	variables := w.far.settings().variables
	maps.Copy(variables, map[string]string{"HOME": e.WorkDir, "DB": w.url, "KEY": modelKey, "MODEL": w.model.BaseURL(), "PORT": freePort(w.t)})
	for name, value := range variables {
		e.Setenv(name, value)
	}
	e.Defer(w.end)
	return nil
}

// section begins a section of a configuration.
var section = regexp.MustCompile(`(?m)^(\w+):`)

// freePort is a port that is free now.
func freePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// configure writes the configuration.
func (w *world) configure() error {
	path := filepath.Join(w.dir, "parley.yaml")
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	base, err := os.ReadFile(filepath.Join("testdata", "script", "parley.yaml"))
	if err != nil {
		return err
	}
	more, err := os.ReadFile(filepath.Join(w.dir, "more.yaml"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, m := range section.FindAllStringSubmatch(string(more), -1) {
		base = regexp.MustCompile(`(?m)^`+m[1]+`:.*\n`).ReplaceAll(base, nil)
	}
	platform := fmt.Sprintf("platforms: { %s }\n", w.far.settings().platform)
	return os.WriteFile(path, slices.Concat(base, []byte(platform), more), 0o600)
}

// end stops everything and checks what every script must leave behind.
func (w *world) end() {
	for _, d := range w.daemons {
		d.stop()
	}
	failed := w.t.Failed()
	for name, d := range w.daemons {
		if code := d.wait(w.t); code != exitFine && !d.checked {
			w.t.Errorf("the daemon %s ended with code %d", name, code)
		}
		said := d.log.String() + d.out.String()
		for _, secret := range append(w.far.settings().secrets, modelKey) {
			if strings.Contains(said, secret) {
				w.t.Errorf("the daemon %s tells a secret", name)
			}
		}
	}
	for _, m := range w.models {
		for _, r := range m.Refusals() {
			w.t.Errorf("the model server refused a request: %s", r)
		}
	}
	for _, v := range w.far.violations() {
		w.t.Error(v)
	}
	if !failed && len(w.daemons) > 0 {
		w.nothingOpen()
	}
	if w.t.Failed() {
		w.dump()
	}
	if w.conn != nil {
		_ = w.conn.Close(context.Background())
	}
	w.far.close()
	w.model.Close()
	if w.private != nil {
		w.stopPrivate()
		_ = os.RemoveAll(w.private.Dir())
	}
}

// nothingOpen: whatever came in was answered, or its sender was told.
func (w *world) nothingOpen() {
	const open = `SELECT (SELECT count(*) FROM inbox WHERE state IN ('received', 'taken'))
		|| ' events, ' || (SELECT count(*) FROM turns WHERE ended_at IS NULL)
		|| ' turns, ' || (SELECT count(*) FROM deliveries WHERE state IN ('pending', 'sending', 'unknown'))
		|| ' deliveries, ' || (SELECT count(*) FROM approvals WHERE state = 'open') || ' questions'`
	got, err := w.query(open)
	if want := "0 events, 0 turns, 0 deliveries, 0 questions"; err != nil || got != want {
		w.t.Errorf("left open: %s %v", got, err)
	}
}

// dump shows what a failed script saw.
func (w *world) dump() {
	for name, d := range w.daemons {
		w.t.Logf("log of %s:\n%s", name, tail(d.log.String(), 80))
	}
	for _, name := range w.far.settings().places {
		p, err := w.far.place(name)
		if err != nil {
			w.t.Error(err)
			continue
		}
		if said := transcript(p.messages()); said != "" {
			w.t.Logf("the bot in %s:\n%s", name, tail(said, 60))
		}
	}
}

// tail is the last lines of a text, and of each no more than a screen's width or two.
func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	all = all[max(0, len(all)-lines):]
	for i, line := range all {
		all[i] = line[:min(len(line), 400)]
	}
	return strings.Join(all, "\n")
}

// visible are the variables that the program may see, besides the platform's.
var visible = []string{
	"HOME", "DB", "KEY", "MODEL", "PORT", "SITE", "MCP", "MCPURL", "MCPTOKEN", "PARLEY_CONFIG", "PARLEY_ALLOW", "PARLEY_DATABASE_URL",
	"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "TELEGRAM_BOT_TOKEN",
}

// surroundings are the variables of a script as they are now.
func surroundings(ts *testscript.TestScript) environment {
	env := environment{}
	for _, name := range slices.AppendSeq(slices.Clone(visible), maps.Keys(worldOf(ts).far.settings().variables)) {
		if v := ts.Getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
}

// expression compiles a pattern of a script.
func expression(ts *testscript.TestScript, pattern string) *regexp.Regexp {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	return re
}

// limited is the time that a command may wait.
func limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), waitLimit)
}

// positive refuses "!" for commands that have no opposite.
func positive(ts *testscript.TestScript, neg bool, ok bool, usage string) {
	if neg || !ok {
		ts.Fatalf("usage: %s", usage)
	}
}

// optional is an argument that may be left out.
func optional(args []string, i int, def string) string {
	if i < len(args) {
		return args[i]
	}
	return def
}

// privateServer starts the script's own PostgreSQL, or starts it again.
func (w *world) privateServer() error {
	ctx, cancel := limited()
	defer cancel()
	var err error
	w.private, err = store.StartPrivate(ctx, store.PrivateConfig{DataDir: filepath.Join(w.dir, "server"), Volatile: true}, zap.NewNop())
	if err == nil {
		w.url = w.private.URL()
	}
	return err
}

func (w *world) stopPrivate() {
	if err := w.private.Stop(); err != nil {
		w.t.Error(err)
	}
}
