package providertest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// refusal is why a request is not answered.
type refusal struct {
	status      int
	message     string
	param, code string
}

// invalid says whether the request itself was wrong, not the key, the model's name or
// its length.
func (r *refusal) invalid() bool {
	return r.status == http.StatusBadRequest && r.code != "context_length_exceeded" || r.code == "item_not_found"
}

// Check says whether a chat completion request is valid, as strictly as a Server does.
func Check(body []byte) error {
	if _, r := parse(body, Options{}); r != nil {
		return errors.New(r.message)
	}
	return nil
}

func refuse(param, format string, args ...any) *refusal {
	return &refusal{status: http.StatusBadRequest, param: param, message: fmt.Sprintf(format, args...)}
}

var (
	toolNames = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	callIDs   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)
	images    = regexp.MustCompile(`^data:image/(png|jpeg|gif|webp);base64,`)
	efforts   = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
	reasoners = regexp.MustCompile(`^(gpt-5|gpt-6|o1|o3|o4)`)
)

// parse reads a request and says what is wrong with it.
func parse(raw []byte, o Options) (Request, *refusal) {
	var req Request
	if r := readable(raw); r != nil {
		return req, r
	}
	var w wire
	if err := strictly(raw, &w); err != nil {
		return req, refuse("", "Unrecognized request argument or wrong type: %v", err)
	}
	if r := w.settings(&req, o); r != nil {
		return req, r
	}
	if r := w.tools(&req); r != nil {
		return req, r
	}
	if len(w.Messages) == 0 {
		return req, refuse("messages", "[] is too short - 'messages'")
	}
	list, r := decodeMessages(w.Messages, o.Lenient)
	if r != nil {
		return req, r
	}
	for i := range list {
		req.Messages = append(req.Messages, list[i].message())
	}
	if r := order(list); r != nil {
		return req, r
	}
	return req, o.overflow(raw)
}

// readable looks at the bytes alone (PRV-008).
func readable(raw []byte) *refusal {
	if !utf8.Valid(raw) {
		return refuse("", "We could not parse the JSON body of your request: it is not valid UTF-8.")
	}
	if loneSurrogate(raw) {
		return refuse("", "We could not parse the JSON body of your request: lone surrogate in a string.")
	}
	return nil
}

// known looks at the model's name.
func (o Options) known(model string) *refusal {
	switch {
	case model == "":
		return refuse("model", "you must provide a model parameter")
	case len(o.Models) > 0 && !slices.Contains(o.Models, model):
		return &refusal{
			status: http.StatusNotFound, code: "model_not_found",
			message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", model),
		}
	}
	return nil
}

// overflow looks at the request's length.
func (o Options) overflow(raw []byte) *refusal {
	tokens := len(raw) / 4
	if o.Window == 0 || tokens <= o.Window {
		return nil
	}
	r := refuse("messages", "This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. "+
		"Please reduce the length of the messages.", o.Window, tokens)
	r.code = "context_length_exceeded"
	return r
}

