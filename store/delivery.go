package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// deliveryColumns are those of a delivery d, in scanDelivery's order.
const deliveryColumns = `d.id, d.conversation_id, d.turn_id, d.kind, d.part, d.idempotency_key, d.account, d.chat, d.thread, d.content, d.state,
	d.platform_message_id, d.marked, d.approval_id, d.attempts, d.error, d.created_at, d.updated_at`

func scanDelivery(row pgx.Row) (d record.Delivery, err error) {
	var content []byte
	a := &d.Address
	err = row.Scan(&d.ID, &d.Conversation, empty(&d.Turn), &d.Kind, &d.Part, &d.Key, &a.Account, &a.Chat, &a.Thread, &content, &d.State,
		&d.Message, &d.Marked, empty(&d.Approval), &d.Attempts, &d.Error, &d.CreatedAt, &d.UpdatedAt)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(content, &d.Out); err != nil {
		return d, fmt.Errorf("delivery %s: %w", d.ID, err)
	}
	return d, nil
}

// saveDelivery inserts a row or, if its id is there, updates it; the idempotency
// key, turn and question of a row never change.
const saveDelivery = `
	INSERT INTO deliveries AS d (id, conversation_id, turn_id, kind, part, idempotency_key, account, chat, thread, content, state,
		platform_message_id, marked, approval_id, attempts, error)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
	ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, part = excluded.part, account = excluded.account, chat = excluded.chat,
		thread = excluded.thread, content = excluded.content, state = excluded.state, platform_message_id = excluded.platform_message_id,
		marked = excluded.marked, attempts = excluded.attempts, error = excluded.error, updated_at = now()
	WHERE d.conversation_id = excluded.conversation_id`

func deliveryArgs(f record.Fence, d record.Delivery) []any {
	if d.ID == "" {
		d.ID = record.DeliveryID(record.NewID())
	}
	content, err := json.Marshal(d.Out)
	if err != nil {
		panic(fmt.Sprintf("store: chat.Outgoing as JSON: %v", err)) // strings and booleans only
	}
	a := d.Address
	return []any{d.ID, f.Conversation, null(d.Turn), d.Kind, d.Part, bounded(d.Key, maxKey), text(a.Account), text(a.Chat), text(a.Thread), content, d.State,
		text(d.Message), d.Marked, null(d.Approval), d.Attempts, text(d.Error)}
}

func queueDelivery(b *pgx.Batch, f record.Fence, d record.Delivery) {
	b.Queue(saveDelivery, deliveryArgs(f, d)...)
}

// SaveDelivery inserts or updates one row by its id. Another row with the same
// idempotency key is record.ErrConflict.
func (db *DB) SaveDelivery(ctx context.Context, f record.Fence, d record.Delivery) error {
	return db.write(ctx, "save delivery", f, func(b *pgx.Batch) { queueDelivery(b, f, d) })
}

// TurnDeliveries returns a turn's rows in order of creation.
func (db *DB) TurnDeliveries(ctx context.Context, t record.TurnID) ([]record.Delivery, error) {
	var all []record.Delivery
	err := db.read(ctx, "deliveries", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `SELECT `+deliveryColumns+` FROM deliveries d WHERE d.turn_id = $1 ORDER BY d.seq`, t)
		if err != nil {
			return err
		}
		return list(&all, scanDelivery)(rows)
	})
	return all, err
}

// DeliveryOf finds a conversation's row by its idempotency key; record.ErrNotFound if
// there is none.
func (db *DB) DeliveryOf(ctx context.Context, c record.ConversationID, key string) (record.Delivery, error) {
	var d record.Delivery
	err := db.read(ctx, "delivery", func(ctx context.Context) (err error) {
		d, err = scanDelivery(db.pool.QueryRow(ctx, `SELECT `+deliveryColumns+` FROM deliveries d WHERE d.idempotency_key = $1 AND d.conversation_id = $2`,
			bounded(key, maxKey), null(c)))
		return err
	})
	return d, err
}
