package store

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// messageColumns are those of a message m, in scanMessage's order.
const messageColumns = `m.session_id, m.seq, m.role, m.kind, m.content, m.wire_content, m.tool_calls, m.tool_call_id, m.tool_name, m.reasoning,
	m.files, m.sender, m.sender_name, m.platform_message_id, m.turn_id, m.importance, m.origin_session, m.origin_seq, m.created_at`

func messageFields(m *record.Message) []any {
	return []any{&m.Session, &m.Seq, &m.Role, &m.Kind, &m.Content, &m.Wire, &m.ToolCalls, &m.ToolCallID, &m.ToolName, &m.Reasoning,
		&m.Files, &m.From, &m.FromName, &m.Platform, empty(&m.Turn), &m.Importance, empty(&m.OriginSession), &m.OriginSeq, &m.CreatedAt}
}

func scanMessage(row pgx.Row) (m record.Message, err error) {
	err = row.Scan(messageFields(&m)...)
	return m, err
}

// messageContent are a message's values from the role on, for $6 and up.
func messageContent(m record.Message) []any {
	calls := slices.Clone(m.ToolCalls)
	for i := range calls {
		calls[i].Extra = validJSON(calls[i].Extra)
	}
	var reasoning *string
	if m.Reasoning != nil {
		r := *m.Reasoning
		r.Raw = validJSON(r.Raw)
		reasoning = jsonOf(r)
	}
	return []any{m.Role, m.Kind, text(m.Content), text(m.Wire), jsonList(calls), text(m.ToolCallID), text(m.ToolName), reasoning, jsonList(m.Files),
		text(m.From), text(m.FromName), text(m.Platform), m.Importance, null(m.OriginSession), m.OriginSeq, nullTime(m.CreatedAt)}
}

// insertMessage appends a message to session $1 of conversation $2, or to the
// session of turn $3 if $1 is null, and takes $4 sequences: the first for itself,
// the others for results to come. With a sequence $5 it goes to that place, which
// must have been taken before; $4 is 0 then. A session of another conversation, or
// none, is an error.
const insertMessage = `
	WITH s AS (
		UPDATE sessions SET next_seq = next_seq + $4
		WHERE id = coalesce($1, (SELECT session_id FROM turns WHERE id = $3)) AND conversation_id = $2
		RETURNING id, CASE WHEN $5::bigint = 0 THEN next_seq - $4 WHEN $5 < next_seq THEN $5 END AS seq)
	INSERT INTO messages AS m (session_id, seq, turn_id, role, kind, content, wire_content, tool_calls, tool_call_id, tool_name, reasoning,
		files, sender, sender_name, platform_message_id, importance, origin_session, origin_seq, created_at)
	VALUES ((SELECT id FROM s), (SELECT seq FROM s), $3, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, coalesce($21, now()))
	RETURNING m.session_id, m.seq, m.created_at`

// appender appends messages of one conversation within a batch.
type appender struct {
	batch        *pgx.Batch
	conversation record.ConversationID
	session      record.SessionID // empty: the turn's
	turn         record.TurnID    // for messages that name none
}

// add queues one message with room for results behind it. Its session, sequence
// and time are filled in when the batch has run.
func (a *appender) add(m *record.Message, results int) {
	if m.Turn == "" {
		m.Turn = a.turn
	}
	take := int64(1 + results)
	if m.Seq > 0 {
		take = 0
	}
	args := append([]any{null(a.session), a.conversation, null(m.Turn), take, m.Seq}, messageContent(*m)...)
	a.batch.Queue(insertMessage, args...).QueryRow(func(row pgx.Row) error { return row.Scan(&m.Session, &m.Seq, &m.CreatedAt) })
}

// AppendMessages adds messages to a session of the conversation and returns them
// with their sequences. A message with a sequence goes to that reserved place.
func (db *DB) AppendMessages(ctx context.Context, f record.Fence, s record.SessionID, msgs []record.Message) ([]record.Message, error) {
	var out []record.Message
	err := db.write(ctx, "append messages", f, func(b *pgx.Batch) {
		out = slices.Clone(msgs)
		a := appender{batch: b, conversation: f.Conversation, session: s}
		for i := range out {
			a.add(&out[i], 0)
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// SetWire freezes what was really sent for a message; the first value stays.
func (db *DB) SetWire(ctx context.Context, f record.Fence, s record.SessionID, seq int64, wire string) error {
	return db.write(ctx, "freeze a message", f, func(b *pgx.Batch) {
		b.Queue(`
			WITH frozen AS (
				UPDATE messages m SET wire_content = CASE WHEN m.wire_content = '' THEN $4 ELSE m.wire_content END
				FROM sessions s WHERE s.id = m.session_id AND s.conversation_id = $1 AND m.session_id = $2 AND m.seq = $3 RETURNING 1)
			SELECT check_found(count(*)) FROM frozen`, f.Conversation, s, seq, text(wire))
	})
}

// history reads a session's messages. Forks (branch, undo, resume) inherit their
// parent's history up to the fork; a compression's child holds everything itself.
// Sequences grow along a lineage, so that one cut holds for all ancestors.
const history = `
	WITH RECURSIVE line AS (
		SELECT id, parent_id, reason, fork_seq, NULL::bigint AS upto, 0 AS depth FROM sessions WHERE id = $1
		UNION ALL
		SELECT p.id, p.parent_id, p.reason, p.fork_seq, least(l.upto, l.fork_seq), l.depth + 1
		FROM line l JOIN sessions p ON p.id = l.parent_id
		WHERE l.fork_seq > 0 AND l.reason IN ('branch', 'undo', 'resume'))
	SELECT ` + messageColumns + ` FROM line l JOIN messages m ON m.session_id = l.id AND (l.upto IS NULL OR m.seq <= l.upto)
	ORDER BY l.depth DESC, m.seq`

// History returns a session's messages in order, those inherited from ancestors by
// forks included; none for a session that is not there.
func (db *DB) History(ctx context.Context, id record.SessionID) ([]record.Message, error) {
	var msgs []record.Message
	err := db.read(ctx, "history", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, history, id)
		if err != nil {
			return err
		}
		return list(&msgs, scanMessage)(rows)
	})
	return msgs, err
}
