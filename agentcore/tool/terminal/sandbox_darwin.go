package terminal

import "errors"

// landlockVersion is 0: Landlock is Linux's.
func landlockVersion() int { return 0 }

func restrict(rules) error { return errors.New("there is no Landlock on this system") }

// capabilities are Linux's, as bubblewrap is.
func capabilities() []string { return nil }
