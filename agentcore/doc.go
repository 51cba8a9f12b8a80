// Package agentcore runs one turn of one conversation: it calls the model, runs
// tools, and ends with a text. It knows no platform and no SQL.
//
//	Preparing ──► Calling ──► Approving ──► Acting ──► Preparing …
//	    │            │
//	    ▼            ▼
//	Compressing   Done | Interrupted | Exhausted | Failed
//
// Suspended is not an end: the next owner of the conversation resumes the turn.
// Everything that happened is in the Journal before it is acted upon, so a turn
// can be resumed at any point: pending tools run, started ones get a result that
// says that they may have happened, finished ones are kept.
package agentcore
