package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/gateway/chat"
	"parley/store/record"
)

// maxSchedules bounds the schedules of a conversation that are not done.
const maxSchedules = 50

// maxWaiting bounds the outside events that wait in a conversation.
const maxWaiting = 100

// ErrTooMany means that a conversation has as many schedules as it may have.
var ErrTooMany = fmt.Errorf("store: a conversation has at most %d schedules: %w", maxSchedules, record.ErrConflict)

const scheduleColumns = `s.id, s.conversation_id, s.creator, s.title, s.prompt, s.due, s.zone, s.missed, s.state, s.reason, s.next_at, s.asked,
	s.last_at, s.failures, s.runs, s.skipped, s.created_at`

func scanSchedule(row pgx.Row) (s record.Schedule, err error) {
	err = row.Scan(&s.ID, &s.Conversation, &s.Creator, &s.Title, &s.Prompt, &s.When, &s.Zone, &s.Missed, &s.State, &s.Reason, zero(&s.NextAt), &s.Asked,
		zero(&s.LastAt), &s.Failures, &s.Runs, &s.Skipped, &s.CreatedAt)
	return s, err
}

// CreateSchedule writes an active schedule and returns it with its id. With too many
// in the conversation it is ErrTooMany.
func (db *DB) CreateSchedule(ctx context.Context, s record.Schedule) (record.Schedule, error) {
	var made *record.Schedule
	err := db.read(ctx, "create a schedule", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `
			INSERT INTO schedules AS s (conversation_id, creator, title, prompt, due, zone, missed, state, next_at, created_at)
			SELECT $1, $2, $3, $4, $5, $6, $7, 'active', $8, $9
			WHERE (SELECT count(*) FROM schedules WHERE conversation_id = $1 AND state <> 'done') < $10 RETURNING `+scheduleColumns,
			s.Conversation, text(s.Creator), text(s.Title), text(s.Prompt), text(s.When), text(s.Zone), s.Missed, nullTime(s.NextAt), s.CreatedAt, maxSchedules)
		if err != nil {
			return err
		}
		return maybe(&made, scanSchedule)(rows)
	})
	if err != nil {
		return s, err
	}
	if made == nil {
		return s, ErrTooMany
	}
	return *made, nil
}

// Schedules lists those of a conversation that are not done, by id.
func (db *DB) Schedules(ctx context.Context, c record.ConversationID) ([]record.Schedule, error) {
	var all []record.Schedule
	err := db.read(ctx, "schedules", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `SELECT `+scheduleColumns+` FROM schedules s WHERE s.conversation_id = $1 AND s.state <> 'done' ORDER BY s.id`, c)
		if err != nil {
			return err
		}
		return list(&all, scanSchedule)(rows)
	})
	return all, err
}

// SetSchedule stores where a schedule of the conversation stands: state, reason,
// failures, when it is due next, and whether it is asked to run now. One that is not
// there any more is record.ErrNotFound.
func (db *DB) SetSchedule(ctx context.Context, s record.Schedule) error {
	return db.batch(ctx, "set a schedule", func(b *pgx.Batch) {
		b.Queue(`
			WITH changed AS (
				UPDATE schedules SET state = $3, reason = $4, next_at = $5, failures = $6, asked = $7 WHERE id = $1 AND conversation_id = $2 RETURNING 1)
			SELECT check_found(count(*)) FROM changed`,
			s.ID, s.Conversation, s.State, text(s.Reason), nullTime(s.NextAt), s.Failures, s.Asked)
	})
}

// DeleteSchedule forgets a schedule of the conversation; its runs stay.
func (db *DB) DeleteSchedule(ctx context.Context, c record.ConversationID, id record.ScheduleID) error {
	return db.batch(ctx, "delete a schedule", func(b *pgx.Batch) {
		b.Queue(`WITH gone AS (DELETE FROM schedules WHERE id = $1 AND conversation_id = $2 RETURNING 1) SELECT check_found(count(*)) FROM gone`, id, c)
	})
}

