package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"parley/agentcore/llm"
)

// What stands where a server wants a text and there is none.
const (
	EmptyResult  = "(no output)"
	EmptyMessage = "(empty message)"
	// BlindNotice stands for an image that a model cannot see.
	BlindNotice = "(an image was left out: the model cannot see)"
	// UnnamedTool stands for a call without a name, so that it gets a result and the
	// history stays valid (PRV-032).
	UnnamedTool = "unnamed_tool"
)

// Blank says whether a text is one that servers refuse as empty (PRV-040).
func Blank(s string) bool { return strings.TrimSpace(s) == "" }

// Paragraphs joins two texts by a blank line; either may be empty.
func Paragraphs(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// Arguments makes what a model wrote a JSON object, since servers refuse any
// request whose history holds something else (PRV-020, PST-008). An escaped lone
// surrogate is valid to Go and to nobody else (PRV-008).
func Arguments(s string) string {
	if s = strings.TrimSpace(s); s == "" || s[0] != '{' || !json.Valid([]byte(s)) {
		return "{}"
	}
	if !strings.Contains(s, `\ud`) && !strings.Contains(s, `\uD`) {
		return s
	}
	var object map[string]any
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	if dec.Decode(&object) != nil {
		return "{}"
	}
	b, err := json.Marshal(object)
	if err != nil {
		return "{}"
	}
	return string(b)
}

// CutShort says whether a call's arguments end in the middle of their JSON, which
// is the mark of an answer that a limit has cut whatever the server says (PRV-019).
func CutShort(arguments string) bool {
	if Blank(arguments) {
		return false
	}
	var v json.RawMessage
	err := json.NewDecoder(strings.NewReader(arguments)).Decode(&v)
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// ToolName keeps a name that a model made up from spoiling every later request
// (PRV-032).
func ToolName(s string) string {
	b := []byte(s)
	for i, ch := range b {
		if !idByte(ch) {
			b[i] = '_'
		}
	}
	switch {
	case len(b) == 0:
		return UnnamedTool
	case len(b) > 64:
		b = b[:64]
	}
	return string(b)
}

// imageTypes are what every API takes.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// Picture encodes an image; limit bounds the encoded bytes. An image that the
// server would refuse, with this request and each later one, is put into words
// instead: notice is not empty then.
func Picture(i *llm.Image, limit int) (mime, base64Data, notice string) {
	mime, _, _ = strings.Cut(strings.ToLower(i.MIME), ";")
	if mime = strings.TrimSpace(mime); mime == "image/jpg" {
		mime = "image/jpeg"
	}
	switch {
	case len(i.Data) == 0:
		return "", "", "(an image was left out: it is empty)"
	case !slices.Contains(imageTypes, mime):
		return "", "", "(an image was left out: the model takes PNG, JPEG, GIF and WebP only)"
	case base64.StdEncoding.EncodedLen(len(i.Data)) > limit:
		return "", "", "(an image was left out: it is too large)"
	}
	return mime, base64.StdEncoding.EncodeToString(i.Data), ""
}

// FinishReason maps the words of all servers; empty is none (PST-016).
func FinishReason(s string) llm.FinishReason {
	switch strings.ToLower(s) {
	case "":
		return ""
	case "tool_calls", "tool_call", "function_call", "tool_use":
		return llm.FinishToolCalls
	case "length", "max_tokens", "model_length", "max_output_tokens", "model_context_window_exceeded":
		return llm.FinishLength
	case "content_filter", "safety", "refusal", "recitation", "prohibited_content", "blocklist":
		return llm.FinishFilter
	}
	return llm.FinishStop
}

// Encode makes JSON that is equal for equal values, so that a provider's cache sees
// the same prefix (PRV-006). Text that is no valid UTF-8 is mended here (PRV-008).
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
