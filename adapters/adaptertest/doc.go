// Package adaptertest is the conformance suite that every platform adapter passes,
// and the home of the platforms' fakes. It holds an adapter to the promises of
// chat.Adapter: an event is acknowledged only once it is durable and keeps its key
// when it comes again, Run ends with its context and leaves nothing behind, errors
// are those that the interface names, edits may be repeated, markup is never
// refused, and no secret shows.
package adaptertest
