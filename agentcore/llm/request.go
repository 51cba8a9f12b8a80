package llm

import (
	"context"
	"encoding/json"
	"iter"
	"time"
)

// Provider streams one answer. Implementations translate; they never retry.
type Provider interface {
	// Stream sends the request and yields the answer's events in order. The last
	// event of a complete answer is Finished; an error ends the sequence and is
	// always an *Error, or the context's own error once ctx ended. Breaking out of
	// the loop abandons the request at once.
	Stream(ctx context.Context, req *Request) iter.Seq2[Event, error]
}

// ModelID is "provider/model", split at the first slash.
type ModelID string

// Request is what a model is asked.
type Request struct {
	Model    ModelID
	System   string
	Messages []Message
	Tools    []ToolSpec
	// NoTools forbids tool calls while still declaring Tools, so that the cached
	// prefix stays the same.
	NoTools bool
	// MaxOutput bounds the answer in tokens; 0 leaves it to the provider.
	MaxOutput int
	// Reasoning is an effort level ("low", "medium", "high"); empty leaves it.
	Reasoning string
	// Ephemeral is a notice for this call only. It goes at the end of the last
	// message, after the last cache marker, and is never stored.
	Ephemeral string
	// CacheKey groups requests that share a prefix (the session's id).
	CacheKey string
}

// ToolSpec declares a tool to a model.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON schema of the arguments object
}

// Event is a sealed union of what happens while an answer streams.
type Event interface{ isEvent() }

// TextDelta is a piece of the visible answer.
type TextDelta struct{ Text string }

// ReasoningDelta is a piece of the model's thinking.
type ReasoningDelta struct{ Text string }

// ToolCallDelta is a piece of a tool call. The first one of an Index carries ID
// and Name; Arguments are to be joined.
type ToolCallDelta struct {
	Index     int
	ID, Name  string
	Arguments string
	// Extra and Issuer replace the call's.
	Extra  json.RawMessage
	Issuer string
}

// ReasoningItem replaces the answer's Reasoning.Raw with the issuer's own form.
type ReasoningItem struct {
	Raw    json.RawMessage
	Issuer string
}

// Restarted says that everything yielded so far is void: the call is made again,
// after Wait, with Model. Reason is for the user ("rate limited", …).
type Restarted struct {
	Wait   time.Duration
	Model  ModelID
	Reason string
}

// Finished ends a complete answer.
type Finished struct {
	Reason FinishReason
	Usage  Usage
	// Model is the one that answered, which a fallback may have changed.
	Model ModelID
}

func (TextDelta) isEvent()      {}
func (ReasoningDelta) isEvent() {}
func (ToolCallDelta) isEvent()  {}
func (ReasoningItem) isEvent()  {}
func (Restarted) isEvent()      {}
func (Finished) isEvent()       {}

// FinishReason says why a model stopped.
type FinishReason string

// The reasons to stop.
const (
	FinishStop      FinishReason = "stop"
	FinishToolCalls FinishReason = "tool_calls"
	FinishLength    FinishReason = "length"
	FinishFilter    FinishReason = "content_filter"
	// FinishSilent is a message that is complete and says nothing, on purpose.
	FinishSilent FinishReason = "silent"
)

// Usage counts tokens as the provider reported them. Input includes what was
// read from the cache; Output includes reasoning.
type Usage struct {
	Input, CachedInput, CacheWrite int
	Output, Reasoning              int
	// Cost is in the budget's currency if the provider reported one, else 0.
	Cost float64
}

// Add sums two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, CachedInput: u.CachedInput + v.CachedInput, CacheWrite: u.CacheWrite + v.CacheWrite,
		Output: u.Output + v.Output, Reasoning: u.Reasoning + v.Reasoning, Cost: u.Cost + v.Cost,
	}
}

// Response is a whole answer.
type Response struct {
	Message Message
	Finish  FinishReason
	Usage   Usage
	Model   ModelID
}
