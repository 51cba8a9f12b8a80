// Package memory says what may be remembered where, and what is recalled. It
// guarantees that nothing about a person is read or written outside that person's
// own direct conversations; that what is recalled comes from the lineage of the
// session alone, in the order it was said, once, within a budget, as quoted data;
// and that a turn never waits for vectors that are still to be made.
package memory

import (
	"parley/gateway/chat"
	"parley/store/record"
)

// The memory documents.
const (
	MemoryDocument = "MEMORY.md" // notes about work and surroundings
	UserDocument   = "USER.md"   // who the person is and what they prefer
)

// The documents' limits, in characters.
const (
	MemoryLimit = 2200
	UserLimit   = 1375
)

// MaxFacts is how many of the newest facts a prompt lists.
const MaxFacts = 100

// ConversationScope names what a conversation remembers.
func ConversationScope(c record.ConversationID) string { return "conversation:" + string(c) }

// PersonScope names what is remembered about a person.
func PersonScope(p chat.Person) string { return "person:" + string(p) }

// Document is one memory document of a place.
type Document struct {
	Scope, Name string
	// Limit is in characters.
	Limit int
}

// Place is where a turn runs, which decides whose memory it may use.
type Place struct {
	Conversation record.ConversationID
	Kind         chat.Kind
	Person       chat.Person
}

// Private says that the memory of the person may be used: in a direct
// conversation, never in a room.
func (p Place) Private() bool { return p.Kind == chat.Direct && p.Person != "" }

// Scopes are those whose facts may be read here.
func (p Place) Scopes() []string {
	scopes := []string{ConversationScope(p.Conversation)}
	if p.Private() {
		scopes = append(scopes, PersonScope(p.Person))
	}
	return scopes
}

// Documents are those that may be read and written here: the conversation's
// MEMORY.md (a room has one for all) and in private the person's USER.md.
func (p Place) Documents() []Document {
	docs := []Document{{Scope: ConversationScope(p.Conversation), Name: MemoryDocument, Limit: MemoryLimit}}
	if p.Private() {
		docs = append(docs, Document{Scope: PersonScope(p.Person), Name: UserDocument, Limit: UserLimit})
	}
	return docs
}

// FactScope is where a fact that was learnt here goes when nobody says whether it
// is about the person: to the person in private, else to the conversation.
func (p Place) FactScope() string {
	if p.Private() {
		return PersonScope(p.Person)
	}
	return ConversationScope(p.Conversation)
}
