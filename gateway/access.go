package gateway

import (
	"slices"
	"strings"

	"parley/gateway/chat"
	"parley/store/record"
)

// The reasons of access decisions, as /why and `parley why` show them.
const (
	reasonOK          = "accepted"
	reasonBot         = "refused: the sender is a bot; only a mention by one whose own id is in access.allow counts"
	reasonShared      = "refused: the sender is anonymous (an id that stands for several people)"
	reasonIgnored     = "refused: the owner chose to ignore this person"
	reasonStranger    = "refused: the person is not allowed; add their id to access.allow, or let them be paired in a direct message"
	reasonHeld        = "held: the person is not paired yet; it is answered if the owner allows them within a day"
	reasonNotForBot   = "ignored: in groups only mentions, replies to the bot and commands are for it (access.groups: mention)"
	reasonOtherBot    = "ignored: the command names another bot"
	reasonGroupsOff   = "refused: groups are off (access.groups: off)"
	reasonClaimLink   = "accepted: a claim link"
	reasonNobodyOwned = "refused: nobody is allowed yet; open the claim link that parley printed at its start, or set access.admins"
)

// claimPrefix begins the codes of claim links.
const claimPrefix = "own_"

// access decides who may talk. One function decides for messages, commands,
// buttons and edits alike (ACC-008); it is closed by default.
type access struct{ cfg AccessConfig }

// role returns what a person may do: the configuration first, then the database.
// Empty means nothing.
func (a access) role(p chat.Person, m *record.Member) record.Role {
	if slices.Contains(a.cfg.Admins, string(p)) {
		return record.RoleAdmin
	}
	if m != nil && m.Role != record.RoleUser {
		return m.Role
	}
	if m != nil || slices.Contains(a.cfg.Allow, string(p)) || slices.Contains(a.cfg.Allow, p.Platform()+":*") {
		return record.RoleUser
	}
	return ""
}

// gate returns the decision about one event, to be made inside the transaction
// that stores it.
func (a access) gate(ev chat.Event) func(record.AccessFacts) record.Verdict {
	return func(f record.AccessFacts) record.Verdict {
		o := ev.Meta()
		if v, ok := a.addressed(ev, o.Threaded && f.Conversation != nil); !ok {
			return v
		}
		role := a.role(o.From.ID, f.Member)
		switch {
		case o.From.Shared:
			return record.Verdict{State: record.InboxRefused, Reason: reasonShared}
		case role == record.RoleIgnored:
			return record.Verdict{State: record.InboxRefused, Reason: reasonIgnored}
		case role != "":
			return record.Verdict{State: record.InboxReceived, Reason: reasonOK}
		case isClaim(ev):
			return record.Verdict{State: record.InboxReceived, Reason: reasonClaimLink}
		}
		return a.stranger(ev, f)
	}
}

// stranger decides about somebody without a role.
func (a access) stranger(ev chat.Event, f record.AccessFacts) record.Verdict {
	_, isMessage := ev.(chat.MessageReceived)
	if ev.Meta().Kind != chat.Direct || !isMessage {
		return record.Verdict{State: record.InboxRefused, Reason: reasonStranger}
	}
	if !f.Claimed && len(a.cfg.Admins) == 0 && len(a.cfg.Allow) == 0 {
		return record.Verdict{State: record.InboxRefused, Reason: reasonNobodyOwned}
	}
	if !a.cfg.Pairing {
		return record.Verdict{State: record.InboxRefused, Reason: reasonStranger}
	}
	return record.Verdict{State: record.InboxHeld, Reason: reasonHeld, Pair: true}
}

// addressed says whether the event is for this bot at all; if not, the verdict
// says why. Chatter leaves a counter only. In a thread where the bot talks already,
// which belongs to one conversation, it need not be named.
func (a access) addressed(ev chat.Event, talks bool) (record.Verdict, bool) {
	o := ev.Meta()
	drop := func(reason string, count bool) (record.Verdict, bool) {
		return record.Verdict{State: record.InboxRefused, Reason: reason, Count: count}, false
	}
	if o.From.Bot && !a.letsIn(ev) {
		return drop(reasonBot, o.Kind == chat.Group)
	}
	m, ok := ev.(chat.MessageReceived)
	if !ok {
		e, edit := ev.(chat.MessageEdited)
		if edit && o.Kind == chat.Group && !e.ForBot && !talks && a.cfg.Groups != "all" {
			return drop(reasonNotForBot, true)
		}
		return record.Verdict{}, true
	}
	switch {
	case m.ForOther:
		return drop(reasonOtherBot, true)
	case o.Kind == chat.Direct:
		return record.Verdict{}, true
	case a.cfg.Groups == "off":
		return drop(reasonGroupsOff, true)
	case a.cfg.Groups == "mention" && !m.ForBot && !talks:
		return drop(reasonNotForBot, true)
	}
	return record.Verdict{}, true
}

// letsIn says whether an event of a bot counts. Two bots that answer each other never
// end (MEN-006, MEN-014): a bot is heard only if its own id is listed and it addresses
// this one, and it can neither command nor decide anything.
func (a access) letsIn(ev chat.Event) bool {
	m, ok := ev.(chat.MessageReceived)
	if !ok || !m.ForBot || !slices.Contains(a.cfg.Allow, string(m.From.ID)) {
		return false
	}
	_, _, command := parseCommand(m.Text)
	return !command
}

// isClaim recognises "/start own_…" in a direct message.
func isClaim(ev chat.Event) bool {
	m, ok := ev.(chat.MessageReceived)
	if !ok || m.Kind != chat.Direct {
		return false
	}
	name, args, ok := parseCommand(m.Text)
	return ok && name == "start" && strings.HasPrefix(args, claimPrefix)
}
