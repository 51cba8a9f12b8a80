-- +goose Up
-- The schema that people query is fixed by the contract: conversations, sessions,
-- messages, turns, inbox, deliveries, tool_runs, approvals. Ids are UUIDs of
-- version 7. Order is by sequence, never by time.

-- In public, not in the schema that is first in the search path: one database can
-- hold several parleys, and dropping one must not take the extension from others.
CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;

CREATE TABLE replicas (
    id           uuid PRIMARY KEY,
    host         text NOT NULL,
    lock_key     bigint NOT NULL,            -- held as a session advisory lock while alive
    started_at   timestamptz NOT NULL DEFAULT now(),
    heartbeat_at timestamptz NOT NULL DEFAULT now()
);

-- One intake per account across replicas (a poller, a gateway connection).
CREATE TABLE account_owners (
    account text PRIMARY KEY,
    owner   uuid,
    epoch   bigint NOT NULL DEFAULT 0
);

CREATE TABLE conversations (
    id             uuid PRIMARY KEY,
    account        text NOT NULL,
    chat           text NOT NULL,
    thread         text NOT NULL DEFAULT '',
    participant    text NOT NULL DEFAULT '',
    kind           text NOT NULL CHECK (kind IN ('direct', 'group')),
    session_id     uuid,
    model          text NOT NULL DEFAULT '',
    show_reasoning boolean NOT NULL DEFAULT false,
    verbosity      text NOT NULL DEFAULT 'new' CHECK (verbosity IN ('off', 'new', 'all')),
    owner          uuid,                     -- the replica that works on it
    epoch          bigint NOT NULL DEFAULT 0, -- grows with every change of owner
    created_at     timestamptz NOT NULL DEFAULT now(),
    active_at      timestamptz NOT NULL DEFAULT now(),
    UNIQUE (account, chat, thread, participant)
);
CREATE INDEX conversations_direct ON conversations (participant) WHERE kind = 'direct';
CREATE INDEX conversations_owner ON conversations (owner) WHERE owner IS NOT NULL;

CREATE TABLE sessions (
    id              uuid PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    parent_id       uuid REFERENCES sessions,
    root_id         uuid NOT NULL,
    previous_id     uuid,
    fork_seq        bigint NOT NULL DEFAULT 0,
    next_seq        bigint NOT NULL DEFAULT 1, -- the next sequence to hand out
    reason          text NOT NULL CHECK (reason IN ('new', 'reset', 'schedule', 'compression', 'branch', 'undo', 'delegation', 'resume')),
    title           text NOT NULL DEFAULT '',
    model           text NOT NULL DEFAULT '',
    system_prompt   text NOT NULL DEFAULT '',
    prompt_tokens   integer NOT NULL DEFAULT 0,
    prompt_seq      bigint NOT NULL DEFAULT 0,
    ineffective     integer NOT NULL DEFAULT 0,
    cool_until      timestamptz,
    created_at      timestamptz NOT NULL DEFAULT now(),
    ended_at        timestamptz,
    CHECK ((parent_id IS NULL) = (reason IN ('new', 'reset', 'schedule')))
);
CREATE INDEX sessions_conversation ON sessions (conversation_id, created_at DESC);
CREATE INDEX sessions_parent ON sessions (parent_id) WHERE parent_id IS NOT NULL;
ALTER TABLE conversations ADD FOREIGN KEY (session_id) REFERENCES sessions;

CREATE TABLE turns (
    id              uuid PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    session_id      uuid NOT NULL REFERENCES sessions,
    state           text NOT NULL CHECK (state IN ('preparing', 'compressing', 'calling', 'approving', 'acting', 'suspended', 'done', 'interrupted', 'exhausted', 'failed')),
    iteration       integer NOT NULL DEFAULT 0,
    budget          json NOT NULL,
    person          text NOT NULL DEFAULT '',
    trust           text NOT NULL CHECK (trust IN ('user', 'schedule', 'untrusted')),
    account         text NOT NULL,
    chat            text NOT NULL,
    thread          text NOT NULL DEFAULT '',
    reply           text NOT NULL DEFAULT '',
    source          text NOT NULL DEFAULT '',
    cause           text NOT NULL DEFAULT '',
    reference       text NOT NULL DEFAULT '',
    crashes         integer NOT NULL DEFAULT 0,
    model           text NOT NULL DEFAULT '',
    input_tokens    bigint NOT NULL DEFAULT 0,
    cached_tokens   bigint NOT NULL DEFAULT 0,
    cache_write_tokens bigint NOT NULL DEFAULT 0,
    output_tokens   bigint NOT NULL DEFAULT 0,
    reasoning_tokens bigint NOT NULL DEFAULT 0,
    cost            double precision NOT NULL DEFAULT 0,
    started_at      timestamptz NOT NULL DEFAULT now(),
    ended_at        timestamptz
);
-- One turn at a time in a conversation (CON-014).
CREATE UNIQUE INDEX turns_open ON turns (conversation_id) WHERE ended_at IS NULL;
CREATE INDEX turns_conversation ON turns (conversation_id, started_at DESC);

