package faketelegram

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

// webhook is where updates are pushed to; no url: nowhere.
type webhook struct {
	url       string
	secret    string
	stop      context.CancelFunc
	lastError string
	errorAt   time.Time
}

// redelivery is how long the server waits after a delivery that failed.
const redelivery = 50 * time.Millisecond

var secretPattern = regexp.MustCompile(`^[\w-]{0,256}$`)

func (s *Server) setWebhook(r *request) (any, error) {
	address, secret := r.params["url"], r.params["secret_token"]
	if address == "" {
		return s.deleteWebhook(r)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && !isLoopback(u) {
		return nil, badRequest("bad webhook: An HTTPS URL must be provided for webhook")
	}
	if !secretPattern.MatchString(secret) {
		return nil, badRequest("secret token contains unallowed characters")
	}
	s.mu.Lock()
	s.queue.allow(r)
	if r.bool("drop_pending_updates") {
		s.queue.pending = nil
	}
	s.useWebhook(address, secret)
	s.mu.Unlock()
	s.notify(Change{Kind: WebhookChanged, Text: address})
	return true, nil
}

// SetWebhook sets a webhook as another tool left it (CFG-003).
func (s *Server) SetWebhook(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.useWebhook(address, "")
}

// Webhook is where updates are pushed to; empty: nowhere.
func (s *Server) Webhook() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.webhook.url
}

// useWebhook starts to push to an address. The lock is held.
func (s *Server) useWebhook(address, secret string) {
	s.queue.stopWebhook()
	s.queue.end("terminated by setWebhook request")
	ctx, cancel := context.WithCancel(context.Background())
	s.queue.webhook = webhook{url: address, secret: secret, stop: cancel}
	if u, err := url.Parse(address); err == nil && isLoopback(u) {
		s.handlers.Go(func() { s.push(ctx, address, secret) })
	}
}

func isLoopback(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

func (q *queue) stopWebhook() {
	if q.webhook.stop != nil {
		q.webhook.stop()
	}
	q.webhook = webhook{}
}

func (s *Server) deleteWebhook(r *request) (any, error) {
	s.mu.Lock()
	s.queue.stopWebhook()
	if r.bool("drop_pending_updates") {
		s.queue.pending = nil
	}
	s.mu.Unlock()
	s.notify(Change{Kind: WebhookChanged})
	return true, nil
}

func (s *Server) getWebhookInfo(*request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info := struct {
		URL         string   `json:"url"`
		Certificate bool     `json:"has_custom_certificate"`
		Pending     int      `json:"pending_update_count"`
		ErrorDate   int64    `json:"last_error_date,omitempty"`
		Error       string   `json:"last_error_message,omitempty"`
		Allowed     []string `json:"allowed_updates,omitempty"`
	}{URL: s.queue.webhook.url, Pending: len(s.queue.pending), Error: s.queue.webhook.lastError, Allowed: s.queue.allowed}
	if info.Error != "" {
		info.ErrorDate = s.queue.webhook.errorAt.Unix()
	}
	return info, nil
}

// push delivers updates one after the other until ctx ends. An update is confirmed by
// a 2xx answer and comes again after any other.
func (s *Server) push(ctx context.Context, address, secret string) {
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		s.mu.Lock()
		wake := s.queue.wake.wait()
		var next update
		if len(s.queue.pending) > 0 {
			next = s.queue.pending[0]
			s.record.counters.Taken++
		}
		s.mu.Unlock()
		if next.id == 0 {
			select {
			case <-wake:
			case <-ctx.Done():
			}
			continue
		}
		s.notify(Change{Kind: UpdateTaken, Chat: next.chat, Message: next.message, Update: next.id})
		err := deliver(ctx, client, address, secret, next)
		if ctx.Err() != nil {
			return
		}
		s.delivered(next, err)
		if err != nil {
			s.pause(ctx, redelivery)
		}
	}
}

func (s *Server) delivered(u update, err error) {
	s.mu.Lock()
	var done []update
	if err != nil {
		s.queue.webhook.lastError, s.queue.webhook.errorAt = err.Error(), s.opt.now()
	} else {
		done = s.queue.confirm(u.id + 1)
		s.record.counters.Confirmed += len(done)
	}
	s.mu.Unlock()
	s.confirmed(done)
}

func deliver(ctx context.Context, client *http.Client, address, secret string, u update) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(u.raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if secret != "" {
		req.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return verbatim("Wrong response from the webhook: %s", resp.Status)
	}
	return nil
}
