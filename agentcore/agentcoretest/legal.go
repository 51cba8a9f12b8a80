package agentcoretest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"parley/agentcore/llm"
)

var legalName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Legal judges the messages of a request as the strictest providers do; it knows
// nothing of how requests are built.
func Legal(msgs []llm.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	if msgs[0].Role != llm.User {
		return fmt.Errorf("message 0: the first one is %q, not user", msgs[0].Role)
	}
	if last := msgs[len(msgs)-1].Role; last != llm.User && last != llm.ToolRole {
		return fmt.Errorf("the last message is %q, not from the user's side", last)
	}
	ids := map[string]bool{}
	var expect []string // ids of the calls that must be answered next, in order
	for i, m := range msgs {
		if err := legalContent(m); err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
		if m.Role == llm.ToolRole {
			if len(expect) == 0 || expect[0] != m.ToolCallID {
				return fmt.Errorf("message %d: result of %q where %q is due", i, m.ToolCallID, expect)
			}
			expect = expect[1:]
			continue
		}
		if len(expect) > 0 {
			return fmt.Errorf("message %d: the calls %q have no result directly behind them", i, expect)
		}
		if i > 0 && msgs[i-1].Role == m.Role {
			return fmt.Errorf("message %d: two %s messages in a row", i, m.Role)
		}
		for _, c := range m.ToolCalls {
			if c.ID == "" || ids[c.ID] {
				return fmt.Errorf("message %d: call id %q is empty or not unique", i, c.ID)
			}
			ids[c.ID] = true
			expect = append(expect, c.ID)
		}
	}
	if len(expect) > 0 {
		return fmt.Errorf("the calls %q have no result", expect)
	}
	return nil
}

func legalContent(m llm.Message) error {
	switch m.Role {
	case llm.User, llm.ToolRole:
		if len(m.ToolCalls) > 0 {
			return fmt.Errorf("has tool calls")
		}
	case llm.Assistant:
		if len(m.Parts) > 1 {
			return fmt.Errorf("has %d parts", len(m.Parts))
		}
		if len(m.Parts)+len(m.ToolCalls) == 0 {
			return fmt.Errorf("says nothing")
		}
	default:
		return fmt.Errorf("unknown role")
	}
	if m.Role != llm.Assistant && len(m.Parts) == 0 {
		return fmt.Errorf("has no content")
	}
	for _, p := range m.Parts {
		if strings.TrimSpace(p.Text) == "" && p.Image == nil {
			return fmt.Errorf("has an empty part")
		}
		if !utf8.ValidString(p.Text) || strings.Contains(p.Text, "\x00") {
			return fmt.Errorf("is not valid text")
		}
	}
	for _, c := range m.ToolCalls {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.Arguments), &object); err != nil || object == nil {
			return fmt.Errorf("arguments %q are not a JSON object", c.Arguments)
		}
		if !utf8.ValidString(c.Arguments) || !legalName.MatchString(c.Name) {
			return fmt.Errorf("call %q with arguments %q cannot be sent", c.Name, c.Arguments)
		}
	}
	return nil
}
