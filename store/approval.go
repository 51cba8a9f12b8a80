package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"parley/gateway/chat"
	"parley/store/record"
)

// approvalColumns are those of an approval a, in scanApproval's order.
const approvalColumns = `a.id, a.conversation_id, a.turn_id, a.call_id, a.kind, a.question, a.options, a.state, a.asked, a.decided_by, a.answer,
	a.tool, a.pattern, a.expires_at, a.created_at`

func scanApproval(row pgx.Row) (a record.Approval, err error) {
	err = row.Scan(&a.ID, &a.Conversation, &a.Turn, &a.CallID, &a.Kind, &a.Question, &a.Options, &a.State, &a.Asked, &a.DecidedBy, &a.Answer,
		&a.Tool, &a.Pattern, &a.ExpiresAt, &a.CreatedAt)
	return a, err
}

// cardOf finds the newest card of a question a.
const cardOf = `SELECT ` + deliveryColumns + ` FROM deliveries d WHERE d.approval_id = $1 AND d.kind = 'card' ORDER BY d.seq DESC LIMIT 1`

// OpenApproval writes a question and its card, or returns those that already stand
// for the turn and call, open or decided: a question is asked once, across
// restarts. The card is empty if it was never written. A question that a grant
// answers is written as approved, with the grant, and without a card.
func (db *DB) OpenApproval(ctx context.Context, f record.Fence, a record.Approval, card record.Delivery) (record.Approval, record.Delivery, error) {
	if a.ID == "" {
		a.ID = record.ApprovalID(record.NewID())
	}
	card.Approval, card.Turn = a.ID, a.Turn
	var standing record.Approval
	var stood *record.Delivery
	err := db.write(ctx, "open approval", f, func(b *pgx.Batch) {
		b.Queue(`
			WITH standing AS (`+standingGrant+`)
			INSERT INTO approvals (id, conversation_id, turn_id, call_id, kind, question, options, asked, expires_at, tool, pattern,
				state, decided_by, decided_at, grant_id)
			SELECT $6, t.conversation_id, t.id, $7, $8, $9, $10, $1, $11, $3, $4,
				CASE WHEN g.id IS NULL THEN 'open' ELSE 'approved' END, coalesce(g.granted_by, ''), CASE WHEN g.id IS NOT NULL THEN now() END, g.id
			FROM turns t LEFT JOIN standing g ON true WHERE t.id = $5 AND t.conversation_id = $2 AND t.ended_at IS NULL
			ON CONFLICT (turn_id, md5(call_id)) DO NOTHING`,
			text(a.Asked), f.Conversation, text(a.Tool), text(a.Pattern), a.Turn,
			a.ID, text(a.CallID), a.Kind, text(a.Question), jsonList(a.Options), a.ExpiresAt)
		b.Queue(`SELECT check_found(count(*)) FROM approvals a WHERE a.turn_id = $1 AND md5(a.call_id) = md5($2)`, a.Turn, text(a.CallID))
		b.Queue(`INSERT INTO deliveries (id, conversation_id, turn_id, kind, part, idempotency_key, account, chat, thread, content, state,
				platform_message_id, marked, approval_id, attempts, error)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, id, $15, $16 FROM approvals WHERE id = $14 AND state = 'open'`, deliveryArgs(f, card)...)
		const of = `(SELECT id FROM approvals WHERE turn_id = $1 AND md5(call_id) = md5($2))`
		b.Queue(`SELECT `+approvalColumns+` FROM approvals a WHERE a.id = `+of, a.Turn, text(a.CallID)).QueryRow(one(&standing, scanApproval))
		b.Queue(`SELECT `+deliveryColumns+` FROM deliveries d WHERE d.approval_id = `+of+` AND d.kind = 'card' ORDER BY d.seq DESC LIMIT 1`,
			a.Turn, text(a.CallID)).Query(maybe(&stood, scanDelivery))
	})
	if err != nil || stood == nil {
		return standing, record.Delivery{}, err
	}
	return standing, *stood, nil
}

// DecideApproval changes an open question once, and an approval whose answer is a
// scope leaves a grant; ok is false if it was not open any more, or if its time had passed (then it is expired now), and the row says what
// it is.
func (db *DB) DecideApproval(ctx context.Context, f record.Fence, id record.ApprovalID, to record.ApprovalState, by chat.Person, answer string) (a record.Approval, ok bool, err error) {
	if to == record.ApprovalOpen {
		return a, false, fmt.Errorf("store: decide approval: %s is no decision", to)
	}
	var changed *record.Approval
	err = db.write(ctx, "decide approval", f, func(b *pgx.Batch) {
		b.Queue(`
			UPDATE approvals a SET decided_at = now(),
				state = CASE WHEN late THEN 'expired' ELSE $3 END, decided_by = CASE WHEN late THEN '' ELSE $4 END, answer = CASE WHEN late THEN '' ELSE $5 END
			FROM (SELECT id, expires_at <= now() AND $3 IN ('approved', 'denied', 'answered') AS late FROM approvals WHERE id = $1) l
			WHERE a.id = l.id AND a.conversation_id = $2 AND a.state = 'open'
			RETURNING `+approvalColumns, id, f.Conversation, string(to), text(by), text(answer)).Query(maybe(&changed, scanApproval))
		b.Queue(`SELECT check_found(count(*)) FROM approvals WHERE id = $1 AND conversation_id = $2`, id, f.Conversation)
		queueGrant(b, id)
		b.Queue(`SELECT `+approvalColumns+` FROM approvals a WHERE a.id = $1`, id).QueryRow(one(&a, scanApproval))
	})
	return a, err == nil && changed != nil && changed.State == to, err
}

// DecideSpending changes an open question about money once, whoever owns its
// conversation, and returns it as it is then with that conversation.
func (db *DB) DecideSpending(ctx context.Context, id record.ApprovalID, to record.ApprovalState, by chat.Person) (a record.Approval, c record.Conversation, err error) {
	err = db.batch(ctx, "decide spending", func(b *pgx.Batch) {
		b.Queue(`UPDATE approvals SET decided_at = now(), state = $2, decided_by = $3 WHERE id = $1 AND kind = 'spending' AND state = 'open' AND expires_at > now()`,
			id, string(to), text(by))
		b.Queue(`SELECT `+approvalColumns+` FROM approvals a WHERE a.id = $1`, id).QueryRow(one(&a, scanApproval))
		b.Queue(`SELECT `+conversationColumns+` FROM conversations c JOIN approvals a ON a.conversation_id = c.id WHERE a.id = $1`, id).
			QueryRow(one(&c, scanConversation))
	})
	return a, c, err
}

// ApprovalCard returns a question and its card, which is empty if there is none.
func (db *DB) ApprovalCard(ctx context.Context, id record.ApprovalID) (record.Approval, record.Delivery, error) {
	var a record.Approval
	var card *record.Delivery
	err := db.read(ctx, "approval", func(ctx context.Context) error {
		b := &pgx.Batch{}
		b.Queue(`SELECT `+approvalColumns+` FROM approvals a WHERE a.id = $1`, id).QueryRow(one(&a, scanApproval))
		b.Queue(cardOf, id).Query(maybe(&card, scanDelivery))
		return db.pool.SendBatch(ctx, b).Close()
	})
	if err != nil || card == nil {
		return a, record.Delivery{}, err
	}
	return a, *card, nil
}
