-- +goose Up
-- Who refused a call that did not run ('policy', 'hook', 'people'; empty: it was not
-- refused) and why. Who of the people it was says the call's question.
ALTER TABLE tool_runs ADD COLUMN refused_by text NOT NULL DEFAULT '';
ALTER TABLE tool_runs ADD COLUMN reason text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE tool_runs DROP COLUMN refused_by, DROP COLUMN reason;
