-- +goose Up
-- What was spent on a day (UTC), by scope: 'total', 'person:…', 'conversation:…'.
-- extra is what an admin allowed beyond the limit of that day.
CREATE TABLE spending (
    day   date NOT NULL,
    scope text NOT NULL,
    spent double precision NOT NULL DEFAULT 0,
    extra double precision NOT NULL DEFAULT 0,
    PRIMARY KEY (day, scope)
);
ALTER TABLE approvals DROP CONSTRAINT approvals_kind_check;
ALTER TABLE approvals ADD CONSTRAINT approvals_kind_check CHECK (kind IN ('approval', 'clarify', 'spending'));

-- +goose Down
DROP TABLE spending;
ALTER TABLE approvals DROP CONSTRAINT approvals_kind_check;
ALTER TABLE approvals ADD CONSTRAINT approvals_kind_check CHECK (kind IN ('approval', 'clarify'));
