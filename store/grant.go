package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"parley/store/record"
)

// standingGrant finds the grant of a person ($1) in a conversation ($2) for a tool
// ($3) and pattern ($4) that holds in a turn ($5).
const standingGrant = `
	SELECT g.id, g.granted_by FROM grants g
	WHERE g.conversation_id = $2 AND g.person = $1 AND g.tool = $3 AND md5(g.pattern) = md5($4) AND g.pattern = $4 AND g.revoked_at IS NULL
		AND (g.expires_at IS NULL OR g.expires_at > now())
		AND (g.scope = 'always' OR g.root_id = (SELECT s.root_id FROM turns t JOIN sessions s ON s.id = t.session_id WHERE t.id = $5))
	ORDER BY g.created_at LIMIT 1`

// queueGrant writes the grant of a question that was approved just now for longer
// than once.
func queueGrant(b *pgx.Batch, id record.ApprovalID) {
	b.Queue(`
		INSERT INTO grants (id, conversation_id, root_id, person, tool, pattern, scope, granted_by, expires_at)
		SELECT a.id, a.conversation_id, s.root_id, a.asked, a.tool, a.pattern, a.answer, a.decided_by,
			CASE WHEN a.answer = 'session' THEN now() + interval '1 day' END
		FROM approvals a JOIN turns t ON t.id = a.turn_id JOIN sessions s ON s.id = t.session_id
		WHERE a.id = $1 AND a.kind = 'approval' AND a.state = 'approved' AND a.answer IN ('session', 'always') AND a.pattern <> ''
		ON CONFLICT (id) DO NOTHING`, id)
}

// queueRevoke ends a grant, which must stand.
func queueRevoke(b *pgx.Batch, f record.Fence, e record.RevokeGrant) {
	b.Queue(`
		WITH ended AS (
			UPDATE grants SET revoked_at = now(), revoked_by = $3 WHERE id = $1 AND conversation_id = $2 AND revoked_at IS NULL RETURNING 1)
		SELECT check_found(count(*)) FROM ended`, e.ID, f.Conversation, text(e.By))
}

// Grants lists the grants of a conversation that hold now, the oldest first.
func (db *DB) Grants(ctx context.Context, c record.ConversationID) (list []record.Grant, err error) {
	err = db.read(ctx, "grants", func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `
			SELECT g.id, g.conversation_id, g.person, g.tool, g.pattern, g.scope, g.granted_by, g.created_at, g.expires_at
			FROM grants g JOIN conversations c ON c.id = g.conversation_id LEFT JOIN sessions s ON s.id = c.session_id
			WHERE g.conversation_id = $1 AND g.revoked_at IS NULL AND (g.expires_at IS NULL OR g.expires_at > now())
				AND (g.scope = 'always' OR g.root_id = s.root_id)
			ORDER BY g.created_at, g.id`, c)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (g record.Grant, err error) {
			var until *time.Time
			err = row.Scan(&g.ID, &g.Conversation, &g.Person, &g.Tool, &g.Pattern, &g.Scope, &g.By, &g.CreatedAt, &until)
			if until != nil {
				g.ExpiresAt = *until
			}
			return g, err
		})
		return err
	})
	return list, err
}
