package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/agentcore"
	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// commandPrefix begins the data of buttons that stand for a command.
const commandPrefix = "cmd:"

func (c *conversation) cmdHelp(ctx context.Context, in invocation) {
	var b strings.Builder
	b.WriteString("Write to me and I answer; I can use tools, and ask before anything that could do harm.\n\n")
	for _, cmd := range c.g.menu {
		if cmd.who == adminsOnly && !in.role.Admin() {
			continue
		}
		b.WriteString("- `/" + cmd.name)
		if cmd.args != "" {
			b.WriteString(" " + cmd.args)
		}
		b.WriteString("` " + cmd.help + "\n")
	}
	b.WriteString("\nWhile I work, a new message of yours ")
	b.WriteString(map[BusyMode]string{
		BusyInterrupt: "interrupts me and is answered next.", BusyQueue: "waits and is answered next.", BusySteer: "is taken into account as I go.",
	}[c.g.cfg.Conversations.Busy])
	c.answer(ctx, in, b.String(), record.NoEffect{})
}

// cmdStop ends the turn, its tools and a compression, and withdraws what waits.
func (c *conversation) cmdStop(ctx context.Context, in invocation) {
	var said []string
	if c.turn != nil {
		said = append(said, "⏹ Stopped.")
	}
	if c.compression != nil {
		c.compression.cancel(agentcore.ErrStopped)
		said = append(said, "⏹ The compression is stopped; nothing has changed.")
	}
	if c.fetching != nil && c.fetching.seq < in.item.Seq {
		c.fetching.cancel()
	}
	withdrawn := c.messagesBefore(in.item.Seq)
	if len(withdrawn) > 0 {
		said = append(said, "Not answered any more: "+c.list(withdrawn)+".")
	}
	c.cancelTurn(agentcore.ErrStopped)
	if n := c.g.agent.StopProcesses(c.fence.Conversation); n > 0 {
		said = append(said, "⏹ Ended: "+plural(n, "command")+" in the background.")
	}
	if len(said) == 0 {
		said = []string{"Nothing is running."}
	}
	if c.answer(ctx, in, strings.Join(said, " "), record.Withdraw{UpTo: in.item.Seq, Reason: "withdrawn by /stop"}) {
		c.drop(withdrawn...)
	}
}

// list quotes the first words of messages.
func (c *conversation) list(items []record.InboxItem) string {
	var said []string
	for _, it := range items {
		if ev, err := it.Event(); err == nil {
			said = append(said, "“"+inert(clip(firstLine(ev.(chat.MessageReceived).Text), 40))+"”")
		}
	}
	return strings.Join(said, ", ")
}

func (c *conversation) cmdNew(ctx context.Context, in invocation) {
	c.beginRoot(ctx, in, record.ReasonNew, in.args)
}

func (c *conversation) cmdReset(ctx context.Context, in invocation) {
	c.beginRoot(ctx, in, record.ReasonReset, "")
}

// beginRoot moves to a new session. In a room that several people share it asks
// first, since the context is everybody's (KEY-002).
func (c *conversation) beginRoot(ctx context.Context, in invocation, why record.SessionReason, title string) {
	confirm := "yes"
	if c.conv.Kind == chat.Group && c.conv.Key.Participant == "" && !in.role.Admin() && title != confirm {
		c.answer(ctx, in, fmt.Sprintf("This begins anew for everybody in this chat. Send `/%s %s` if that is meant.", why, confirm), record.NoEffect{})
		return
	}
	if title == confirm {
		title = ""
	}
	if !c.makeWay(ctx, in) {
		return
	}
	text := "✨ A new session. The one before is kept: `/resume` goes back to it."
	if title != "" {
		text = "✨ A new session: **" + inert(title) + "**. The one before is kept: `/resume` goes back to it."
	}
	if n := c.g.agent.StopProcesses(c.fence.Conversation); n > 0 {
		text += " Ended: " + plural(n, "command") + " in the background."
	}
	c.answer(ctx, in, text, record.BeginRoot{Reason: why, Title: clip(title, 120), ID: record.SessionID(record.NewID())})
	c.stale = true
}

// skillCommand lists the skills; with a name it is a message to the agent.
const skillCommand = "skill"

