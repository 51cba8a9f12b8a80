// Package faketelegram is a Bot API server on loopback that is as strict as the
// real one: it refuses what the real one refuses, with the same answers. Tests,
// the crash test and the benchmarks drive the adapter against it.
//
// It guarantees:
//
//   - Every call is checked against the published description of the API (folder
//     spec). What the real server tolerates in silence, such as an unknown
//     parameter, is tolerated here too but kept as a [Violation].
//   - Text is parsed as the real server parses it: tags, entities, trimming, the
//     limit of 4,096 UTF-16 units and the loss of entities after the hundredth.
//   - Updates are handed out again until a later offset confirms them; a second
//     poller ends the first with 409; a set webhook excludes polling.
//   - Nothing about a chat that was not opened is known: "chat not found".
//   - Everything may be asked and injected from any goroutine. A waiting test is
//     woken by a change; nothing polls or sleeps. A call costs no scan over chats
//     or messages, so that a thousand chats can be served beside what is measured.
//
// Deliberately simpler than the real server: parse_mode knows HTML only (others
// are refused and kept as a violation), links and hashtags in plain text get no
// entities, drafts have no rate limit, webhooks reach loopback addresses only and
// may be plain HTTP.
package faketelegram
