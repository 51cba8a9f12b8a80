package chatcompletions

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// maxID is the longest tool call id that OpenAI takes.
const maxID = 40

// wireIDs maps the stored ids of tool calls to ones that are unique in the request
// and that the server takes (PRV-005, PRV-007). Calls and results are paired by
// position: a result belongs to the first unanswered call of its id in the last
// assistant message. The same history has the same ids in each request.
type wireIDs struct {
	short bool // nine letters or digits, as Mistral wants them
	used  map[string]bool
	open  map[string][]string // stored id → wire ids of the last assistant's calls
}

func newWireIDs(short bool) *wireIDs {
	return &wireIDs{short: short, used: map[string]bool{}}
}

// turn begins an assistant message.
func (w *wireIDs) turn() { w.open = map[string][]string{} }

func (w *wireIDs) call(id string) string {
	wire := id
	for n := 0; !w.fits(wire) || w.used[wire]; n++ {
		wire = w.hash(id, n)
	}
	w.used[wire] = true
	w.open[id] = append(w.open[id], wire)
	return wire
}

func (w *wireIDs) result(id string) string {
	queue := w.open[id]
	if len(queue) == 0 {
		return id
	}
	if len(queue) > 1 {
		w.open[id] = queue[1:]
	}
	return queue[0]
}

func (w *wireIDs) fits(id string) bool {
	if w.short {
		return len(id) == 9 && alphanumeric(id)
	}
	if id == "" || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		if !idByte(id[i]) {
			return false
		}
	}
	return true
}

func (w *wireIDs) hash(id string, n int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(n) + ":" + id))
	digits := hex.EncodeToString(sum[:])
	if w.short {
		return digits[:9]
	}
	return "call_" + digits[:24]
}

func alphanumeric(s string) bool {
	for i := range len(s) {
		if s[i] == '_' || s[i] == '-' || !idByte(s[i]) {
			return false
		}
	}
	return true
}

// idByte is what servers take in ids and tool names.
func idByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-'
}
