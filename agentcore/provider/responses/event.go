package responses

import (
	"encoding/json"
	"strings"

	"parley/agentcore/llm"
)

// event is one event of a stream, or a whole response: a superset of what we look
// at. Everything is optional.
type event struct {
	Type string `json:"type"`
	// OutputIndex is nil where a server leaves it out.
	OutputIndex  *int            `json:"output_index"`
	ItemID       string          `json:"item_id"`
	ContentIndex int             `json:"content_index"`
	SummaryIndex int             `json:"summary_index"`
	Delta        string          `json:"delta"`
	Arguments    string          `json:"arguments"`
	Item         json.RawMessage `json:"item"`
	Response     json.RawMessage `json:"response"`
	Error        json.RawMessage `json:"error"`
	Object       string          `json:"object"`
}

// response is what ends an answer.
type response struct {
	Status            string            `json:"status"`
	Error             json.RawMessage   `json:"error"`
	IncompleteDetails *incomplete       `json:"incomplete_details"`
	Output            []json.RawMessage `json:"output"`
	Usage             *usage            `json:"usage"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type usage struct {
	InputTokens   int           `json:"input_tokens"`
	OutputTokens  int           `json:"output_tokens"`
	InputDetails  inputDetails  `json:"input_tokens_details"`
	OutputDetails outputDetails `json:"output_tokens_details"`
	Cost          float64       `json:"cost"` // OpenRouter
}

type inputDetails struct {
	Cached  int `json:"cached_tokens"`
	Written int `json:"cache_write_tokens"`
}

type outputDetails struct {
	Reasoning int `json:"reasoning_tokens"`
}

func (u *usage) tokens() llm.Usage {
	return llm.Usage{
		Input: u.InputTokens, CachedInput: u.InputDetails.Cached, CacheWrite: u.InputDetails.Written,
		Output: u.OutputTokens, Reasoning: u.OutputDetails.Reasoning, Cost: u.Cost,
	}
}

// item is one item of the output.
type item struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Status  string `json:"status"`
	Phase   string `json:"phase"`
	Content []part `json:"content"`
	Summary []part `json:"summary"`
	// EncryptedContent is empty where the server did not seal the reasoning.
	EncryptedContent string `json:"encrypted_content"`
	CallID           string `json:"call_id"`
	Name             string `json:"name"`
	Arguments        string `json:"arguments"`
}

type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// text is what the item says; a refusal is an answer (PRV-009).
func (it *item) text() string { return joined(it.Content) }

// thought is the readable part of the reasoning.
func (it *item) thought() string {
	if len(it.Summary) > 0 {
		return joined(it.Summary)
	}
	return joined(it.Content)
}

func joined(parts []part) string {
	var b strings.Builder
	for i, p := range parts {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(p.Text)
		b.WriteString(p.Refusal)
	}
	return b.String()
}

// sealed is the reasoning as it goes back: without its id, which only a server that
// stores answers knows, and without its status.
type sealed struct {
	Type             string          `json:"type"`
	Summary          json.RawMessage `json:"summary"`
	EncryptedContent string          `json:"encrypted_content"`
}