// settings checks everything but tools and messages.
func (w *wire) settings(req *Request, o Options) *refusal {
	req.Model = w.Model
	if r := o.known(w.Model); r != nil {
		return r
	}
	switch {
	case w.MaxTokens != nil && w.MaxCompletionTokens != nil:
		return refuse("max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case w.MaxTokens != nil && reasoners.MatchString(w.Model):
		r := refuse("max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
		r.code = "unsupported_parameter"
		return r
	case w.ReasoningEffort != nil && !slices.Contains(efforts, *w.ReasoningEffort):
		return refuse("reasoning_effort", "Invalid value: '%s'.", *w.ReasoningEffort)
	case w.N != nil && *w.N != 1:
		return refuse("n", "only one choice is supported here")
	case w.Temperature != nil && (*w.Temperature < 0 || *w.Temperature > 2):
		return refuse("temperature", "decimal out of range")
	}
	req.Stream = w.Stream != nil && *w.Stream
	if w.StreamOptions != nil && !req.Stream {
		return refuse("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	for _, limit := range []*int{w.MaxTokens, w.MaxCompletionTokens} {
		if limit == nil {
			continue
		}
		if req.MaxTokens = *limit; *limit < 1 {
			return refuse("max_tokens", "%d is less than the minimum of 1", *limit)
		}
	}
	if w.ReasoningEffort != nil {
		req.ReasoningEffort = *w.ReasoningEffort
	}
	if w.PromptCacheKey != nil {
		req.CacheKey = *w.PromptCacheKey
	}
	return nil
}

func (w *wire) tools(req *Request) *refusal {
	seen := map[string]bool{}
	for i, t := range w.Tools {
		param := fmt.Sprintf("tools[%d].function", i)
		var schema struct {
			Type string `json:"type"`
		}
		switch name := t.Function.Name; {
		case t.Type != "function":
			return refuse(param, "Invalid value: '%s'. Supported values are: 'function'.", t.Type)
		case !toolNames.MatchString(name):
			return refuse(param+".name", "Invalid '%s.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.", param)
		case seen[name]:
			return refuse(param+".name", "Tool names must be unique: %s", name)
		case len(t.Function.Parameters) > 0 && (json.Unmarshal(t.Function.Parameters, &schema) != nil || schema.Type != "object"):
			return refuse(param+".parameters", "Invalid schema for function '%s': schema must be of 'type: \"object\"'.", name)
		}
		seen[t.Function.Name] = true
		req.Tools = append(req.Tools, Tool{t.Function.Name, t.Function.Description, t.Function.Parameters})
	}
	if len(w.Tools) > 128 {
		return refuse("tools", "array too long: at most 128 tools")
	}
	if len(w.ToolChoice) == 0 || string(w.ToolChoice) == "null" {
		return nil
	}
	if len(w.Tools) == 0 {
		return refuse("tool_choice", "'tool_choice' is only allowed when 'tools' are specified.")
	}
	if json.Unmarshal(w.ToolChoice, &req.ToolChoice) != nil || !slices.Contains([]string{"none", "auto", "required"}, req.ToolChoice) {
		return refuse("tool_choice", "Invalid value for 'tool_choice'.")
	}
	return nil
}

func decodeMessages(raws []json.RawMessage, lenient bool) ([]wireMessage, *refusal) {
	out := make([]wireMessage, len(raws))
	for i, raw := range raws {
		var err error
		if lenient {
			var m lenientMessage
			err = strictly(raw, &m)
			out[i] = m.wireMessage
			for _, c := range m.ToolCalls {
				out[i].ToolCalls = append(out[i].ToolCalls, c.wireCall)
			}
		} else {
			err = strictly(raw, &out[i])
		}
		if err != nil {
			return nil, refuse(fmt.Sprintf("messages.%d", i), "Additional properties are not allowed or wrong type: %v - 'messages.%d'", err, i)
		}
		if r := out[i].check(fmt.Sprintf("messages.%d", i)); r != nil {
			return nil, r
		}
	}
	return out, nil
}

// check looks at one message by itself.
func (m *wireMessage) check(param string) *refusal {
	switch m.Role {
	case "system", "user", "tool":
		if !m.Content.present {
			return refuse(param, "'content' is a required property - '%s'", param)
		}
	case "assistant":
		if !m.Content.present && len(m.ToolCalls) == 0 {
			return refuse(param, "an assistant message needs 'content' or 'tool_calls' - '%s'", param)
		}
	default:
		return refuse(param+".role", "'%s' is not one of ['system', 'assistant', 'user', 'tool'] - '%s.role'", m.Role, param)
	}
	switch {
	case m.Content.blank:
		return refuse(param+".content", "text content must be non-empty - '%s'", param)
	case len(m.Content.images) > 0 && m.Role != "user":
		return refuse(param+".content", "images are only allowed in user messages - '%s'", param)
	case len(m.ToolCalls) > 0 && m.Role != "assistant":
		return refuse(param+".tool_calls", "only an assistant has tool calls - '%s'", param)
	case (m.ToolCallID != "") != (m.Role == "tool"):
		return refuse(param+".tool_call_id", "'tool_call_id' belongs to tool messages and to these only - '%s'", param)
	}
	for _, url := range m.Content.images {
		if !validImage(url) {
			return refuse(param+".content", "Invalid image URL - '%s'", param)
		}
	}
	for j, c := range m.ToolCalls {
		if r := c.check(fmt.Sprintf("%s.tool_calls.%d", param, j)); r != nil {
			return r
		}
	}
	return nil
}

func (c *wireCall) check(param string) *refusal {
	switch {
	case !callIDs.MatchString(c.ID):
		return refuse(param+".id", "'%s' must be 1 to 40 letters, digits, _ or - - '%s.id'", c.ID, param)
	case c.Type != "function":
		return refuse(param+".type", "'%s' is not 'function' - '%s.type'", c.Type, param)
	case !toolNames.MatchString(c.Function.Name):
		return refuse(param+".function.name", "'%s' does not match '^[a-zA-Z0-9_-]{1,64}$' - '%s.function.name'", c.Function.Name, param)
	case c.Function.Arguments == nil:
		return refuse(param+".function", "'arguments' is a required property - '%s.function'", param)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(*c.Function.Arguments), &object); err != nil || object == nil {
		return refuse(param+".function.arguments", "invalid function arguments json string - '%s'", param)
	}
	if loneSurrogate([]byte(*c.Function.Arguments)) {
		return refuse(param+".function.arguments", "lone surrogate in the arguments - '%s'", param)
	}
	return nil
}

func validImage(url string) bool {
	if strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://") {
		return true
	}
	prefix := images.FindString(url)
	if prefix == "" {
		return false
	}
	b, err := base64.StdEncoding.DecodeString(url[len(prefix):])
	return err == nil && len(b) > 0
}

// order checks how the messages follow each other.
func order(list []wireMessage) *refusal {
	ids := map[string]bool{}
	var open []string // calls of the last assistant message without a result
	previous := ""
	for i, m := range list {
		param := fmt.Sprintf("messages.%d", i)
		if len(open) > 0 && m.Role != "tool" {
			return refuse(param, "An assistant message with 'tool_calls' must be followed by tool messages responding to each "+
				"'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
		}
		switch {
		case m.Role == "system" && i > 0:
			return refuse(param, "a system message is only allowed at the beginning - '%s'", param)
		case m.Role == "assistant" && (previous == "" || previous == "system"):
			return refuse(param, "the first message must use the user role - '%s'", param)
		case m.Role == previous && m.Role != "tool":
			return refuse(param, "roles must alternate: two %s messages in a row - '%s'", m.Role, param)
		}
		if m.Role == "tool" {
			j := slices.Index(open, m.ToolCallID)
			if j < 0 {
				return refuse(param, "messages with role 'tool' must be a response to a preceding message with 'tool_calls' - '%s' (%s)", param, m.ToolCallID)
			}
			open = slices.Delete(open, j, j+1)
		}
		for _, c := range m.ToolCalls {
			if ids[c.ID] {
				return refuse(param, "Duplicate tool call id '%s' - '%s'", c.ID, param)
			}
			ids[c.ID] = true
			open = append(open, c.ID)
		}
		previous = m.Role
	}
	if len(open) > 0 {
		return refuse("messages", "tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
	}
	if previous != "user" && previous != "tool" {
		return refuse("messages", "the conversation must end with a user message")
	}
	return nil
}

func (m *wireMessage) message() Message {
	out := Message{Role: m.Role, Text: m.Content.text, Images: len(m.Content.images), ToolCallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		out.Calls = append(out.Calls, Call{ID: c.ID, Name: c.Function.Name, Arguments: *c.Function.Arguments})
	}
	return out
}

// loneSurrogate finds half of a surrogate pair among the escapes of JSON text,
// which Go's decoder mends and others refuse.
func loneSurrogate(raw []byte) bool {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 >= len(raw) {
			return false
		}
		raw = raw[i:]
		unit, ok := escapedUnit(raw)
		switch {
		case !ok:
			raw = raw[2:]
		case unit >= 0xDC00 && unit < 0xE000:
			return true
		case unit >= 0xD800 && unit < 0xDC00:
			low, ok := escapedUnit(raw[6:])
			if !ok || low < 0xDC00 || low >= 0xE000 {
				return true
			}
			raw = raw[12:]
		default:
			raw = raw[6:]
		}
	}
}

func escapedUnit(b []byte) (uint16, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	u, err := hex.DecodeString(string(b[2:6]))
	if err != nil {
		return 0, false
	}
	return uint16(u[0])<<8 | uint16(u[1]), true
}
