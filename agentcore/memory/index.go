package memory

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/store/record"
)

const (
	// queued bounds the sessions that wait for vectors.
	queued = 256
	// batchRows is how many texts one request carries.
	batchRows = 32
	// pause follows a failure, so that a server that is down is left in peace.
	pause = 30 * time.Second
)

// Saved notes that a session has new rows, and who pays for their vectors. It never blocks: where the queue is full
// the session is caught up after its next turn, since the rows themselves say what
// is missing.
func (r *Recaller) Saved(p record.Payer, s record.SessionID) {
	if r.deps.Embedder == nil {
		return
	}
	select {
	case r.queue <- grown{p, s}:
	default:
	}
}

// Run makes the vectors of saved rows until ctx ends.
func (r *Recaller) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case g := <-r.queue:
			err := r.catchUp(ctx, g)
			switch {
			case err == nil || ctx.Err() != nil:
			case overLimit(err):
				// Its rows are caught up with after a turn of a day that has room.
				r.deps.Log.Info("no embeddings for now", zap.String("conversation", string(g.payer.Conversation)), zap.Error(err))
			default:
				r.deps.Log.Warn("messages without embeddings", zap.String("conversation", string(g.payer.Conversation)), zap.Error(err))
				rest(ctx, pause)
			}
		}
	}
}

// overLimit says that nothing more may be spent on somebody's account, which is not a
// fault and does not concern others.
func overLimit(err error) bool {
	var over *record.SpendingError
	return errors.As(err, &over)
}

// rest waits for d or the end of ctx.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// catchUp makes what a session's lineage lacks.
func (r *Recaller) catchUp(ctx context.Context, g grown) error {
	for {
		rows, err := r.deps.Store.Unembedded(ctx, g.payer.Conversation, g.session, string(r.deps.Model), batchRows)
		if err != nil || len(rows) == 0 {
			return err
		}
		made, err := r.embed(ctx, g.payer, rows)
		if err != nil {
			return err
		}
		if err := r.deps.Store.SetEmbeddings(ctx, string(r.deps.Model), made); err != nil {
			return err
		}
	}
}

// embed makes the vectors of rows. A request that is refused for its texts is made
// again text by text.
func (r *Recaller) embed(ctx context.Context, p record.Payer, rows []record.Message) ([]record.Embedding, error) {
	texts := make([]string, len(rows))
	for i := range rows {
		texts[i] = cmp.Or(embedded(rows[i].Content), ".") // no model takes a blank text, and nothing recalls one
	}
	vectors, err := r.vectors(ctx, p, texts)
	if refused(err) {
		vectors, err = r.oneByOne(ctx, p, texts)
	}
	if err != nil {
		return nil, err
	}
	made := make([]record.Embedding, len(rows))
	for i, m := range rows {
		made[i] = record.Embedding{Session: m.Session, Seq: m.Seq, Vector: vectors[i]}
	}
	return made, nil
}

// oneByOne leaves the vectors of refused texts empty, so that they are not asked
// for again. If all are refused it is not the texts that are wrong.
func (r *Recaller) oneByOne(ctx context.Context, p record.Payer, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	var refusal error
	done := 0
	for i, text := range texts {
		v, err := r.vectors(ctx, p, []string{text})
		switch {
		case refused(err):
			refusal = err
		case err != nil:
			return nil, err
		default:
			vectors[i] = v[0]
			done++
		}
	}
	if done == 0 {
		return nil, refusal
	}
	return vectors, nil
}

func refused(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Kind == llm.KindMalformed
}
