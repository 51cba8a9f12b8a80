-- +goose Up
-- What was used outside turns is accounted for too, with what it was for.
ALTER TABLE usage ALTER COLUMN turn_id DROP NOT NULL;
ALTER TABLE usage ADD COLUMN purpose text NOT NULL DEFAULT '';

-- +goose Down
DELETE FROM usage WHERE turn_id IS NULL;
ALTER TABLE usage DROP COLUMN purpose;
ALTER TABLE usage ALTER COLUMN turn_id SET NOT NULL;
