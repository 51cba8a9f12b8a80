package agentcore

import (
	"context"
	"strings"

	"parley/agentcore/tool"
	"parley/store/record"
)

const clarifyName = "clarify"

// maxOptions bounds the choices of a question: more do not fit below a message.
const maxOptions = 8

type clarifyInput struct {
	Question string   `json:"question" jsonschema:"one question, short and complete in itself"`
	Options  []string `json:"options,omitempty" jsonschema:"up to 8 short answers to choose from; a free answer is always possible too"`
}

// clarify is the tool that asks the user. Without a turn it only declares itself.
func clarify(t *turn) (tool.Tool, error) {
	spec := tool.Spec{Interactive: true, Waits: true, ReadOnly: true, Resumes: true}
	spec.Name = clarifyName
	spec.Description = "Ask the user one question and wait for the answer. Use it when the request can mean different things and guessing wrong would waste work or do harm. " +
		"Do not use it for what you can find out yourself, nor to ask for permission: dangerous calls are confirmed separately."
	return tool.New(spec, func(ctx context.Context, c tool.Call, in clarifyInput) (tool.Result, error) {
		if t == nil {
			return tool.Failure("This works only inside a turn."), nil
		}
		return t.clarify(ctx, c, in)
	})
}

func (t *turn) clarify(ctx context.Context, c tool.Call, in clarifyInput) (tool.Result, error) {
	if strings.TrimSpace(in.Question) == "" {
		return tool.Failure("The question is empty."), nil
	}
	if len(in.Options) > maxOptions {
		return tool.Failure("At most %d options can be shown; put the rest into the question or ask in two steps.", maxOptions), nil
	}
	if t.row.Trust != record.TrustUser {
		return tool.Failure("Nobody is there to answer: this turn was not started by a person. Decide yourself and say what you assumed."), nil
	}
	now := t.a.deps.Now()
	q := record.Approval{
		ID: record.ApprovalID(record.NewID()), Conversation: t.row.Conversation, Turn: t.row.ID, CallID: c.ID, Kind: record.AskClarify,
		Question: in.Question, Options: in.Options, State: record.ApprovalOpen, Asked: t.row.Person,
		ExpiresAt: now.Add(t.a.deps.ClarifyTimeout), CreatedAt: now,
	}
	t.report(ClarifyAsked{Approval: q})
	a, err := t.req.Asker.Ask(ctx, q)
	if err != nil {
		return tool.Result{}, err
	}
	switch a.State {
	case record.ApprovalAnswered, record.ApprovalApproved:
		return tool.Result{Text: "The user answered: " + a.Answer}, nil
	case record.ApprovalDenied:
		return tool.Result{Text: "The user does not want to answer. Go on without, or stop and say what is missing.", Outcome: "denied"}, nil
	case record.ApprovalExpired, record.ApprovalWithdrawn, record.ApprovalOpen:
	}
	return tool.Result{Text: "The user did not answer. Go on with the safest assumption and name it, or stop and say what is missing.", Outcome: "denied"}, nil
}
