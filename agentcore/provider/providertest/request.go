package providertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// Request is a valid request as the server read it, in the terms of chat completions
// whatever the API: a system prompt is the first message, a tool result a message of
// its own.
type Request struct {
	// N counts the server's requests from 0.
	N      int
	At     time.Time
	Header http.Header
	Body   json.RawMessage

	Model      string
	Stream     bool
	Messages   []Message
	Tools      []Tool
	ToolChoice string
	// MaxTokens is the limit of the answer under whichever name it came.
	MaxTokens       int
	ReasoningEffort string
	CacheKey        string
	// Marks are where the cache markers stand in the body without them (Unmarked). A
	// cache keeps all bytes up to each of them.
	Marks []int
}

// Message is one message of a request.
type Message struct {
	Role string
	// Text is the content's text parts, joined by blank lines; Images counts the
	// others.
	Text       string
	Images     int
	Calls      []Call
	ToolCallID string
}

// Tool is a declared tool.
type Tool struct {
	Name, Description string
	Schema            json.RawMessage
}

// Last returns the last message.
func (r Request) Last() Message {
	if len(r.Messages) == 0 {
		return Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// System returns the system prompt.
func (r Request) System() string {
	if len(r.Messages) > 0 && r.Messages[0].Role == "system" {
		return r.Messages[0].Text
	}
	return ""
}

// LastUser returns the text of the newest user message.
func (r Request) LastUser() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return r.Messages[i].Text
		}
	}
	return ""
}

// header is what parley writes before a user's message: when, and by whom.
var header = regexp.MustCompile(`(?m)^\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-[^\]\n]*\] `)

// Said returns the newest thing that a user said, without parley's header.
func (r Request) Said() string {
	text := r.LastUser()
	if at := header.FindAllStringIndex(text, -1); at != nil {
		text = text[at[len(at)-1][1]:]
	}
	return strings.TrimSpace(text)
}

// Results returns the texts of the tool results at the end.
func (r Request) Results() (out []string) {
	i := len(r.Messages)
	for i > 0 && r.Messages[i-1].Role == "tool" {
		i--
	}
	for _, m := range r.Messages[i:] {
		out = append(out, m.Text)
	}
	return out
}

// HasTool says whether a tool of that name may be called.
func (r Request) HasTool(name string) bool {
	if r.ToolChoice == "none" {
		return false
	}
	for _, t := range r.Tools {
		if t.Name == name {
			return true
		}
	}
	return false
}

// wire is the request's shape: every field of CreateChatCompletionRequest in
// OpenAI's specification; others are refused as the real API refuses them.
type wire struct {
	Model               string            `json:"model"`
	Messages            []json.RawMessage `json:"messages"`
	Stream              *bool             `json:"stream"`
	StreamOptions       *streamOptions    `json:"stream_options"`
	Tools               []wireTool        `json:"tools"`
	ToolChoice          json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"`
	MaxTokens           *int              `json:"max_tokens"`
	MaxCompletionTokens *int              `json:"max_completion_tokens"`
	ReasoningEffort     *string           `json:"reasoning_effort"`
	PromptCacheKey      *string           `json:"prompt_cache_key"`
	Temperature         *float64          `json:"temperature"`
	TopP                *float64          `json:"top_p"`
	N                   *int              `json:"n"`
	other
}

// other are the fields that the fake does not look into.
type other struct {
	Metadata             json.RawMessage `json:"metadata"`
	User                 json.RawMessage `json:"user"`
	SafetyIdentifier     json.RawMessage `json:"safety_identifier"`
	PromptCacheRetention json.RawMessage `json:"prompt_cache_retention"`
	PromptCacheOptions   json.RawMessage `json:"prompt_cache_options"`
	ServiceTier          json.RawMessage `json:"service_tier"`
	Modalities           json.RawMessage `json:"modalities"`
	Verbosity            json.RawMessage `json:"verbosity"`
	FrequencyPenalty     json.RawMessage `json:"frequency_penalty"`
	PresencePenalty      json.RawMessage `json:"presence_penalty"`
	WebSearchOptions     json.RawMessage `json:"web_search_options"`
	TopLogprobs          json.RawMessage `json:"top_logprobs"`
	Logprobs             json.RawMessage `json:"logprobs"`
	ResponseFormat       json.RawMessage `json:"response_format"`
	Store                json.RawMessage `json:"store"`
	Moderation           json.RawMessage `json:"moderation"`
	Stop                 json.RawMessage `json:"stop"`
	LogitBias            json.RawMessage `json:"logit_bias"`
	Prediction           json.RawMessage `json:"prediction"`
	Seed                 json.RawMessage `json:"seed"`
}

type streamOptions struct {
	IncludeUsage       bool `json:"include_usage"`
	IncludeObfuscation bool `json:"include_obfuscation"`
}

type wireTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      *bool           `json:"strict"`
	} `json:"function"`
}

type wireMessage struct {
	Role       string     `json:"role"`
	Content    wireText   `json:"content"`
	Name       string     `json:"name"`
	Refusal    string     `json:"refusal"`
	ToolCalls  []wireCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

// lenientMessage and lenientCall have what other servers have added.
type (
	lenientMessage struct {
		wireMessage
		ToolCalls        []lenientCall   `json:"tool_calls"`
		ReasoningContent json.RawMessage `json:"reasoning_content"`
		ReasoningDetails json.RawMessage `json:"reasoning_details"`
	}
	lenientCall struct {
		wireCall
		ExtraContent json.RawMessage `json:"extra_content"`
	}
)

// wireText is a content: a string, null, or a list of parts.
type wireText struct {
	present bool
	blank   bool // some text of it is
	text    string
	images  []string
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *wireText) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	c.present = true
	if b[0] == '"' {
		err := json.Unmarshal(b, &c.text)
		c.blank = strings.TrimSpace(c.text) == ""
		return err
	}
	var parts []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		ImageURL *struct {
			URL    string `json:"url"`
			Detail string `json:"detail"`
		} `json:"image_url"`
	}
	if err := strictly(b, &parts); err != nil {
		return err
	}
	if len(parts) == 0 {
		return fmt.Errorf("[] is too short")
	}
	for i, p := range parts {
		switch {
		case p.Type == "text" && p.ImageURL == nil:
			c.blank = c.blank || strings.TrimSpace(p.Text) == ""
			if i > 0 && c.text != "" {
				c.text += "\n\n"
			}
			c.text += p.Text
		case p.Type == "image_url" && p.ImageURL != nil && p.Text == "":
			c.images = append(c.images, p.ImageURL.URL)
		default:
			return fmt.Errorf("invalid part of type %q", p.Type)
		}
	}
	return nil
}

// strictly decodes with no field left over.
func strictly(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
