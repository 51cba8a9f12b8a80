// Package agentcore runs one turn of one conversation: it calls the model, runs
// tools, and ends with a text. It knows no platform and no SQL.
//
// The states of a turn and where each may lead:
//
//	preparing   → compressing calling acting interrupted failed suspended
//	compressing → preparing interrupted failed suspended
//	calling     → preparing compressing acting done interrupted exhausted failed suspended
//	approving   → acting interrupted failed suspended
//	acting      → approving preparing interrupted failed suspended
//	suspended   → preparing
//	done        →
//	interrupted →
//	exhausted   →
//	failed      →
//
// Suspended is not an end: the next owner of the conversation resumes the turn.
// Everything that happened is in the Journal before it is acted upon, so a turn
// can be resumed at any point: pending tools run, started ones get a result that
// says that they may have happened, finished ones are kept.
//
// # Entry points
//
// Agent.Chat answers a text and returns the final one. Agent.RunConversation, which it
// is a thin wrapper of, takes a Request (message, system text, history, task id) and
// returns a Result (text, messages, usage, iterations, why it ended, the session it
// ended on). Without a Journal both keep everything in memory and forget it; with one,
// Agent.Resume goes on with a turn that was cut off. Both examples run with the tests.
//
// # Surfaces
//
// What a turn does is told to its Sink as typed events, in order, from one goroutine:
//
//	tool progress       ToolStarted, ToolProgress, SubagentProgress, ToolFinished
//	thinking            Thinking
//	reasoning text      ReasoningDelta
//	clarify question    ClarifyAsked
//	step                Step, after each iteration
//	stream delta        StreamDelta; StreamReset voids those since the last Step
//	tool generation     ToolGenerating, a call that is seen in the stream
//	status              Status, each change of state, and what is waited for
//
// One goroutine runs a turn and is the only one that writes its journal and emits
// its events. Tools run in goroutines of their own; one that does not return soon
// after it was cancelled is left behind by the turn and waited for by Agent.Wait.
// Each wait (model, tool, question, compression) ends with the turn's context.
package agentcore
