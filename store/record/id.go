package record

import "github.com/google/uuid"

// NewID returns a UUID of version 7, which sorts by time of creation.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// IsID says whether a text is an id that NewID could have made.
func IsID(s string) bool { return uuid.Validate(s) == nil && len(s) == 36 }
