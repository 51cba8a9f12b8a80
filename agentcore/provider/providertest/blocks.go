package providertest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// maxImages and maxImageBytes (of base64) are what Anthropic takes in a request.
const (
	maxImages     = 100
	maxImageBytes = 5 << 20
)

// turnHistory reads the turns of a Messages request.
type turnHistory struct {
	model    string
	thinking bool // is switched on with a budget
	calls    callBook
	out      []Message
	markers  int
	images   int
}

// block has every field of the kinds of blocks that the fake knows.
type block struct {
	Type         string          `json:"type"`
	Text         *string         `json:"text"`
	Source       *imageSource    `json:"source"`
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Input        json.RawMessage `json:"input"`
	ToolUseID    string          `json:"tool_use_id"`
	Content      json.RawMessage `json:"content"`
	IsError      *bool           `json:"is_error"`
	Thinking     *string         `json:"thinking"`
	Signature    *string         `json:"signature"`
	Data         *string         `json:"data"`
	CacheControl *cacheMarker    `json:"cache_control"`
}

type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

// mark counts a cache marker.
func (t *turnHistory) mark(param string, m *cacheMarker) *refusal {
	if m == nil {
		return nil
	}
	if m.Type != "ephemeral" || !slices.Contains([]string{"", "5m", "1h"}, m.TTL) {
		return refuse("", "%s.cache_control: invalid", param)
	}
	t.markers++
	return nil
}

// blocks decodes a content: a text or a list.
func blocks(param string, raw json.RawMessage) ([]block, *refusal) {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return nil, refuse("", "%s: %v", param, err)
		}
		return []block{{Type: "text", Text: &text}}, nil
	}
	var list []block
	if err := strictly(raw, &list); err != nil {
		return nil, refuse("", "%s: Extra inputs are not permitted or wrong type: %v", param, err)
	}
	if len(list) == 0 {
		return nil, refuse("", "%s: all messages must have non-empty content", param)
	}
	return list, nil
}

func (t *turnHistory) system(raw json.RawMessage) *refusal {
	if len(raw) == 0 {
		return nil
	}
	list, r := blocks("system", raw)
	if r != nil {
		return r
	}
	m := Message{Role: "system"}
	for i, b := range list {
		if r := t.plain(fmt.Sprintf("system.%d", i), b, &m, false); r != nil {
			return r
		}
	}
	t.out = append(t.out, m)
	return nil
}

