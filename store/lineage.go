package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/gateway/chat"
	"parley/store/record"
)

// Explain says what became of a message, given as the platform's id: its inbox
// row, the turn that it was part of, what was refused in that turn, and what was
// posted for it. An empty account or conversation stands for any, of which the newest
// message of that id counts: ids are a chat's own. record.ErrNotFound if it never
// came in.
func (db *DB) Explain(ctx context.Context, a chat.AccountID, c record.ConversationID, m chat.MessageID) (record.Why, error) {
	var w record.Why
	err := db.read(ctx, "explain", func(ctx context.Context) error {
		item, err := scanItem(db.pool.QueryRow(ctx, `SELECT `+inboxColumns+` FROM inbox i
			WHERE i.message = $1 AND i.message <> '' AND ($2 = '' OR i.account = $2) AND ($3::uuid IS NULL OR i.conversation_id = $3)
			ORDER BY i.kind <> 'message', i.seq DESC LIMIT 1`,
			bounded(m, maxID), text(a), null(c)))
		w = record.Why{Item: item}
		if err != nil || item.Turn == "" {
			return err
		}
		b := &pgx.Batch{}
		b.Queue(`SELECT `+turnColumns+` FROM turns t WHERE t.id = $1`, item.Turn).Query(maybe(&w.Turn, scanTurn))
		b.Queue(`SELECT `+deliveryColumns+` FROM deliveries d WHERE d.turn_id = $1 ORDER BY d.seq`, item.Turn).Query(list(&w.Deliveries, scanDelivery))
		b.Queue(refusalsOf, item.Turn).Query(list(&w.Refusals, scanRefusal))
		return db.pool.SendBatch(ctx, b).Close()
	})
	return w, err
}

// refusalsOf finds what was refused in a turn and in its subagents' turns, whose
// questions are asked in its name (agentcore prefixes the call's id). A spending
// question that was withdrawn by nobody went with its turn.
const refusalsOf = `
	WITH RECURSIVE work AS (
		SELECT id, '' AS path FROM turns WHERE id = $1
		UNION ALL SELECT t.id, w.path || t.id || '/' FROM work w JOIN turns t ON t.parent_id = w.id)
	SELECT refused_by, tool, asked, reason, state, decided_by FROM (
		SELECT r.refused_by, r.tool, r.arguments AS asked, r.reason, coalesce(a.state, '') AS state, coalesce(a.decided_by, '') AS decided_by, r.ended_at AS at
		FROM work w JOIN tool_runs r ON r.turn_id = w.id LEFT JOIN approvals a ON a.turn_id = $1 AND md5(a.call_id) = md5(w.path || r.call_id)
		WHERE r.refused_by <> '' OR r.outcome = 'denied'
		UNION ALL SELECT 'spending', '', a.question, '', a.state, a.decided_by, a.decided_at FROM approvals a
		WHERE a.turn_id = $1 AND a.kind = 'spending' AND (a.state IN ('denied', 'expired') OR a.state = 'withdrawn' AND a.decided_by <> '')) refused
	ORDER BY at`

func scanRefusal(row pgx.Row) (r record.Refusal, err error) {
	err = row.Scan(&r.By, &r.Tool, &r.Arguments, &r.Reason, &r.Decision, &r.Decider)
	return r, err
}

// UsageOf sums what the conversation has used since a time, by what it was for, turns
// first; the zero time means since ever.
func (db *DB) UsageOf(ctx context.Context, c record.ConversationID, since time.Time) ([]record.UsageEntry, error) {
	var all []record.UsageEntry
	err := db.read(ctx, "usage", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `
			SELECT purpose, sum(input_tokens)::bigint, sum(cached_tokens)::bigint, sum(cache_write_tokens)::bigint,
				sum(output_tokens)::bigint, sum(reasoning_tokens)::bigint, sum(cost)
			FROM usage WHERE conversation_id = $1 AND ($2::timestamptz IS NULL OR at >= $2) GROUP BY purpose ORDER BY purpose`, c, nullTime(since))
		if err != nil {
			return err
		}
		return list(&all, func(row pgx.Row) (e record.UsageEntry, err error) {
			e.Conversation = c
			u := &e.Usage
			err = row.Scan(&e.Purpose, &u.Input, &u.CachedInput, &u.CacheWrite, &u.Output, &u.Reasoning, &u.Cost)
			return e, err
		})(rows)
	})
	return all, err
}

// AddUsage notes what was used outside turns, which account for themselves.
func (db *DB) AddUsage(ctx context.Context, e record.UsageEntry) error {
	return db.batch(ctx, "add usage", func(b *pgx.Batch) {
		u := e.Usage
		b.Queue(`
			INSERT INTO usage (conversation_id, person, purpose, model, input_tokens, cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			e.Conversation, text(e.Person), e.Purpose, text(e.Model), u.Input, u.CachedInput, u.CacheWrite, u.Output, u.Reasoning, u.Cost)
	})
}
