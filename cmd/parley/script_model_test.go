package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"parley/agentcore/provider/providertest"
)

// startModel starts the model server, the second and further times at the address
// of the first.
func (w *world) startModel(o providertest.Options) {
	o.Key, o.Models = modelKey, []string{"model-1", "model-2"}
	if w.model != nil {
		u, err := url.Parse(w.model.BaseURL())
		if err != nil {
			w.t.Fatal(err)
		}
		o.Addr = u.Host
	}
	m, err := providertest.Start(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.model = m
	w.models = append(w.models, m)
}

func cmdModel(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) > 0, "model next KEY=VALUE..., model asked N, model last, model down, model up [window=N]")
	w := worldOf(ts)
	switch args[0] {
	case "next":
		w.model.Enqueue(answerOf(ts, args[1:]))
	case "asked":
		n, err := strconv.Atoi(optional(args, 1, ""))
		ts.Check(err)
		w.asked(ts, n)
	case "last":
		if w.model.Exchanges() == nil {
			ts.Fatalf("the model was not asked anything")
		}
		for _, m := range w.model.Last(w.t).Messages {
			fmt.Fprintf(ts.Stdout(), "%s: %s\n", m.Role, m.Text)
			for _, c := range m.Calls {
				fmt.Fprintf(ts.Stdout(), "%s calls: %s %s\n", m.Role, c.Name, c.Arguments)
			}
		}
	case "down":
		w.model.Close()
	case "up":
		window := strings.TrimPrefix(optional(args, 1, "window=0"), "window=")
		n, err := strconv.Atoi(window)
		ts.Check(err)
		w.startModel(providertest.Options{Window: n})
	default:
		ts.Fatalf("there is no model %s", args[0])
	}
}

// asked waits until the model was asked n times, over all its starts.
func (w *world) asked(ts *testscript.TestScript, n int) {
	count := func() (n int) {
		for _, m := range w.models {
			n += len(m.Exchanges())
		}
		return n
	}
	if !eventually(func() bool { return count() >= n }) {
		ts.Fatalf("the model was asked %d times", count())
	}
}

var modelEnds = map[string]providertest.End{
	"cut": providertest.EndCut, "early": providertest.EndEarly, "silent": providertest.EndSilent, "error": providertest.EndError,
}

// answerOf reads KEY=VALUE pairs.
func answerOf(ts *testscript.TestScript, pairs []string) providertest.Answer {
	a := providertest.Answer{Header: map[string]string{}}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		number, _ := strconv.Atoi(value)
		switch key {
		case "text":
			a.Text = value
		case "words":
			a.Text = providertest.Words(number)
		case "rate":
			a.Rate = float64(number)
		case "first":
			d, err := time.ParseDuration(value)
			ts.Check(err)
			a.FirstToken = d
		case "status":
			a.Status = number
		case "after":
			a.After = number
		case "end":
			end, ok := modelEnds[value]
			if !ok {
				ts.Fatalf("there is no end %s", value)
			}
			a.End = end
		case "call":
			name, arguments, _ := strings.Cut(value, ":")
			a.Calls = append(a.Calls, providertest.Call{Name: name, Arguments: arguments})
		default:
			name, ok := strings.CutPrefix(key, "header.")
			if !ok {
				ts.Fatalf("an answer has no %s", key)
			}
			a.Header[name] = value
		}
	}
	return a
}

// query returns the rows as text: columns parted by tabs, rows by line breaks.
func (w *world) query(sql string, args ...any) (string, error) {
	ctx, cancel := limited()
	defer cancel()
	if w.conn == nil || w.conn.IsClosed() {
		var err error
		if w.conn, err = pgx.Connect(ctx, w.url); err != nil {
			return "", err
		}
	}
	rows, err := w.conn.Query(ctx, sql, args...)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		values, err := row.Values()
		cells := make([]string, len(values))
		for i, v := range values {
			if b, isID := v.([16]byte); isID {
				v = fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
			}
			if v != nil {
				cells[i] = fmt.Sprint(v)
			}
		}
		return strings.Join(cells, "\t"), err
	})
	return strings.Join(lines, "\n"), err
}

// quoted reads a query of a script, where " stands for '.
func quoted(query string) string { return strings.ReplaceAll(query, `"`, "'") }

func cmdSQL(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 1, "sql QUERY")
	rows, err := worldOf(ts).query(quoted(args[0]))
	ts.Check(err)
	fmt.Fprintln(ts.Stdout(), rows)
}

func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 2, "await QUERY WANT")
	w := worldOf(ts)
	var got string
	var err error
	if !eventually(func() bool { got, err = w.query(quoted(args[0])); return err == nil && got == args[1] }) {
		ts.Fatalf("it gives %q %v", got, err)
	}
}

func cmdDatabase(ts *testscript.TestScript, neg bool, args []string) {
	positive(ts, neg, len(args) == 1, "database private, database down, database up, database kick")
	w := worldOf(ts)
	switch args[0] {
	case "private", "up":
		ts.Check(w.privateServer())
		ts.Setenv("DB", w.url)
	case "down":
		w.stopPrivate()
	case "kick":
		_, err := w.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
		ts.Check(err)
	default:
		ts.Fatalf("there is no database %s", args[0])
	}
}
