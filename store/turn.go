package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"parley/agentcore/llm"
	"parley/store/record"
)

// turnColumns are those of a turn t, in scanTurn's order.
const turnColumns = `t.id, t.conversation_id, t.parent_id, t.schedule_id, t.session_id, t.state, t.iteration, t.budget, t.person, t.trust, t.account, t.chat, t.thread,
	t.reply, t.source, t.cause, t.reference, t.crashes, t.input_tokens, t.cached_tokens, t.cache_write_tokens, t.output_tokens,
	t.reasoning_tokens, t.cost, t.started_at, t.ended_at`

func scanTurn(row pgx.Row) (t record.Turn, err error) {
	a, u := &t.Address, &t.Usage
	err = row.Scan(&t.ID, &t.Conversation, empty(&t.Parent), &t.Schedule, &t.Session, &t.State, &t.Iteration, &t.Budget, &t.Person, &t.Trust, &a.Account, &a.Chat, &a.Thread,
		&t.Reply, &t.Source, &t.Cause, &t.Reference, &t.Crashes, &u.Input, &u.CachedInput, &u.CacheWrite, &u.Output,
		&u.Reasoning, &u.Cost, &t.StartedAt, zero(&t.EndedAt))
	return t, err
}

// Work loads all that is open in a conversation of the replica.
func (db *DB) Work(ctx context.Context, f record.Fence) (record.Work, error) {
	var w record.Work
	var owned *record.Conversation
	err := db.read(ctx, "work", func(ctx context.Context) error {
		b := &pgx.Batch{}
		b.Queue(`SELECT `+conversationColumns+` FROM conversations c WHERE c.id = $1 AND c.owner = $2 AND c.epoch = $3`,
			null(f.Conversation), null(f.Replica), f.Epoch).Query(maybe(&owned, scanConversation))
		b.Queue(`SELECT `+inboxColumns+` FROM inbox i WHERE i.conversation_id = $1 AND i.state = 'received' ORDER BY i.seq`,
			null(f.Conversation)).Query(list(&w.Inbox, scanItem))
		b.Queue(`SELECT `+turnColumns+` FROM turns t WHERE t.conversation_id = $1 AND t.ended_at IS NULL AND t.parent_id IS NULL`,
			null(f.Conversation)).Query(maybe(&w.Turn, scanTurn))
		b.Queue(`SELECT `+deliveryColumns+` FROM deliveries d WHERE d.conversation_id = $1 AND (d.state IN ('pending', 'sending', 'unknown')
			OR d.state = 'sent' AND d.kind IN ('live', 'final', 'card', 'file') AND d.turn_id = (SELECT id FROM turns WHERE conversation_id = $1 AND ended_at IS NULL AND parent_id IS NULL))
			ORDER BY d.seq`, null(f.Conversation)).Query(list(&w.Deliveries, scanDelivery))
		b.Queue(`SELECT `+approvalColumns+` FROM approvals a WHERE a.conversation_id = $1 AND a.state = 'open' ORDER BY a.id`,
			null(f.Conversation)).Query(list(&w.Approvals, scanApproval))
		return db.pool.SendBatch(ctx, b).Close()
	})
	if err == nil && owned == nil {
		err = explain("work", record.ErrFenced)
	}
	if err != nil {
		return record.Work{}, err
	}
	w.Conversation = *owned
	return w, nil
}

// StartTurn appends the user rows, writes the turn and takes the inbox rows. It
// fails with record.ErrConflict if a turn is running already (CON-014), or if one of
// the rows is not received any more.
func (db *DB) StartTurn(ctx context.Context, f record.Fence, s record.TurnStart) (record.Started, error) {
	var begun record.Started
	t := s.Turn
	if t.ID == "" {
		t.ID = record.TurnID(record.NewID())
	}
	if t.State == "" {
		t.State = record.TurnPreparing
	}
	t.Conversation = f.Conversation
	if s.Fork != nil {
		t.Session = s.Fork.ID
	}
	if s.Root != nil {
		t.Session = s.Root.ID
	}
	err := db.write(ctx, "start turn", f, func(b *pgx.Batch) {
		if s.Fork != nil {
			queueFork(b, f, *s.Fork)
		}
		if s.Root != nil {
			queueAside(b, f, *s.Root)
		}
		b.Queue(`
			INSERT INTO turns (id, conversation_id, session_id, state, iteration, budget, person, trust, account, chat, thread, reply, source, cause, crashes, schedule_id)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) RETURNING started_at`,
			t.ID, t.Conversation, t.Session, t.State, t.Iteration, jsonOf(t.Budget), text(t.Person), t.Trust,
			text(t.Address.Account), text(t.Address.Chat), text(t.Address.Thread), text(t.Reply), text(t.Source), text(t.Cause), t.Crashes, t.Schedule).
			QueryRow(func(row pgx.Row) error { return row.Scan(&t.StartedAt) })
		a := appender{batch: b, conversation: f.Conversation, session: t.Session, turn: t.ID}
		for _, m := range s.Messages {
			a.add(&m, 0)
		}
		queueTake(b, f, t.ID, s.Items)
		b.Queue(selectSession, t.Session).QueryRow(one(&begun.Session, scanSession))
		b.Queue(history, t.Session).Query(list(&begun.History, scanMessage))
		b.Queue(selectMember, text(t.Person)).Query(maybe(&begun.Member, scanMember))
	})
	begun.Turn = t
	return begun, err
}

