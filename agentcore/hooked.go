package agentcore

import (
	"context"

	"go.uber.org/zap"

	"parley/agentcore/llm"
	"parley/store/record"
)

// askHooks puts the open calls before the owner's hooks, each once, before anything
// else looks at them: what a hook makes of a call is what is judged, shown to people
// and run. After a restart they are asked again. The error is the end of ctx.
func (t *turn) askHooks(ctx context.Context) error {
	if t.a.deps.Policy.Hook == nil {
		return nil
	}
	for _, r := range t.open() {
		if _, asked := t.decided.hooks[r.CallID]; asked || r.State != record.ToolPending {
			continue
		}
		j := job{run: r, call: llm.ToolCall{ID: r.CallID, Name: r.Tool, Arguments: string(r.Arguments)}}
		change, err := t.a.deps.Policy.Hook.Before(ctx, r.Tool, t.toolCall(&j))
		if err != nil {
			return err
		}
		t.decided.hooks[r.CallID] = change
		if change.Blocked != "" || change.Arguments != nil {
			t.log.Info("a hook decided about a call", zap.String("name", r.Tool), zap.String("call", r.CallID), zap.String("blocked", change.Blocked), zap.Bool("changed", change.Arguments != nil))
		}
	}
	return nil
}

// changed applies what the hooks decided about a call and says whether that is its
// end.
func (t *turn) changed(j *job) bool {
	change := t.decided.hooks[j.call.ID]
	if change.Blocked != "" {
		j.refused = &outcome{
			text: "Not run: " + change.Blocked + ". Do not try to reach the same end otherwise.", word: "denied",
			by: record.RefusedByHook, why: change.Blocked,
		}
		return true
	}
	if change.Arguments != nil {
		j.call.Arguments, j.note = string(change.Arguments), "[The owner's hook changed the arguments to: "+string(change.Arguments)+"]\n"
	}
	return false
}
