package record

import "fmt"

// SpendingLimit bounds what a scope may spend on a day.
type SpendingLimit struct {
	Scope string // "total", "person:…", "conversation:…"
	Limit float64
}

// SpendingError says that a limit does not leave room for what was to be spent.
type SpendingError struct {
	SpendingLimit
	// Spent is what the scope has spent today, reservations included, and Allowed the
	// limit with what was added to it.
	Spent, Allowed float64
}

func (e *SpendingError) Error() string {
	return fmt.Sprintf("record: %s has spent %.4f of %.4f today", e.Scope, e.Spent, e.Allowed)
}
