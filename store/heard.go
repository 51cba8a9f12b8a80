package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"parley/gateway/chat"
)

const (
	// heardMessages and heardChats bound what Heard returns.
	heardMessages = 200
	heardChats    = 500
)

// Heard returns the messages of an account that were stored last, and the chats of
// its conversations, the latest first: from both an adapter tells what it has missed
// while nobody listened, and where to look for it.
func (db *DB) Heard(ctx context.Context, account chat.AccountID) (newest []chat.MessageID, chats []chat.ChatID, err error) {
	err = db.read(ctx, "heard", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `SELECT message FROM inbox WHERE account = $1 AND message <> '' ORDER BY seq DESC LIMIT $2`, text(account), heardMessages)
		if err != nil {
			return err
		}
		if newest, err = pgx.CollectRows(rows, pgx.RowTo[chat.MessageID]); err != nil {
			return err
		}
		rows, err = db.pool.Query(ctx, `SELECT chat FROM (
			SELECT DISTINCT ON (c.chat) c.chat, i.seq FROM conversations c JOIN inbox i ON i.conversation_id = c.id
			WHERE c.account = $1 ORDER BY c.chat, i.seq DESC) latest ORDER BY seq DESC LIMIT $2`, text(account), heardChats)
		if err != nil {
			return err
		}
		chats, err = pgx.CollectRows(rows, pgx.RowTo[chat.ChatID])
		return err
	})
	return newest, chats, err
}
