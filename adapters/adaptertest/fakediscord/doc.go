// Package fakediscord is Discord's REST API and gateway on loopback, as strict as
// the real ones: it refuses what they refuse, with the same answers. Tests drive
// the adapter against it.
//
// It guarantees:
//
//   - The gateway is a real WebSocket: HELLO, IDENTIFY, RESUME with replay of what was
//     missed, heartbeats and their acknowledgement, RECONNECT, INVALID_SESSION, and the
//     close codes of the documentation for a wrong token, wrong or disallowed intents
//     and a protocol that is not kept. A session that its client closes with 1000 or
//     1001 cannot be resumed.
//   - A message has at most 2,000 characters, counted as code points after white space
//     at the ends is gone; components, nonces, references, threads and files have the
//     limits of the documentation.
//   - Without the message content intent a message of a guild that does not mention the
//     bot comes without its content, over the gateway and over REST.
//   - An interaction is answered once, within 3 s, and its token lives for 15 minutes.
//   - Markup is read as Discord's own clients read it (Shown).
//   - What the real service tolerates and a careful bot does not do is kept as a
//     violation: unknown fields, no allowed_mentions, a ping of anybody.
//
// Everything may be asked and injected from any goroutine. A waiting test is woken
// by a change; nothing polls or sleeps.
//
// Deliberately simpler than the real service: one bot, no voice, no embeds, no
// limit of one IDENTIFY in five seconds, permissions only as far as Deny takes them
// away.
package fakediscord
