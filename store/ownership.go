package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"parley/gateway/chat"
	"parley/store/record"
)

// openWork says in SQL whether a conversation c has something to be done.
const openWork = `(EXISTS (SELECT FROM inbox WHERE conversation_id = c.id AND state IN ('received', 'taken'))
	OR EXISTS (SELECT FROM turns WHERE conversation_id = c.id AND ended_at IS NULL)
	OR EXISTS (SELECT FROM deliveries WHERE conversation_id = c.id AND state IN ('pending', 'sending', 'unknown'))
	OR EXISTS (SELECT FROM approvals WHERE conversation_id = c.id AND state = 'open'))`

// ClaimOrphans takes over up to limit conversations that have open work and whose
// owner is nobody or dead; a turn whose process died, and that was not suspended,
// counts one more crash. A replica that is not alive itself gets nothing. Replicas
// that claim at the same time share the orphans between them.
func (db *DB) ClaimOrphans(ctx context.Context, r record.ReplicaID, limit int) ([]record.Fence, error) {
	var fences []record.Fence
	err := db.batch(ctx, "claim orphans", func(b *pgx.Batch) {
		b.Queue(`
			WITH living AS MATERIALIZED (SELECT id FROM replicas WHERE replica_alive(id)),
			open AS (
				SELECT conversation_id AS id FROM inbox WHERE state IN ('received', 'taken')
				UNION SELECT conversation_id FROM turns WHERE ended_at IS NULL
				UNION SELECT conversation_id FROM deliveries WHERE state IN ('pending', 'sending', 'unknown')
				UNION SELECT conversation_id FROM approvals WHERE state = 'open'),
			orphan AS (
				SELECT c.id FROM conversations c JOIN open ON open.id = c.id
				WHERE (c.owner IS NULL OR c.owner <> $1 AND c.owner NOT IN (SELECT id FROM living))
					AND EXISTS (SELECT FROM living WHERE id = $1)
				ORDER BY c.active_at LIMIT $2
				FOR NO KEY UPDATE OF c SKIP LOCKED),
			crashed AS (
				UPDATE turns t SET crashes = crashes + 1 FROM orphan
				WHERE t.conversation_id = orphan.id AND t.ended_at IS NULL AND t.state <> 'suspended')
			UPDATE conversations c SET owner = $1, epoch = c.epoch + 1 FROM orphan WHERE c.id = orphan.id
			RETURNING c.id, c.owner, c.epoch`, r, limit).Query(list(&fences, scanFence))
	})
	return fences, err
}

// claimOne takes a conversation, whose row is locked, from nobody or a dead owner.
const claimOne = `
	WITH crashed AS (
		UPDATE turns SET crashes = crashes + 1 WHERE conversation_id = $1 AND ended_at IS NULL AND state <> 'suspended')
	UPDATE conversations SET owner = $2, epoch = epoch + 1 WHERE id = $1 RETURNING id, owner, epoch`

// Owned lists the replica's conversations that have received events or unsettled
// deliveries.
func (db *DB) Owned(ctx context.Context, r record.ReplicaID) ([]record.Fence, error) {
	var fences []record.Fence
	err := db.read(ctx, "owned", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `
			SELECT c.id, c.owner, c.epoch FROM conversations c WHERE c.owner = $1 AND (
				EXISTS (SELECT FROM inbox WHERE conversation_id = c.id AND state = 'received')
				OR EXISTS (SELECT FROM deliveries WHERE conversation_id = c.id AND state IN ('pending', 'sending', 'unknown')))
			ORDER BY c.active_at`, r)
		if err != nil {
			return err
		}
		return list(&fences, scanFence)(rows)
	})
	return fences, err
}

// Release gives a conversation up if it has no open work; with force also if it
// has. It reports whether it did, and fails with record.ErrFenced if the
// conversation is not the replica's any more.
func (db *DB) Release(ctx context.Context, f record.Fence, force bool) (bool, error) {
	var released bool
	err := db.write(ctx, "release", f, func(b *pgx.Batch) {
		// A statement of its own after the fence's: only then does it see what an
		// intake committed that held the row before.
		b.Queue(`WITH given AS (UPDATE conversations c SET owner = NULL WHERE c.id = $1 AND ($2 OR NOT `+openWork+`) RETURNING 1)
			SELECT EXISTS (SELECT FROM given)`, f.Conversation, force).QueryRow(func(row pgx.Row) error { return row.Scan(&released) })
	})
	return released, err
}

// ClaimAccount takes the account's single intake for the replica if its owner is
// dead or gone, or already this one, and says whether the replica has it.
func (db *DB) ClaimAccount(ctx context.Context, r record.ReplicaID, a chat.AccountID) (bool, error) {
	var mine bool
	err := db.batch(ctx, "claim account", func(b *pgx.Batch) {
		b.Queue(`
			INSERT INTO account_owners AS o (account, owner, epoch) VALUES ($1, $2, 1)
			ON CONFLICT (account) DO UPDATE SET owner = excluded.owner, epoch = o.epoch + 1
			WHERE o.owner IS NULL OR NOT replica_alive(o.owner)`, text(a), r)
		b.Queue(`SELECT owner IS NOT DISTINCT FROM $2 FROM account_owners WHERE account = $1`, text(a), r).
			QueryRow(func(row pgx.Row) error { return row.Scan(&mine) })
	})
	return mine, err
}

// ReleaseAccount gives the account's intake up; if the replica does not have it,
// nothing happens.
func (db *DB) ReleaseAccount(ctx context.Context, r record.ReplicaID, a chat.AccountID) error {
	return db.batch(ctx, "release account", func(b *pgx.Batch) {
		b.Queue(`UPDATE account_owners SET owner = NULL WHERE account = $1 AND owner = $2`, text(a), r)
	})
}

func scanFence(row pgx.Row) (f record.Fence, err error) {
	err = row.Scan(&f.Conversation, &f.Replica, &f.Epoch)
	return f, err
}
