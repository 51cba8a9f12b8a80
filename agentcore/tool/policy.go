package tool

import (
	"cmp"
	"strings"

	"parley/store/record"
)

// Verdict is what the policy point does with a call before it runs.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// Policy is the one rule that every call passes; the model has no say in it.
type Policy struct {
	// Mode is the verdict on what is to be asked, from `approvals.mode`; empty: Ask.
	// Allow does not hold for untrusted turns: they ask. Deny refuses instead of
	// asking, and every command.
	Mode Verdict
	// Hook is the owner's say about each call, before it is judged and after it has
	// run; nil: none.
	Hook Hook
}

// Subject is a call as the policy sees it.
type Subject struct {
	Judgement
	Trust record.Trust
	Role  record.Role
}

// Ruling is what the policy says to a call.
type Ruling struct {
	Verdict Verdict
	// Reason is for people and for the model, as part of a sentence.
	Reason string
	// Pattern is what a lasting consent would cover; empty: this call only.
	Pattern string
}

// Decide judges a call by what it touches, how dangerous its tool finds it, where
// the turn came from and who is behind it. In this order:
//
//   - what is forbidden is refused, whoever asks;
//   - an ignored person's turn runs nothing;
//   - configuring is for admins;
//   - an untrusted turn asks before it does anything but read what is here, each
//     time anew: a grant or `approvals.mode: allow` is a person's for themselves;
//   - what cannot be known before it runs asks, each time anew;
//   - running commands and what is dangerous asks, unless configured otherwise or
//     the call is known to be safe.
func (p Policy) Decide(s Subject) Ruling {
	reason := cmp.Or(s.Reason, "it wants to "+s.Needs.String())
	switch {
	case s.Danger == Forbidden:
		return Ruling{Verdict: Deny, Reason: reason + ", which is never allowed"}
	case s.Role == record.RoleIgnored:
		return Ruling{Verdict: Deny, Reason: "this person may not use tools"}
	case s.Needs.Has(Configure) && !s.Role.Admin():
		return Ruling{Verdict: Deny, Reason: "only an admin may do this"}
	case s.Needs.Has(Exec) && p.Mode == Deny:
		return Ruling{Verdict: Deny, Reason: "running commands is switched off"}
	case s.Trust == record.TrustUntrusted && (s.Needs != 0 || s.Danger > Safe):
		return p.ask(Ruling{Reason: "the turn was started by an outside event; " + reason}, Ask)
	case s.Danger == Opaque:
		return p.ask(Ruling{Reason: reason}, Ask)
	case s.Danger == Dangerous, s.Needs.Has(Exec) && s.Danger != Safe:
		return p.ask(Ruling{Reason: reason, Pattern: s.Pattern}, cmp.Or(p.Mode, Ask))
	}
	return Ruling{Verdict: Allow}
}

// ask gives a call that is to be asked for its verdict.
func (p Policy) ask(r Ruling, v Verdict) Ruling {
	switch {
	case p.Mode == Deny:
		return Ruling{Verdict: Deny, Reason: r.Reason + ", and approvals are switched off"}
	case v == Allow:
		return Ruling{Verdict: Allow}
	}
	r.Verdict = Ask
	return r
}

// String names the capabilities, for people and for the audit.
func (c Capability) String() string {
	var names []string
	for i, n := range [...]string{"run commands", "write", "use the network", "send files", "schedule work", "start agents", "configure"} {
		if c&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}
