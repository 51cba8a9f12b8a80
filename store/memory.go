package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// maxFactKey bounds scope, category and key of a fact, in bytes; the model chooses
// them, and they are under an index (PGS-010).
const maxFactKey = 256

// Document returns MEMORY.md or USER.md of a scope, "" if there is none.
func (db *DB) Document(ctx context.Context, scope, name string) (string, error) {
	var content string
	err := db.read(ctx, "document", func(ctx context.Context) error {
		err := db.pool.QueryRow(ctx, `SELECT content FROM memory_documents WHERE scope = $1 AND name = $2`, bounded(scope, maxID), text(name)).Scan(&content)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return content, err
}

// SetDocument replaces a document; it is durable when it returns.
func (db *DB) SetDocument(ctx context.Context, scope, name, content string) error {
	return db.batch(ctx, "set document", func(b *pgx.Batch) {
		b.Queue(`INSERT INTO memory_documents (scope, name, content) VALUES ($1, $2, $3)
			ON CONFLICT (scope, name) DO UPDATE SET content = excluded.content, updated_at = now()`, bounded(scope, maxID), text(name), text(content))
	})
}

// Facts returns the newest facts of the scopes, at most limit, newest first.
func (db *DB) Facts(ctx context.Context, scopes []string, limit int) ([]record.Fact, error) {
	in := make([]string, len(scopes))
	for i, s := range scopes {
		in[i] = bounded(s, maxFactKey)
	}
	var facts []record.Fact
	err := db.read(ctx, "facts", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `SELECT scope, category, key, value, at FROM facts WHERE scope = ANY($1) ORDER BY at DESC, category, key LIMIT $2`, in, limit)
		if err != nil {
			return err
		}
		return list(&facts, scanFact)(rows)
	})
	return facts, err
}

func scanFact(row pgx.Row) (f record.Fact, err error) {
	err = row.Scan(&f.Scope, &f.Category, &f.Key, &f.Value, &f.At)
	return f, err
}

// SetFact writes a fact, in place of one with the same scope, category and key.
func (db *DB) SetFact(ctx context.Context, f record.Fact) error {
	return db.batch(ctx, "set fact", func(b *pgx.Batch) { queueFact(b, f) })
}

func queueFact(b *pgx.Batch, f record.Fact) {
	b.Queue(`INSERT INTO facts (scope, category, key, value, at) VALUES ($1, $2, $3, $4, coalesce($5, now()))
		ON CONFLICT (scope, category, key) DO UPDATE SET value = excluded.value, at = excluded.at`,
		bounded(f.Scope, maxFactKey), bounded(f.Category, maxFactKey), bounded(f.Key, maxFactKey), text(f.Value), nullTime(f.At))
}

// DeleteFact removes a fact, or fails with record.ErrNotFound.
func (db *DB) DeleteFact(ctx context.Context, scope, category, key string) error {
	return db.batch(ctx, "delete fact", func(b *pgx.Batch) {
		b.Queue(`WITH gone AS (DELETE FROM facts WHERE scope = $1 AND category = $2 AND key = $3 RETURNING 1) SELECT check_found(count(*)) FROM gone`,
			bounded(scope, maxFactKey), bounded(category, maxFactKey), bounded(key, maxFactKey))
	})
}