func (c *conversation) cmdSkill(ctx context.Context, in invocation) {
	skills := c.g.agent.Skills()
	if len(skills) == 0 {
		c.answer(ctx, in, "No skills are installed. Each is a folder with a `SKILL.md` in `skills.dir`.", record.NoEffect{})
		return
	}
	var b strings.Builder
	b.WriteString("**My skills**\n\n")
	for _, s := range skills {
		fmt.Fprintf(&b, "- **%s** %s\n", inert(s.Name), inert(clip(firstLine(s.Description), 200)))
	}
	b.WriteString("\n`/skill NAME TASK` uses one; its trigger words in a message do too.")
	c.answer(ctx, in, b.String(), record.NoEffect{})
}

// sessionsShown bounds listings.
const sessionsShown = 10

func (c *conversation) cmdSessions(ctx context.Context, in invocation) {
	list, err := c.g.store.Sessions(ctx, c.fence.Conversation, sessionsShown)
	if err != nil {
		c.failed(err, "list sessions")
		return
	}
	text, buttons := sessionList(list, c.g.now())
	c.answer(ctx, in, text, record.NoEffect{}, buttons...)
}

// sessionList shows sessions numbered, the newest first, the current one marked.
func sessionList(list []record.SessionSummary, now time.Time) (string, [][]chat.Button) {
	var b strings.Builder
	var buttons [][]chat.Button
	b.WriteString("**Sessions of this chat**\n\n")
	for i, s := range list {
		name := sessionName(s)
		fmt.Fprintf(&b, "%d. %s — %s, %s", i+1, inert(name), plural(s.Messages, "message"), ago(now.Sub(s.LastAt)))
		if s.Current {
			b.WriteString(" **(current)**")
		} else if len(buttons) < 5 {
			buttons = append(buttons, []chat.Button{{Label: clip(fmt.Sprintf("%d. %s", i+1, name), 40), Data: commandPrefix + "resume " + string(s.ID)}})
		}
		b.WriteString("\n")
	}
	b.WriteString("\n`/resume NUMBER` goes on with one, `/new` begins another.")
	return b.String(), buttons
}

func sessionName(s record.SessionSummary) string {
	if s.Title != "" {
		return s.Title
	}
	if o := firstLine(s.Opening); o != "" {
		return clip(o, 60)
	}
	return "(empty)"
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute") + " ago"
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour") + " ago"
	}
	return plural(int(d.Hours()/24), "day") + " ago"
}

// cmdResume goes on with an earlier session of this conversation, named by its
// number in /sessions, its title, or its id. Without a name it lists them.
func (c *conversation) cmdResume(ctx context.Context, in invocation) {
	list, err := c.g.store.Sessions(ctx, c.fence.Conversation, Resumable)
	if err != nil {
		c.failed(err, "list sessions")
		return
	}
	if in.args == "" {
		text, buttons := sessionList(list[:min(len(list), sessionsShown)], c.g.now())
		c.answer(ctx, in, text, record.NoEffect{}, buttons...)
		return
	}
	target, name, ok := FindSession(list, in.args)
	if !ok {
		c.answer(ctx, in, fmt.Sprintf("There is no session %q in this chat. `/sessions` lists what there is.", inert(in.args)), record.NoEffect{})
		return
	}
	if !c.makeWay(ctx, in) {
		return
	}
	d := c.reply(in.item, in.from, "↩️ Back in **"+inert(name)+"**. Go on where we were.")
	conv, err := c.g.store.EndItems(ctx, c.fence, []record.InboxItem{in.item}, "a command", record.MoveTo{Session: target}, []record.Delivery{d})
	switch {
	case errors.Is(err, record.ErrNotFound):
		c.answer(ctx, in, "That session does not belong to this chat. `/sessions` lists what there is.", record.NoEffect{})
		return
	case err != nil:
		c.failed(err, "resume a session")
		return
	}
	c.become(conv)
	c.drop(in.item)
	c.post.add(d)
}

// Resumable is how many sessions can be gone on with by their number or title.
const Resumable = 50

