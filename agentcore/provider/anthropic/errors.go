package anthropic

import "parley/agentcore/provider/wire"

// quirk is a set of what refusals have taught. The next request is changed
// accordingly.
type quirk uint

const (
	quirkNoReplay     quirk = 1 << iota // refuses thinking that is sent back
	quirkNoThinking                     // does not think, or not in this state of the history
	quirkAdaptive                       // thinks as much as it likes, by effort
	quirkBudget                         // thinks within a budget of tokens
	quirkNoEffort                       // has no output_config.effort
	quirkNoCache                        // has no cache_control
	quirkNoToolChoice                   // has no tool_choice
	quirkNoImages                       // cannot see
)

func (q quirk) has(r quirk) bool { return q&r != 0 }

// lessons tell by the wording of a refusal what has to be left out or said
// differently. What a history holds is a matter of its conversation.
var lessons = []wire.Lesson[quirk]{
	{Words: []string{"signature", "thinking"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"thinking", "cannot be modified"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"thinking", "must remain as they were"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"final block", "thinking"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"expected", "thinking", "but found"}, Quirk: quirkNoThinking, Session: true},
	{Words: []string{"thinking.type.enabled", "adaptive"}, Quirk: quirkAdaptive},
	{Words: []string{"adaptive thinking", "not supported"}, Quirk: quirkBudget},
	{Words: []string{"thinking", "'adaptive'"}, Quirk: quirkBudget},
	{Words: []string{"output_config"}, Quirk: quirkNoEffort},
	{Words: []string{"effort"}, Quirk: quirkNoEffort},
	{Words: []string{"cache_control"}, Quirk: quirkNoCache},
	{Words: []string{"tool_choice"}, Quirk: quirkNoToolChoice},
	{Words: []string{"thinking"}, Quirk: quirkNoThinking},
	{Words: []string{"budget_tokens"}, Quirk: quirkNoThinking},
	{Words: []string{"support image"}, Quirk: quirkNoImages},
	{Words: []string{"image", "not supported"}, Quirk: quirkNoImages},
	{Words: []string{"image", "could not process"}, Quirk: quirkNoImages, Session: true},
	{Words: []string{"image", "exceed"}, Quirk: quirkNoImages, Session: true},
}
