-- +goose Up
-- What was used outside turns is accounted for too, with what it was for.
ALTER TABLE usage ALTER COLUMN turn_id DROP NOT NULL;
ALTER TABLE usage ADD COLUMN purpose text NOT NULL DEFAULT '';
-- The few messages that recall brings back for their importance.
CREATE INDEX messages_salient ON messages (session_id, seq) WHERE importance >= 0.8;

-- +goose Down
DROP INDEX messages_salient;
DELETE FROM usage WHERE turn_id IS NULL;
ALTER TABLE usage DROP COLUMN purpose;
ALTER TABLE usage ALTER COLUMN turn_id SET NOT NULL;
