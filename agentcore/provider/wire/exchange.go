package wire

import (
	"bufio"
	"context"
	"errors"
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

// settleTime is how long a server may take between saying that its answer is
// complete and ending it: the usage is still to come.
const settleTime = 5 * time.Second

// eventSize is what most events of a stream fit in; longer ones take a little longer.
const eventSize = 1 << 10

// drainTime is how long the end of a complete answer is waited for.
const drainTime = 50 * time.Millisecond

// Exchange is one request and the bytes of its answer. It belongs to one goroutine.
type Exchange struct {
	ctx     context.Context
	payload []byte // nil once it was answered
	cancel  context.CancelCauseFunc
	watch   *watch
	body    io.Reader
	// done: the server said [DONE], or its whole JSON answer is there.
	done bool
}

type exchangeKey struct{}

// Begin prepares an exchange that sends payload. The returned context carries it to
// Endpoint.Do, through whatever library makes the request; End it.
func Begin(ctx context.Context, payload []byte) (context.Context, *Exchange) {
	x := &Exchange{payload: payload}
	ctx, x.cancel = context.WithCancelCause(ctx)
	x.ctx = context.WithValue(ctx, exchangeKey{}, x)
	return x.ctx, x
}

// silence is why the request was given up, nil if not for a silence.
func (x *Exchange) silence() *silence {
	var s *silence
	errors.As(context.Cause(x.ctx), &s)
	return s
}

// End abandons what is left of the request.
func (x *Exchange) End() { x.cancel(nil) }

// Do sends the request with its exchange's payload, turns everything that is not an
// answer into a *llm.Error while the headers are still at hand, and lets clean
// events through only: lines "data: JSON" with blank ones between them. It is the
// HTTP client for libraries (openai.HTTPDoer).
func (e *Endpoint) Do(r *http.Request) (*http.Response, error) {
	x := r.Context().Value(exchangeKey{}).(*Exchange)
	r.GetBody = func() (io.ReadCloser, error) { return &sending{x.payload}, nil }
	r.Body, _ = r.GetBody()
	r.ContentLength = int64(len(x.payload))
	if r.Header.Get("Authorization") == "Bearer " {
		r.Header.Del("Authorization")
	}
	x.watch = newWatch(e.FirstByte, e.Idle, x.cancel)
	resp, err := e.http.Do(r)
	x.payload = nil
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

// sending is a payload on its way. It lets go of the bytes when they are read: the
// response, which lives as long as the answer streams, refers to its request.
type sending struct{ left []byte }

// Read implements io.Reader.
func (s *sending) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		s.left = nil
		return 0, io.EOF
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *sending) Close() error { return nil }

// open looks at what the server sends and replaces the body by a clean stream.
func (x *Exchange) open(resp *http.Response) error {
	if resp.StatusCode >= http.StatusMultipleChoices {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		if err != nil && len(body) == 0 {
			body = []byte(resp.Status)
		}
		return Classify(resp.StatusCode, resp.Header, body)
	}
	closer := resp.Body
	br := bufio.NewReaderSize(&lively{resp.Body, x.watch}, eventSize)
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
		"the server answered with a web page (%s) instead of a completion, check base_url: %s", contentType, Bounded(pageText(head), 200))}
}
