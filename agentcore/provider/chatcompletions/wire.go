package chatcompletions

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"parley/agentcore/llm"
)

// maxErrorBody and maxAnswer bound what is read of an error and of an answer that
// is not streamed.
const (
	maxErrorBody = 64 << 10
	maxAnswer    = 32 << 20
)

// exchange is what one request carries past the library: the body that is really
// sent, and how the answer's bytes ended.
type exchange struct {
	payload []byte
	cancel  context.CancelCauseFunc
	watch   *watch
	body    io.Reader
	// done: the server said [DONE], or its whole JSON answer is there.
	done bool
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// drain reads what little is left behind [DONE], so that the connection can be
// used again; a server that does not end there is left after 50 ms.
func (x *exchange) drain() {
	x.watch.shorten(50 * time.Millisecond)
	_, _ = io.Copy(io.Discard, io.LimitReader(x.body, 4096))
}

// doer is the HTTP client that the library uses. It sends our body, turns
// everything that is not an answer into a *llm.Error while the headers are still
// at hand, and gives the library clean events only.
type doer struct {
	http        *http.Client
	first, idle time.Duration
}

// Do implements openai.HTTPDoer.
func (d doer) Do(r *http.Request) (*http.Response, error) {
	x := r.Context().Value(exchangeKey{}).(*exchange)
	r.Body = io.NopCloser(bytes.NewReader(x.payload))
	r.ContentLength = int64(len(x.payload))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(x.payload)), nil }
	if r.Header.Get("Authorization") == "Bearer " {
		r.Header.Del("Authorization")
	}
	x.watch = newWatch(d.first, d.idle, x.cancel)
	resp, err := d.http.Do(r)
	if err != nil {
		x.watch.stop()
		return nil, err
	}
	if err := x.open(resp); err != nil {
		x.watch.stop()
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// open looks at what the server sends and replaces the body by a clean stream.
func (x *exchange) open(resp *http.Response) error {
	if resp.StatusCode >= http.StatusMultipleChoices {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		if err != nil && len(body) == 0 {
			body = []byte(resp.Status)
		}
		return classify(resp.StatusCode, resp.Header, body)
	}
	closer := resp.Body
	br := bufio.NewReader(&lively{resp.Body, x.watch})
	x.body = br
	c := &cleaner{src: br, x: x}
	switch kind := sniff(br); kind {
	case '<':
		head, _ := io.ReadAll(io.LimitReader(br, 2048))
		return webPage(resp.StatusCode, resp.Header.Get("Content-Type"), head)
	case '{', '[':
		c.whole = true
	}
	resp.Body = &cleanBody{cleaner: c, closer: closer, watch: x.watch}
	return nil
}

// sniff returns the first byte that is no space, 0 if there is none. Content types
// are not to be trusted: JSON comes as text/plain, streams as application/json
// (PST-026, PST-028).
func sniff(br *bufio.Reader) byte {
	for {
		b, err := br.Peek(1)
		if err != nil {
			return 0
		}
		switch b[0] {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF:
			_, _ = br.Discard(1)
		default:
			return b[0]
		}
	}
}

func webPage(status int, contentType string, head []byte) *llm.Error {
	return &llm.Error{Kind: llm.KindUnknown, Status: status, Message: fmt.Sprintf(
		"the server answered with a web page (%s) instead of a completion, check base_url: %s", contentType, bounded(pageText(head), 200))}
}

// silence ends a request whose server has nothing more to say.
type silence struct {
	limit time.Duration
	begun bool
}

func (s *silence) Error() string {
	if s.begun {
		return fmt.Sprintf("the answer stopped for %s", s.limit)
	}
	return fmt.Sprintf("no answer within %s", s.limit)
}

// watch cancels a request after too long a silence. It belongs to one goroutine.
type watch struct {
	timer  *time.Timer
	idle   time.Duration
	begun  bool
	cancel context.CancelCauseFunc
}

func newWatch(first, idle time.Duration, cancel context.CancelCauseFunc) *watch {
	w := &watch{idle: idle, cancel: cancel}
	w.timer = time.AfterFunc(first, func() { cancel(&silence{limit: first}) })
	return w
}

// alive is called for every piece of the answer.
func (w *watch) alive() {
	if w.begun {
		w.timer.Reset(w.idle)
		return
	}
	w.begun = true
	w.timer.Stop()
	idle, cancel := w.idle, w.cancel
	w.timer = time.AfterFunc(idle, func() { cancel(&silence{limit: idle, begun: true}) })
}

// shorten lowers the limit from now on.
func (w *watch) shorten(limit time.Duration) {
	if limit < w.idle {
		w.idle = limit
		w.timer.Reset(limit)
	}
}

func (w *watch) stop() { w.timer.Stop() }

// lively tells the watch of every read that brought something.
type lively struct {
	io.Reader
	watch *watch
}

func (l *lively) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.watch.alive()
	}
	return n, err
}
