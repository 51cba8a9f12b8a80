// Package llm is the vocabulary of the agent core: one message format for every
// provider, the request, the stream's events, usage, errors by kind, and facts
// about models. It is a leaf: it imports nothing of the module.
package llm
