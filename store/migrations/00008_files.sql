-- +goose Up
-- Files that a turn has sent are deliveries of their own.
ALTER TABLE deliveries DROP CONSTRAINT deliveries_kind_check;
ALTER TABLE deliveries ADD CONSTRAINT deliveries_kind_check CHECK (kind IN ('control', 'card', 'final', 'file', 'live', 'notice'));

-- +goose Down
ALTER TABLE deliveries DROP CONSTRAINT deliveries_kind_check;
UPDATE deliveries SET kind = 'notice' WHERE kind = 'file';
ALTER TABLE deliveries ADD CONSTRAINT deliveries_kind_check CHECK (kind IN ('control', 'card', 'final', 'live', 'notice'));
