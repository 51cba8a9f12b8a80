package store

import (
	"context"
	"unique"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// sessionColumns are those of a session s, in sessionFields' order.
const sessionColumns = `s.id, s.conversation_id, s.parent_id, s.root_id, s.previous_id, s.fork_seq, s.reason, s.title, s.model, s.system_prompt,
	s.prompt_tokens, s.prompt_seq, s.ineffective, s.cool_until, s.failed_compressions, s.created_at, s.ended_at`

func sessionFields(s *record.Session) []any {
	return []any{&s.ID, &s.Conversation, empty(&s.Parent), &s.Root, empty(&s.Previous), &s.ForkSeq, &s.Reason, &s.Title, &s.Model, &s.SystemPrompt,
		&s.PromptTokens, &s.PromptSeq, &s.Ineffective, zero(&s.CoolUntil), &s.FailedCompressions, &s.CreatedAt, zero(&s.EndedAt)}
}

func scanSession(row pgx.Row) (s record.Session, err error) {
	err = row.Scan(sessionFields(&s)...)
	s.SystemPrompt = unique.Make(s.SystemPrompt).Value() // most sessions of a day have the same
	return s, err
}

const selectSession = `SELECT ` + sessionColumns + ` FROM sessions s WHERE s.id = $1`

// Session returns one session, or record.ErrNotFound.
func (db *DB) Session(ctx context.Context, id record.SessionID) (record.Session, error) {
	var s record.Session
	err := db.read(ctx, "session", func(ctx context.Context) error {
		return one(&s, scanSession)(db.pool.QueryRow(ctx, selectSession, id))
	})
	return s, err
}

// SetSession stores a session's model, system prompt and compression state. Title,
// place in the lineage and end are changed by commands only.
func (db *DB) SetSession(ctx context.Context, f record.Fence, s record.Session) error {
	return db.write(ctx, "set session", f, func(b *pgx.Batch) {
		b.Queue(`
			WITH changed AS (
				UPDATE sessions SET model = $3, system_prompt = $4, prompt_tokens = $5, prompt_seq = $6, ineffective = $7, cool_until = $8,
					failed_compressions = $9
				WHERE id = $1 AND conversation_id = $2 RETURNING 1)
			SELECT check_found(count(*)) FROM changed`,
			s.ID, f.Conversation, text(s.Model), text(s.SystemPrompt), s.PromptTokens, s.PromptSeq, s.Ineffective, nullTime(s.CoolUntil), s.FailedCompressions)
	})
}

// TitleSession names a session that has no title yet. One that has fails with
// record.ErrConflict: a name that a person gave stays.
func (db *DB) TitleSession(ctx context.Context, f record.Fence, s record.SessionID, title string) error {
	return db.write(ctx, "title session", f, func(b *pgx.Batch) {
		b.Queue(`
			WITH changed AS (UPDATE sessions SET title = $3 WHERE id = $1 AND conversation_id = $2 AND title = '' RETURNING 1)
			SELECT check_rows(count(*), 1) FROM changed`, s, f.Conversation, text(title))
	})
}

// summaries lists the sessions of conversation $1, at most $2. A chain of
// compressions is one entry, its newest child; messages are counted along the
// chain, without summaries and copies. Sessions in which nothing was said are left
// out, unless they are named or current (LIN-002).
const summaries = `
	WITH RECURSIVE entry AS (
		SELECT s.*, c.session_id IS NOT DISTINCT FROM s.id AS current, coalesce(
				(SELECT m.created_at FROM messages m WHERE m.session_id = s.id ORDER BY m.seq DESC LIMIT 1), s.created_at) AS last_at
		FROM sessions s JOIN conversations c ON c.id = s.conversation_id
		WHERE s.conversation_id = $1 AND NOT EXISTS (SELECT FROM sessions r WHERE r.id = s.root_id AND r.reason = 'delegation')
			AND NOT EXISTS (SELECT FROM sessions n WHERE n.parent_id = s.id AND n.reason = 'compression')
			AND (c.session_id = s.id OR s.title <> '' OR EXISTS (SELECT FROM messages m WHERE m.session_id = s.id))
		ORDER BY s.reason = 'schedule' AND c.session_id <> s.id, last_at DESC, s.created_at DESC LIMIT $2),
	chain AS (
		SELECT e.id AS entry, e.id, e.parent_id, e.reason FROM entry e
		UNION ALL
		SELECT c.entry, p.id, p.parent_id, p.reason FROM chain c JOIN sessions p ON p.id = c.parent_id WHERE c.reason = 'compression')
	SELECT ` + sessionColumns + `,
		(SELECT count(*) FROM chain c JOIN messages m ON m.session_id = c.id
			WHERE c.entry = s.id AND m.origin_session IS NULL AND m.role <> 'tool' AND m.kind IN ('', 'steer')),
		coalesce((SELECT left(m.content, 200) FROM chain c JOIN messages m ON m.session_id = c.id
			WHERE c.entry = s.id AND m.origin_session IS NULL AND m.role = 'user' AND m.kind = '' ORDER BY m.created_at, m.seq LIMIT 1), ''),
		s.last_at, s.current
	FROM entry s ORDER BY s.reason = 'schedule' AND NOT s.current, s.last_at DESC, s.created_at DESC`

// Sessions lists a conversation's sessions, those with the newest message first,
// compressed parents folded into their newest descendant.
func (db *DB) Sessions(ctx context.Context, c record.ConversationID, limit int) ([]record.SessionSummary, error) {
	var all []record.SessionSummary
	err := db.read(ctx, "sessions", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, summaries, c, limit)
		if err != nil {
			return err
		}
		return list(&all, scanSummary)(rows)
	})
	return all, err
}

// Tree returns the lineage that a session belongs to, parents before children and what
// subagents did below what they worked for; of each only the session and whether its
// conversation stands there.
func (db *DB) Tree(ctx context.Context, s record.Session) ([]record.SessionSummary, error) {
	var all []record.SessionSummary
	err := db.read(ctx, "tree", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `
			WITH RECURSIVE tree AS (
				SELECT id, 0 AS depth FROM sessions WHERE id = $1
				UNION ALL SELECT c.id, t.depth + 1 FROM tree t JOIN sessions c ON c.parent_id = t.id)
			SELECT `+sessionColumns+`, EXISTS (SELECT FROM conversations c WHERE c.session_id = s.id)
			FROM tree t JOIN sessions s ON s.id = t.id ORDER BY t.depth, s.created_at, s.id`, s.Root)
		if err != nil {
			return err
		}
		return list(&all, func(row pgx.Row) (n record.SessionSummary, err error) {
			err = row.Scan(append(sessionFields(&n.Session), &n.Current)...)
			return n, err
		})(rows)
	})
	return all, err
}

func scanSummary(row pgx.Row) (s record.SessionSummary, err error) {
	err = row.Scan(append(sessionFields(&s.Session), &s.Messages, &s.Opening, &s.LastAt, &s.Current)...)
	return s, err
}

// SessionIn returns the session's messages if it belongs to the conversation, else
// record.ErrNotFound.
func (db *DB) SessionIn(ctx context.Context, c record.ConversationID, id record.SessionID) ([]record.Message, error) {
	s, err := db.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.Conversation != c {
		return nil, explain("session", record.ErrNotFound)
	}
	return db.History(ctx, id)
}
