// Package fakeslack is a workspace of Slack on loopback: the Web API, Socket Mode
// over real WebSockets, and the Events API over HTTP. It refuses what the real one
// refuses, with the same words. Tests and end-to-end scripts drive the adapter
// against it.
//
// It guarantees:
//
//   - A call needs the right kind of token and one of its scopes; an unknown
//     parameter is tolerated, as by Slack, but kept as a [Violation].
//   - Text, blocks, buttons and streams are held to Slack's lengths and rules; a
//     stream ends by itself after its time.
//   - What reaches people is checked: a mention in what the bot posts and broken
//     markup are violations.
//   - An event stays due until its envelope is acknowledged. It comes again, under
//     a new envelope id, after a while, after a cut, and to the next socket.
//   - A mention arrives twice, as `message` and as `app_mention`, and what the bot
//     posts comes back to it as an event.
//   - Everything may be asked and injected from any goroutine. A waiting test is
//     woken by a change; nothing polls or sleeps.
//
// Deliberately simpler than Slack: one workspace, no modals, no search, rates only
// where a fault orders them, and request URLs on loopback may be plain HTTP.
package fakeslack