// dueSchedule says in SQL that a schedule s is to be looked at, at $1: it is due or
// asked for, and none of its runs is open (CRN-001).
const dueSchedule = `(s.state = 'active' AND s.next_at <= $1 OR s.asked) AND NOT EXISTS (
	SELECT FROM inbox i WHERE i.conversation_id = s.conversation_id AND i.state IN ('received', 'taken')
		AND starts_with(i.event_key, 'schedule/' || s.id || '/'))`

// DueSchedules looks at up to limit schedules that are due at a time and lets plan
// decide about each, in a transaction of its own: the due time to run goes into the
// inbox, once however many replicas look, and the schedule moves on. It returns the
// conversations that are this replica's, which are to be woken; owners of others are
// notified.
func (db *DB) DueSchedules(ctx context.Context, r record.ReplicaID, now time.Time, limit int, plan func(record.Schedule, time.Time) record.ScheduleStep) ([]record.Fence, error) {
	var due []record.Schedule
	err := db.read(ctx, "due schedules", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `SELECT `+scheduleColumns+` FROM schedules s WHERE `+dueSchedule+` ORDER BY s.next_at LIMIT $2`, now, limit)
		if err != nil {
			return err
		}
		return list(&due, scanSchedule)(rows)
	})
	var fences []record.Fence
	for _, s := range due {
		if err != nil {
			break
		}
		var f *record.Fence
		if f, err = db.runSchedule(ctx, r, s, now, plan); f != nil {
			fences = append(fences, *f)
		}
	}
	return fences, err
}