// FindSession looks a session up by number, id or title. An id that is not listed
// is tried as it is: the store knows whether it belongs here (LIN-005).
func FindSession(list []record.SessionSummary, arg string) (id record.SessionID, name string, ok bool) {
	if n, err := strconv.Atoi(arg); err == nil {
		if n < 1 || n > len(list) {
			return "", "", false
		}
		return list[n-1].ID, sessionName(list[n-1]), true
	}
	for _, s := range list {
		if string(s.ID) == arg || (s.Title != "" && strings.EqualFold(s.Title, arg)) {
			return s.ID, sessionName(s), true
		}
	}
	if record.IsID(arg) {
		return record.SessionID(arg), arg, true
	}
	return "", "", false
}

func (c *conversation) cmdTitle(ctx context.Context, in invocation) {
	if in.args != "" {
		t := clip(firstLine(in.args), 120)
		if c.answer(ctx, in, "This session is now **"+inert(t)+"**.", record.SetTitle{Title: t}) {
			c.nameThread(in.from.Address, t)
		}
		return
	}
	s, err := c.g.store.Session(ctx, c.conv.Session)
	if err != nil {
		c.failed(err, "read the session")
		return
	}
	text := "This session has no title. `/title TEXT` gives it one."
	if s.Title != "" {
		text = "This session is **" + inert(s.Title) + "**."
	}
	c.answer(ctx, in, text, record.NoEffect{})
}

// cmdStatus says what the conversation does and waits for.
func (c *conversation) cmdStatus(ctx context.Context, in invocation) {
	now := c.g.now()
	var b strings.Builder
	switch {
	case c.turn != nil:
		s := c.turn.live.busy()
		fmt.Fprintf(&b, "**Working** (%s, for %s)", stateWords(s.state), now.Sub(s.since).Round(time.Second))
		if s.tool != "" {
			fmt.Fprintf(&b, "\nTool: %s, for %s", inert(s.tool), now.Sub(s.toolSince).Round(time.Second))
		}
		if s.waiting != "" {
			b.WriteString("\nWaiting: " + inert(s.waiting))
		}
		if s.window > 0 {
			fmt.Fprintf(&b, "\nContext: %d of %d tokens (%d %%)", s.context, s.window, 100*s.context/s.window)
		}
	case c.compression != nil:
		fmt.Fprintf(&b, "**Compressing** the conversation for %s", now.Sub(c.compression.started).Round(time.Second))
	default:
		b.WriteString("**Idle**")
	}
	for _, q := range c.oldestFirst() {
		b.WriteString("\nWaiting for an answer: " + q.describe(now))
	}
	if n := len(c.inbox) - 1; n > 0 {
		b.WriteString("\nQueue: " + plural(n, "message"))
	}
	b.WriteString(c.contextLine(ctx))
	c.answer(ctx, in, b.String(), record.NoEffect{})
}

// stateWords says what a turn in that state does.
func stateWords(s record.TurnState) string {
	switch s {
	case record.TurnPreparing:
		return "getting ready"
	case record.TurnCompressing:
		return "folding the conversation into a summary"
	case record.TurnCalling:
		return "the model is at it"
	case record.TurnApproving:
		return "waiting for an answer to my question"
	case record.TurnActing:
		return "using tools"
	case record.TurnSuspended, record.TurnDone, record.TurnInterrupted, record.TurnExhausted, record.TurnFailed:
	}
	return "ending"
}

// contextLine tells the session and how full its context was last.
func (c *conversation) contextLine(ctx context.Context) string {
	s, err := c.g.store.Session(ctx, c.conv.Session)
	if err != nil {
		return ""
	}
	m := c.model()
	line := fmt.Sprintf("\nModel: %s\nSession: %s", inert(string(m)), inert(string(s.ID)))
	if s.Title != "" {
		line += " (" + inert(s.Title) + ")"
	}
	if w := c.g.deps.Facts(m).ContextWindow; c.turn == nil && s.PromptTokens > 0 && w > 0 {
		line += fmt.Sprintf("\nContext: %d of %d tokens (%d %%)", s.PromptTokens, w, 100*s.PromptTokens/w)
	}
	return line
}

// model is the one that the conversation uses.
func (c *conversation) model() llm.ModelID {
	if c.conv.Model != "" {
		return c.conv.Model
	}
	return c.g.deps.Model
}

