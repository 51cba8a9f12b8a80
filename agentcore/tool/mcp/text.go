package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/agentcore/tool"
)

// resultLimit is bytes of a result's text that are kept.
const resultLimit = 100 << 10

// clean makes one bounded line of what a server says, without characters that are
// read but not seen.
func clean(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && s[limit]&0xC0 == 0x80 {
		limit--
	}
	return s[:limit] + "…"
}

// describe is a tool's description for the model: whose it is, and what its server
// says of it, as a quotation.
func describe(server string, t *sdk.Tool) string {
	text := clean(cmp.Or(t.Description, t.Title), 1000)
	if text == "" {
		return fmt.Sprintf("A tool of the MCP server %s.", server)
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return fmt.Sprintf("A tool of the MCP server %s.", server)
	}
	return fmt.Sprintf("A tool of the MCP server %s, which says of it: %s", server, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(quoted)))
}

// resultOf is what a server has answered: its text, and what else there is by name.
func resultOf(server string, r *sdk.CallToolResult) tool.Result {
	var parts []string
	for _, c := range r.Content {
		parts = append(parts, contentText(c))
	}
	if len(parts) == 0 && r.StructuredContent != nil {
		if b, err := json.Marshal(r.StructuredContent); err == nil {
			parts = append(parts, string(b))
		}
	}
	text := tool.Clip(strings.Join(parts, "\n"), resultLimit)
	switch {
	case r.NeedsInput():
		return tool.Failure("The MCP server %s wants to ask something first, which is not possible here.", server)
	case r.IsError:
		return tool.Result{Text: fmt.Sprintf("The MCP server %s reports an error:", server), Untrusted: text, Failed: true}
	case strings.TrimSpace(text) == "":
		return tool.Result{Text: fmt.Sprintf("The MCP server %s has done it and says nothing.", server)}
	}
	return tool.Result{Text: fmt.Sprintf("The MCP server %s answers:", server), Untrusted: text}
}

func contentText(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[an image, %s, %d bytes, which is not shown]", clean(c.MIMEType, 50), len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes, which is not played]", clean(c.MIMEType, 50), len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[resource %s: %s]", clean(cmp.Or(c.Name, c.Title), 200), clean(c.URI, 500))
	case *sdk.EmbeddedResource:
		if c.Resource == nil {
			return "[a resource without content]"
		}
		if c.Resource.Text != "" {
			return fmt.Sprintf("[resource %s]\n%s", clean(c.Resource.URI, 500), c.Resource.Text)
		}
		return fmt.Sprintf("[resource %s, %s, %d bytes, which is not shown]", clean(c.Resource.URI, 500), clean(c.Resource.MIMEType, 50), len(c.Resource.Blob))
	}
	return "[content of an unknown kind]"
}
