package memory

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/agentcore/spending"
	"parley/gateway/chat"
	"parley/store/record"
)

// How many rows each leg of a recall brings.
const (
	recentRows   = 10
	salientRows  = 5
	relevantRows = 5
)

const (
	// maxEmbedded is how much of a text gets a vector, in bytes: what any model takes.
	maxEmbedded = 6000
	// patience is how long a turn waits for the vector of its message.
	patience = 3 * time.Second
	// bytesPerToken is few, so that what is reserved is rather too much.
	bytesPerToken = 3
)

// Store is where rows and vectors are; *store.DB is one.
type Store interface {
	// Recall returns the rows that have left a session's window, of its lineage only.
	Recall(ctx context.Context, q record.RecallQuery) (record.Recalled, error)
	// Nearest returns of these rows the ones whose vectors are nearest.
	Nearest(ctx context.Context, q record.RecallQuery, model string, vector []float32) ([]record.Message, error)
	// Unembedded returns rows of the lineage that have no vector yet.
	Unembedded(ctx context.Context, c record.ConversationID, s record.SessionID, model string, limit int) ([]record.Message, error)
	SetEmbeddings(ctx context.Context, model string, all []record.Embedding) error
}

// Embedder turns texts into vectors, one for each, and says what that used. A
// *llm.Error of KindMalformed says that one of the texts cannot be turned into one.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, llm.Usage, error)
}

// Deps are what a Recaller works with. Embedder may be nil: full text alone.
type Deps struct {
	Store    Store
	Embedder Embedder
	// Model names the embedder's space; vectors of different ones are never compared.
	Model llm.ModelID
	// Book keeps what vectors cost; nil: nothing is limited.
	Book *spending.Book
	Log  *zap.Logger
}

// Recaller finds what has left a session's window, and keeps the vectors for it up
// to date. It is safe for concurrent use.
type Recaller struct {
	deps  Deps
	queue chan grown
}

// grown is a session that has new rows.
type grown struct {
	payer   record.Payer
	session record.SessionID
}

// NewRecaller makes a Recaller. With an Embedder, Run must run.
func NewRecaller(d Deps) *Recaller {
	if d.Log == nil {
		d.Log = zap.NewNop()
	}
	return &Recaller{deps: d, queue: make(chan grown, queued)}
}

// Recall finds the rows to recall for a text, on the account of a person of the
// conversation; the query's numbers are set here. If the embedder does not answer
// soon, or nothing more may be spent, full text has to do.
func (r *Recaller) Recall(ctx context.Context, q record.RecallQuery, p chat.Person) (Sources, error) {
	q.Salience, q.Recent, q.Salient, q.Relevant = Salient, recentRows, salientRows, relevantRows
	rows, err := r.deps.Store.Recall(ctx, q)
	s := Sources{Relevant: rows.Relevant, Salient: rows.Salient, Recent: rows.Recent}
	text := embedded(q.Text)
	if err != nil || r.deps.Embedder == nil || len(rows.Recent) == 0 || text == "" {
		return s, err
	}
	ectx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	vectors, err := r.vectors(ectx, record.Payer{Conversation: q.Conversation, Person: p}, []string{text})
	switch {
	case overLimit(err):
		return s, nil
	case err != nil:
		r.deps.Log.Warn("recall without embeddings", zap.Error(err))
		return s, nil
	}
	s.Similar, err = r.deps.Store.Nearest(ctx, q, string(r.deps.Model), vectors[0])
	return s, err
}

// vectors asks the embedder within what may be spent; at a limit the error is a
// *record.SpendingError.
func (r *Recaller) vectors(ctx context.Context, p record.Payer, texts []string) ([][]float32, error) {
	p.Purpose = record.ForEmbedding
	size := 0
	for _, t := range texts {
		size += len(t)
	}
	probably := llm.Usage{Input: size/bytesPerToken + 1}
	booked, err := r.deps.Book.Reserve(ctx, p, r.deps.Model, probably)
	if err != nil {
		return nil, err
	}
	vectors, used, err := r.deps.Embedder.Embed(ctx, texts)
	if err == nil && used.Input == 0 {
		used = probably // a server that does not say
	}
	r.deps.Book.Settle(ctx, booked, r.deps.Model, used)
	return vectors, err
}

// embedded is the part of a text that gets a vector, "" if there is none.
func embedded(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= maxEmbedded {
		return text
	}
	n := maxEmbedded
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
