package chatcompletions

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// goingAway is an HTTP/2 server whose first connection says that it is going away when
// a request has come, after part of an answer or before; the others answer.
type goingAway struct {
	begun  string // what it answers before
	behind *httptest.Server

	mu       sync.Mutex
	opened   int // connections
	answered int
}

func (g *goingAway) serve(l net.Listener, all *sync.WaitGroup) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		g.opened++
		first := g.opened == 1
		g.mu.Unlock()
		all.Go(func() {
			defer c.Close()
			if first {
				g.leave(tls.Server(c, &tls.Config{Certificates: g.behind.TLS.Certificates, NextProtos: []string{"h2"}}))
			} else {
				g.pass(c)
			}
		})
	}
}

// pass hands a connection on to the server that answers.
func (g *goingAway) pass(c net.Conn) {
	to, err := net.Dial("tcp", g.behind.Listener.Addr().String())
	if err != nil {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { _, _ = io.Copy(c, to) })
	_, _ = io.Copy(to, c)
	_ = to.Close()
	back.Wait()
}

// leave answers with a GOAWAY. It counts a request that it has begun to answer as
// taken, any other not.
func (g *goingAway) leave(c net.Conn) {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	if f.WriteSettings() != nil {
		return
	}
	for {
		in, err := f.ReadFrame()
		if err != nil {
			return
		}
		if _, ok := in.(*http2.HeadersFrame); !ok {
			continue
		}
		taken, id := uint32(0), in.Header().StreamID
		if g.begun != "" {
			taken = id
			var head bytes.Buffer
			_ = hpack.NewEncoder(&head).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndHeaders: true})
			_ = f.WriteData(id, false, []byte(g.begun))
		}
		_ = f.WriteGoAway(taken, http2.ErrCodeNo, nil)
		if taken > 0 {
			return
		}
	}
}

func (g *goingAway) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	g.mu.Lock()
	g.answered++
	g.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"fine"}}]}`+"\n\n"+`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// client reaches the server over TLS, as parley reaches every provider.
func (g *goingAway) client(t *testing.T) *Client {
	t.Helper()
	g.behind = httptest.NewUnstartedServer(g)
	g.behind.EnableHTTP2 = true
	g.behind.StartTLS()
	t.Cleanup(g.behind.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { g.serve(l, &all) })
	transport := wire.Transport()
	known := x509.NewCertPool()
	known.AddCert(g.behind.Certificate())
	transport.TLSClientConfig = &tls.Config{RootCAs: known}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = l.Close()
		all.Wait()
	})
	c, err := New(Config{Name: "fake", BaseURL: "https://" + l.Addr().String() + "/v1"}, Deps{HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// PST-002: a request that a connection has not taken before it goes away is made on
// another one, once; an answer that it breaks off is none, and the next request does
// not go that way again.
func TestGoAway(t *testing.T) {
	for name, begun := range map[string]string{"before the answer": "", "in the middle": `data: {"choices":[{"delta":{"content":"so f`} {
		t.Run(name, func(t *testing.T) {
			g := &goingAway{begun: begun}
			c := g.client(t)
			ask := func() (llm.Response, error) {
				return llm.Collect(t.Context(), c.Stream(t.Context(), &llm.Request{Model: "m", Messages: []llm.Message{llm.Text(llm.User, "hello")}}))
			}
			r, err := ask()
			if begun != "" {
				var e *llm.Error
				if !errors.As(err, &e) || e.Kind != llm.KindNetwork {
					t.Fatalf("a broken answer: %v", err)
				}
				r, err = ask()
			}
			if err != nil || r.Message.Text() != "fine" || g.opened != 2 || g.answered != 1 {
				t.Errorf("%q, %v; %d connections, %d answers", r.Message.Text(), err, g.opened, g.answered)
			}
		})
	}
}
