// Package engine decides when a conversation is compressed and does it: the
// ContextEngine interface and its default implementation, which summarises the
// middle. It is pure but for the summary call.
package engine

import (
	"context"
	"time"

	"parley/agentcore/llm"
	"parley/store/record"
)

// ContextEngine keeps a conversation inside the model's window.
type ContextEngine interface {
	// Decide says whether to compress now. It does no I/O.
	Decide(s State) Decision
	// Compress makes the child's messages from the parent's. It changes nothing:
	// the caller commits the result or drops it.
	Compress(ctx context.Context, in Input) (Result, error)
}

// Trigger is what asks for a compression.
type Trigger string

// The triggers.
const (
	Preflight Trigger = "preflight" // inside a turn, at threshold (50 %)
	Between   Trigger = "between"   // by the gateway between turns, at gateway_threshold (85 %)
	Overflow  Trigger = "overflow"  // the provider refused the request as too long
	Manual    Trigger = "manual"    // /compress
)

// State is what Decide looks at.
type State struct {
	Session  record.Session
	Messages []record.Message
	// Window is the model's context window in tokens.
	Window  int
	Tools   []llm.ToolSpec
	Trigger Trigger
	Now     time.Time
}

// Decision is the answer of Decide.
type Decision struct {
	Compress bool
	// Tokens is the estimated size of the next prompt, and Limit what it was held
	// against.
	Tokens, Limit int
	// Why names the outcome: "below", "over", "unmeasured" (the last compression's
	// effect is not known yet), "cooling down", "blocked", "off".
	Why string
}

// Input is what Compress works on.
type Input struct {
	Session  record.Session
	Messages []record.Message
	Window   int
	Tools    []llm.ToolSpec
	Trigger  Trigger
	// Topic focuses the summary; from /compress TOPIC.
	Topic string
	// Payer is on whose account the summary calls are.
	Payer record.Payer
	// Scope is where facts worth keeping go; empty: the conversation's own.
	Scope string
	Now   time.Time
}

// Outcome is what became of a compression.
type Outcome string

// The outcomes. Only Compressed comes with a Compression.
const (
	Compressed  Outcome = "compressed"
	NothingToDo Outcome = "nothing to do"
	CoolingDown Outcome = "cooling down"
	Aborted     Outcome = "aborted"
	Blocked     Outcome = "blocked"
	// OverLimit says that a spending limit leaves no room for the summary call.
	OverLimit Outcome = "over the spending limit"
)

// Result is what Compress made.
type Result struct {
	Outcome Outcome
	// Compression is complete but for the child's system prompt.
	Compression record.Compression
	// Folded counts the messages in the summary; Before and After are tokens.
	Folded, Before, After int
	// Usage is what the summary calls used and cost, which is booked already.
	Usage llm.Usage
	// Reason says in words why it was aborted or blocked.
	Reason string
	// Cooldown forbids automatic tries for this long after an abort, and Failures
	// counts the aborts in a row; CoolDown books both.
	Cooldown time.Duration
	Failures int
	// Over is the limit that was reached, for OverLimit.
	Over *record.SpendingError
}

// CoolDown books an abort on its session, whose row is to be stored then: neither
// the cooldown nor its growth is lost in a restart. Of another outcome, or before
// anything failed, it reports false.
func (r Result) CoolDown(s *record.Session, now time.Time) bool {
	if r.Cooldown == 0 {
		return false
	}
	s.CoolUntil, s.FailedCompressions = now.Add(r.Cooldown), r.Failures
	return true
}
