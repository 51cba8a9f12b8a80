package main

import (
	"context"
	"strings"
	"testing"

	"parley/store/record"
	"parley/store/storetest"
)

// typed runs `parley chat` with lines piped in.
func typed(t *testing.T, dir string, env environment, input string, args ...string) outcome {
	t.Helper()
	out, errs := newOutput(), newOutput()
	code := run(t.Context(), context.Background(), process{
		args: append([]string{"chat"}, args...), env: env.lookup, dir: dir, stdin: strings.NewReader(input), stdout: out, stderr: errs,
	})
	return outcome{code, out.String(), errs.String()}
}

func TestChat(t *testing.T) {
	dir := write(t, "model: demo/demo\ndatabase: { url: \"${DB}\" }\ndata_dir: ./data\n")
	env := environment{"DB": storetest.URL(t)}
	typed(t, dir, env, "The first thing.\n").has(t, 0, "> The first thing.")
	typed(t, dir, env, "The second thing.\n").has(t, 0, "A new session", "> The second thing.")
	typed(t, dir, env, "The third thing.\n", "--resume").has(t, 0, "> The third thing.")
	rows := decode[[]sessionRow](t, parleyIn(t, dir, env, "sessions", "list", "--json"))
	if len(rows) != 2 || !rows[0].Current || rows[0].Messages == nil {
		t.Fatalf("sessions: %+v", rows)
	}
	typed(t, dir, env, "The fourth thing.\n", "--resume", rows[1].ID).has(t, 0, "> The fourth thing.")
	parleyIn(t, dir, env, "sessions", "show", rows[0].ID).has(t, 0, "The second thing.", "The third thing.")
	parleyIn(t, dir, env, "sessions", "show", rows[1].ID).has(t, 0, "The first thing.", "The fourth thing.")
	typed(t, dir, env, "Lost?\n", "--resume", "nosuch").has(t, 1, "there is no session nosuch; see parley sessions list")
	typed(t, dir, env, "Lost?\n", "--resume", record.NewID()).has(t, 1, "there is no session")
	typed(t, dir, env, "", "nonsense").has(t, 2, `what is "nonsense"?`)
}
