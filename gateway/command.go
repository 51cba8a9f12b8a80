package gateway

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/agentcore"
	"parley/gateway/chat"
	"parley/store/record"
)

// who says who may use a command.
type who string

const (
	everybody  who = "everybody"
	turnPerson who = "the turn's person" // or an admin
	adminsOnly who = "admins"
)

// command is one row of the table of commands.
type command struct {
	name, args, help string
	who              who
	// urgent commands work while parley shuts down too.
	urgent bool
	// idle commands wait for their turn among the messages, and make way before they
	// change the session.
	idle bool
	// lists: without arguments an idle command only lists, and waits for nothing.
	lists bool
	// run answers: it ends the inbox row itself.
	run func(c *conversation, ctx context.Context, in invocation)
}

// invocation is one use of a command.
type invocation struct {
	item record.InboxItem
	from chat.Origin
	args string
	role record.Role
}

// commands is THE table of chat commands.
var commands = table(
	command{name: "start", help: "begin, or claim the bot with a link", who: everybody, run: (*conversation).cmdStart},
	command{name: "help", help: "what I can do", who: everybody, run: (*conversation).cmdHelp},
	command{name: "stop", help: "stop what I am doing, tools included", who: turnPerson, urgent: true, run: (*conversation).cmdStop},
	command{name: "new", args: "[title]", help: "begin a new session", who: everybody, idle: true, run: (*conversation).cmdNew},
	command{name: "reset", help: "begin anew and forget this session's context", who: everybody, idle: true, run: (*conversation).cmdReset},
	command{name: "resume", args: "[number or id]", help: "go on with an earlier session", who: everybody, idle: true, lists: true, run: (*conversation).cmdResume},
	command{name: "sessions", help: "list this chat's sessions", who: everybody, run: (*conversation).cmdSessions},
	command{name: "retry", help: "take my last answer back and answer again", who: everybody, idle: true, run: (*conversation).cmdRetry},
	command{name: "undo", args: "[number]", help: "take the last questions and answers back", who: everybody, idle: true, run: (*conversation).cmdUndo},
	command{name: "branch", args: "[title]", help: "go on in a branch; this session stays as it is", who: everybody, idle: true, run: (*conversation).cmdBranch},
	command{name: "title", args: "[text]", help: "show or set the session's title", who: everybody, run: (*conversation).cmdTitle},
	command{name: "compress", args: "[topic]", help: "fold the conversation into a summary now", who: everybody, idle: true, run: (*conversation).cmdCompress},
	command{name: skillCommand, args: "[name] [task]", help: "list my skills, or use one", who: everybody, run: (*conversation).cmdSkill},
	command{name: "summary", help: "what the summary of this session says", who: everybody, run: (*conversation).cmdSummary},
	command{name: "schedules", args: "[pause | resume | run | delete NUMBER]", help: "what I do later or regularly in this chat", who: everybody, run: (*conversation).cmdSchedules},
	command{name: "status", help: "what I am doing and waiting for", who: everybody, urgent: true, run: (*conversation).cmdStatus},
	command{name: "usage", help: "tokens and cost of this chat", who: everybody, run: (*conversation).cmdUsage},
	command{name: "model", args: "[provider/model | auto]", help: "show or change the model", who: adminsOnly, run: (*conversation).cmdModel},
	command{name: "verbose", args: "[off | new | all]", help: "how much of the tools' work to show", who: everybody, run: (*conversation).cmdVerbose},
	command{name: "reasoning", args: "[show | hide]", help: "show or hide the model's thinking", who: everybody, run: (*conversation).cmdReasoning},
	command{name: "approve", args: "[session | always | list | revoke N]", help: "allow what is asked; list or end what is allowed for longer", who: everybody, urgent: true, run: (*conversation).cmdApprove},
	command{name: "deny", help: "refuse what is being asked", who: everybody, urgent: true, run: (*conversation).cmdDeny},
	command{name: "why", help: "reply to a message: why it was or was not answered", who: everybody, run: (*conversation).cmdWhy},
	command{name: "whoami", help: "your id and role", who: everybody, run: (*conversation).cmdWhoami},
	command{name: pairingCommand, who: everybody, run: (*conversation).cmdPairing},
	command{name: spendingCommand, who: everybody, run: (*conversation).cmdSpending},
	command{name: decidedCommand, who: everybody, urgent: true, run: (*conversation).cmdDecided},
)

func table(cs ...command) map[string]command {
	m := make(map[string]command, len(cs))
	for _, c := range cs {
		m[c.name] = c
	}
	return m
}

