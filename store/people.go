package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"parley/gateway/chat"
	"parley/store/record"
)

func scanMember(row pgx.Row) (m record.Member, err error) {
	err = row.Scan(&m.ID, &m.Name, &m.Role, &m.CreatedAt)
	return m, err
}

const selectMember = `SELECT id, name, role, created_at FROM people WHERE id = $1`

// Member returns a person's row, nil if they are unknown.
func (db *DB) Member(ctx context.Context, p chat.Person) (*record.Member, error) {
	var m *record.Member
	err := db.read(ctx, "member", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, selectMember, text(p))
		if err != nil {
			return err
		}
		return maybe(&m, scanMember)(rows)
	})
	return m, err
}

// Members lists all people, oldest first.
func (db *DB) Members(ctx context.Context) ([]record.Member, error) {
	var all []record.Member
	err := db.read(ctx, "members", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `SELECT id, name, role, created_at FROM people ORDER BY created_at, id`)
		if err != nil {
			return err
		}
		return list(&all, scanMember)(rows)
	})
	return all, err
}

const saveMember = `INSERT INTO people (id, name, role) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role`

// SetMember writes a member's name and role.
func (db *DB) SetMember(ctx context.Context, m record.Member) error {
	return db.batch(ctx, "set member", func(b *pgx.Batch) { b.Queue(saveMember, text(m.ID), text(m.Name), m.Role) })
}

// RemoveMember forgets a person, who is then a stranger again; record.ErrNotFound if
// they are one.
func (db *DB) RemoveMember(ctx context.Context, p chat.Person) error {
	return db.batch(ctx, "remove member", func(b *pgx.Batch) {
		b.Queue(`WITH gone AS (DELETE FROM people WHERE id = $1 RETURNING 1) SELECT check_found(count(*)) FROM gone`, text(p))
	})
}

// Admins lists a platform's owners and admins, those of the configuration
// included, with the address of their newest direct conversation, where they have
// one; owners first.
func (db *DB) Admins(ctx context.Context, platform string, configured []chat.Person) ([]record.Contact, error) {
	var all []record.Contact
	err := db.read(ctx, "admins", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `
			SELECT p.id, p.name, p.role, p.created_at, c.id, coalesce(c.account, ''), coalesce(c.chat, ''), coalesce(c.thread, '')
			FROM (
				SELECT id, name, role, created_at FROM people WHERE role IN ('owner', 'admin')
				UNION ALL
				SELECT id, '', 'admin', now() FROM unnest($2::text[]) AS configured (id)
				WHERE NOT EXISTS (SELECT FROM people WHERE people.id = configured.id AND role IN ('owner', 'admin'))
			) p LEFT JOIN LATERAL (
				SELECT id, account, chat, thread FROM conversations
				WHERE participant = p.id AND kind = 'direct' ORDER BY active_at DESC LIMIT 1) c ON true
			WHERE starts_with(p.id, $1) ORDER BY p.role <> 'owner', p.created_at, p.id`, text(platform)+":", configured)
		if err != nil {
			return err
		}
		return list(&all, scanContact)(rows)
	})
	return all, err
}

func scanContact(row pgx.Row) (c record.Contact, err error) {
	a := &c.Address
	err = row.Scan(&c.ID, &c.Name, &c.Role, &c.CreatedAt, empty(&c.Conversation), &a.Account, &a.Chat, &a.Thread)
	return c, err
}

// HasOwner says whether somebody of the platform is owner or admin.
func (db *DB) HasOwner(ctx context.Context, platform string) (bool, error) {
	var has bool
	err := db.read(ctx, "has owner", func(ctx context.Context) error {
		return db.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM people WHERE starts_with(id, $1) AND role IN ('owner', 'admin'))`, text(platform)+":").Scan(&has)
	})
	return has, err
}
