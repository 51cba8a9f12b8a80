package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// Explain says what became of a message, given as the platform's id: its inbox
// row, the turn that it was part of, and what was posted for that turn. An empty
// account or conversation stands for any, of which the newest message of that id
// counts: ids are a chat's own. record.ErrNotFound if it never came in.
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
		return db.pool.SendBatch(ctx, b).Close()
	})
	return w, err
}

// UsageOf sums what the conversation's turns have used since a time; the zero time
// means since ever.
func (db *DB) UsageOf(ctx context.Context, c record.ConversationID, since time.Time) (llm.Usage, error) {
	var u llm.Usage
	err := db.read(ctx, "usage", func(ctx context.Context) error {
		return db.pool.QueryRow(ctx, `
			SELECT coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(cached_tokens), 0)::bigint, coalesce(sum(cache_write_tokens), 0)::bigint,
				coalesce(sum(output_tokens), 0)::bigint, coalesce(sum(reasoning_tokens), 0)::bigint, coalesce(sum(cost), 0)
			FROM usage WHERE conversation_id = $1 AND ($2::timestamptz IS NULL OR at >= $2)`, c, nullTime(since)).
			Scan(&u.Input, &u.CachedInput, &u.CacheWrite, &u.Output, &u.Reasoning, &u.Cost)
	})
	return u, err
}
