// Package gateway carries a person's message to the agent and the answer back:
// events in, conversations, deliveries out. It knows no platform by name and no
// SQL.
//
// # The life of a message
//
//  1. An adapter decodes an update and calls its sink (intake.go).
//  2. One transaction decides access with a named reason (access.go), stores the
//     event under the platform's own key, finds or makes the conversation, and
//     claims it for this replica. Only then is the update acknowledged.
//  3. The conversation's goroutine (conversation.go) is woken. It reads what is
//     open, handles control events at once, and begins a turn for messages
//     (turn.go): user rows, turn and inbox rows in one transaction.
//     What is attached is fetched first (fetch.go).
//  4. The turn runs in a child goroutine: agentcore writes each message as it
//     happens through the journal (journal.go); events feed the live message
//     (live.go).
//  5. The poster (poster.go, livepost.go) posts and edits, one call at a time, each
//     creation announced by a row first.
//  6. The end of the turn is one transaction: answer, usage, deliveries, inbox rows
//     done. Then the deliveries are settled.
//  7. Between turns the conversation is compressed if it is over the threshold
//     (compression.go).
//  8. Idle, the goroutine retires and the claim is released.
//
// # Guarantees
//
//   - An event that was acknowledged is in the database; one that was not is
//     delivered again by the platform and stored once.
//   - A stored message ends in an answer or a visible word about it, whatever
//     process dies when. Nothing is answered twice; only a creation whose outcome
//     the platform left unknown is shown once more, with a mark.
//   - One owner works on a conversation: each of its writes carries the epoch of its
//     claim, and fails once another replica has taken over.
//   - Stop, approvals and status never wait behind messages.
//   - What is visible at the end of a turn equals its final text, once.
package gateway
