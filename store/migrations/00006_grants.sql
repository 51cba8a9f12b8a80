-- +goose Up
-- A grant is a person's consent that outlives one call: for this session or always,
-- of one person, in one conversation, for exactly one pattern of one tool. Its id is
-- the approval's from which it came.
CREATE TABLE grants (
    id              uuid PRIMARY KEY REFERENCES approvals ON DELETE CASCADE,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    root_id         uuid NOT NULL,           -- the session's root, which a grant for the session ends with
    person          text NOT NULL,
    tool            text NOT NULL,
    pattern         text NOT NULL CHECK (pattern <> ''),
    scope           text NOT NULL CHECK (scope IN ('session', 'always')),
    granted_by      text NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz,
    revoked_at      timestamptz,
    revoked_by      text NOT NULL DEFAULT ''
);
-- Hashed, since a btree refuses long values (PGS-010).
CREATE INDEX grants_standing ON grants (conversation_id, md5(pattern)) WHERE revoked_at IS NULL;

ALTER TABLE approvals ADD COLUMN tool text NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN pattern text NOT NULL DEFAULT '';
-- The grant that allowed a call without asking.
ALTER TABLE approvals ADD COLUMN grant_id uuid REFERENCES grants ON DELETE SET NULL;

-- +goose Down
ALTER TABLE approvals DROP COLUMN tool, DROP COLUMN pattern, DROP COLUMN grant_id;
DROP TABLE grants;
