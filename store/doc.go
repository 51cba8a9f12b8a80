// Package store is the only SQL in parley: one concrete type, DB, on PostgreSQL.
//
// What it guarantees:
//
//   - Every exported method is one transaction: all of it happened or nothing. It is
//     never cut short by the caller's context, since what a turn did must be
//     stored although the turn was stopped; a limit of its own bounds it (PGS-004).
//   - A write that carries a record.Fence happens only while the replica owns the
//     conversation in that epoch; the check holds the conversation's row until the
//     transaction ends, so that intake, takeover and release cannot race with it.
//   - Any text can be stored: what PostgreSQL refuses is replaced first (PGS-005).
//   - Errors match those of package record where a caller can do something about
//     them: ErrFenced, ErrNotFound, ErrConflict, ErrUnavailable.
//   - No connection is held between calls, but for the two that a replica keeps: the
//     one of its lock and the one that listens.
//
// Without a database URL, StartPrivate runs a PostgreSQL server of parley's own.
package store
