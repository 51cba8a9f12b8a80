-- +goose Up
-- Work that begins by itself. A due time is taken once: in one transaction its event
-- goes into the conversation's inbox, under a key of its own, and next_at moves on.
CREATE TABLE schedules (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    creator         text NOT NULL,
    title           text NOT NULL,
    prompt          text NOT NULL,
    due             text NOT NULL,           -- at TIME, every DURATION, cron EXPRESSION
    zone            text NOT NULL,           -- IANA; due is read in it
    missed          text NOT NULL CHECK (missed IN ('skip', 'once', 'all')),
    state           text NOT NULL CHECK (state IN ('active', 'paused', 'done')),
    reason          text NOT NULL DEFAULT '',
    next_at         timestamptz,
    asked           boolean NOT NULL DEFAULT false,
    last_at         timestamptz,
    failures        integer NOT NULL DEFAULT 0,
    runs            integer NOT NULL DEFAULT 0,
    skipped         integer NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE state = 'active';
CREATE INDEX schedules_asked ON schedules (id) WHERE asked;
CREATE INDEX schedules_conversation ON schedules (conversation_id);

-- The schedule that a turn is a run of; no reference, since runs outlive it.
ALTER TABLE turns ADD COLUMN schedule_id bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE turns DROP COLUMN schedule_id;
DROP TABLE schedules;