// visible lists the commands for menus and help, in the table's alphabet.
func visible() []command {
	var cs []command
	for _, c := range commands {
		if c.help != "" {
			cs = append(cs, c)
		}
	}
	slices.SortFunc(cs, func(a, b command) int { return strings.Compare(a.name, b.name) })
	return cs
}

// CommandInfos is what adapters publish.
func CommandInfos() []chat.CommandInfo {
	var infos []chat.CommandInfo
	for _, c := range visible() {
		infos = append(infos, chat.CommandInfo{Name: c.name, Args: c.args, Description: c.help, AdminOnly: c.who == adminsOnly})
	}
	return infos
}

// commandText matches a command: "/name args" anywhere, "!name args" where the
// platform keeps the slash for itself. Names of files and dates do not match.
var commandText = regexp.MustCompile(`(?s)^\s*([/!])([A-Za-z_]{1,32})(?:\s+(.*))?\s*$`)

// parseCommand finds a command in a message's text (CMD-004). With "!" only known
// commands count; with "/" unknown ones do too, and get an answer that says so.
// "stop the deploy" is not a command (CMD-002), and "/skill NAME" with more is a
// message that calls for that skill.
func parseCommand(text string) (name, args string, ok bool) {
	m := commandText.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	name = strings.ToLower(m[2])
	if c, known := commands[name]; m[1] == "!" && (!known || c.help == "") {
		return "", "", false
	}
	if args = strings.TrimSpace(m[3]); name == skillCommand && args != "" {
		return "", "", false
	}
	return name, args, true
}

// command runs a command. It returns false when the row has to wait for the turn
// that the command ends.
func (c *conversation) command(ctx context.Context, it record.InboxItem, o chat.Origin, name, args string) (next bool) {
	in := invocation{item: it, from: o, args: args, role: c.roleOf(ctx, o.From.ID)}
	cmd, ok := commands[name]
	if !ok || (cmd.help == "" && it.Kind != chat.KindCommand) {
		c.answer(ctx, in, fmt.Sprintf("I do not know the command %s. `/help` lists what there is.", inert("/"+name)), record.NoEffect{})
		return true
	}
	if !c.may(cmd, in) {
		c.answer(ctx, in, fmt.Sprintf("`/%s` is for %s.", name, cmd.who), record.NoEffect{})
		return true
	}
	cmd.run(c, ctx, in)
	return !slices.ContainsFunc(c.inbox, func(x record.InboxItem) bool { return x.Seq == it.Seq })
}

// makeWay reports whether nothing runs that stands on the session which a command is
// about to change. If something does, whoever may stop it ends it by this, with the
// messages that were queued before, visibly; the command's row waits for that end.
func (c *conversation) makeWay(ctx context.Context, in invocation) bool {
	if c.turn == nil && c.compression == nil {
		return true
	}
	if !c.mayStop(in) {
		c.answer(ctx, in, "I am at work for somebody else here, and this would stop me. Send it again when I am done.", record.NoEffect{})
		return false
	}
	c.cancelTurn(agentcore.ErrStopped)
	if c.compression != nil {
		c.compression.cancel(agentcore.ErrStopped)
	}
	if queued := c.messagesBefore(in.item.Seq); len(queued) > 0 {
		d := c.reply(queued[0], in.from, "Not answered any more: "+c.list(queued)+".")
		c.end(ctx, "withdrawn by a command", record.NoEffect{}, []record.Delivery{d}, queued...)
	}
	return false
}

// messagesBefore returns the queued messages that came before a row.
func (c *conversation) messagesBefore(seq int64) []record.InboxItem {
	var items []record.InboxItem
	for _, it := range c.inbox {
		if it.Kind == chat.KindMessage && it.Seq < seq {
			items = append(items, it)
		}
	}
	return items
}

// may applies the command's who.
func (c *conversation) may(cmd command, in invocation) bool {
	switch cmd.who {
	case adminsOnly:
		return in.role.Admin()
	case turnPerson:
		return c.mayStop(in)
	case everybody:
	}
	return true
}

// mayStop says whether a person may end what runs: their own turn, or an admin any.
func (c *conversation) mayStop(in invocation) bool {
	return c.turn == nil || in.role.Admin() || c.turn.row.Person == in.from.From.ID
}

// answer ends a command's row with an effect and one reply.
func (c *conversation) answer(ctx context.Context, in invocation, text string, e record.Effect, buttons ...[]chat.Button) bool {
	d := c.reply(in.item, in.from, text, buttons...)
	return c.end(ctx, "a command", e, []record.Delivery{d}, in.item)
}

// roleOf reads a person's role anew.
func (c *conversation) roleOf(ctx context.Context, p chat.Person) record.Role {
	m, err := c.g.store.Member(ctx, p)
	if err != nil {
		m = nil
	}
	return c.g.access.role(p, m)
}
