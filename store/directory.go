package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"parley/gateway/chat"
	"parley/store/record"
)

// Directory lists the sessions that a person may open in a built-in chat; it
// implements chat.Directory.
type Directory struct{ db *DB }

// Directory returns the directory of this database.
func (db *DB) Directory() Directory { return Directory{db} }

// Sessions implements chat.Directory; a conversation that is not there has none.
// A session without a title is named by its first words.
func (d Directory) Sessions(ctx context.Context, of chat.ConversationKey, limit int) ([]chat.SessionInfo, error) {
	id, err := d.db.ConversationOf(ctx, of)
	if err != nil || id == "" {
		return nil, err
	}
	sessions, err := d.db.Sessions(ctx, id, limit)
	infos := make([]chat.SessionInfo, 0, len(sessions))
	for _, s := range sessions {
		title := s.Title
		if title == "" {
			title = s.Opening
		}
		infos = append(infos, chat.SessionInfo{ID: string(s.ID), Title: title, Current: s.Current, Messages: s.Messages, At: s.LastAt})
	}
	return infos, err
}

// ConversationOf finds a conversation by its key; "" if it is not there.
func (db *DB) ConversationOf(ctx context.Context, k chat.ConversationKey) (id record.ConversationID, err error) {
	a := k.Address
	err = db.read(ctx, "conversation of", func(ctx context.Context) error {
		err := db.pool.QueryRow(ctx, `SELECT id FROM conversations WHERE account = $1 AND chat = $2 AND thread = $3 AND participant = $4`,
			text(a.Account), text(a.Chat), text(a.Thread), text(k.Participant)).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return id, err
}
