package store

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// TodoList returns the task list of a lineage by its root session, nil if there is
// none.
func (db *DB) TodoList(ctx context.Context, root record.SessionID) (json.RawMessage, error) {
	var items []byte
	err := db.read(ctx, "todo list", func(ctx context.Context) error {
		err := db.pool.QueryRow(ctx, `SELECT items FROM todos WHERE root_id = $1`, root).Scan(&items)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return items, err
}

// SetTodoList replaces the task list; items must be JSON.
func (db *DB) SetTodoList(ctx context.Context, root record.SessionID, items json.RawMessage) error {
	if !json.Valid(items) {
		return errors.New("store: set todo list: the items are not JSON")
	}
	return db.batch(ctx, "set todo list", func(b *pgx.Batch) {
		b.Queue(`INSERT INTO todos (root_id, items) VALUES ($1, $2) ON CONFLICT (root_id) DO UPDATE SET items = excluded.items, updated_at = now()`,
			root, storableJSON(string(items)))
	})
}
