// Package chat is the vocabulary that platform adapters and the gateway share:
// addresses, events, outgoing messages, the Adapter interface with its optional
// capabilities, limits as data, and typed delivery errors.
//
// It is a leaf: it imports nothing of the module. Every id in it is opaque
// outside the adapter that minted it; the core never looks inside one and never
// branches on a platform's name. What differs between platforms is a field of
// Limits or an optional interface.
package chat