func (c *conversation) cmdUsage(ctx context.Context, in invocation) {
	text := "**Usage of this chat**\n"
	for _, span := range []struct {
		name  string
		since time.Time
	}{{"today (UTC)", c.g.now().UTC().Truncate(24 * time.Hour)}, {"in all", time.Time{}}} {
		all, err := c.g.store.UsageOf(ctx, c.fence.Conversation, span.since)
		if err != nil {
			c.failed(err, "read usage")
			return
		}
		text += usageLines(span.name, all)
	}
	c.answer(ctx, in, text, record.NoEffect{})
}

// purposes are the words for what models were used for beside answers.
var purposes = map[record.Purpose]string{
	record.ForCompression: "folding between turns", record.ForEmbedding: "vectors for recall", record.ForTitle: "titles",
	record.ForReading: "reading pages",
}

// usageLines tell the sum, and the parts of it that are not for answers.
func usageLines(name string, all []record.UsageEntry) string {
	var sum llm.Usage
	parts := ""
	for _, e := range all {
		sum = sum.Add(e.Usage)
		if what := purposes[e.Purpose]; what != "" {
			parts += "\n  - of it for " + what + ": " + usageWords(e.Usage)
		}
	}
	return "\n- " + name + ": " + usageWords(sum) + parts
}

func usageWords(u llm.Usage) string {
	s := fmt.Sprintf("%d tokens in (%d from the cache), %d out", u.Input, u.CachedInput, u.Output)
	if u.Cost > 0 {
		s += fmt.Sprintf(", %.4f", u.Cost)
	}
	return s
}

func (c *conversation) cmdModel(ctx context.Context, in invocation) {
	switch {
	case in.args == "":
		c.answer(ctx, in, "The model is **"+inert(string(c.model()))+"**. `/model provider/model` changes it for this chat, `/model auto` brings the default back.", record.NoEffect{})
	case in.args == "auto":
		c.answer(ctx, in, "The model is the default again: **"+inert(string(c.g.deps.Model))+"**.", record.SetModel{})
	default:
		m := llm.ModelID(in.args)
		if err := c.g.deps.CheckModel(m); err != nil {
			c.answer(ctx, in, "That model cannot be used: "+inert(err.Error())+".", record.NoEffect{})
			return
		}
		c.answer(ctx, in, "This chat now uses **"+inert(in.args)+"**.", record.SetModel{Model: m})
	}
}

func (c *conversation) cmdVerbose(ctx context.Context, in invocation) {
	levels := map[string]string{
		"off": "Tools work silently.", "new": "Each tool call is one line while I work, and is gone at the end.",
		"all": "Tool calls are shown with their results while I work; one line at the end says how many there were.",
	}
	level := strings.ToLower(in.args)
	text, ok := levels[level]
	if !ok {
		c.answer(ctx, in, fmt.Sprintf("The level is **%s**. `/verbose off`, `new` or `all` changes it.", c.conv.Verbose), record.NoEffect{})
		return
	}
	c.answer(ctx, in, text, record.SetVerbose{Level: record.Verbosity(level)})
}

func (c *conversation) cmdReasoning(ctx context.Context, in invocation) {
	switch strings.ToLower(in.args) {
	case "show", "on":
		c.answer(ctx, in, "The model's thinking is shown while it works.", record.ShowReasoning{On: true})
	case "hide", "off":
		c.answer(ctx, in, "The model's thinking is hidden.", record.ShowReasoning{On: false})
	default:
		state := map[bool]string{true: "shown while it works", false: "hidden"}[c.conv.Reasoning]
		c.answer(ctx, in, "The model's thinking is "+state+". `/reasoning show` or `/reasoning hide` changes it.", record.NoEffect{})
	}
}

func (c *conversation) cmdWhoami(ctx context.Context, in invocation) {
	u := in.from.From
	role := string(in.role)
	if role == "" {
		role = "nobody yet"
	}
	who := "`" + string(u.ID) + "`"
	if u.Name != "" {
		who = inert(u.Name) + ", id " + who
	}
	c.answer(ctx, in, fmt.Sprintf("You are %s, role **%s**.", who, role), record.NoEffect{})
}
