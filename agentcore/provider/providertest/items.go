package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// callBook keeps account of calls and results.
type callBook struct {
	longest int // an id
	ids     map[string]bool
	open    []string // calls without a result
}

var idShape = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// call takes a call and says what is wrong with it.
func (b *callBook) call(param string, c Call) *refusal {
	switch {
	case !idShape.MatchString(c.ID) || len(c.ID) > b.longest:
		return refuse(param, "Invalid '%s': '%s' must be 1 to %d letters, digits, _ or -.", param, c.ID, b.longest)
	case b.ids[c.ID]:
		return refuse(param, "Duplicate call id '%s' - '%s'", c.ID, param)
	case !toolNames.MatchString(c.Name):
		return refuse(param, "Invalid '%s.name': '%s' does not match '^[a-zA-Z0-9_-]{1,64}$'.", param, c.Name)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(c.Arguments), &object); err != nil || object == nil || loneSurrogate([]byte(c.Arguments)) {
		return refuse(param, "the arguments of '%s' are no valid JSON object", param)
	}
	if b.ids == nil {
		b.ids = map[string]bool{}
	}
	b.ids[c.ID] = true
	b.open = append(b.open, c.ID)
	return nil
}

// result takes a result.
func (b *callBook) result(param, id string) *refusal {
	for i, open := range b.open {
		if open == id {
			b.open = append(b.open[:i:i], b.open[i+1:]...)
			return nil
		}
	}
	return refuse(param, "No tool call found for the result with id %s - '%s'", id, param)
}

// itemHistory reads the input items of a Responses request.
type itemHistory struct {
	model  string
	stored bool // items have ids that the server knows
	calls  callBook
	out    []Message
	// lonely: the last item was reasoning, which needs a following item.
	lonely bool
}

// item has every field of the kinds of items that the fake knows.
type item struct {
	Type             string          `json:"type"`
	ID               *string         `json:"id"`
	Role             string          `json:"role"`
	Content          json.RawMessage `json:"content"`
	Phase            string          `json:"phase"`
	Status           string          `json:"status"`
	CallID           string          `json:"call_id"`
	Name             string          `json:"name"`
	Arguments        *string         `json:"arguments"`
	Output           json.RawMessage `json:"output"`
	Summary          json.RawMessage `json:"summary"`
	EncryptedContent *string         `json:"encrypted_content"`
}

func (h *itemHistory) add(param string, raw json.RawMessage) *refusal {
	var it item
	if err := strictly(raw, &it); err != nil {
		return refuse(param, "Unknown parameter or wrong type: %v - '%s'", err, param)
	}
	if it.ID != nil && !h.stored {
		return &refusal{status: http.StatusNotFound, code: "item_not_found", param: param, message: fmt.Sprintf(
			"Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", *it.ID)}
	}
	if it.Type == "" && it.Role != "" {
		it.Type = "message"
	}
	follows := it.Type == "function_call" || it.Type == "reasoning" || it.Type == "message" && it.Role == "assistant"
	if h.lonely && !follows {
		return refuse(param, "Item of type 'reasoning' was provided without its required following item - before '%s'.", param)
	}
	h.lonely = false
	switch it.Type {
	case "message":
		return h.message(param, it)
	case "function_call":
		return h.call(param, it)
	case "function_call_output":
		return h.result(param, it)
	case "reasoning":
		return h.reasoning(param, it)
	}
	return refuse(param+".type", "Invalid value: '%s' - '%s.type'.", it.Type, param)
}

func (h *itemHistory) message(param string, it item) *refusal {
	kinds := map[string]string{"user": "input_text", "system": "input_text", "developer": "input_text", "assistant": "output_text"}
	kind, ok := kinds[it.Role]
	if !ok {
		return refuse(param+".role", "Invalid value: '%s'.", it.Role)
	}
	if it.Phase != "" && (it.Role != "assistant" || it.Phase != "commentary" && it.Phase != "final_answer") {
		return refuse(param+".phase", "Invalid value: '%s'.", it.Phase)
	}
	if kind == "output_text" && len(it.Content) > 0 && it.Content[0] == '[' && it.ID == nil {
		return refuse(param+".id", "Missing required parameter: '%s.id'.", param)
	}
	text, images, r := itemContent(param+".content", it.Content, kind)
	if r != nil {
		return r
	}
	if it.Role != "user" && images > 0 {
		return refuse(param, "images are only allowed in user messages - '%s'", param)
	}
	if it.Role == "assistant" {
		a, r := h.assistant(param)
		if r != nil {
			return r
		}
		if a.Text != "" {
			a.Text += "\n\n"
		}
		a.Text += text
		return nil
	}
	if len(h.calls.open) > 0 {
		return refuse(param, "No tool output found for function call %s.", h.calls.open[0])
	}
	if h.last().Role == it.Role {
		return refuse(param, "roles must alternate: two %s messages in a row - '%s'", it.Role, param)
	}
	h.out = append(h.out, Message{Role: it.Role, Text: text, Images: images})
	return nil
}

