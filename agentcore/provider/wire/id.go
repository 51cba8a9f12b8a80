package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"parley/agentcore/llm"
)

// IDRule is which tool call ids a server takes: letters, digits, _ and -, at most
// Max of them; Short: exactly nine letters or digits, as Mistral wants them.
type IDRule struct {
	Max   int
	Short bool
}

// IDs maps the stored ids of tool calls to ones that are unique in the request
// and that the server takes (PRV-005, PRV-007). Calls and results are paired by
// position: a result belongs to the first unanswered call of its id in the last
// assistant message. The same history has the same ids in each request.
type IDs struct {
	rule IDRule
	used map[string]bool
	open map[string][]string // stored id → wire ids of the last assistant's calls
}

// NewIDs makes the ids of one request.
func NewIDs(rule IDRule) *IDs {
	return &IDs{rule: rule, used: map[string]bool{}, open: map[string][]string{}}
}

// Turn begins an assistant message.
func (w *IDs) Turn() { clear(w.open) }

// Call returns the id of the next call of the assistant message.
func (w *IDs) Call(id string) string {
	wire := id
	for n := 0; !w.fits(wire) || w.used[wire]; n++ {
		wire = w.hash(id, n)
	}
	w.used[wire] = true
	w.open[id] = append(w.open[id], wire)
	return wire
}

// Result returns the id under which a result goes out.
func (w *IDs) Result(id string) string {
	queue := w.open[id]
	if len(queue) == 0 {
		return id
	}
	if len(queue) > 1 {
		w.open[id] = queue[1:]
	}
	return queue[0]
}

func (w *IDs) fits(id string) bool {
	if w.rule.Short {
		return len(id) == 9 && alphanumeric(id)
	}
	if id == "" || len(id) > w.rule.Max {
		return false
	}
	for i := range len(id) {
		if !idByte(id[i]) {
			return false
		}
	}
	return true
}

func (w *IDs) hash(id string, n int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(n) + ":" + id))
	digits := hex.EncodeToString(sum[:])
	if w.rule.Short {
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

// NewCalls keeps the ids of an answer's calls apart from each other and from those
// of the history (PRV-007, PRV-030).
type NewCalls struct {
	used map[string]bool
	make func() string
}

// CallIDs makes the NewCalls of an answer to the request; newID makes up an id.
func CallIDs(req *llm.Request, newID func() string) *NewCalls {
	used := map[string]bool{}
	for i := range req.Messages {
		for j := range req.Messages[i].ToolCalls {
			used[req.Messages[i].ToolCalls[j].ID] = true
		}
	}
	return &NewCalls{used: used, make: newID}
}

// Unique keeps the server's id unless it is missing or was used before.
func (c *NewCalls) Unique(id string) string {
	for id == "" || c.used[id] {
		id = c.make()
	}
	c.used[id] = true
	return id
}
