package agentcore

import (
	"os"
	"slices"
	"strings"
	"testing"

	"parley/store/record"
)

// The table, the enum and the drawing in doc.go are the same.
func TestTransitionsMatchEnumAndDrawing(t *testing.T) {
	src, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	drawn := map[record.TurnState][]record.TurnState{}
	for line := range strings.Lines(string(src)) {
		from, to, ok := strings.Cut(strings.TrimPrefix(line, "//\t"), "→")
		if !ok {
			continue
		}
		next := []record.TurnState{}
		for _, s := range strings.Fields(to) {
			next = append(next, record.TurnState(s))
		}
		drawn[record.TurnState(strings.TrimSpace(from))] = next
	}
	if len(drawn) != len(record.TurnStates) {
		t.Errorf("doc.go draws %d states, the enum has %d", len(drawn), len(record.TurnStates))
	}
	for _, s := range record.TurnStates {
		table := slices.Clone(transitions[s])
		slices.Sort(table)
		d := slices.Clone(drawn[s])
		slices.Sort(d)
		if !slices.Equal(table, d) {
			t.Errorf("%s: the table says %v, doc.go %v", s, table, d)
		}
		if s.Ended() != (len(table) == 0) {
			t.Errorf("%s is an end and leads on, or the other way round", s)
		}
		for _, next := range table {
			if !slices.Contains(record.TurnStates, next) {
				t.Errorf("%s leads to unknown %s", s, next)
			}
		}
		// Whatever a turn waits for, it can be interrupted and suspended.
		if !s.Ended() && s != record.TurnSuspended && (!slices.Contains(table, record.TurnInterrupted) || !slices.Contains(table, record.TurnSuspended)) {
			t.Errorf("%s cannot be interrupted or suspended", s)
		}
	}
}

func TestEnterKeepsToTheTable(t *testing.T) {
	turn := &turn{}
	turn.row.State = record.TurnDone
	if err := turn.enter(record.TurnCalling); err == nil || turn.row.State != record.TurnDone {
		t.Error("an end was left")
	}
}

func TestStall(t *testing.T) {
	var s stall
	for i, c := range []struct {
		args, result string
		stalled      bool
	}{
		{`{"a":1,"b":2}`, "x", false}, {`{"b":2, "a":1}`, "x", false}, {`{"a":1,"b":2}`, "y", false},
		{`{"a":1,"b":2}`, "y", false}, {`{"b":2,"a":1}`, "y", true},
	} {
		if why := s.ran("look", c.args, c.result); (why != "") != c.stalled {
			t.Errorf("call %d: %q", i, why)
		}
	}
	s = stall{}
	for i := range 5 {
		if why := s.spoke("Let me look."); why != "" {
			t.Errorf("a short phrase stalls after %d", i)
		}
	}
	text := "I will now try the same thing once more to see."
	if s.spoke(text) != "" || s.spoke(text+" ") != "" || s.spoke(text) == "" {
		t.Error("a repeated text does not stall at the third time")
	}
}

func TestGrow(t *testing.T) {
	b := record.Budget{Initial: 10, Step: 10, Cap: 25}
	var got []int
	for range 3 {
		var n int
		b, n = grow(b)
		got = append(got, n)
	}
	if !slices.Equal(got, []int{10, 5, 0}) || b.Initial+b.Granted != 25 {
		t.Errorf("%v %+v", got, b)
	}
}

// A question shows what would run, and nothing that is hidden or breaks out.
func TestQuestionShowsTheWholeCall(t *testing.T) {
	j := job{ask: "it runs a command"}
	j.call.Name, j.call.Arguments = "terminal", `{"command":"echo `+"```"+` \u202e hidden"}`
	q := question(j)
	if !strings.Contains(q, "````\ncommand: echo ``` \\u{202e} hidden\n````") {
		t.Error(q)
	}
	j.call.Arguments = `{"command":"ls","cwd":"/"}`
	if q := question(j); !strings.Contains(q, `"command": "ls"`) || !strings.Contains(q, `"cwd": "/"`) {
		t.Error(q)
	}
}
