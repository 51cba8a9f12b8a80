-- +goose Up
-- How many compressions of a session failed in a row: the next cooldown is longer,
-- after a restart too.
ALTER TABLE sessions ADD COLUMN failed_compressions integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE sessions DROP COLUMN failed_compressions;
