package responses

import (
	"encoding/json"
	"strings"

	"parley/agentcore/provider/wire"
)

// kind is what an item of an answer is.
type kind uint8

const (
	kindOther kind = iota
	kindMessage
	kindReasoning
	kindCall
)

func kindOf(itemType string) kind {
	switch itemType {
	case "message":
		return kindMessage
	case "reasoning":
		return kindReasoning
	case "function_call":
		return kindCall
	}
	return kindOther
}

// slot is an item as far as it has come.
type slot struct {
	kind  kind
	index int // as the server numbered it, -1 if it did not
	id    string
	done  bool
	// shown is the text, the thinking or the arguments so far; part is the part of
	// these that came last.
	shown strings.Builder
	part  int
	phase string
	// sealed is the reasoning as it goes back.
	sealed json.RawMessage

	call         int // the index among the calls
	callID, name string
	opened       bool // the call was shown
}

// open begins an item.
func (f *fold) open(ev *event, k kind) *slot {
	s := &slot{kind: k, index: -1, id: ev.ItemID}
	if ev.OutputIndex != nil {
		s.index = *ev.OutputIndex
	}
	if k == kindCall {
		s.call = f.calls
		f.calls++
	}
	f.slots = append(f.slots, s)
	return s
}

// slot returns the item that an event belongs to, a new one if there is none.
func (f *fold) slot(ev *event, k kind) *slot {
	if s := f.find(ev, k); s != nil {
		return s
	}
	return f.open(ev, k)
}

// find looks for the newest item of the kind (kindOther: of any) by its id, since
// that is its own, then by its number, since some servers change ids, then takes the
// last one that is open if the event has neither.
func (f *fold) find(ev *event, k kind) *slot {
	fits := func(s *slot) bool { return k == kindOther || s.kind == k }
	for i := len(f.slots) - 1; i >= 0 && ev.ItemID != ""; i-- {
		if s := f.slots[i]; fits(s) && s.id == ev.ItemID {
			return s
		}
	}
	for i := len(f.slots) - 1; i >= 0; i-- {
		s := f.slots[i]
		switch {
		case !fits(s):
		case ev.OutputIndex != nil && s.index == *ev.OutputIndex, ev.OutputIndex == nil && !s.done:
			return s
		}
	}
	return nil
}

// piece is what the item says about the order of the answer.
func (s *slot) piece() (wire.Piece, bool) {
	switch s.kind {
	case kindMessage:
		return wire.Piece{Text: s.shown.Len(), Phase: s.phase}, s.shown.Len() > 0
	case kindReasoning:
		return wire.Piece{Item: s.sealed}, len(s.sealed) > 0
	case kindCall:
		return wire.Piece{Call: true}, true
	case kindOther:
	}
	return wire.Piece{}, false
}

// seal keeps of a reasoning item what goes back.
func seal(raw json.RawMessage) json.RawMessage {
	var s sealed
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	if len(s.Summary) == 0 || s.Summary[0] != '[' {
		s.Summary = json.RawMessage("[]")
	}
	out, err := wire.Encode(s)
	if err != nil {
		return nil
	}
	return out
}

// rest is what of the whole was not shown yet; nothing if that does not fit.
func rest(whole, shown string) string {
	if after, ok := strings.CutPrefix(whole, shown); ok {
		return after
	}
	return ""
}
