package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// pairingColumns are those of a pairing p, in scanPairing's order.
const pairingColumns = `p.code, p.person, p.name, p.account, p.chat, p.thread, p.state, p.created_at, p.expires_at`

func scanPairing(row pgx.Row) (p record.Pairing, err error) {
	a := &p.Address
	err = row.Scan(&p.Code, &p.Person, &p.Name, &a.Account, &a.Chat, &a.Thread, &p.State, &p.CreatedAt, &p.ExpiresAt)
	return p, err
}

// NewClaim writes a claim code for the account of p.Address: whoever redeems it
// before p.ExpiresAt becomes the owner. A code that is taken is record.ErrConflict.
func (db *DB) NewClaim(ctx context.Context, p record.Pairing) error {
	return db.batch(ctx, "new claim", func(b *pgx.Batch) {
		b.Queue(`INSERT INTO pairings (code, account, state, expires_at) VALUES ($1, $2, 'open', $3)`, text(p.Code), text(p.Address.Account), p.ExpiresAt)
	})
}

// Claim redeems a claim code of the member's platform, once: the person becomes
// owner, whatever m.Role says. ok is false if the code is unknown, used or expired.
func (db *DB) Claim(ctx context.Context, code string, m record.Member) (ok bool, err error) {
	err = db.tx(ctx, "claim", func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE pairings SET state = 'allowed', name = $2
			WHERE code = $1 AND person = '' AND state = 'open' AND expires_at > now() AND starts_with(account, $3)`,
			text(code), text(m.Name), text(m.ID.Platform())+"/")
		if ok = err == nil && tag.RowsAffected() == 1; !ok {
			return err
		}
		_, err = tx.Exec(ctx, saveMember, text(m.ID), text(m.Name), record.RoleOwner)
		return err
	})
	return ok && err == nil, err
}

// Pairings lists the open requests of people, oldest first.
func (db *DB) Pairings(ctx context.Context) ([]record.Pairing, error) {
	var all []record.Pairing
	err := db.read(ctx, "pairings", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `SELECT `+pairingColumns+` FROM pairings p
			WHERE p.person <> '' AND p.state = 'open' AND p.expires_at > now() ORDER BY p.created_at, p.code`)
		if err != nil {
			return err
		}
		return list(&all, scanPairing)(rows)
	})
	return all, err
}

// DecidePairing allows or ignores an open request, and makes its person a user or
// an ignored one in the same transaction; owners and admins keep their role. ok is
// false if the request is not open any more, and p says what it is; an unknown code
// is record.ErrNotFound.
func (db *DB) DecidePairing(ctx context.Context, code string, to record.PairingState) (p record.Pairing, ok bool, err error) {
	role, decision := map[record.PairingState]record.Role{record.PairingAllowed: record.RoleUser, record.PairingIgnored: record.RoleIgnored}[to]
	if !decision {
		return p, false, fmt.Errorf("store: decide pairing: %q is no decision", to)
	}
	err = db.tx(ctx, "decide pairing", func(ctx context.Context, tx pgx.Tx) error {
		ok = false
		if p, err = scanPairing(tx.QueryRow(ctx, `SELECT `+pairingColumns+` FROM pairings p WHERE p.code = $1 AND p.person <> '' FOR UPDATE`, text(code))); err != nil {
			return err
		}
		if p.State != record.PairingOpen {
			return nil
		}
		err := tx.QueryRow(ctx, `UPDATE pairings SET state = CASE WHEN expires_at > now() THEN $2 ELSE 'expired' END WHERE code = $1 RETURNING state`,
			p.Code, string(to)).Scan(&p.State)
		if ok = err == nil && p.State == to; !ok {
			return err
		}
		_, err = tx.Exec(ctx, `INSERT INTO people AS m (id, name, role) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET role = excluded.role WHERE m.role IN ('user', 'ignored')`, p.Person, p.Name, role)
		return err
	})
	return p, ok && err == nil, err
}
