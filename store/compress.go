package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// Compress swaps to a child session, all of it or nothing (LIN-001): the child has
// the summary, the tail and the rows that were added since; the parent is closed,
// conversation and turn point to the child, the facts are kept. It fails with
// record.ErrConflict if c.Turn, or without one the conversation, does not stand at the
// parent any more, or if a turn that is not c.Turn is running on it. The conversation
// moves along only if it stands there: a subagent's turn has a session of its own.
//
// Rows keep their sequences, and the child goes on where the parent was: sequences
// that are reserved for results of the turn's tools are good in the child too. The
// summary takes the place of the last row that it folds.
func (db *DB) Compress(ctx context.Context, f record.Fence, c record.Compression) (record.Session, error) {
	var child record.Session
	if c.Child.ID == "" {
		c.Child.ID = record.SessionID(record.NewID())
	}
	err := db.write(ctx, "compress", f, func(b *pgx.Batch) {
		queueChild(b, f, c)
		queueHistory(b, f, c)
		b.Queue(`UPDATE sessions SET ended_at = coalesce(ended_at, now()) WHERE id = $1`, c.Parent.ID)
		b.Queue(`UPDATE conversations SET session_id = $2 WHERE id = $1 AND session_id = $3`, f.Conversation, c.Child.ID, c.Parent.ID)
		if c.Turn != "" {
			b.Queue(`WITH moved AS (UPDATE turns SET session_id = $2 WHERE id = $1 AND session_id = $3 AND ended_at IS NULL RETURNING 1)
				SELECT check_rows(count(*), 1) FROM moved`, c.Turn, c.Child.ID, c.Parent.ID)
		}
		for _, fact := range c.Facts {
			queueFact(b, fact)
		}
		b.Queue(`SELECT `+sessionColumns+` FROM sessions s WHERE s.id = $1`, c.Child.ID).QueryRow(one(&child, scanSession))
	})
	return child, err
}

// queueChild checks that the lineage has not moved and writes the child's row, in
// which the parent's title goes on (LIN-004).
func queueChild(b *pgx.Batch, f record.Fence, c record.Compression) {
	b.Queue(`
		SELECT check_rows(count(*), 1) FROM conversations c WHERE c.id = $1 AND (c.session_id = $2 OR $3::uuid IS NOT NULL)
			AND NOT EXISTS (SELECT FROM turns t WHERE t.conversation_id = c.id AND t.session_id = $2 AND t.ended_at IS NULL AND t.id IS DISTINCT FROM $3)`,
		f.Conversation, c.Parent.ID, null(c.Turn))
	b.Queue(`
		INSERT INTO sessions (id, conversation_id, parent_id, root_id, reason, title, model, system_prompt, next_seq, ineffective, cool_until)
		SELECT $2, conversation_id, id, root_id, 'compression', title, coalesce(nullif($3, ''), model), $4, next_seq, $5, $6
		FROM sessions WHERE id = $1`,
		c.Parent.ID, c.Child.ID, text(c.Child.Model), text(c.Child.SystemPrompt), c.Child.Ineffective, nullTime(c.Child.CoolUntil))
}

// queueHistory writes the child's messages: summary, tail, and what the parent got
// since its rows were read, results for calls in the tail included.
func queueHistory(b *pgx.Batch, f record.Fence, c record.Compression) {
	first := c.UpTo + 1
	if len(c.Tail) > 0 {
		first = c.Tail[0].Seq
	}
	a := appender{batch: b, conversation: f.Conversation, session: c.Child.ID}
	summary := c.Summary
	summary.Seq, summary.Kind = max(first-1, 1), record.KindSummary
	a.add(&summary, 0)
	kept := make([]int64, 0, len(c.Tail))
	for _, m := range c.Tail {
		kept = append(kept, m.Seq)
		if m.OriginSession == "" {
			m.OriginSession, m.OriginSeq = m.Session, m.Seq
		}
		a.add(&m, 0)
	}
	b.Queue(`
		INSERT INTO messages (session_id, seq, role, kind, content, wire_content, tool_calls, tool_call_id, tool_name, reasoning, files, sender,
			sender_name, platform_message_id, turn_id, importance, origin_session, origin_seq, created_at)
		SELECT $2, seq, role, kind, content, wire_content, tool_calls, tool_call_id, tool_name, reasoning, files, sender,
			sender_name, platform_message_id, turn_id, importance, coalesce(origin_session, session_id),
			CASE WHEN origin_session IS NULL THEN seq ELSE origin_seq END, created_at
		FROM messages WHERE session_id = $1 AND seq <> ALL($3) AND (seq > $4 OR role = 'tool' AND seq >= $5)`,
		c.Parent.ID, c.Child.ID, kept, c.UpTo, first)
}
