package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// Delegate begins the subagent of a task, with its session and its first message, or
// finds the one that was begun for the task before. The session stands below the
// parent's and is the root of a lineage of its own, which shares nothing with it. It
// fails with record.ErrConflict if the parent has ended.
func (db *DB) Delegate(ctx context.Context, f record.Fence, d record.Delegation) (record.Delegated, error) {
	var got record.Delegated
	var found *record.Delegated
	ask := func(b *pgx.Batch) {
		found = nil
		b.Queue(`SELECT check_fence($1, $2, $3)`, null(f.Conversation), null(f.Replica), f.Epoch)
		b.Queue(`SELECT check_rows(count(*), 1) FROM turns WHERE id = $1 AND conversation_id = $2 AND ended_at IS NULL`, d.Parent, null(f.Conversation))
		b.Queue(`
			SELECT `+turnColumns+`, coalesce((SELECT m.content FROM messages m
				WHERE m.session_id = t.session_id AND m.turn_id = t.id AND m.role = 'assistant' AND m.content <> '' ORDER BY m.seq DESC LIMIT 1), '')
			FROM turns t WHERE t.parent_id = $1 AND md5(t.call_id) = md5($2) AND t.task = $3`, d.Parent, text(d.CallID), d.Task).
			Query(maybe(&found, scanDelegated))
	}
	err := db.decide(ctx, "delegate", ask, func(_ context.Context, _ querier, b *pgx.Batch) error {
		if found != nil {
			got = *found
			return nil
		}
		got = record.Delegated{Turn: d.Turn, New: true}
		t := &got.Turn
		t.ID, t.Session = record.TurnID(record.NewID()), record.SessionID(record.NewID())
		t.Conversation, t.Parent, t.State = f.Conversation, d.Parent, record.TurnPreparing
		b.Queue(`
			INSERT INTO sessions (id, conversation_id, parent_id, root_id, reason, title, model)
			SELECT $2, p.conversation_id, p.session_id, $2, 'delegation', $3, s.model
			FROM turns p JOIN sessions s ON s.id = p.session_id WHERE p.id = $1`, d.Parent, t.Session, text(d.Title))
		b.Queue(`
			INSERT INTO turns (id, conversation_id, session_id, parent_id, call_id, task, state, budget, person, trust, account, chat, thread, reply, source)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING started_at`,
			t.ID, t.Conversation, t.Session, t.Parent, text(d.CallID), d.Task, t.State, jsonOf(t.Budget), text(t.Person), t.Trust,
			text(t.Address.Account), text(t.Address.Chat), text(t.Address.Thread), text(t.Reply), text(t.Source)).
			QueryRow(func(row pgx.Row) error { return row.Scan(&t.StartedAt) })
		a := appender{batch: b, conversation: f.Conversation, session: t.Session, turn: t.ID}
		m := d.Message
		a.add(&m, 0)
		return nil
	})
	return got, err
}

func scanDelegated(row pgx.Row) (d record.Delegated, err error) {
	d.Turn, err = scanTurn(extended{row, []any{&d.Text}})
	return d, err
}

// extended scans a row that has more columns behind those that a scan function knows.
type extended struct {
	pgx.Row
	more []any
}

func (e extended) Scan(dest ...any) error { return e.Row.Scan(append(dest, e.more...)...) }

// queueAbandon ends the subagents of a turn that ends without them, and books what
// they have used. They had no time to say anything.
func queueAbandon(b *pgx.Batch, parent record.TurnID) {
	b.Queue(`
		WITH RECURSIVE below AS (
			SELECT id FROM turns WHERE parent_id = $1
			UNION ALL SELECT t.id FROM below b JOIN turns t ON t.parent_id = b.id),
		ended AS (
			UPDATE turns t SET state = 'interrupted', cause = 'the turn that waited for it has ended', ended_at = now()
			FROM below WHERE t.id = below.id AND t.ended_at IS NULL RETURNING t.*),
		runs AS (
			UPDATE tool_runs r SET state = 'done', outcome = 'interrupted', ended_at = now() FROM ended WHERE r.turn_id = ended.id AND r.state <> 'done')
		INSERT INTO usage (turn_id, conversation_id, person, model, input_tokens, cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost)
		SELECT id, conversation_id, person, model, input_tokens, cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost
		FROM ended WHERE input_tokens + output_tokens > 0`, parent)
}
