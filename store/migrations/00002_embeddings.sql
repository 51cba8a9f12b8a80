-- +goose Up
-- Where messages stand in the space of an embeddings model, for recall. A vector is
-- float32, little endian, of length 1; an empty one says that the model refuses the
-- text. Vectors of different models are never compared.
CREATE TABLE message_embeddings (
    session_id uuid NOT NULL,
    seq        bigint NOT NULL,
    model      text NOT NULL,
    vector     bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, seq, model),
    FOREIGN KEY (session_id, seq) REFERENCES messages ON DELETE CASCADE
);
-- Such bytes do not get smaller by compression.
ALTER TABLE message_embeddings ALTER COLUMN vector SET STORAGE EXTERNAL;

-- +goose Down
DROP TABLE message_embeddings;
