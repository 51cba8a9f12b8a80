package agentcore

import (
	"context"
	"fmt"
	"strings"

	"parley/gateway/chat"
)

// maxFacts is how many of the newest facts the system prompt lists.
const maxFacts = 100

// systemPrompt is built once per session and then reused byte for byte: it holds
// nothing that changes from call to call (PRV-006).
func (t *turn) systemPrompt(ctx context.Context) (string, error) {
	d := t.a.deps
	var b strings.Builder
	b.WriteString(t.a.cfg.Personality)
	if d.Notes != nil {
		scopes := []string{conversationScope(t.row.Conversation)}
		doc, err := d.Notes.Document(ctx, scopes[0], memoryDocument)
		if err != nil {
			return "", err
		}
		b.WriteString(doc)
		if t.req.Kind == chat.Direct && t.row.Person != "" {
			scopes = append(scopes, personScope(t.row.Person))
			if doc, err = d.Notes.Document(ctx, scopes[1], userDocument); err != nil {
				return "", err
			}
			b.WriteString(doc)
		}
		facts, err := d.Notes.Facts(ctx, scopes, maxFacts)
		if err != nil {
			return "", err
		}
		for _, f := range facts {
			fmt.Fprintf(&b, "%s %s: %s\n", f.Category, f.Key, f.Value)
		}
	}
	b.WriteString(d.ContextFiles)
	b.WriteString(t.req.PlatformHint)
	return b.String(), nil
}