CREATE TABLE messages (
    session_id     uuid NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq            bigint NOT NULL,
    role           text NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    kind           text NOT NULL DEFAULT '',
    content        text NOT NULL DEFAULT '',
    wire_content   text NOT NULL DEFAULT '',
    tool_calls     json,
    tool_call_id   text NOT NULL DEFAULT '',
    tool_name      text NOT NULL DEFAULT '',
    reasoning      json,
    files          json,
    sender         text NOT NULL DEFAULT '',
    sender_name    text NOT NULL DEFAULT '',
    platform_message_id text NOT NULL DEFAULT '',
    turn_id        uuid REFERENCES turns,
    importance     real NOT NULL DEFAULT 0,
    origin_session uuid,
    origin_seq     bigint NOT NULL DEFAULT 0,
    created_at     timestamptz NOT NULL DEFAULT now(),
    -- A prefix only: a tsvector holds at most 1 MB, and a word with hyphens counts
    -- twice (PGS-010).
    search         tsvector GENERATED ALWAYS AS (to_tsvector('simple', left(content, 100000))) STORED,
    PRIMARY KEY (session_id, seq)
);
CREATE INDEX messages_search ON messages USING gin (search);
-- Words without spaces between them (CJK) are found by trigrams.
-- The extension may have been installed in a schema of its own.
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('CREATE INDEX messages_trigram ON messages USING gin (left(content, 20000) %I.gin_trgm_ops) WHERE role <> ''tool''',
        (SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'pg_trgm'));
