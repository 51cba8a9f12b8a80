package chatcompletions

import (
	"bytes"
	"encoding/json"

	"parley/agentcore/llm"
)

// chunk is one event of a stream, or a whole answer: a superset of what servers
// send. Everything is optional.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
	// XGroq is where Groq once put the usage.
	XGroq *struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
	// Object, Type, Message and Detail tell of errors that have no error object.
	Object  string          `json:"object"`
	Type    string          `json:"type"`
	Message json.RawMessage `json:"message"`
	Detail  json.RawMessage `json:"detail"`
}

type choice struct {
	Delta        *delta `json:"delta"`
	Message      *delta `json:"message"` // of an answer that is not streamed
	FinishReason string `json:"finish_reason"`
	Usage        *usage `json:"usage"` // Moonshot
}

type delta struct {
	Content          text              `json:"content"`
	Refusal          string            `json:"refusal"`
	Reasoning        text              `json:"reasoning"`
	ReasoningContent text              `json:"reasoning_content"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details"`
	ToolCalls        []callDelta       `json:"tool_calls"`
}

type callDelta struct {
	// Index is nil where a server leaves it out (PST-007).
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string     `json:"name"`
		Arguments jsonString `json:"arguments"`
	} `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content"`
}

// text is a string, or a list of parts of which some may be thinking.
type text struct{ said, thought string }

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, &t.said)
	case '[':
		var parts []struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			Thinking text   `json:"thinking"`
		}
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		for _, p := range parts {
			t.said += p.Text
			t.thought += p.Thinking.said
		}
	}
	return nil
}

// jsonString is JSON inside a string, or the JSON itself.
type jsonString string

// UnmarshalJSON implements json.Unmarshaler.
func (s *jsonString) UnmarshalJSON(b []byte) error {
	switch b[0] {
	case '"':
		return json.Unmarshal(b, (*string)(s))
	case 'n':
		return nil
	}
	*s = jsonString(b)
	return nil
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	PromptDetails    *struct {
		Cached  int `json:"cached_tokens"`
		Written int `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails *struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	CachedTokens int     `json:"cached_tokens"`           // Moonshot
	CacheHit     int     `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cost         float64 `json:"cost"`                    // OpenRouter
}

// tokens makes the usage ours. Servers that count reasoning apart (xAI, Gemini)
// still include it in the total.
func (u *usage) tokens() llm.Usage {
	out := llm.Usage{Input: u.PromptTokens, Output: u.CompletionTokens, Cost: u.Cost}
	if rest := u.TotalTokens - u.PromptTokens; rest > out.Output {
		out.Output = rest
	}
	out.CachedInput = max(u.CachedTokens, u.CacheHit)
	if d := u.PromptDetails; d != nil {
		out.CachedInput = max(out.CachedInput, d.Cached)
		out.CacheWrite = d.Written
	}
	if d := u.CompletionDetails; d != nil {
		out.Reasoning = d.Reasoning
	}
	return out
}

// decode reads an event. Gemini wraps errors in a list.
func decode(raw []byte) (ck chunk, err error) {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
			return ck, err
		}
		raw = list[0]
	}
	err = json.Unmarshal(raw, &ck)
	return ck, err
}

// failed says whether the event tells of an error, in any of the known forms.
func (ck *chunk) failed() bool {
	if present(ck.Error) || ck.Object == "error" || ck.Type == "error" {
		return true
	}
	return len(ck.Choices) == 0 && ck.Usage == nil && (present(ck.Message) || present(ck.Detail))
}

func present(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "null" && string(raw) != `""` && string(raw) != "false"
}