// runSchedule locks the conversation first, as the owner's writes do.
func (db *DB) runSchedule(ctx context.Context, r record.ReplicaID, seen record.Schedule, now time.Time, plan func(record.Schedule, time.Time) record.ScheduleStep) (*record.Fence, error) {
	var mine *record.Fence
	err := db.tx(ctx, "run a schedule", func(ctx context.Context, tx pgx.Tx) error {
		mine = nil
		h, err := lockByID(ctx, tx, seen.Conversation, r)
		if err != nil {
			return err
		}
		if h.owner == r {
			f := h.fence()
			mine = &f
		}
		var s *record.Schedule
		rows, err := tx.Query(ctx, `SELECT `+scheduleColumns+` FROM schedules s WHERE s.id = $2 AND `+dueSchedule+` FOR UPDATE`, now, seen.ID)
		if err != nil {
			return err
		}
		if err := maybe(&s, scanSchedule)(rows); err != nil || s == nil {
			return err // another replica was first, or somebody changed it
		}
		step := plan(*s, now)
		stopped := step.State == record.SchedulePaused && s.State == record.ScheduleActive
		b := &pgx.Batch{}
		b.Queue(`UPDATE schedules SET next_at = $2, state = $3, reason = $4, skipped = skipped + $5, asked = false,
			runs = runs + $6::boolean::integer, last_at = CASE WHEN $6 THEN $7 ELSE last_at END WHERE id = $1`,
			s.ID, nullTime(step.Next), step.State, text(step.Reason), step.Skipped, !step.Due.IsZero(), now)
		if step.Due.IsZero() && !stopped {
			return tx.SendBatch(ctx, b).Close()
		}
		ev := taskOf(*s, step, h)
		ev.At = now
		if _, err := queueEvent(b, h, ev); err != nil {
			return err
		}
		return tx.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return nil, err
	}
	return mine, nil
}

// taskOf is the event of a due time, or of a schedule that is stopped.
func taskOf(s record.Schedule, step record.ScheduleStep, h held) chat.TaskDue {
	ev := chat.TaskDue{
		Origin:   chat.Origin{Address: h.Key.Address, Kind: h.Kind, From: chat.User{ID: s.Creator}},
		Schedule: int64(s.ID), Title: s.Title, Prompt: s.Prompt, Due: step.Due, Zone: s.Zone, Skipped: step.Skipped,
	}
	ev.Key = chat.EventKey(fmt.Sprintf("schedule/%d/%d", s.ID, step.Due.Unix()))
	if step.Due.IsZero() {
		ev.Stopped = step.Reason
		ev.Key = chat.EventKey(fmt.Sprintf("schedule/%d/stopped/%d", s.ID, s.Runs))
	}
	return ev
}

// lockByID locks a conversation that is there, and claims it unless somebody alive
// owns it. Whoever claims it wakes it, whatever else comes of the transaction: a dead
// owner may have left work there, for which nobody looks again.
func lockByID(ctx context.Context, tx querier, id record.ConversationID, r record.ReplicaID) (held, error) {
	var h *held
	rows, err := tx.Query(ctx, `SELECT `+conversationColumns+`, c.owner, c.epoch,
		CASE WHEN c.owner IS NULL THEN false WHEN c.owner = $2 THEN true ELSE replica_alive(c.owner) END
		FROM conversations c WHERE c.id = $1 FOR NO KEY UPDATE OF c`, id, r)
	if err != nil {
		return held{}, err
	}
	if err := maybe(&h, scanHeld)(rows); err != nil {
		return held{}, err
	}
	if h == nil {
		return held{}, pgx.ErrNoRows
	}
	if !h.alive {
		f, err := scanFence(tx.QueryRow(ctx, claimOne, h.ID, r))
		h.owner, h.epoch, h.alive = f.Replica, f.Epoch, true
		return *h, err
	}
	return *h, nil
}

// queued is an event on its way into an inbox.
type queued struct {
	item record.InboxItem
	new  bool
}

// queueEvent puts an event that no person sent into the inbox of a locked
// conversation, once by its key, and wakes its owner.
func queueEvent(b *pgx.Batch, h held, ev chat.Event) (*queued, error) {
	kind, payload, err := chat.Encode(ev)
	if err != nil {
		return nil, err
	}
	o, q := ev.Meta(), &queued{}
	b.Queue(`
		INSERT INTO inbox AS i (account, event_key, conversation_id, kind, payload, person, state, reason)
		VALUES ($1, $2, $3, $4, $5, $6, 'received', 'accepted') ON CONFLICT DO NOTHING RETURNING `+inboxColumns,
		bounded(o.Address.Account, maxID), bounded(o.Key, maxKey), h.ID, kind, payload, text(o.From.ID)).
		Query(func(rows pgx.Rows) error {
			var item *record.InboxItem
			err := maybe(&item, scanItem)(rows)
			if item != nil {
				q.item, q.new = *item, true
			}
			return err
		})
	wake(b, h)
	return q, nil
}

// queueRan books how a run of a schedule ended. A run that was stopped says nothing
// about the schedule.
func queueRan(b *pgx.Batch, e record.TurnEnd) {
	b.Queue(`UPDATE schedules SET failures = CASE $2 WHEN 'failed' THEN failures + 1 WHEN 'interrupted' THEN failures ELSE 0 END
		WHERE id = (SELECT schedule_id FROM turns WHERE id = $1 AND schedule_id > 0)`, e.Turn, string(e.State))
}

// Enqueue puts an outside event into the inbox of the conversation that was active
// last at the event's address, once by its key: a known one is a duplicate, which
// changes nothing but perhaps the owner. Where nobody has talked yet it is record.ErrNotFound; where too
// many events wait it is record.ErrConflict.
func (db *DB) Enqueue(ctx context.Context, r record.ReplicaID, ev chat.Event) (record.Receipt, error) {
	var rc record.Receipt
	err := db.tx(ctx, "enqueue", func(ctx context.Context, tx pgx.Tx) error {
		a := ev.Meta().Address
		var id record.ConversationID
		err := tx.QueryRow(ctx, `SELECT id FROM conversations WHERE account = $1 AND chat = $2 AND thread = $3 ORDER BY active_at DESC LIMIT 1`,
			text(a.Account), text(a.Chat), text(a.Thread)).Scan(&id)
		if err != nil {
			return err
		}
		h, err := lockByID(ctx, tx, id, r)
		if err != nil {
			return err
		}
		b := &pgx.Batch{}
		b.Queue(`SELECT check_rows(greatest(count(*), $2), $2) FROM inbox WHERE conversation_id = $1 AND state IN ('received', 'taken') AND kind = 'task'`, h.ID, maxWaiting)
		q, err := queueEvent(b, h, ev)
		if err != nil {
			return err
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		rc = record.Receipt{Duplicate: !q.new, Item: q.item, Conversation: h.Conversation, Mine: h.owner == r, Fence: h.fence()}
		return nil
	})
	return rc, err
}
