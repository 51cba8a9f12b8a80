package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"parley/gateway/chat"
	"parley/store/record"
)

// EndItems ends inbox rows with a reason, applies a command's effect and writes
// its replies; it returns the conversation as it then is. Rows that have ended
// already are record.ErrConflict, and the effect is not applied twice. MoveTo of a
// session that is not the conversation's is record.ErrNotFound.
func (db *DB) EndItems(ctx context.Context, f record.Fence, items []record.InboxItem, reason string, e record.Effect, replies []record.Delivery) (record.Conversation, error) {
	var c record.Conversation
	if !known(e) {
		return c, fmt.Errorf("store: end items: unknown effect %T", e)
	}
	err := db.write(ctx, "end items", f, func(b *pgx.Batch) {
		if len(items) > 0 {
			accounts, keys := itemKeys(items)
			b.Queue(`
				WITH ended AS (
					UPDATE inbox i SET state = 'done', done_at = now(), reason = $2 FROM unnest($3::text[], $4::text[]) AS k (account, event_key)
					WHERE i.account = k.account AND i.event_key = k.event_key AND i.conversation_id = $1 AND i.state IN ('received', 'taken') RETURNING 1)
				SELECT check_rows(count(*), $5) FROM ended`, f.Conversation, text(reason), accounts, keys, len(items))
		}
		queueEffect(b, f, e)
		for _, d := range replies {
			queueDelivery(b, f, d)
		}
		b.Queue(`SELECT `+conversationColumns+` FROM conversations c WHERE c.id = $1`, f.Conversation).QueryRow(one(&c, scanConversation))
	})
	return c, err
}

// LastEdit is the newest change of a message that a conversation was told of;
// record.ErrNotFound if there is none.
func (db *DB) LastEdit(ctx context.Context, c record.ConversationID, m chat.MessageID) (record.InboxItem, error) {
	var it record.InboxItem
	err := db.read(ctx, "edit", func(ctx context.Context) (err error) {
		it, err = scanItem(db.pool.QueryRow(ctx, `SELECT `+inboxColumns+` FROM inbox i
			WHERE i.message = $1 AND i.conversation_id = $2 AND i.kind = 'edit' AND i.payload IS NOT NULL ORDER BY i.seq DESC LIMIT 1`,
			bounded(m, maxID), null(c)))
		return err
	})
	return it, err
}

func known(e record.Effect) bool {
	switch e.(type) {
	case nil, record.NoEffect, record.BeginRoot, record.MoveTo, record.Fork, record.SetTitle, record.Rewrite, record.Withdraw, record.SetModel, record.SetVerbose, record.ShowReasoning, record.RevokeGrant:
		return true
	}
	return false
}

func queueEffect(b *pgx.Batch, f record.Fence, e record.Effect) {
	switch e := e.(type) {
	case record.BeginRoot:
		queueRoot(b, f, e)
	case record.MoveTo:
		queueMove(b, f, e)
	case record.Fork:
		queueFork(b, f, e)
	case record.RevokeGrant:
		queueRevoke(b, f, e)
	case record.SetTitle:
		b.Queue(`UPDATE sessions SET title = $2 WHERE id = (SELECT session_id FROM conversations WHERE id = $1)`, f.Conversation, text(e.Title))
	case record.Rewrite:
		b.Queue(`
			WITH changed AS (
				UPDATE inbox SET kind = $4, payload = $5
				WHERE account = $2 AND event_key = $3 AND conversation_id = $1 AND state = 'received' RETURNING 1)
			SELECT check_rows(count(*), 1) FROM changed`, f.Conversation, text(e.Item.Account), bounded(e.Item.Key, maxKey), e.Item.Kind, e.Item.Payload)
	case record.Withdraw:
		b.Queue(`UPDATE inbox SET state = 'done', done_at = now(), reason = $3
			WHERE conversation_id = $1 AND state = 'received' AND kind = 'message' AND seq <= $2`, f.Conversation, e.UpTo, text(e.Reason))
	case record.SetModel:
		b.Queue(`UPDATE conversations SET model = $2 WHERE id = $1`, f.Conversation, text(e.Model))
	case record.SetVerbose:
		b.Queue(`UPDATE conversations SET verbosity = $2 WHERE id = $1`, f.Conversation, e.Level)
	case record.ShowReasoning:
		b.Queue(`UPDATE conversations SET show_reasoning = $2 WHERE id = $1`, f.Conversation, e.On)
	}
}

