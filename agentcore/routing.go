package agentcore

import (
	"cmp"
	"slices"
	"strings"

	"go.uber.org/zap"

	"parley/agentcore/engine"
	"parley/agentcore/llm"
	"parley/store/record"
)

// tier is how hard a message looks.
type tier string

const (
	fastTier    tier = "fast"
	primaryTier tier = "primary"
	smartTier   tier = "smart"
)

// What tells the tiers apart, in lower case; anywhere in the text, the whole text,
// and at its beginning.
var (
	hardPhrases = []string{
		"implement", "refactor", "debug", "analyze", "step by step", "write code", "architecture", "optimize", "algorithm", "explain how",
		"write a", "build a", "create a function", "design", "compare and contrast", "walk me through", "troubleshoot", "review this", "fix this", "rewrite",
	}
	lightTexts = []string{
		"hi", "hello", "hey", "thanks", "thank you", "ok", "okay", "yes", "no", "sure", "bye", "goodbye", "good morning", "good night", "gm", "gn",
		"yo", "sup", "ty", "thx", "np", "k", "yep", "nope", "nah", "yeah", "yea", "cool", "nice", "great", "awesome", "lol", "haha", "wow",
	}
	lightOpenings = []string{"what is ", "who is ", "define ", "what's ", "who's ", "when is ", "where is "}
)

const (
	hardBytes     = 500
	hardQuestions = 3
	lightWords    = 6 // of a question that begins like a light one
)

// classify says which tier a message is for; the first rule that fits decides.
func classify(text string) tier {
	text = strings.TrimSpace(text)
	lower := strings.ToLower(text)
	words := len(strings.Fields(text))
	contains := func(phrase string) bool { return strings.Contains(lower, phrase) }
	begins := func(opening string) bool { return strings.HasPrefix(lower, opening) }
	switch {
	case contains("```"), len(text) > hardBytes, strings.Count(text, "?") >= hardQuestions, slices.ContainsFunc(hardPhrases, contains):
		return smartTier
	case slices.Contains(lightTexts, lower), words == 1, words <= lightWords && slices.ContainsFunc(lightOpenings, begins):
		return fastTier
	}
	return primaryTier
}

// route chooses the model for the turn by what was said, where tiers are configured
// (mission 4.6). The conversation's own choice stands above it; unattended turns and
// subagents are never routed. The same rows give the same model, so a resumed turn
// keeps it.
func (t *turn) route() {
	c, primary := t.a.cfg.Routing, t.model
	if t.req.Conversation.Model != "" || t.row.Trust != record.TrustUser || t.session.Reason == record.ReasonDelegation {
		return
	}
	var said []string
	for _, m := range t.rows {
		if m.Turn == t.row.ID && m.Role == llm.User && m.Kind == record.KindSaid {
			said = append(said, m.Content)
		}
	}
	chosen := primary
	class := primaryTier
	if len(said) > 0 {
		class = classify(strings.Join(said, "\n"))
	}
	switch class {
	case fastTier:
		chosen = cmp.Or(c.Fast, primary)
	case smartTier:
		chosen = cmp.Or(c.Smart, primary)
	case primaryTier:
	}
	if chosen == primary || !t.fits(chosen) {
		return
	}
	t.setModel(chosen)
	t.log.Debug("routed", zap.String("tier", string(class)), zap.String("model", string(chosen)))
}

// fits says that the session has room in a model's window: a short question must not
// cost a long conversation its history.
func (t *turn) fits(m llm.ModelID) bool {
	window := t.a.deps.Facts(m).ContextWindow
	return window >= t.window || !t.a.deps.Engine.Decide(engine.State{
		Session: t.session, Messages: t.rows, Window: window, Tools: t.tools.Specs(), Trigger: engine.Preflight, Now: t.a.deps.Now(),
	}).Compress
}
