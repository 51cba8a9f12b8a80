package store

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"parley/store/record"
)

const (
	// nearestOf is how many of the newest rows are compared.
	nearestOf = 2000
	// nearEnough is the cosine from which a row counts as near. What it means differs
	// from model to model; it only keeps out what has nothing in common.
	nearEnough = 0.3
)

// Nearest returns the rows that Recall could return whose vectors of the model are
// nearest to the given one, best first, at most q.Relevant.
func (db *DB) Nearest(ctx context.Context, q record.RecallQuery, model string, vector []float32) ([]record.Message, error) {
	var near []record.Message
	if vector = unit(vector); vector == nil {
		return nil, nil
	}
	err := db.read(ctx, "nearest", func(ctx context.Context) error {
		best, err := db.nearest(ctx, q, model, vector)
		if err != nil || len(best) == 0 {
			return err
		}
		sessions, seqs := make([]record.SessionID, len(best)), make([]int64, len(best))
		for i, b := range best {
			sessions[i], seqs[i] = b.session, b.seq
		}
		rows, err := db.pool.Query(ctx, `
			SELECT `+messageColumns+` FROM unnest($1::uuid[], $2::bigint[]) WITH ORDINALITY AS k(session_id, seq, n)
			JOIN messages m ON m.session_id = k.session_id AND m.seq = k.seq ORDER BY k.n`, sessions, seqs)
		if err != nil {
			return err
		}
		return list(&near, scanMessage)(rows)
	})
	return near, err
}

type neighbour struct {
	session record.SessionID
	seq     int64
	cosine  float64
}

// nearest compares vectors as they come from the server, keeping none.
func (db *DB) nearest(ctx context.Context, q record.RecallQuery, model string, vector []float32) ([]neighbour, error) {
	rows, err := db.pool.Query(ctx, `WITH RECURSIVE `+lineage+`
		SELECT e.session_id, e.seq, e.vector FROM line l JOIN messages m ON `+spoken+`
			JOIN message_embeddings e ON e.session_id = m.session_id AND e.seq = m.seq
		WHERE e.model = $4 AND length(e.vector) = $5 ORDER BY m.seq DESC LIMIT $6`,
		q.Conversation, q.Session, q.Before, text(model), 4*len(vector), nearestOf)
	if err != nil {
		return nil, err
	}
	var best []neighbour
	var n neighbour
	var raw pgtype.DriverBytes // valid until the next row
	_, err = pgx.ForEachRow(rows, []any{&n.session, &n.seq, &raw}, func() error {
		if n.cosine = dot(raw, vector); n.cosine < nearEnough {
			return nil
		}
		at, _ := slices.BinarySearchFunc(best, n, func(a, b neighbour) int { return cmp.Compare(b.cosine, a.cosine) })
		if at < q.Relevant {
			best = slices.Insert(best, at, n)
			best = best[:min(len(best), q.Relevant)]
		}
		return nil
	})
	return best, err
}

// Unembedded returns what was said in a session's lineage and has no vector of the
// model yet, newest first.
func (db *DB) Unembedded(ctx context.Context, c record.ConversationID, s record.SessionID, model string, limit int) ([]record.Message, error) {
	var msgs []record.Message
	err := db.read(ctx, "unembedded", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `WITH RECURSIVE `+lineage+`
			SELECT `+messageColumns+` FROM line l JOIN messages m ON `+spoken+`
			WHERE NOT EXISTS (SELECT FROM message_embeddings e WHERE e.session_id = m.session_id AND e.seq = m.seq AND e.model = $4)
			ORDER BY m.seq DESC LIMIT $5`, c, s, int64(math.MaxInt64), text(model), limit)
		if err != nil {
			return err
		}
		return list(&msgs, scanMessage)(rows)
	})
	return msgs, err
}

// SetEmbeddings stores vectors of a model, scaled to length 1. A message that has
// one already keeps it.
func (db *DB) SetEmbeddings(ctx context.Context, model string, all []record.Embedding) error {
	return db.batch(ctx, "set embeddings", func(b *pgx.Batch) {
		for _, e := range all {
			b.Queue(`INSERT INTO message_embeddings (session_id, seq, model, vector) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
				e.Session, e.Seq, text(model), vectorBytes(unit(e.Vector)))
		}
	})
}

// unit scales a vector to length 1; nil for one that has no direction.
func unit(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) {
		return nil
	}
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) / length)
	}
	return out
}

// vectorBytes is a vector as it is stored.
func vectorBytes(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// dot is the product of a stored vector and one of the same size.
func dot(raw []byte, v []float32) float64 {
	var sum float32
	for i := range v {
		sum += math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])) * v[i]
	}
	return float64(sum)
}
