package main

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/agentcore/llm"
	"parley/gateway"
	"parley/gateway/chat"
	"parley/store/record"
)

// metrics counts what the gateway and the models do, for /metrics.
type metrics struct {
	registry      *prometheus.Registry
	events        *prometheus.CounterVec
	turns         *prometheus.CounterVec
	tokens        *prometheus.CounterVec
	calls         *prometheus.CounterVec
	firstToken    prometheus.Histogram
	deliveries    *prometheus.CounterVec
	conversations prometheus.Gauge
}

var _ gateway.Metrics = (*metrics)(nil)

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry:   prometheus.NewRegistry(),
		events:     counter("parley_events_total", "Events taken in, by account and what became of them.", "account", "outcome"),
		turns:      counter("parley_turns_total", "Turns that ended, by state.", "state"),
		tokens:     counter("parley_tokens_total", "Tokens of ended turns, by kind.", "kind"),
		calls:      counter("parley_model_calls_total", "Model calls, by model and outcome.", "model", "outcome"),
		deliveries: counter("parley_deliveries_total", "Messages to post, by kind and the state they reached.", "kind", "state"),
		firstToken: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "parley_model_first_token_seconds", Help: "Time from a model call to the first piece of its answer.",
			Buckets: prometheus.ExponentialBuckets(0.1, 2, 10),
		}),
		conversations: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parley_conversations_active", Help: "Conversations that have a worker in this process.",
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "parley_build_info", Help: "1, with the version.", ConstLabels: prometheus.Labels{"version": versionText()},
	})
	build.Set(1)
	m.registry.MustRegister(m.events, m.turns, m.tokens, m.calls, m.firstToken, m.deliveries, m.conversations, build)
	return m
}

// Received implements gateway.Metrics.
func (m *metrics) Received(a chat.AccountID, r record.Receipt) {
	outcome := string(r.Verdict.State)
	if r.Duplicate {
		outcome = "duplicate"
	}
	m.events.WithLabelValues(string(a), outcome).Inc()
}

// TurnEnded implements gateway.Metrics.
func (m *metrics) TurnEnded(s record.TurnState, u llm.Usage) {
	m.turns.WithLabelValues(string(s)).Inc()
	m.tokens.WithLabelValues("input").Add(float64(u.Input))
	m.tokens.WithLabelValues("cached_input").Add(float64(u.CachedInput))
	m.tokens.WithLabelValues("output").Add(float64(u.Output))
}

// Delivery implements gateway.Metrics.
func (m *metrics) Delivery(k record.DeliveryKind, s record.DeliveryState) {
	m.deliveries.WithLabelValues(string(k), string(s)).Inc()
}

// Conversations implements gateway.Metrics.
func (m *metrics) Conversations(active int) { m.conversations.Set(float64(active)) }

// counted is a provider whose calls are counted.
type counted struct {
	llm.Provider
	metrics *metrics
}

// Stream implements llm.Provider.
func (c counted) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		began, first, outcome := time.Now(), true, "abandoned"
		defer func() { c.metrics.calls.WithLabelValues(string(req.Model), outcome).Inc() }()
		for ev, err := range c.Provider.Stream(ctx, req) {
			var failed *llm.Error
			switch {
			case errors.As(err, &failed):
				outcome = string(failed.Kind)
			case err != nil:
				outcome = "abandoned"
			case first:
				if _, again := ev.(llm.Restarted); !again {
					first = false
					c.metrics.firstToken.Observe(time.Since(began).Seconds())
				}
			}
			if _, ok := ev.(llm.Finished); ok {
				outcome = "ok"
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// observed is a provider that remembers its last error.
type observed struct {
	llm.Provider
	last *error
}

// Stream implements llm.Provider.
func (o observed) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for ev, err := range o.Provider.Stream(ctx, req) {
			*o.last = err
			if !yield(ev, err) {
				return
			}
		}
	}
}
