package gateway

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"parley/agentcore"
	"parley/agentcore/llm"
	"parley/gateway/chat"
	"parley/store/record"
)

// titleLimit bounds the making of a title.
const titleLimit = time.Minute

// Titler names a session by its first question and answer; agentcore.Titler is one.
type Titler interface {
	Title(ctx context.Context, p record.Payer, question, answer string) (string, error)
}

// considerTitle names a session that has no name after its first answer, beside
// whatever comes next. A failure costs the name only, and is not tried again.
func (c *conversation) considerTitle(ctx context.Context, rt *runningTurn, r *agentcore.Result) {
	if c.g.deps.Titler == nil || r.State != record.TurnDone || c.titled == r.Session {
		return
	}
	i := slices.IndexFunc(r.Messages, func(m record.Message) bool { return m.Role == llm.User && m.Kind == record.KindSaid })
	if i < 0 {
		return
	}
	c.titled = r.Session
	n := unnamed{session: r.Session, question: r.Messages[i].Content, answer: r.Text, at: rt.row.Address, fence: c.fence,
		payer: record.Payer{Conversation: c.conv.ID, Person: rt.row.Person}}
	c.children.Go(func() {
		defer c.g.door("title")
		ctx, cancel := context.WithTimeout(ctx, titleLimit)
		defer cancel()
		if err := c.title(ctx, n); err != nil && ctx.Err() == nil {
			c.log.Info("a session without a title", zap.String("session", string(n.session)), zap.Error(err))
		}
	})
}

// unnamed is a session that is being named, and what it takes.
type unnamed struct {
	session          record.SessionID
	question, answer string
	at               chat.Address
	fence            record.Fence
	payer            record.Payer
}

// title touches nothing of the conversation but its poster.
func (c *conversation) title(ctx context.Context, n unnamed) error {
	session, err := c.g.store.Session(ctx, n.session)
	if err != nil || session.Title != "" || session.Parent != "" {
		return err
	}
	title, err := c.g.deps.Titler.Title(ctx, n.payer, n.question, n.answer)
	if err != nil || title == "" {
		return err
	}
	err = c.g.store.TitleSession(ctx, n.fence, n.session, title)
	if errors.Is(err, record.ErrConflict) {
		return nil // a person was faster
	}
	if err == nil {
		c.nameThread(n.at, title)
	}
	return err
}

// nameThread shows a title where the platform has a place for it; best effort.
func (c *conversation) nameThread(at chat.Address, title string) {
	t, ok := c.account.adapter.(chat.Titler)
	if !ok || at.Thread == "" {
		return
	}
	c.post.note(func(ctx context.Context) {
		cctx, cancel := context.WithTimeout(ctx, noteLimit)
		defer cancel()
		if err := t.SetTitle(cctx, at, title); err != nil {
			c.log.Debug("name a thread", zap.Error(err))
		}
	})
}
