package tool

import (
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
	// Exec is the verdict on running commands, from `approvals.mode`; empty: Ask.
	// Allow does not hold for untrusted turns: they ask.
	Exec Verdict
}

// Decide judges a call by what the tool touches, where the turn came from and
// who is behind it. The reason is for people and for the model.
//
//   - an ignored person's turn runs nothing;
//   - configuring is for admins;
//   - running commands asks, unless configured otherwise;
//   - an untrusted turn asks before it does anything but read and use the network.
func (p Policy) Decide(s Spec, t record.Trust, r record.Role) (v Verdict, reason string) {
	const beyondReading = Exec | Write | SendFiles | ScheduleWork | Spawn | Configure
	switch {
	case r == record.RoleIgnored:
		return Deny, "this person may not use tools"
	case s.Needs.Has(Configure) && !r.Admin():
		return Deny, "only an admin may do this"
	case s.Needs.Has(Exec) && p.Exec == Deny:
		return Deny, "running commands is switched off"
	case t == record.TrustUntrusted && s.Needs&beyondReading != 0:
		return Ask, "the turn was started by an outside event and wants to: " + (s.Needs & beyondReading).String()
	case s.Needs.Has(Exec) && p.Exec != Allow:
		return Ask, "it runs a command"
	}
	return Allow, ""
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
