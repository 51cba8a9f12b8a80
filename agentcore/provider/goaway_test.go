package provider_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"parley/agentcore/llm"
	"parley/agentcore/provider"
	"parley/agentcore/provider/chatcompletions"
	"parley/agentcore/provider/wire"
	"parley/config/secret"
)

// goaway is an HTTP/2 server frame by frame: its first connection does with a request
// what the test says, all later ones answer it.
type goaway struct {
	listener net.Listener
	first    func(c *h2conn, stream uint32)

	serving sync.WaitGroup
	mu      sync.Mutex
	conns   []net.Conn
	asked   int // requests that arrived whole
}

// h2conn is one connection from the server's side.
type h2conn struct {
	net.Conn
	*http2.Framer
}

// newGoaway returns a server and a client of it, with the transport that providers have.
func newGoaway(t *testing.T, first func(*h2conn, uint32)) (*goaway, *http.Client) {
	t.Helper()
	pki := httptest.NewTLSServer(http.NotFoundHandler())
	pki.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: pki.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &goaway{listener: l, first: first}
	s.serving.Go(s.serve)
	t.Cleanup(func() {
		_ = l.Close()
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.Close()
		}
		s.mu.Unlock()
		s.serving.Wait()
	})
	tr := wire.Transport()
	trusted, ok := pki.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("httptest has another transport")
	}
	tr.TLSClientConfig = &tls.Config{RootCAs: trusted.TLSClientConfig.RootCAs}
	tr.HTTP2.SendPingTimeout, tr.HTTP2.PingTimeout = 100*time.Millisecond, 100*time.Millisecond
	return s, &http.Client{Transport: tr}
}

func (s *goaway) serve() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		answer := s.first
		if len(s.conns) > 1 {
			answer = func(c *h2conn, stream uint32) { c.begin(stream); c.end(stream) }
		}
		s.mu.Unlock()
		s.serving.Go(func() { defer func() { _ = conn.Close() }(); s.attend(conn, answer) })
	}
}

// attend reads frames until the connection ends, and answers each whole request.
func (s *goaway) attend(conn net.Conn, answer func(*h2conn, uint32)) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(conn, preface); err != nil {
		return
	}
	c := &h2conn{Conn: conn, Framer: http2.NewFramer(conn, conn)}
	_ = c.WriteSettings()
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = c.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				_ = c.WritePing(true, f.Data)
			}
		case *http2.DataFrame:
			if f.StreamEnded() {
				s.mu.Lock()
				s.asked++
				s.mu.Unlock()
				answer(c, f.StreamID)
			}
		}
	}
}

// begin and end are the halves of an answer.
func (c *h2conn) begin(stream uint32) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, h := range []hpack.HeaderField{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "text/event-stream"}} {
		_ = enc.WriteField(h)
	}
	_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true})
	_ = c.WriteData(stream, false, chunkOf(`{"role":"assistant","content":"half "}`, "null"))
}

func (c *h2conn) end(stream uint32) {
	_ = c.WriteData(stream, true, append(chunkOf(`{"content":"and half"}`, `"stop"`), "data: [DONE]\n\n"...))
}

func chunkOf(delta, finish string) []byte {
	return fmt.Appendf(nil, "data: {\"id\":\"x\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
}

// PST-002: a server that ends an HTTP/2 connection, or is silent on it, costs a model
// call at most: what it had said is void, the next call goes over a new connection, and
// the answer is there once. What it did not begin, and what it completes, costs none.
func TestServerEndsHTTP2Connection(t *testing.T) {
	const gone = "the connection broke"
	for name, c := range map[string]struct {
		first func(c *h2conn, stream uint32)
		// want is what is shown; a restart is in brackets.
		want  []string
		asked int
	}{
		"before the answer, not begun": {func(c *h2conn, _ uint32) {
			_ = c.WriteGoAway(0, http2.ErrCodeNo, nil)
		}, []string{"half ", "and half"}, 2},
		"before the answer, begun": {func(c *h2conn, s uint32) {
			_ = c.WriteGoAway(s, http2.ErrCodeNo, nil)
			_ = c.Close()
		}, []string{"[" + gone + "]", "half ", "and half"}, 2},
		"in the middle": {func(c *h2conn, s uint32) {
			c.begin(s)
			_ = c.WriteGoAway(s, http2.ErrCodeNo, nil)
			_ = c.Close()
		}, []string{"half ", "[" + gone + "]", "half ", "and half"}, 2},
		"in the middle, with an error": {func(c *h2conn, s uint32) {
			c.begin(s)
			_ = c.WriteGoAway(0, http2.ErrCodeInternal, nil)
		}, []string{"half ", "[" + gone + "]", "half ", "and half"}, 2},
		"in the middle, completed": {func(c *h2conn, s uint32) {
			c.begin(s)
			_ = c.WriteGoAway(s, http2.ErrCodeNo, nil)
			c.end(s)
		}, []string{"half ", "and half"}, 1},
		"silence": {func(c *h2conn, s uint32) {
			c.begin(s)
			_, _ = io.Copy(io.Discard, c.Conn) // answers no ping
		}, []string{"half ", "[" + gone + "]", "half ", "and half"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			srv, client := newGoaway(t, c.first)
			cfg := map[string]provider.Config{"a": {APIKey: secret.New("k"), BaseURL: "https://" + srv.listener.Addr().String()}}
			set, err := provider.Build(cfg, map[provider.Mode]provider.Factory{provider.ChatCompletions: func(name string, p provider.Config) (llm.Provider, error) {
				return chatcompletions.New(wire.Config{Name: name, BaseURL: p.BaseURL, APIKey: p.APIKey}, wire.Deps{HTTP: client})
			}}, provider.Deps{Jitter: func() float64 { return 0 }})
			if err != nil {
				t.Fatal(err)
			}
			defer set.Close()
			chain := set.Chain(provider.Chain{Model: "a/m"})
			shown := shownBy(t, chain)
			if d := cmp.Diff(c.want, shown); d != "" {
				t.Errorf("shown (-want +got):\n%s", d)
			}
			srv.mu.Lock()
			asked := srv.asked
			srv.mu.Unlock()
			if asked != c.asked {
				t.Errorf("%d requests, want %d", asked, c.asked)
			}
			// The connection that is ending is not taken again.
			if d := cmp.Diff([]string{"half ", "and half"}, shownBy(t, chain)); d != "" {
				t.Errorf("the next call (-want +got):\n%s", d)
			}
		})
	}
}

// shownBy is what people see of one call, piece by piece.
func shownBy(t *testing.T, p llm.Provider) []string {
	t.Helper()
	var shown []string
	req := &llm.Request{Messages: []llm.Message{llm.Text(llm.User, "hi")}}
	for ev, err := range p.Stream(t.Context(), req) {
		if err != nil {
			var e *llm.Error
			t.Fatalf("%v (%v), after %s", err, errors.As(err, &e), strings.Join(shown, "|"))
		}
		switch ev := ev.(type) {
		case llm.TextDelta:
			shown = append(shown, ev.Text)
		case llm.Restarted:
			shown = append(shown, "["+ev.Reason+"]")
		}
	}
	return shown
}
