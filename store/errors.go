package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"parley/store/record"
)

// SQLSTATEs that are told apart. Those that begin with PY are raised by the
// functions of the first migration.
const (
	stateFenced     = "PY001"
	stateChanged    = "PY002"
	stateNotFound   = "PY003"
	stateDuplicate  = "23505"
	stateForeignKey = "23503"
	stateNull       = "23502"
	stateSyntax     = "22P02"
)

// explain says what failed and makes the error match record's where a caller can
// branch on it. Nothing of the statement's values is in it.
func explain(op string, err error) error {
	if err == nil {
		return nil
	}
	if kind := kindOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("store: %s: %w: %w", op, kind, err)
	}
	return fmt.Errorf("store: %s: %w", op, err)
}

// kindOf maps an error of the driver to one of record, or nil.
func kindOf(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return record.ErrNotFound
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		if unreachable(err) {
			return record.ErrUnavailable
		}
		return nil
	}
	switch {
	case pg.Code == stateFenced:
		return record.ErrFenced
	case pg.Code == stateChanged || pg.Code == stateDuplicate:
		return record.ErrConflict
	// A message whose session is not there has no sequence.
	case pg.Code == stateNotFound, pg.Code == stateForeignKey, pg.Code == stateNull && pg.ColumnName == "session_id":
		return record.ErrNotFound
	// People type ids; one that is no UUID names nothing.
	case pg.Code == stateSyntax && strings.Contains(pg.Message, "uuid"):
		return record.ErrNotFound
	case notServing(pg.Code):
		return record.ErrUnavailable
	}
	return nil
}

// notServing are the states of a server that is starting, stopping, failing over,
// read-only or out of connections.
func notServing(code string) bool {
	switch code {
	case "57P01", "57P02", "57P03", "53300", "25006":
		return true
	}
	return strings.HasPrefix(code, "08")
}

// unreachable says whether the connection failed rather than the statement.
func unreachable(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, net.ErrClosed) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed")
}