func (t *turnHistory) turns(list []messagesTurn) *refusal {
	if len(list) == 0 {
		return refuse("", "messages: at least one message is required")
	}
	previous := ""
	for i, turn := range list {
		param := fmt.Sprintf("messages.%d", i)
		if turn.Role == previous {
			return refuse("", "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"%s\" roles in a row - %s", turn.Role, param)
		}
		content, r := blocks(param+".content", turn.Content)
		switch {
		case r != nil:
			return r
		case turn.Role == "user":
			r = t.user(param, content)
		case turn.Role == "assistant" && i > 0:
			r = t.assistant(param, content, i == len(list)-2)
		case turn.Role == "assistant":
			r = refuse("", "messages: first message must use the \"user\" role")
		default:
			r = refuse("", "%s.role: Input should be 'user' or 'assistant'", param)
		}
		if r != nil {
			return r
		}
		previous = turn.Role
	}
	if previous != "user" {
		return refuse("", "This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	if t.images > maxImages {
		return refuse("", "messages: at most %d images, found %d", maxImages, t.images)
	}
	return nil
}

func (t *turnHistory) user(param string, content []block) *refusal {
	m := Message{Role: "user"}
	for i, b := range content {
		at := fmt.Sprintf("%s.content.%d", param, i)
		if b.Type != "tool_result" {
			if len(t.calls.open) > 0 {
				break
			}
			if r := t.plain(at, b, &m, true); r != nil {
				return r
			}
			continue
		}
		if m.Text != "" || m.Images > 0 {
			return refuse("", "%s: tool_result blocks must come first", at)
		}
		if r := t.result(at, b); r != nil {
			return r
		}
	}
	if len(t.calls.open) > 0 {
		return refuse("", "%s: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a "+
			"corresponding `tool_result` block in the next message.", param, strings.Join(t.calls.open, ", "))
	}
	if m.Text != "" || m.Images > 0 {
		t.out = append(t.out, m)
	}
	return nil
}

func (t *turnHistory) result(at string, b block) *refusal {
	if r := t.mark(at, b.CacheControl); r != nil {
		return r
	}
	m := Message{Role: "tool", ToolCallID: b.ToolUseID}
	content, r := blocks(at+".content", b.Content)
	if r != nil {
		return r
	}
	for i, inner := range content {
		if r := t.plain(fmt.Sprintf("%s.content.%d", at, i), inner, &m, true); r != nil {
			return r
		}
	}
	t.out = append(t.out, m)
	return t.calls.result(at+": unexpected `tool_use_id`", b.ToolUseID)
}

func (t *turnHistory) assistant(param string, content []block, latest bool) *refusal {
	m := Message{Role: "assistant"}
	for i, b := range content {
		at := fmt.Sprintf("%s.content.%d", param, i)
		var r *refusal
		switch b.Type {
		case "thinking":
			r = t.thought(at, b)
		case "redacted_thinking":
			if b.Data == nil || *b.Data == "" || b.CacheControl != nil {
				r = refuse("", "%s.redacted_thinking.data: Field required", at)
			}
		case "tool_use":
			if r = t.mark(at, b.CacheControl); r == nil {
				c := Call{ID: b.ID, Name: b.Name, Arguments: string(b.Input)}
				m.Calls = append(m.Calls, c)
				r = t.calls.call(at+".tool_use", c)
			}
		default:
			r = t.plain(at, b, &m, false)
		}
		if r != nil {
			return r
		}
	}
	if last := content[len(content)-1].Type; strings.HasSuffix(last, "thinking") {
		return refuse("", "%s: The final block in an assistant message cannot be `thinking`.", param)
	}
	if first := content[0].Type; t.thinking && latest && len(m.Calls) > 0 && !strings.HasSuffix(first, "thinking") {
		return refuse("", "%s.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final "+
			"`assistant` message must start with a thinking block (before the last set of `tool_use` and `tool_result` blocks).", param, first)
	}
	t.out = append(t.out, m)
	return nil
}

func (t *turnHistory) thought(at string, b block) *refusal {
	switch {
	case b.Thinking == nil || b.Signature == nil:
		return refuse("", "%s.thinking.signature: Field required", at)
	case b.CacheControl != nil:
		return refuse("", "%s.thinking.cache_control: Extra inputs are not permitted", at)
	case *b.Signature != signature(t.model, *b.Thinking):
		return refuse("", "%s: Invalid `signature` in `thinking` block", at)
	}
	return nil
}

// plain takes a text or an image.
func (t *turnHistory) plain(at string, b block, m *Message, images bool) *refusal {
	if r := t.mark(at, b.CacheControl); r != nil {
		return r
	}
	switch {
	case b.Type == "text" && b.Text != nil && strings.TrimSpace(*b.Text) != "":
		if m.Text != "" {
			m.Text += "\n\n"
		}
		m.Text += *b.Text
		return nil
	case b.Type == "text":
		return refuse("", "%s: text content blocks must contain non-whitespace text", at)
	case b.Type == "image" && images && b.Source != nil:
		t.images++
		m.Images++
		return b.Source.check(at)
	}
	return refuse("", "%s: Input tag '%s' found using 'type' does not match any of the expected tags", at, b.Type)
}

func (s *imageSource) check(at string) *refusal {
	if s.Type == "url" {
		return nil
	}
	b, err := base64.StdEncoding.DecodeString(s.Data)
	switch {
	case s.Type != "base64" || !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, s.MediaType):
		return refuse("", "%s.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", at)
	case err != nil || len(b) == 0:
		return refuse("", "%s.image.source.base64: invalid base64 data", at)
	case len(s.Data) > maxImageBytes:
		return refuse("", "%s.image.source.base64: image exceeds 5 MB maximum: %d bytes > %d bytes", at, len(s.Data), maxImageBytes)
	}
	return nil
}
