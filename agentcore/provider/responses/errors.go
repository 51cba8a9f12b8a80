package responses

import "parley/agentcore/provider/wire"

// quirk is a set of what refusals have taught. The next request is changed
// accordingly.
type quirk uint

const (
	quirkNoEncrypted  quirk = 1 << iota // does not reason, or does not give its reasoning
	quirkNoReplay                       // refuses reasoning that is sent back
	quirkNoEffort                       // has no reasoning.effort
	quirkNoSummary                      // gives no summaries of its reasoning
	quirkNoCacheKey                     // has no prompt_cache_key
	quirkNoLimit                        // has no max_output_tokens
	quirkNoToolChoice                   // has no tool_choice
	quirkNoPhase                        // has no phase of messages
	quirkNoImages                       // cannot see
)

func (q quirk) has(r quirk) bool { return q&r != 0 }

// lessons tell by the wording of a refusal what has to be left out. What a history
// holds is a matter of its conversation.
var lessons = []wire.Lesson[quirk]{
	{Words: []string{"encrypted content", "not supported"}, Quirk: quirkNoEncrypted},
	{Words: []string{"reasoning.encrypted_content"}, Quirk: quirkNoEncrypted},
	{Words: []string{"encrypted content"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"encrypted_content"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"required following item"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"required 'reasoning' item"}, Quirk: quirkNoReplay, Session: true},
	{Words: []string{"reasoning summar"}, Quirk: quirkNoSummary},
	{Words: []string{"reasoning.summary"}, Quirk: quirkNoSummary},
	{Words: []string{"reasoning.effort"}, Quirk: quirkNoEffort},
	{Words: []string{"'reasoning'", "parameter"}, Quirk: quirkNoEffort},
	{Words: []string{"prompt_cache_key"}, Quirk: quirkNoCacheKey},
	{Words: []string{"max_output_tokens"}, Quirk: quirkNoLimit},
	{Words: []string{"tool_choice"}, Quirk: quirkNoToolChoice},
	{Words: []string{"phase"}, Quirk: quirkNoPhase},
	{Words: []string{"support image"}, Quirk: quirkNoImages},
	{Words: []string{"image input", "not"}, Quirk: quirkNoImages},
	{Words: []string{"input_image"}, Quirk: quirkNoImages},
}
