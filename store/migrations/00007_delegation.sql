-- +goose Up
-- A subagent's turn: it belongs to a task of a call of another turn, which waits for
-- it. It works in a session of its own, the root of its own lineage, below its
-- parent's. There is one for a task, however often the call is taken up again.
ALTER TABLE turns ADD COLUMN parent_id uuid REFERENCES turns ON DELETE CASCADE;
ALTER TABLE turns ADD COLUMN call_id text NOT NULL DEFAULT '';
ALTER TABLE turns ADD COLUMN task integer NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX turns_task ON turns (parent_id, md5(call_id), task) WHERE parent_id IS NOT NULL;

-- One turn at a time in a conversation (CON-014), its subagents' aside.
DROP INDEX turns_open;
CREATE UNIQUE INDEX turns_open ON turns (conversation_id) WHERE ended_at IS NULL AND parent_id IS NULL;

-- +goose Down
DELETE FROM turns WHERE parent_id IS NOT NULL;
DROP INDEX turns_open;
CREATE UNIQUE INDEX turns_open ON turns (conversation_id) WHERE ended_at IS NULL;
ALTER TABLE turns DROP COLUMN parent_id, DROP COLUMN call_id, DROP COLUMN task;
