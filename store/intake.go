package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"parley/gateway/chat"
	"parley/store/record"
)

const (
	// maxKey bounds event keys and idempotency keys, maxID the ids of an event, in
	// bytes: the columns are under indexes (PGS-010). Longer keys are shortened with a
	// hash; an event with longer ids is refused, since nothing could be sent there.
	maxKey = 512
	maxID  = 512
	// heldFor is how long a stranger's message waits for its sender to be paired, and
	// pairingFor how long the request itself does.
	heldFor    = 24 * time.Hour
	pairingFor = 24 * time.Hour
)

// Receive stores one event unless its key is known (then only Receipt.Duplicate
// is set, and nothing else happened: DUP-010). gate decides from rows read in the
// same transaction; it must not block, and may be called again. What the verdict
// asks for is done in that transaction:
//
//   - received: the conversation is found or made, with a first session; claimed for
//     the replica if nobody alive owns it, else its owner is notified. The
//     conversation's row is locked meanwhile, so that a release cannot miss the event.
//   - refused: key and reason are kept, no content; with Count only a counter.
//   - held: the event is kept for a day, for ReceiveHeld.
//
// With Pair a pairing request is opened for the sender unless one stands.
func (db *DB) Receive(ctx context.Context, r record.ReceiveRequest, gate func(record.AccessFacts) record.Verdict) (record.Receipt, error) {
	kind, payload, err := chat.Encode(r.Event)
	if err != nil {
		return record.Receipt{}, fmt.Errorf("store: receive: %w", err)
	}
	o := r.Event.Meta()
	in := intake{ReceiveRequest: r, origin: o, key: chat.KeyOf(o, r.Scope)}
	if in.tooLong() {
		gate = func(record.AccessFacts) record.Verdict {
			return record.Verdict{State: record.InboxRefused, Reason: "malformed: an id is too long"}
		}
	}
	var rc record.Receipt
	err = db.decide(ctx, "receive", in.ask, func(ctx context.Context, tx querier, b *pgx.Batch) error {
		rc = record.Receipt{Item: record.InboxItem{Account: o.Address.Account, Key: chat.EventKey(bounded(o.Key, maxKey)), Kind: kind, Payload: payload}}
		rc.Verdict = gate(in.known())
		return in.act(ctx, tx, b, &rc)
	})
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == stateDuplicate && pg.TableName == "inbox" {
		return record.Receipt{Duplicate: true}, nil
	}
	return rc, err
}

// intake is one event on its way in.
type intake struct {
	record.ReceiveRequest
	origin chat.Origin
	key    chat.ConversationKey
	// facts and found are what ask has read.
	facts record.AccessFacts
	found *held
}

// act does what the verdict asks for.
func (in *intake) act(ctx context.Context, tx querier, b *pgx.Batch, rc *record.Receipt) error {
	switch {
	case rc.Verdict.Count:
		in.count(b, rc.Verdict.Reason)
	case rc.Verdict.State == record.InboxReceived:
		return in.accept(ctx, tx, b, rc)
	case rc.Verdict.State == record.InboxHeld:
		in.hold(b, rc)
	case rc.Verdict.State == record.InboxRefused:
		rc.Item.Payload = nil
		in.insert(b, rc, "")
	default:
		return fmt.Errorf("%q is no verdict", rc.Verdict.State)
	}
	if rc.Verdict.Pair && !in.facts.Asked {
		return in.pair(b, rc)
	}
	return nil
}

func (in *intake) tooLong() bool {
	o, a := in.origin, in.origin.Address
	return max(len(a.Account), len(a.Chat), len(a.Thread), len(o.Message)) > maxID || len(o.From.ID) > 256
}

// ask reads what access is decided from, and locks the conversation.
func (in *intake) ask(b *pgx.Batch) {
	in.facts, in.found = record.AccessFacts{}, nil
	if in.tooLong() {
		return
	}
	person := text(in.origin.From.ID)
	b.Queue(selectMember, person).Query(maybe(&in.facts.Member, scanMember))
	b.Queue(`SELECT EXISTS (SELECT FROM people WHERE starts_with(id, $1) AND role <> 'ignored'),
		EXISTS (SELECT FROM pairings WHERE person = $2 AND person <> '' AND state = 'open' AND expires_at > now())`,
		text(in.origin.Address.Account.Platform())+":", person).
		QueryRow(func(row pgx.Row) error { return row.Scan(&in.facts.Claimed, &in.facts.Asked) })
	b.Queue(lockConversation, lockArgs(in.key, in.Replica)...).Query(maybe(&in.found, scanHeld))
}

func (in *intake) known() record.AccessFacts {
	if in.found != nil {
		in.facts.Conversation = &in.found.Conversation
	}
	return in.facts
}

func (in *intake) accept(ctx context.Context, tx querier, b *pgx.Batch, rc *record.Receipt) error {
	h, err := opening{key: in.key, kind: in.origin.Kind, model: in.Model, replica: in.Replica}.open(ctx, tx, in.found)
	if err != nil {
		return err
	}
	rc.Item.Conversation, rc.Conversation = h.ID, h.Conversation
	if h.owner == in.Replica {
		rc.Mine, rc.Fence = true, h.fence()
	} else {
		wake(b, h)
	}
	in.insert(b, rc, in.origin.From.ID)
	return nil
}