// JoinTurn appends user rows to the running turn and takes their inbox rows. It
// fails with record.ErrConflict if the turn has ended, or if one of the rows is not
// received any more.
func (db *DB) JoinTurn(ctx context.Context, f record.Fence, t record.TurnID, items []record.InboxItem, msgs []record.Message) error {
	return db.write(ctx, "join turn", f, func(b *pgx.Batch) {
		b.Queue(`SELECT check_rows(count(*), 1) FROM turns WHERE id = $1 AND conversation_id = $2 AND ended_at IS NULL`, t, f.Conversation)
		a := appender{batch: b, conversation: f.Conversation, turn: t}
		for _, m := range msgs {
			m.Turn = t
			a.add(&m, 0)
		}
		queueTake(b, f, t, items)
	})
}

// UnattendedInARow counts the newest turns of a conversation that no person started,
// up to the last one that one did.
func (db *DB) UnattendedInARow(ctx context.Context, c record.ConversationID) (int, error) {
	n := 0
	err := db.read(ctx, "unattended turns", func(ctx context.Context) error {
		return db.pool.QueryRow(ctx, `SELECT count(*) FROM turns t WHERE t.conversation_id = $1 AND t.trust = 'untrusted'
			AND NOT EXISTS (SELECT FROM turns u WHERE u.conversation_id = $1 AND u.trust <> 'untrusted' AND u.id > t.id)`, null(c)).Scan(&n)
	})
	return n, err
}

// queueTake moves received inbox rows into a turn, all of them or none.
func queueTake(b *pgx.Batch, f record.Fence, t record.TurnID, items []record.InboxItem) {
	if len(items) == 0 {
		return
	}
	accounts, keys := itemKeys(items)
	b.Queue(`
		WITH taken AS (
			UPDATE inbox i SET state = 'taken', turn_id = $2 FROM unnest($3::text[], $4::text[]) AS k (account, event_key)
			WHERE i.account = k.account AND i.event_key = k.event_key AND i.conversation_id = $1 AND i.state = 'received' RETURNING 1)
		SELECT check_rows(count(*), $5) FROM taken`, f.Conversation, t, accounts, keys, len(items))
}

// SetTurn stores a running turn's state, iteration, budget, usage and cause.
func (db *DB) SetTurn(ctx context.Context, f record.Fence, t record.Turn) error {
	if t.State.Ended() {
		return fmt.Errorf("store: set turn: %s is an end, which is EndTurn's", t.State)
	}
	return db.write(ctx, "set turn", f, func(b *pgx.Batch) {
		u := t.Usage
		b.Queue(`
			WITH changed AS (
				UPDATE turns SET state = $3, iteration = $4, budget = $5, cause = $6, input_tokens = $7, cached_tokens = $8, cache_write_tokens = $9,
					output_tokens = $10, reasoning_tokens = $11, cost = $12
				WHERE id = $1 AND conversation_id = $2 AND ended_at IS NULL RETURNING 1)
			SELECT check_rows(count(*), 1) FROM changed`,
			t.ID, f.Conversation, t.State, t.Iteration, jsonOf(t.Budget), text(t.Cause), u.Input, u.CachedInput, u.CacheWrite, u.Output, u.Reasoning, u.Cost)
	})
}

// SuspendTurn leaves a running turn for the next owner, with a cause. One that broke
// off by its own fault has crashed, which is counted.
func (db *DB) SuspendTurn(ctx context.Context, f record.Fence, t record.TurnID, cause string, crashed bool) error {
	return db.write(ctx, "suspend turn", f, func(b *pgx.Batch) {
		b.Queue(`
			WITH changed AS (
				UPDATE turns SET state = 'suspended', cause = $3, crashes = crashes + $4::boolean::integer
				WHERE id = $1 AND conversation_id = $2 AND ended_at IS NULL RETURNING 1)
			SELECT check_rows(count(*), 1) FROM changed`, t, f.Conversation, text(cause), crashed)
	})
}

