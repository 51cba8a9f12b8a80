package gateway

import (
	"sync"

	"parley/agentcore"
	"parley/agentcore/engine"
	"parley/store/record"
)

// item is a sealed union of what a conversation's goroutine is told. Events of
// people come as wake-ups with the stored row as a hint: the inbox table is the
// truth, so nothing is lost when a hint is.
type item interface{ isItem() }

type (
	// wake says that the inbox may hold something. Hint is a row just stored here;
	// without one the work is loaded again.
	wake struct {
		fence record.Fence
		hint  *record.InboxItem
	}
	// turnEnded comes from the child goroutine of a turn.
	turnEnded struct {
		turn   record.TurnID
		result *agentcore.Result
		err    error
	}
	// compressionEnded comes from the child goroutine of a compression.
	compressionEnded struct {
		result engine.Result
		err    error
	}
	// asked comes from the running turn: it waits for a question's decision.
	asked struct {
		approval record.Approval
		card     record.Delivery
		reply    chan<- record.Approval
	}
	// steerWanted comes from the running turn before each model call.
	steerWanted struct{ reply chan<- []record.Message }
	// wakeLost says that this replica may have lost its claims.
	wakeLost struct{}
	// fenced comes from the poster: a write with this claim was refused.
	fenced struct{ fence record.Fence }
	// settled says that the poster has nothing left.
	settled struct{}
)

func (wake) isItem()             {}
func (turnEnded) isItem()        {}
func (compressionEnded) isItem() {}
func (asked) isItem()            {}
func (steerWanted) isItem()      {}
func (wakeLost) isItem()         {}
func (fenced) isItem()           {}
func (settled) isItem()          {}

// mailbox never blocks a sender. Its size is bounded by its senders: wake-ups
// without a hint are merged, and each child has one item under way.
type mailbox struct {
	mu    sync.Mutex
	items []item
	ring  chan struct{}
}

func newMailbox() *mailbox { return &mailbox{ring: make(chan struct{}, 1)} }

// put adds an item and rings.
func (m *mailbox) put(it item) {
	m.mu.Lock()
	if !m.merge(it) {
		m.items = append(m.items, it)
	}
	m.mu.Unlock()
	select {
	case m.ring <- struct{}{}:
	default:
	}
}

// merge makes one of two wake-ups without a hint that follow each other. Open work is
// looked for every few seconds, also for a conversation that takes nothing for long.
func (m *mailbox) merge(it item) bool {
	w, ok := it.(wake)
	if !ok || w.hint != nil || len(m.items) == 0 {
		return false
	}
	last, ok := m.items[len(m.items)-1].(wake)
	if !ok || last.hint != nil {
		return false
	}
	if w.fence.Epoch > last.fence.Epoch {
		m.items[len(m.items)-1] = w
	}
	return true
}

// take empties the box.
func (m *mailbox) take() []item {
	m.mu.Lock()
	defer m.mu.Unlock()
	its := m.items
	m.items = nil
	return its
}

// empty is for retirement, which the registry decides under its lock.
func (m *mailbox) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.items) == 0
}