END $$;
-- +goose StatementEnd
CREATE INDEX messages_turn ON messages (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE inbox (
    account         text NOT NULL,
    event_key       text NOT NULL CHECK (length(event_key) <= 512),
    seq             bigint GENERATED ALWAYS AS IDENTITY,
    conversation_id uuid REFERENCES conversations ON DELETE CASCADE,
    kind            text NOT NULL,
    payload         bytea,                   -- exact bytes; jsonb would refuse some
    person          text NOT NULL DEFAULT '',
    message         text NOT NULL DEFAULT '',
    state           text NOT NULL CHECK (state IN ('received', 'taken', 'done', 'refused', 'held')),
    turn_id         uuid REFERENCES turns,
    reason          text NOT NULL DEFAULT '',
    received_at     timestamptz NOT NULL DEFAULT now(),
    done_at         timestamptz,
    PRIMARY KEY (account, event_key)
);
CREATE INDEX inbox_open ON inbox (conversation_id, seq) WHERE state IN ('received', 'taken');
CREATE INDEX inbox_held ON inbox (person) WHERE state = 'held';
-- Hashed, since a btree refuses long values (PGS-010).
CREATE INDEX inbox_message ON inbox USING hash (message);
CREATE INDEX inbox_turn ON inbox (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE approvals (
    id              uuid PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    turn_id         uuid NOT NULL REFERENCES turns,
    call_id         text NOT NULL,
    kind            text NOT NULL CHECK (kind IN ('approval', 'clarify')),
    question        text NOT NULL,
    options         json,
    state           text NOT NULL CHECK (state IN ('open', 'approved', 'denied', 'answered', 'expired', 'withdrawn')),
    asked           text NOT NULL,
    decided_by      text NOT NULL DEFAULT '',
    answer          text NOT NULL DEFAULT '',
    expires_at      timestamptz NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    decided_at      timestamptz
);
-- One question for each call; the model chose the call's id and its length.
CREATE UNIQUE INDEX approvals_call ON approvals (turn_id, md5(call_id));
CREATE INDEX approvals_open ON approvals (conversation_id) WHERE state = 'open';

CREATE TABLE deliveries (
    id              uuid PRIMARY KEY,
    conversation_id uuid NOT NULL REFERENCES conversations ON DELETE CASCADE,
    turn_id         uuid REFERENCES turns,
    approval_id     uuid REFERENCES approvals,
    seq             bigint GENERATED ALWAYS AS IDENTITY,
    kind            text NOT NULL CHECK (kind IN ('control', 'card', 'final', 'live', 'notice')),
    part            integer NOT NULL DEFAULT 0,
    idempotency_key text NOT NULL UNIQUE,
    account         text NOT NULL,
    chat            text NOT NULL,
    thread          text NOT NULL DEFAULT '',
    content         bytea NOT NULL,          -- chat.Outgoing as JSON
    state           text NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed', 'gone')),
    platform_message_id text NOT NULL DEFAULT '',
    marked          boolean NOT NULL DEFAULT false,
    attempts        integer NOT NULL DEFAULT 0,
    error           text NOT NULL DEFAULT '',
    created_at      timestamptz NOT NULL DEFAULT now(),
    updated_at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX deliveries_open ON deliveries (conversation_id, seq) WHERE state IN ('pending', 'sending', 'unknown');
CREATE INDEX deliveries_turn ON deliveries (turn_id, part) WHERE turn_id IS NOT NULL;
CREATE INDEX deliveries_approval ON deliveries (approval_id) WHERE approval_id IS NOT NULL;

CREATE TABLE tool_runs (
    turn_id    uuid NOT NULL REFERENCES turns ON DELETE CASCADE,
    iteration  integer NOT NULL,
    idx        integer NOT NULL,
    call_id    text NOT NULL,
    tool       text NOT NULL,
    arguments  text NOT NULL,
    state      text NOT NULL CHECK (state IN ('pending', 'started', 'done')),
    result_seq bigint NOT NULL,
    outcome    text NOT NULL DEFAULT '',
    started_at timestamptz,
    ended_at   timestamptz,
    PRIMARY KEY (turn_id, iteration, idx)
);

-- Tokens and money, one row a turn and model; the day is UTC.
CREATE TABLE usage (
    turn_id         uuid NOT NULL REFERENCES turns ON DELETE CASCADE,
    conversation_id uuid NOT NULL,
    person          text NOT NULL,
    model           text NOT NULL,
    input_tokens    bigint NOT NULL,
    cached_tokens   bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    output_tokens   bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    cost            double precision NOT NULL,
    at              timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX usage_at ON usage (at);
CREATE INDEX usage_conversation ON usage (conversation_id, at);

CREATE TABLE people (
    id         text PRIMARY KEY CHECK (length(id) <= 256),
    name       text NOT NULL DEFAULT '',
    role       text NOT NULL CHECK (role IN ('owner', 'admin', 'user', 'ignored')),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE pairings (
    code       text PRIMARY KEY,
    person     text NOT NULL DEFAULT '',     -- empty: a claim link for the owner
    name       text NOT NULL DEFAULT '',
    account    text NOT NULL,
    chat       text NOT NULL DEFAULT '',
    thread     text NOT NULL DEFAULT '',
    state      text NOT NULL CHECK (state IN ('open', 'allowed', 'ignored', 'expired')),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE UNIQUE INDEX pairings_person ON pairings (person) WHERE state = 'open' AND person <> '';

CREATE TABLE memory_documents (
    scope      text NOT NULL,                -- 'person:…' or 'conversation:…'
    name       text NOT NULL CHECK (name IN ('MEMORY.md', 'USER.md')),
    content    text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (scope, name)
);

CREATE TABLE facts (
    scope    text NOT NULL,
    category text NOT NULL,
    key      text NOT NULL,
    value    text NOT NULL,
    at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (scope, category, key)
);

-- The task list of a lineage (tool todo), by root session.
CREATE TABLE todos (
    root_id    uuid PRIMARY KEY,
    items      json NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- What the built-in chats show (web, terminal), since no platform keeps it.
CREATE TABLE timeline (
    account         text NOT NULL,
    chat            text NOT NULL,
    thread          text NOT NULL DEFAULT '',
    id              bigint GENERATED ALWAYS AS IDENTITY,
    idempotency_key text NOT NULL,
    sender          text NOT NULL DEFAULT '',
    content         bytea NOT NULL,          -- chat.Entry as JSON
    created_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (account, chat, thread, id),
    UNIQUE (account, chat, thread, idempotency_key)
);

-- Group chatter that was not for the bot, counted without content.
CREATE TABLE ignored_counts (
    account text NOT NULL,
    chat    text NOT NULL,
    reason  text NOT NULL,
    day     date NOT NULL DEFAULT current_date,
    count   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (account, chat, reason, day)
);

-- Whether a replica lives: it holds its advisory lock (freed at once when its
-- process dies) and has beaten in the last 15 seconds of the database's time.
-- +goose StatementBegin
CREATE FUNCTION replica_alive(replica uuid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM replicas r
        JOIN pg_locks l ON l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
            AND l.classid::bigint = (r.lock_key >> 32) & 4294967295
            AND l.objid::bigint = r.lock_key & 4294967295
            AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        WHERE r.id = replica AND r.heartbeat_at > now() - interval '15 seconds')
$$;
-- +goose StatementEnd

-- The checks that end a transaction. Each write of an owner begins with check_fence,
-- which also holds off intake and other owners until the transaction ends.
-- +goose StatementBegin
CREATE FUNCTION check_fence(conversation uuid, replica uuid, expected bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM conversations c WHERE c.id = conversation AND c.owner = replica AND c.epoch = expected FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the conversation has another owner' USING ERRCODE = 'PY001';
    END IF;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION check_rows(got bigint, want bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF got <> want THEN
        RAISE EXCEPTION 'the rows have changed meanwhile' USING ERRCODE = 'PY002';
    END IF;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION check_found(got bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF got = 0 THEN
        RAISE EXCEPTION 'no such row' USING ERRCODE = 'PY003';
    END IF;
END $$;
-- +goose StatementEnd

-- +goose Down
DROP FUNCTION check_found, check_rows, check_fence, replica_alive;
DROP TABLE ignored_counts, timeline, todos, facts, memory_documents, pairings, people, usage, tool_runs,
    deliveries, approvals, inbox, messages, turns, sessions, conversations, account_owners, replicas CASCADE;
