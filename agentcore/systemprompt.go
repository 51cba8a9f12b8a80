package agentcore

import (
	"context"

	"parley/agentcore/memory"
	"parley/agentcore/prompt"
	"parley/store/record"
)

// systemPrompt is built once per session and then reused byte for byte: it holds
// nothing that changes from call to call (PRV-006).
func (t *turn) systemPrompt(ctx context.Context) (string, error) {
	d := t.a.deps
	parts := prompt.Parts{
		Personality: t.a.cfg.Personality, Tools: t.tools.Names(), Skills: d.Skills, Context: d.Context, Platform: t.req.PlatformHint, Shared: t.shared(),
		Date: d.Now().In(d.Location),
	}
	if t.req.depth > 0 {
		parts.Personality = prompt.Subagent
		return prompt.Build(parts), nil
	}
	if d.Notes == nil || t.row.Trust == record.TrustUntrusted && t.session.Reason == record.ReasonSchedule {
		return prompt.Build(parts), nil
	}
	place := t.place()
	for _, doc := range place.Documents() {
		text, err := d.Notes.Document(ctx, doc.Scope, doc.Name)
		if err != nil {
			return "", err
		}
		part := &parts.Memory
		if doc.Name == memory.UserDocument {
			part = &parts.User
		}
		*part = prompt.Document{Text: text, Limit: doc.Limit}
	}
	var err error
	if parts.Facts, err = d.Notes.Facts(ctx, place.Scopes(), memory.MaxFacts); err != nil {
		return "", err
	}
	return prompt.Build(parts), nil
}
