package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// conversationColumns are those of a conversation c, in scanConversation's order.
const conversationColumns = `c.id, c.account, c.chat, c.thread, c.participant, c.kind, c.session_id, c.model, c.show_reasoning, c.verbosity,
	c.created_at, c.active_at`

func conversationFields(c *record.Conversation) []any {
	a := &c.Key.Address
	return []any{&c.ID, &a.Account, &a.Chat, &a.Thread, &c.Key.Participant, &c.Kind, empty(&c.Session), &c.Model, &c.Reasoning, &c.Verbose,
		&c.CreatedAt, &c.ActiveAt}
}

func scanConversation(row pgx.Row) (c record.Conversation, err error) {
	err = row.Scan(conversationFields(&c)...)
	return c, err
}

// held is a conversation whose row is locked, and what is known of its owner.
type held struct {
	record.Conversation
	owner record.ReplicaID
	epoch int64
	// alive says that the owner is this replica or another one that lives.
	alive bool
}

func (h held) fence() record.Fence {
	return record.Fence{Conversation: h.ID, Replica: h.owner, Epoch: h.epoch}
}

// lockConversation finds the conversation of a key ($1 to $4) and locks its row,
// as check_fence does: intake, takeover and release come one after another.
const lockConversation = `
	SELECT ` + conversationColumns + `, c.owner, c.epoch,
		CASE WHEN c.owner IS NULL THEN false WHEN c.owner = $5 THEN true ELSE replica_alive(c.owner) END
	FROM conversations c WHERE c.account = $1 AND c.chat = $2 AND c.thread = $3 AND c.participant = $4
	FOR NO KEY UPDATE OF c`

func lockArgs(k chat.ConversationKey, r record.ReplicaID) []any {
	return []any{text(k.Address.Account), text(k.Address.Chat), text(k.Address.Thread), text(k.Participant), r}
}

func scanHeld(row pgx.Row) (h held, err error) {
	err = row.Scan(append(conversationFields(&h.Conversation), empty(&h.owner), &h.epoch, &h.alive)...)
	return h, err
}

// opening is what a conversation is made of that is not there yet.
type opening struct {
	key     chat.ConversationKey
	kind    chat.Kind
	model   llm.ModelID
	replica record.ReplicaID
}

// open returns the conversation of a key with its row locked: h if it was found
// already, else the one that is there by now, else a new one with its first root
// session. A free or orphaned one is claimed for the replica.
func (o opening) open(ctx context.Context, tx querier, h *held) (held, error) {
	for h == nil {
		if err := o.create(ctx, tx); err != nil {
			return held{}, err
		}
		rows, err := tx.Query(ctx, lockConversation, lockArgs(o.key, o.replica)...)
		if err != nil {
			return held{}, err
		}
		if err := maybe(&h, scanHeld)(rows); err != nil {
			return held{}, err
		}
	}
	if h.alive {
		return *h, nil
	}
	f, err := scanFence(tx.QueryRow(ctx, claimOne, h.ID, o.replica))
	h.owner, h.epoch, h.alive = f.Replica, f.Epoch, true
	return *h, err
}

// create writes conversation and session in one statement, since each refers to
// the other; nothing happens if the key is there.
func (o opening) create(ctx context.Context, tx querier) error {
	k := o.key
	_, err := tx.Exec(ctx, `
		WITH made AS (
			INSERT INTO conversations (id, account, chat, thread, participant, kind, session_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (account, chat, thread, participant) DO NOTHING RETURNING id, session_id)
		INSERT INTO sessions (id, conversation_id, root_id, reason, model) SELECT session_id, id, session_id, 'new', $8 FROM made`,
		record.NewID(), text(k.Address.Account), text(k.Address.Chat), text(k.Address.Thread), text(k.Participant), o.kind, record.NewID(), text(o.model))
	return err
}

// Conversations lists conversations, the most recently active first, at most limit.
func (db *DB) Conversations(ctx context.Context, limit int) ([]record.Conversation, error) {
	var all []record.Conversation
	err := db.read(ctx, "conversations", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `SELECT `+conversationColumns+` FROM conversations c ORDER BY c.active_at DESC, c.id LIMIT $1`, limit)
		if err != nil {
			return err
		}
		return list(&all, scanConversation)(rows)
	})
	return all, err
}

// MoveChat gives the conversations of a chat its new id and notifies their owners. A
// conversation that the new chat has already stays, and its old one with it. Doing it
// again changes nothing.
func (db *DB) MoveChat(ctx context.Context, a chat.AccountID, from, to chat.ChatID) error {
	return db.batch(ctx, "move a chat", func(b *pgx.Batch) {
		b.Queue(`
			WITH moved AS (
				UPDATE conversations c SET chat = $3 WHERE c.account = $1 AND c.chat = $2 AND NOT EXISTS (SELECT FROM conversations n
					WHERE n.account = c.account AND n.chat = $3 AND n.thread = c.thread AND n.participant = c.participant)
				RETURNING c.id, c.owner)
			SELECT pg_notify($4 || owner, id::text) FROM moved WHERE owner IS NOT NULL`,
			text(a), text(from), text(to), replicaChannel(""))
	})
}