// assistant returns the assistant message that is being read, or begins one.
func (h *itemHistory) assistant(param string) (*Message, *refusal) {
	switch last := h.last(); {
	case last.Role == "assistant":
	case last.Role == "" || last.Role == "system":
		return nil, refuse(param, "the first message must use the user role - '%s'", param)
	case len(h.calls.open) > 0:
		return nil, refuse(param, "No tool output found for function call %s.", h.calls.open[0])
	default:
		h.out = append(h.out, Message{Role: "assistant"})
	}
	return &h.out[len(h.out)-1], nil
}

func (h *itemHistory) last() Message {
	if len(h.out) == 0 {
		return Message{}
	}
	return h.out[len(h.out)-1]
}

func (h *itemHistory) call(param string, it item) *refusal {
	if it.Arguments == nil {
		return refuse(param+".arguments", "Missing required parameter: '%s.arguments'.", param)
	}
	a, r := h.assistant(param)
	if r != nil {
		return r
	}
	c := Call{ID: it.CallID, Name: it.Name, Arguments: *it.Arguments}
	a.Calls = append(a.Calls, c)
	return h.calls.call(param+".call_id", c)
}

func (h *itemHistory) result(param string, it item) *refusal {
	text, images, r := itemContent(param+".output", it.Output, "input_text")
	if r != nil {
		return r
	}
	h.out = append(h.out, Message{Role: "tool", Text: text, Images: images, ToolCallID: it.CallID})
	return h.calls.result(param+".call_id", it.CallID)
}

func (h *itemHistory) reasoning(param string, it item) *refusal {
	if len(it.Summary) == 0 || it.Summary[0] != '[' {
		return refuse(param+".summary", "Missing required parameter: '%s.summary'.", param)
	}
	if it.EncryptedContent == nil || !decrypts(*it.EncryptedContent, h.model) {
		r := refuse(param, "The encrypted content could not be verified. Reason: Encrypted content could not be decrypted or parsed - '%s'.", param)
		r.code = "invalid_encrypted_content"
		return r
	}
	h.lonely = true
	_, r := h.assistant(param)
	return r
}

func (h *itemHistory) end() *refusal {
	switch last := h.last(); {
	case h.lonely:
		return refuse("input", "Item of type 'reasoning' was provided without its required following item.")
	case len(h.calls.open) > 0:
		return refuse("input", "No tool output found for function call %s.", h.calls.open[0])
	case last.Role != "user" && last.Role != "tool":
		return refuse("input", "the conversation must end with a user message")
	}
	return nil
}

// itemContent reads a content: a text, or a list of texts of the kind and images.
func itemContent(param string, raw json.RawMessage, kind string) (text string, pictures int, r *refusal) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", 0, refuse(param, "Missing required parameter: '%s'.", param)
	}
	if raw[0] == '"' {
		if err := json.Unmarshal(raw, &text); err != nil || strings.TrimSpace(text) == "" {
			return "", 0, refuse(param, "text content must be non-empty - '%s'", param)
		}
		return text, 0, nil
	}
	var parts []struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		ImageURL *string `json:"image_url"`
		Detail   *string `json:"detail"`
	}
	if err := strictly(raw, &parts); err != nil || len(parts) == 0 {
		return "", 0, refuse(param, "Invalid content: %v - '%s'", err, param)
	}
	for i, p := range parts {
		switch {
		case p.Type == kind && p.Text != nil && strings.TrimSpace(*p.Text) != "":
			if text != "" {
				text += "\n\n"
			}
			text += *p.Text
		case p.Type == "input_image" && p.ImageURL != nil && p.Detail != nil && kind == "input_text":
			if !validImage(*p.ImageURL) {
				return "", 0, refuse(param, "Invalid image URL - '%s[%d]'", param, i)
			}
			pictures++
		default:
			return "", 0, refuse(param, "Invalid or empty part of type '%s' - '%s[%d]'.", p.Type, param, i)
		}
	}
	return text, pictures, nil
}

func failed(_ Request, r *refusal) error {
	if r == nil {
		return nil
	}
	return errors.New(r.message)
}
