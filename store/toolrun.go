package store

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// PlanTools appends the assistant's message and writes its pending tool runs, with
// a sequence reserved for each result in the order of the calls (RST-005).
func (db *DB) PlanTools(ctx context.Context, f record.Fence, s record.SessionID, assistant record.Message, runs []record.ToolRun) (record.Message, []record.ToolRun, error) {
	var m record.Message
	planned := slices.Clone(runs)
	err := db.write(ctx, "plan tools", f, func(b *pgx.Batch) {
		m = assistant
		a := appender{batch: b, conversation: f.Conversation, session: s}
		a.add(&m, len(runs))
		for i := range planned {
			r := &planned[i]
			if r.Turn == "" {
				r.Turn = assistant.Turn
			}
			r.State = record.ToolPending
			b.Queue(`
				INSERT INTO tool_runs (turn_id, iteration, idx, call_id, tool, arguments, state, result_seq)
				SELECT $2, $3, $4, $5, $6, $7, 'pending', next_seq - $8 FROM sessions WHERE id = $1
				RETURNING result_seq`, s, r.Turn, r.Iteration, r.Index, text(r.CallID), text(r.Tool), text(string(r.Arguments)), len(runs)-i).
				QueryRow(func(row pgx.Row) error { return row.Scan(&r.ResultSeq) })
		}
	})
	if err != nil {
		return assistant, nil, err
	}
	return m, planned, nil
}

// ToolRuns returns a turn's tool runs in order.
func (db *DB) ToolRuns(ctx context.Context, t record.TurnID) ([]record.ToolRun, error) {
	var runs []record.ToolRun
	err := db.read(ctx, "tool runs", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `SELECT turn_id, iteration, idx, call_id, tool, arguments, state, result_seq, outcome, refused_by, reason, started_at, ended_at
			FROM tool_runs WHERE turn_id = $1 ORDER BY iteration, idx`, t)
		if err != nil {
			return err
		}
		return list(&runs, scanToolRun)(rows)
	})
	return runs, err
}

func scanToolRun(row pgx.Row) (r record.ToolRun, err error) {
	var args string
	err = row.Scan(&r.Turn, &r.Iteration, &r.Index, &r.CallID, &r.Tool, &args, &r.State, &r.ResultSeq, &r.Outcome, &r.RefusedBy, &r.Reason, zero(&r.StartedAt), zero(&r.EndedAt))
	r.Arguments = json.RawMessage(args)
	return r, err
}

// StartTool marks a pending run as started; it fails with record.ErrConflict if it
// is not pending, since then it may have run already.
func (db *DB) StartTool(ctx context.Context, f record.Fence, r record.ToolRun) error {
	return db.write(ctx, "start tool", f, func(b *pgx.Batch) {
		b.Queue(`
			WITH started AS (
				UPDATE tool_runs r SET state = 'started', started_at = now() FROM turns t
				WHERE r.turn_id = $1 AND r.iteration = $2 AND r.idx = $3 AND r.state = 'pending'
					AND t.id = r.turn_id AND t.conversation_id = $4 AND t.ended_at IS NULL RETURNING 1)
			SELECT check_rows(count(*), 1) FROM started`, r.Turn, r.Iteration, r.Index, f.Conversation)
	})
}

// FinishTool ends a run that has not ended, with its outcome, and stores its result
// at the reserved sequence of session s; a run that has ended is record.ErrConflict.
func (db *DB) FinishTool(ctx context.Context, f record.Fence, s record.SessionID, r record.ToolRun, result record.Message) error {
	return db.write(ctx, "finish tool", f, func(b *pgx.Batch) {
		b.Queue(`
			WITH ended AS (
				UPDATE tool_runs r SET state = 'done', outcome = $5, refused_by = $7, reason = $8, ended_at = now() FROM turns t
				WHERE r.turn_id = $1 AND r.iteration = $2 AND r.idx = $3 AND r.state <> 'done' AND r.result_seq = $6
					AND t.id = r.turn_id AND t.conversation_id = $4 RETURNING 1)
			SELECT check_rows(count(*), 1) FROM ended`, r.Turn, r.Iteration, r.Index, f.Conversation, text(r.Outcome), r.ResultSeq, text(r.RefusedBy), text(r.Reason))
		m := result
		m.Seq = r.ResultSeq
		a := appender{batch: b, conversation: f.Conversation, session: s, turn: r.Turn}
		a.add(&m, 0)
	})
}
