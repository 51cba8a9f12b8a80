package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// maxQuery bounds a search query, in bytes.
const maxQuery = 1000

// searchWords finds messages of conversation $1 by the words of $2, those with all
// of them first. Copies in compressed children and summaries are left out: the
// original is found. The work of subagents is nobody's conversation, and what
// schedules said comes after what people did.
//
// Words may stand in most of a hundred thousand messages, so what is ranked is bounded:
// some rows for each word and for all of them together, which are all there are of a
// rare one, and the newest rows.
const searchWords = `
	WITH q AS (SELECT plainto_tsquery('simple', $2) AS every, replace(plainto_tsquery('simple', $2)::text, ' & ', ' | ')::tsquery AS some),
	terms AS (SELECT quote_literal(unnest(tsvector_to_array(to_tsvector('simple', $2))))::tsquery AS query UNION SELECT every FROM q),
	mine AS (
		SELECT s.id, s.created_at FROM sessions s JOIN sessions r ON r.id = s.root_id AND r.reason <> 'delegation' WHERE s.conversation_id = $1),
	found AS (
		SELECT h.* FROM terms t CROSS JOIN LATERAL (
			SELECT m.session_id, m.seq FROM messages m
			WHERE m.search @@ t.query AND m.session_id IN (SELECT id FROM mine) AND m.origin_session IS NULL AND m.kind <> 'summary' LIMIT 300) h
		UNION
		SELECT n.session_id, n.seq FROM (SELECT id FROM mine ORDER BY created_at DESC LIMIT 10) s CROSS JOIN LATERAL (
			SELECT m.* FROM messages m WHERE m.session_id = s.id ORDER BY m.seq DESC LIMIT 100) n, q
		WHERE n.search @@ q.some AND n.origin_session IS NULL AND n.kind <> 'summary')
	SELECT ` + messageColumns + `, s.title, s.root_id, ts_rank(m.search, q.some) + CASE WHEN m.search @@ q.every THEN 1 ELSE 0 END AS rank
	FROM q, found f JOIN messages m ON m.session_id = f.session_id AND m.seq = f.seq JOIN sessions s ON s.id = m.session_id JOIN sessions r ON r.id = s.root_id
	ORDER BY r.reason = 'schedule', rank DESC, m.created_at DESC, m.seq DESC LIMIT $3`

// searchParts finds messages by parts of words, all of $3 and $2, one of them, which
// is given alone because the trigram index serves single patterns only. It is for
// languages without spaces between words, and for beginnings of words.
const searchParts = `
	SELECT ` + messageColumns + `, s.title, s.root_id, 0::float8 AS rank
	FROM messages m JOIN sessions s ON s.id = m.session_id JOIN sessions r ON r.id = s.root_id AND r.reason <> 'delegation'
	WHERE s.conversation_id = $1 AND left(m.content, 20000) ILIKE $2 AND left(m.content, 20000) ILIKE ALL ($3::text[])
		AND m.role <> 'tool' AND m.origin_session IS NULL AND m.kind <> 'summary'
	ORDER BY r.reason = 'schedule', m.created_at DESC, m.seq DESC LIMIT $4`

// Search returns the messages of one conversation that match best, at most limit.
// A query is words, or text of a language without spaces; every byte sequence is a
// valid query, and an empty one finds nothing.
func (db *DB) Search(ctx context.Context, c record.ConversationID, query string, limit int) ([]record.SearchHit, error) {
	query = head(text(query), maxQuery)
	patterns := likePatterns(query)
	if len(patterns) == 0 || limit <= 0 {
		return nil, nil
	}
	var hits []record.SearchHit
	err := db.read(ctx, "search", func(ctx context.Context) error {
		b := &pgx.Batch{}
		b.Queue(byIndex)
		b.Queue(searchWords, c, query, limit).Query(list(&hits, scanHit))
		if err := db.pool.SendBatch(ctx, b).Close(); err != nil || len(hits) == limit {
			return err
		}
		var parts []record.SearchHit
		rows, err := db.pool.Query(ctx, searchParts, c, longest(patterns), patterns, limit)
		if err != nil {
			return err
		}
		if err := list(&parts, scanHit)(rows); err != nil {
			return err
		}
		hits = merge(hits, parts, limit)
		return nil
	})
	return hits, err
}

func scanHit(row pgx.Row) (h record.SearchHit, err error) {
	err = row.Scan(append(messageFields(&h.Message), &h.SessionTitle, &h.Root, &h.Rank)...)
	return h, err
}

// likePatterns are the query's words, each anywhere in a text.
func likePatterns(query string) []string {
	var p []string
	for _, w := range strings.Fields(query) {
		p = append(p, "%"+strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(w)+"%")
	}
	return p
}

func longest(patterns []string) string {
	var l string
	for _, p := range patterns {
		if len(p) > len(l) {
			l = p
		}
	}
	return l
}

// merge appends the hits of more that are not there yet.
func merge(hits, more []record.SearchHit, limit int) []record.SearchHit {
	type place struct {
		session record.SessionID
		seq     int64
	}
	seen := map[place]bool{}
	for _, h := range hits {
		seen[place{h.Session, h.Seq}] = true
	}
	for _, h := range more {
		if len(hits) < limit && !seen[place{h.Session, h.Seq}] {
			hits = append(hits, h)
		}
	}
	return hits
}