// endCurrent closes the session that the conversation stands at.
const endCurrent = `UPDATE sessions SET ended_at = now() WHERE ended_at IS NULL AND id = (SELECT session_id FROM conversations WHERE id = $1)`

// queueRoot moves the conversation to a new root; it remembers where it stood, but
// is no child of it (LIN-005).
func queueRoot(b *pgx.Batch, f record.Fence, e record.BeginRoot) {
	if e.ID == "" {
		e.ID = record.SessionID(record.NewID())
	}
	b.Queue(endCurrent, f.Conversation)
	b.Queue(`
		INSERT INTO sessions (id, conversation_id, root_id, previous_id, reason, title, model)
		SELECT $2, c.id, $2, c.session_id, $3, $4, coalesce(s.model, '') FROM conversations c LEFT JOIN sessions s ON s.id = c.session_id WHERE c.id = $1`,
		f.Conversation, e.ID, e.Reason, text(e.Title))
	b.Queue(`UPDATE conversations SET session_id = $2 WHERE id = $1`, f.Conversation, e.ID)
}

// queueAside writes a new root beside the session that the conversation stands at,
// for a turn that nobody has asked for there.
func queueAside(b *pgx.Batch, f record.Fence, e record.BeginRoot) {
	b.Queue(`
		INSERT INTO sessions (id, conversation_id, root_id, previous_id, reason, title, model)
		SELECT $2, c.id, $2, c.session_id, $3, $4, coalesce(s.model, '') FROM conversations c LEFT JOIN sessions s ON s.id = c.session_id WHERE c.id = $1`,
		f.Conversation, e.ID, e.Reason, text(e.Title))
}

// queueFork moves the conversation to a child that shares the current session's
// history up to a message; nothing is copied.
func queueFork(b *pgx.Batch, f record.Fence, e record.Fork) {
	b.Queue(endCurrent, f.Conversation)
	b.Queue(`
		WITH child AS (
			INSERT INTO sessions (id, conversation_id, parent_id, root_id, fork_seq, next_seq, reason, title, model, system_prompt)
			SELECT $2, c.id, s.id, s.root_id, $3::bigint, $3::bigint + 1, $4,
				CASE WHEN $5 = '' AND $4 = 'undo' THEN s.title ELSE $5 END, s.model, s.system_prompt
			FROM conversations c JOIN sessions s ON s.id = c.session_id WHERE c.id = $1 AND $3::bigint < s.next_seq RETURNING id),
		moved AS (UPDATE conversations c SET session_id = child.id FROM child WHERE c.id = $1 RETURNING 1)
		SELECT check_rows(count(*), 1) FROM moved`, f.Conversation, e.ID, e.UpTo, e.Reason, text(e.Title))
}

// queueMove follows compressions only, never other children (LIN-005).
func queueMove(b *pgx.Batch, f record.Fence, e record.MoveTo) {
	b.Queue(endCurrent, f.Conversation)
	b.Queue(`
		WITH RECURSIVE descent AS (
			SELECT id, created_at, 0 AS depth FROM sessions WHERE id = $2 AND conversation_id = $1
			UNION ALL
			SELECT s.id, s.created_at, d.depth + 1 FROM descent d JOIN sessions s ON s.parent_id = d.id AND s.reason = 'compression'),
		newest AS (SELECT id FROM descent ORDER BY depth DESC, created_at DESC LIMIT 1),
		reopened AS (UPDATE sessions SET ended_at = NULL WHERE id = (SELECT id FROM newest)),
		moved AS (UPDATE conversations c SET session_id = newest.id FROM newest WHERE c.id = $1 RETURNING 1)
		SELECT check_found(count(*)) FROM moved`, f.Conversation, null(e.Session))
}
