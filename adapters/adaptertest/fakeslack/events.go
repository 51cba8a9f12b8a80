package fakeslack

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// SetRequestURL switches Socket Mode off and sends events, interactions and
// commands to a URL on loopback; empty switches back. It asks for the challenge
// first, as Slack does, and says what went wrong.
func (s *Server) SetRequestURL(u string) error {
	if u != "" {
		body, _ := json.Marshal(map[string]string{"type": "url_verification", "token": "legacy-verification-token", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"})
		status, answer, err := s.deliver(u, "application/json", body, 0)
		if err != nil || status != http.StatusOK || !bytes.Contains(answer, []byte("3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P")) {
			return fmt.Errorf("fakeslack: your URL didn't respond with the value of the challenge parameter: %d %s %w", status, answer, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt.requestURL = u
	return nil
}

// request delivers one event over HTTP: three times again if it is not taken.
func (s *Server) request(typ string, payload json.RawMessage) {
	kind, body := "application/json", []byte(payload)
	if typ != "events_api" {
		kind = "application/x-www-form-urlencoded"
		body = []byte(form(typ, payload).Encode())
	}
	for attempt := range 4 {
		u := look(s, func() string { return s.opt.requestURL })
		status, _, err := s.deliver(u, kind, body, attempt)
		if err == nil && status == http.StatusOK {
			s.mu.Lock()
			s.record.acks = append(s.record.acks, Ack{Type: typ, Attempt: attempt})
			s.changed.fire()
			s.mu.Unlock()
			return
		}
		timer := time.NewTimer(s.opt.retry)
		select {
		case <-timer.C:
		case <-s.closing:
			timer.Stop()
			return
		}
	}
}

// form is how interactions and commands come over HTTP.
func form(typ string, payload json.RawMessage) url.Values {
	if typ == "interactive" {
		return url.Values{"payload": {string(payload)}}
	}
	var fields map[string]string
	_ = json.Unmarshal(payload, &fields)
	v := url.Values{}
	for name, value := range fields {
		v.Set(name, value)
	}
	return v
}

// deliver makes one signed request; three seconds are all that Slack waits.
func (s *Server) deliver(u, kind string, body []byte, attempt int) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", kind)
	s.Sign(r.Header, body, time.Now())
	if attempt > 0 {
		r.Header.Set("X-Slack-Retry-Num", strconv.Itoa(attempt))
		r.Header.Set("X-Slack-Retry-Reason", "http_error")
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// Sign puts Slack's signature of a body on a request.
func (s *Server) Sign(h http.Header, body []byte, at time.Time) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(s.opt.secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	h.Set("X-Slack-Request-Timestamp", stamp)
	h.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
}