// EndTurn ends a running turn, see record.TurnEnd. Messages with a sequence are
// results for open calls and go to their reserved places; tool runs that are still
// open are closed: as interrupted, or as unknown if they had begun and nobody
// stopped them. A turn that has ended already, or got a user row that e.Seen does
// not cover, is record.ErrConflict.
func (db *DB) EndTurn(ctx context.Context, f record.Fence, e record.TurnEnd) error {
	if !e.State.Ended() {
		return fmt.Errorf("store: end turn: %s is not an end", e.State)
	}
	return db.write(ctx, "end turn", f, func(b *pgx.Batch) {
		if e.Seen > 0 {
			b.Queue(`SELECT check_rows(count(*), 0) FROM messages m JOIN turns t ON t.session_id = m.session_id AND t.id = m.turn_id
				WHERE t.id = $1 AND m.role = 'user' AND m.seq > $2`, e.Turn, e.Seen)
		}
		queueEnded(b, f, e)
		if e.PromptTokens > 0 {
			// The last prompt covered what is there before the answer.
			b.Queue(`UPDATE sessions SET prompt_tokens = $2, prompt_seq = next_seq - 1 WHERE id = (SELECT session_id FROM turns WHERE id = $1)`,
				e.Turn, e.PromptTokens)
		}
		a := appender{batch: b, conversation: f.Conversation, turn: e.Turn}
		for _, m := range e.Messages {
			m.Turn = e.Turn
			a.add(&m, 0)
		}
		if e.Beside != nil {
			queueBeside(b, f, e)
		}
		b.Queue(`UPDATE tool_runs SET state = 'done', ended_at = now(),
			outcome = CASE WHEN state = 'started' AND $2 <> 'interrupted' THEN 'unknown' ELSE 'interrupted' END
			WHERE turn_id = $1 AND state <> 'done'`, e.Turn, string(e.State))
		if e.Usage != (llm.Usage{}) {
			queueUsage(b, e)
		}
		for _, d := range e.Deliveries {
			queueDelivery(b, f, d)
		}
		queueAbandon(b, e.Turn)
		queueRan(b, e)
		b.Queue(`UPDATE inbox SET state = 'done', done_at = now(), reason = $2 WHERE turn_id = $1 AND state = 'taken'`,
			e.Turn, text(endReason(e)))
		b.Queue(`UPDATE approvals SET state = 'withdrawn', decided_at = now() WHERE turn_id = $1 AND state = 'open'`, e.Turn)
		b.Queue(`UPDATE conversations SET active_at = now() WHERE id = $1`, f.Conversation)
	})
}

// queueBeside appends a word about a turn to the session that its conversation stands
// at, unless the turn has worked there itself.
func queueBeside(b *pgx.Batch, f record.Fence, e record.TurnEnd) {
	m := e.Beside
	b.Queue(`
		WITH s AS (
			UPDATE sessions SET next_seq = next_seq + 1 WHERE id = (SELECT session_id FROM conversations WHERE id = $1)
				AND id <> (SELECT session_id FROM turns WHERE id = $2) RETURNING id, next_seq - 1 AS seq)
		INSERT INTO messages (session_id, seq, turn_id, role, kind, content, importance, created_at)
		SELECT s.id, s.seq, $2, $3, $4, $5, $6, coalesce($7, now()) FROM s`,
		f.Conversation, e.Turn, m.Role, m.Kind, text(m.Content), m.Importance, nullTime(m.CreatedAt))
}

func endReason(e record.TurnEnd) string {
	if e.Cause == "" {
		return string(e.State)
	}
	return string(e.State) + ": " + e.Cause
}

func queueEnded(b *pgx.Batch, f record.Fence, e record.TurnEnd) {
	u := e.Usage
	b.Queue(`
		WITH ended AS (
			UPDATE turns SET state = $3, cause = $4, reference = $5, model = coalesce(nullif($6, ''), model), input_tokens = $7, cached_tokens = $8,
				cache_write_tokens = $9, output_tokens = $10, reasoning_tokens = $11, cost = $12, ended_at = now()
			WHERE id = $1 AND conversation_id = $2 AND ended_at IS NULL RETURNING 1)
		SELECT check_rows(count(*), 1) FROM ended`,
		e.Turn, f.Conversation, e.State, text(e.Cause), text(e.Reference), text(e.Model), u.Input, u.CachedInput, u.CacheWrite, u.Output, u.Reasoning, u.Cost)
}

func queueUsage(b *pgx.Batch, e record.TurnEnd) {
	u := e.Usage
	b.Queue(`
		INSERT INTO usage (turn_id, conversation_id, person, model, input_tokens, cached_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost)
		SELECT id, conversation_id, person, model, $2, $3, $4, $5, $6, $7 FROM turns WHERE id = $1`,
		e.Turn, u.Input, u.CachedInput, u.CacheWrite, u.Output, u.Reasoning, u.Cost)
}
