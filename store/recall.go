package store

import (
	"context"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// lineage is the session $2 of conversation $1 with its ancestors, each up to where
// its descendant left it: a fork at its sequence (a subagent's is 0, it has nothing
// of its parent), a compression at the end. An undo
// in a compressed child must not bring back, from the parent, what it took away:
// there the cut is before the first row whose copy was taken back. A root ends it
// (nothing from before /new), and so does another conversation.
const lineage = `
	line AS (
		SELECT id, parent_id, reason, fork_seq, NULL::bigint AS upto FROM sessions WHERE id = $2 AND conversation_id = $1
		UNION ALL
		SELECT p.id, p.parent_id, p.reason, p.fork_seq, least(l.upto, CASE WHEN l.reason <> 'compression' THEN l.fork_seq ELSE (
			SELECT min(c.origin_seq) - 1 FROM messages c WHERE c.session_id = l.id AND c.seq > l.upto AND c.origin_session IS NOT NULL) END)
		FROM line l JOIN sessions p ON p.id = l.parent_id AND p.conversation_id = $1)`

// spoken says of a row m that it was said in the session l of the line before sequence
// $3, by a person or the model. Copies are not it.
const spoken = `m.session_id = l.id AND m.seq < $3::bigint AND (l.upto IS NULL OR m.seq <= l.upto) AND m.origin_session IS NULL AND m.kind IN ('', 'steer')
	AND m.content <> '' AND (m.role = 'user' OR m.role = 'assistant' AND m.tool_calls IS NULL)`

// Rows below 0.8 are never salient, which an index knows.
const (
	recallRecent = `WITH RECURSIVE ` + lineage + `
		SELECT ` + messageColumns + ` FROM line l CROSS JOIN LATERAL (SELECT m.* FROM messages m WHERE ` + spoken + ` ORDER BY m.seq DESC LIMIT $4) m
		ORDER BY m.seq DESC LIMIT $4`
	recallSalient = `WITH RECURSIVE ` + lineage + `
		SELECT ` + messageColumns + ` FROM line l CROSS JOIN LATERAL (
			SELECT m.* FROM messages m WHERE ` + spoken + ` AND m.importance >= 0.8 AND m.importance >= $5 ORDER BY m.seq DESC LIMIT $4) m
		ORDER BY m.seq DESC LIMIT $4`
)

// recallRelevant scores rows by the terms they share with a text: words of which $5
// are beginnings and $6 wholes, and $7 pieces of writing without spaces; all the words
// together are a term too. A term weighs less the more rows have it, and nothing if
// every twentieth has it or a thousand have, so that one rare word outweighs many
// common ones and no more than that is looked at; long rows, which have a bit of
// everything, weigh less too. Rows that share little, or far less than the best one,
// are left out. Pieces, which no index serves, are looked for in the newest 20,000.
const recallRelevant = `WITH RECURSIVE ` + lineage + `,
	words AS (
		SELECT t AS term, (quote_literal(lower(t)) || ':*')::tsquery AS query FROM unnest($5::text[]) t
		UNION ALL SELECT t, quote_literal(lower(t))::tsquery FROM unnest($6::text[]) t),
	terms AS (
		SELECT term, query FROM words
		UNION ALL SELECT '', string_agg(query::text, ' & ')::tsquery FROM words HAVING count(*) > 1),
	most AS (SELECT least(8 + least($3, max(s.next_seq)) / 20, 1000) AS rows FROM line l JOIN sessions s ON s.id = l.id),
	hits AS MATERIALIZED (
		SELECT h.session_id, h.seq, h.size, t.term FROM terms t CROSS JOIN LATERAL (
			SELECT m.session_id, m.seq, length(m.content) AS size FROM messages m JOIN line l ON ` + spoken + `
			WHERE m.search @@ t.query LIMIT (SELECT rows + 1 FROM most)) h
		UNION ALL
		SELECT m.session_id, m.seq, length(m.content), t FROM unnest($7::text[]) t JOIN (
			SELECT m.session_id, m.seq, m.content FROM line l JOIN messages m ON ` + spoken + ` ORDER BY m.seq DESC LIMIT 20000
		) m ON strpos(left(m.content, 20000), t) > 0),
	weights AS (
		SELECT term, 1 / (1 + ln(count(*))) AS weight FROM hits GROUP BY term HAVING count(*) <= (SELECT rows FROM most)),
	scores AS (
		SELECT session_id, seq, sum(weight) / (1 + ln(1 + size / 2000.0)) AS score FROM hits JOIN weights USING (term) GROUP BY session_id, seq, size)
	SELECT ` + messageColumns + ` FROM scores s JOIN messages m ON m.session_id = s.session_id AND m.seq = s.seq
	WHERE s.score >= greatest(0.25, (SELECT max(score) / 2 FROM scores)) ORDER BY s.score DESC, m.seq DESC LIMIT $4`

// byIndex keeps the rest of a transaction from reading whole tables: the planner takes
// a limit for a reason to, and then looks at every message for a word that is rare.
const byIndex = `SELECT set_config('enable_seqscan', 'off', true)`

// Recall returns what was said in a session's lineage and has left its window: the
// newest rows, the salient ones, and those that have to do with a text. Only what
// people and the model said to each other counts, not the work of tools; copies in
// compressed children do not, their originals do. Rows that are in the window
// although their sequence is older are for the caller to leave out.
func (db *DB) Recall(ctx context.Context, q record.RecallQuery) (record.Recalled, error) {
	var r record.Recalled
	err := db.read(ctx, "recall", func(ctx context.Context) error {
		b := &pgx.Batch{}
		b.Queue(byIndex)
		b.Queue(recallRecent, q.Conversation, q.Session, q.Before, q.Recent).Query(list(&r.Recent, scanMessage))
		b.Queue(recallSalient, q.Conversation, q.Session, q.Before, q.Salient, q.Salience).Query(list(&r.Salient, scanMessage))
		if t := termsOf(q.Text); t.any() {
			b.Queue(recallRelevant, q.Conversation, q.Session, q.Before, q.Relevant, t.beginnings, t.wholes, t.pieces).Query(list(&r.Relevant, scanMessage))
		}
		return db.pool.SendBatch(ctx, b).Close()
	})
	return r, err
}

// maxTerms bounds the terms of each kind; the longest say most.
const maxTerms = 24

// terms are what a text is searched by.
type terms struct{ beginnings, wholes, pieces []string }

func (t terms) any() bool { return len(t.beginnings)+len(t.wholes)+len(t.pieces) > 0 }

// termsOf takes a text apart. A word of four letters or more stands for all that
// begin as it does but for its ending, which finds most forms of a word in most
// languages. Writing without spaces gives pairs of neighbours.
func termsOf(s string) terms {
	var t terms
	seen := map[string]bool{}
	add := func(to *[]string, term string) {
		if key := strings.ToLower(term); !seen[key] && len(*to) < maxTerms {
			seen[key] = true
			*to = append(*to, term)
		}
	}
	words, runs := wordsOf(head(text(s), maxQuery))
	for _, w := range words {
		r := []rune(w)
		switch {
		case strings.ContainsFunc(w, unicode.IsDigit) || len(r) < 4:
			add(&t.wholes, w)
		case len(r) < 6:
			add(&t.beginnings, string(r[:len(r)-1]))
		default:
			add(&t.beginnings, string(r[:len(r)-2]))
		}
	}
	for _, run := range runs {
		r := []rune(run)
		for i := range max(len(r)-1, 1) {
			add(&t.pieces, string(r[i:min(i+2, len(r))]))
		}
	}
	return t
}

// wordsOf divides a text into words and runs of writing without spaces.
func wordsOf(s string) (words, runs []string) {
	kind := func(r rune) int {
		switch {
		case unspaced(r):
			return 2
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return 1
		}
		return 0
	}
	start, now := 0, 0
	end := func(at, next int) {
		switch now {
		case 1:
			words = append(words, s[start:at])
		case 2:
			runs = append(runs, s[start:at])
		}
		start, now = at, next
	}
	for i, r := range s {
		if k := kind(r); k != now {
			end(i, k)
		}
	}
	end(len(s), 0)
	return words, runs
}

// unspaced says that a character's script is written without spaces.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
