package engine

import (
	"strings"

	"parley/agentcore/llm"
	"parley/store/record"
)

const (
	// minTail is how far the protected tail may shrink, in messages.
	minTail = 4
	// clippedResult is what is left of an old tool result, in bytes, in a tail that
	// is too large even so (TOL-003).
	clippedResult = 2000
)

// partition says what becomes of each row of a history.
//
//	[0, first)   the summary of an earlier compression, and whatever is before it
//	[first, cut) folded into the new summary, but for the row kept
//	[cut, end)   the tail: it stays as it is
type partition struct {
	first, cut int
	// head rows from first on are folded and quoted word for word too. Only a
	// history without an earlier summary has them, so that a stale beginning is not
	// carried along for ever.
	head int
	// kept is the newest user message if it lies before cut, else -1: a turn that
	// alone is too large is folded behind the message that it works on.
	kept int
}

// divide parts a history so that no tool result is parted from its call and the
// newest user message stays. The tail has protectLast messages or more; if it is
// larger than budget tokens it shrinks towards minTail.
func divide(msgs []record.Message, cfg Config, budget int) partition {
	p := partition{first: afterSummary(msgs), kept: -1}
	if p.first == 0 {
		p.head = min(cfg.ProtectFirstN, len(msgs))
	}
	whole := groups(msgs)
	size := suffixSizes(msgs)
	newest := newestUser(msgs, p.first)

	cut := max(len(msgs)-cfg.ProtectLastN, p.first)
	if newest >= 0 {
		cut = min(cut, newest)
	}
	for cut > p.first && !whole[cut] {
		cut--
	}
	p.cut = cut
	last := len(msgs) - minTail
	for c := cut + 1; c <= last && size[p.cut] > budget; c++ {
		if whole[c] && (newest < 0 || c <= newest) {
			p.cut = c
		}
	}
	if newest < 0 || size[p.cut] <= budget {
		return p
	}
	// The running turn alone is too large: what it did first is folded, the message
	// that it works on is kept before what it did last.
	for c := newest + 2; c <= last; c++ {
		if !whole[c] {
			continue
		}
		p.cut, p.kept = c, newest
		if MessageTokens(&msgs[newest])+size[c] <= budget {
			break
		}
	}
	return p
}

// folded returns the rows that go into the summary, in order.
func (p partition) folded(msgs []record.Message) []record.Message {
	if p.kept < 0 {
		return msgs[p.first:p.cut]
	}
	out := append([]record.Message{}, msgs[p.first:p.kept]...)
	return append(out, msgs[p.kept+1:p.cut]...)
}

// tail returns the rows that stay. If they are larger than budget, tool results
// but for those among the last minTail rows are clipped in the copy. The row kept
// takes the sequence right before the rest, which a folded row has left free, so
// that the tail has no gap; where it came from is in its origin.
func (p partition) tail(msgs []record.Message, budget int) []record.Message {
	var out []record.Message
	if p.kept >= 0 {
		m := msgs[p.kept]
		if m.OriginSession == "" {
			m.OriginSession, m.OriginSeq = m.Session, m.Seq
		}
		m.Seq = msgs[p.cut].Seq - 1
		out = append(out, m)
	}
	out = append(out, msgs[p.cut:]...)
	if total(out) <= budget {
		return out
	}
	for i := range max(len(out)-minTail, 0) {
		if out[i].Role == llm.ToolRole {
			out[i].Content = clip(out[i].Content, clippedResult)
		}
	}
	return out
}

// idle says that there is nothing in the middle: all that could be folded is the
// protected beginning.
func (p partition) idle(msgs []record.Message) bool { return len(p.folded(msgs)) <= p.head }

// afterSummary is the index after the newest summary, 0 if there is none.
func afterSummary(msgs []record.Message) int {
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Kind == record.KindSummary {
			return i + 1
		}
	}
	return 0
}

// newestUser is the index of the newest thing that a person said, -1 if none.
func newestUser(msgs []record.Message, from int) int {
	for i := len(msgs) - 1; i >= from; i-- {
		m := &msgs[i]
		said := m.Kind == record.KindSaid || m.Kind == record.KindSteer
		if m.Role == llm.User && said && (strings.TrimSpace(m.Content) != "" || len(m.Files) > 0) {
			return i
		}
	}
	return -1
}

// groups says for each index whether a history may be parted before it: no result
// at or after it belongs to a call before it. Call ids may be used again; a
// result belongs to the nearest call before it.
func groups(msgs []record.Message) []bool {
	whole := make([]bool, len(msgs)+1)
	caller := map[string]int{}
	owner := make([]int, len(msgs))
	for i := range msgs {
		owner[i] = i
		for _, c := range msgs[i].ToolCalls {
			caller[c.ID] = i
		}
		if msgs[i].Role == llm.ToolRole {
			if at, ok := caller[msgs[i].ToolCallID]; ok {
				owner[i] = at
			}
		}
	}
	oldest := len(msgs)
	whole[len(msgs)] = true
	for i := len(msgs) - 1; i >= 0; i-- {
		oldest = min(oldest, owner[i])
		whole[i] = oldest >= i
	}
	return whole
}

// suffixSizes gives the tokens of msgs[i:] for each i.
func suffixSizes(msgs []record.Message) []int {
	size := make([]int, len(msgs)+1)
	for i := len(msgs) - 1; i >= 0; i-- {
		size[i] = size[i+1] + MessageTokens(&msgs[i])
	}
	return size
}
