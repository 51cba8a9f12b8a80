package record

import "errors"

// The errors of storage that callers branch on.
var (
	// ErrFenced means that the replica no longer owns the conversation: it must
	// stop working on it at once.
	ErrFenced = errors.New("record: the conversation has another owner now")
	// ErrNotFound means that there is no such row.
	ErrNotFound = errors.New("record: not found")
	// ErrConflict means that the rows have moved on since they were read.
	ErrConflict = errors.New("record: changed meanwhile")
	// ErrUnavailable means that the database cannot be reached now.
	ErrUnavailable = errors.New("record: the database cannot be reached")
)
