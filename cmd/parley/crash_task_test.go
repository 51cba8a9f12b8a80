package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"parley/agentcore/provider/providertest"
	"parley/gateway/killpoint"
)

// taskPoints are those that work which begins by itself passes after it was taken in: its
// answer is a draft before it is posted.
var taskPoints = []string{
	killpoint.TurnStarted, killpoint.ModelCalled, killpoint.ModelFirstToken, killpoint.TurnEnding, killpoint.TurnEnded,
	killpoint.DeliverySending, killpoint.DeliverySent, killpoint.DeliveryStored,
}

// taskPat is the person in whose chat the work begins by itself.
const taskPat = 11

var taskPattern = regexp.MustCompile(`(make|task) (m\d+x\d+)`)

// tasks is the model: it makes a schedule when it is told to, and does what a schedule
// or a webhook asks for.
func tasks(r providertest.Request) providertest.Answer {
	m := taskPattern.FindStringSubmatch(r.LastUser())
	switch {
	case m == nil:
		return answer(r)
	case m[1] == "make" && len(r.Results()) == 0:
		return call("schedule", `{"action":"create","title":"tea","prompt":"task `+taskID+`","every":"1h"}`)
	}
	return providertest.Answer{Text: final("plain", m[2])}
}

// taskID is what the work is told apart by.
const taskID = "m11x1"

// expect counts the work as something that is to be answered, once.
func (w *crashWorld) expect() {
	p := w.at(taskPat)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.messages[taskID] = p
}

// recovered starts a process after a kill, does something, and judges what it leaves.
func (w *crashWorld) recovered(t *testing.T, do func(d *victim)) {
	t.Helper()
	w.kills++
	d := w.start(t, "")
	do(d)
	w.settle(t)
	d.stop(t)
	w.verdict(t)
}

// TestCrashOfSchedules kills at each point of a run that has come due. It is done once,
// told once, and the next one is planned (CRN-001).
func TestCrashOfSchedules(t *testing.T) {
	bin := buildDaemon(t)
	for _, point := range taskPoints {
		t.Run(point, func(t *testing.T) {
			w := newCrashWorld(t, bin, "telegram")
			w.model.Respond(tasks)
			d := w.start(t, "")
			w.say(taskPat, "make")
			w.settle(t)
			d.stop(t)
			w.change(t, `UPDATE schedules SET next_at = now() - interval '1 second'`)
			w.expect()
			if d = w.start(t, point); !d.died(t) {
				t.Fatalf("the point %s was not passed", point)
			}
			w.recovered(t, func(*victim) {})
			if got := w.asked(t, `SELECT state || ' ' || runs || ' ' || (next_at > now())::text FROM schedules`); got != "active 1 true" {
				t.Errorf("the schedule is %s", got)
			}
			if got := w.asked(t, `SELECT coalesce(string_agg(state, ' '), 'none') FROM turns WHERE trust = 'schedule'`); got != "done" {
				t.Errorf("its runs: %s", got)
			}
		})
	}
}

// TestCrashOfWebhooks kills while an event from outside is taken in, when its sender
// repeats it, and at each point after that: it is answered once.
func TestCrashOfWebhooks(t *testing.T) {
	bin := buildDaemon(t)
	for _, point := range append([]string{killpoint.IntakeStored}, taskPoints...) {
		t.Run(point, func(t *testing.T) {
			w := newCrashWorld(t, bin, "telegram")
			w.model.Respond(tasks)
			address := fixedAddress(t)
			w.settings = strings.Replace(w.settings, "127.0.0.1:0", address, 1) +
				fmt.Sprintf("webhooks: { ci: { secret: %q, prompt: %q, deliver: telegram/main/%d } }\n", hookSecret, "task "+taskID, telegramPat+taskPat)
			w.configure(t)
			d := w.start(t, "")
			w.say(taskPat, "plain")
			w.settle(t)
			d.stop(t)

			d = w.start(t, point)
			w.expect()
			taken := tells(t, address, d.exited)
			if !d.died(t) {
				t.Fatalf("the point %s was not passed", point)
			}
			if taken && point == killpoint.IntakeStored {
				t.Error("the sender was told that it is taken by a process that died before it could say so")
			}
			w.recovered(t, func(d *victim) {
				if !tells(t, address, d.exited) { // in doubt a sender repeats
					t.Error("the event is not taken")
				}
			})
			if got := w.asked(t, `SELECT coalesce(string_agg(state, ' '), 'none') FROM turns WHERE trust = 'untrusted'`); got != "done" {
				t.Errorf("its turns: %s", got)
			}
		})
	}
}

const hookSecret = "0123456789abcdef0123"

// tells sends the event once the address answers, and says whether it was taken. It
// gives up when the process is gone.
func tells(t *testing.T, address string, gone <-chan struct{}) bool {
	t.Helper()
	const body = `{"build":7}`
	m := hmac.New(sha256.New, []byte(hookSecret))
	_, _ = m.Write([]byte(body))
	taken := false
	if !eventually(func() bool {
		select {
		case <-gone:
			return true
		default:
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/webhook/in/ci", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(m.Sum(nil)))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false // not up yet, or killed
		}
		_ = res.Body.Close()
		taken = res.StatusCode == http.StatusAccepted
		return taken
	}) {
		t.Fatal("the webhook does not answer")
	}
	return taken
}

// fixedAddress is one for all processes of a test, outside of the range that connections get their ports from, so that
// it stays free until it is used.
func fixedAddress(t *testing.T) string {
	t.Helper()
	for port := 20000 + os.Getpid()%10000; port < 32000; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// asked is the one value that the database answers, as text.
func (w *crashWorld) asked(t *testing.T, sql string) (value string) {
	t.Helper()
	w.inDatabase(t, func(conn *pgx.Conn) error { return conn.QueryRow(t.Context(), sql).Scan(&value) })
	return value
}

// change changes what is in the database.
func (w *crashWorld) change(t *testing.T, sql string) {
	t.Helper()
	w.inDatabase(t, func(conn *pgx.Conn) error {
		_, err := conn.Exec(t.Context(), sql)
		return err
	})
}

func (w *crashWorld) inDatabase(t *testing.T, do func(*pgx.Conn) error) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), w.database)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(do(conn), conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}