// wake notifies the owner of a conversation when the transaction commits.
func wake(b *pgx.Batch, h held) {
	b.Queue(`SELECT pg_notify($1, $2)`, replicaChannel(h.owner), string(h.ID))
}

func (in *intake) hold(b *pgx.Batch, rc *record.Receipt) {
	in.insert(b, rc, in.origin.From.ID)
	// Strangers' words are not kept longer than they can be of use.
	b.Queue(`UPDATE inbox SET state = 'refused', payload = NULL, person = '', done_at = now()
		WHERE state = 'held' AND received_at < now() - $1::interval`, heldFor)
}

// insert undoes the transaction if the event is known.
func (in *intake) insert(b *pgx.Batch, rc *record.Receipt, person chat.Person) {
	it := &rc.Item
	it.State, it.Reason = rc.Verdict.State, rc.Verdict.Reason
	b.Queue(`
		INSERT INTO inbox (account, event_key, conversation_id, kind, payload, person, message, state, reason, done_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, CASE WHEN $8 = 'refused' THEN now() END) RETURNING seq, received_at`,
		bounded(it.Account, maxID), it.Key, null(it.Conversation), it.Kind, it.Payload, text(person), bounded(in.origin.Message, maxID), it.State, text(it.Reason)).
		QueryRow(func(row pgx.Row) error { return row.Scan(&it.Seq, &it.ReceivedAt) })
}

func (in *intake) count(b *pgx.Batch, reason string) {
	a := in.origin.Address
	b.Queue(`INSERT INTO ignored_counts AS i (account, chat, reason, count) VALUES ($1, $2, $3, 1)
		ON CONFLICT (account, chat, reason, day) DO UPDATE SET count = i.count + 1`, text(a.Account), text(a.Chat), bounded(reason, maxKey))
}

func (in *intake) pair(b *pgx.Batch, rc *record.Receipt) error {
	who, a := in.origin.From, in.origin.Address
	if who.ID == "" || in.PairingCode == "" {
		return errors.New("a pairing request needs a sender and a code")
	}
	b.Queue(`UPDATE pairings SET state = 'expired' WHERE person = $1 AND state = 'open' AND expires_at <= now()`, text(who.ID))
	b.Queue(`
		INSERT INTO pairings AS p (code, person, name, account, chat, thread, state, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, 'open', now() + $7::interval) ON CONFLICT DO NOTHING
		RETURNING `+pairingColumns, in.PairingCode, text(who.ID), text(who.Name), text(a.Account), text(a.Chat), text(a.Thread), pairingFor).
		Query(maybe(&rc.Pairing, scanPairing))
	return nil
}

// inboxColumns are those of an inbox row i, in scanItem's order.
const inboxColumns = `i.account, i.event_key, i.seq, i.conversation_id, i.kind, i.payload, i.state, i.turn_id, i.reason, i.received_at`

func scanItem(row pgx.Row) (i record.InboxItem, err error) {
	err = row.Scan(&i.Account, &i.Key, &i.Seq, empty(&i.Conversation), &i.Kind, &i.Payload, &i.State, empty(&i.Turn), &i.Reason, &i.ReceivedAt)
	return i, err
}

// itemKeys are the two parallel arrays that name inbox rows in a statement.
func itemKeys(items []record.InboxItem) (accounts, keys []string) {
	for _, it := range items {
		accounts, keys = append(accounts, text(it.Account)), append(keys, bounded(it.Key, maxKey))
	}
	return accounts, keys
}

// ReceiveHeld makes a member's held messages of the last day received, in their
// order of arrival. It returns the conversations that got some and are this
// replica's; owners of others are notified. A session that is begun for them names
// no model yet.
func (db *DB) ReceiveHeld(ctx context.Context, r record.ReplicaID, p chat.Person) ([]record.Fence, error) {
	var fences []record.Fence
	err := db.tx(ctx, "receive held", func(ctx context.Context, tx pgx.Tx) error {
		fences = nil
		var items []record.InboxItem
		rows, err := tx.Query(ctx, `SELECT `+inboxColumns+` FROM inbox i
			WHERE i.person = $1 AND i.state = 'held' AND i.received_at > now() - $2::interval ORDER BY i.seq FOR UPDATE`, text(p), heldFor)
		if err != nil {
			return err
		}
		if err := list(&items, scanItem)(rows); err != nil {
			return err
		}
		seen, notify := map[record.ConversationID]bool{}, &pgx.Batch{}
		for _, it := range items {
			h, err := admit(ctx, tx, r, it)
			if err != nil {
				return err
			}
			if seen[h.ID] {
				continue
			}
			seen[h.ID] = true
			if h.owner == r {
				fences = append(fences, h.fence())
			} else {
				wake(notify, h)
			}
		}
		return tx.SendBatch(ctx, notify).Close()
	})
	return fences, err
}

// admit moves one held event into its conversation.
func admit(ctx context.Context, tx querier, r record.ReplicaID, it record.InboxItem) (held, error) {
	ev, err := it.Event()
	if err != nil {
		return held{}, err
	}
	o := ev.Meta()
	h, err := opening{key: chat.KeyOf(o, chat.ScopeThread), kind: o.Kind, replica: r}.open(ctx, tx, nil)
	if err != nil {
		return held{}, err
	}
	_, err = tx.Exec(ctx, `UPDATE inbox SET state = 'received', reason = '', conversation_id = $3 WHERE account = $1 AND event_key = $2`,
		it.Account, it.Key, h.ID)
	return h, err
}
