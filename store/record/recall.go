package record

// RecallQuery asks for what was said in a session's lineage and has left its
// window. The lineage is what the session descends from by compression, branch,
// undo and resume, each ancestor up to where it was left, inside one conversation.
type RecallQuery struct {
	Conversation ConversationID
	Session      SessionID
	// Before is the first sequence in the window: older rows have left it.
	Before int64
	// Text is what relevant rows have to do with; any text.
	Text string
	// Salience is the importance from which a row is salient.
	Salience float64
	// Recent, Salient and Relevant are how many rows of each are wanted at most.
	Recent, Salient, Relevant int
}

// Recalled are rows that have left a window, each list best first; a row may be in
// several.
type Recalled struct {
	Recent, Salient, Relevant []Message
}

// Embedding is a message's place in the space of a model. A vector is of length 1;
// an empty one says that the model cannot place the message.
type Embedding struct {
	Session SessionID
	Seq     int64
	Vector  []float32
}
