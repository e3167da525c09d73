-- Version 1: what sqlite_005.sql has come to. Text is compared by its code points, whatever the database's collation is.
CREATE TABLE migrations (
    number integer PRIMARY KEY,
    time timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE identity (
    epoch text NOT NULL,
    replaced text NOT NULL DEFAULT '[]',
    opened text NOT NULL DEFAULT '',
    base bigint NOT NULL DEFAULT 0,
    base_hash text NOT NULL DEFAULT '',
    base_documents bigint NOT NULL DEFAULT 0,
    base_time text COLLATE "C" NOT NULL DEFAULT '',
    base_digest text NOT NULL DEFAULT '',
    seal text NOT NULL DEFAULT ''
);

CREATE TABLE documents (
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    revision bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (kind, id)
);

CREATE TABLE tombstones (
    dns text COLLATE "C" PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    revision bigint NOT NULL
);

CREATE TABLE entries (
    revision bigint PRIMARY KEY,
    time text COLLATE "C" NOT NULL,
    actor text COLLATE "C" NOT NULL,
    on_behalf_of text,
    request_id text,
    reason text,
    forced integer NOT NULL,
    retired bytea,
    forgone bytea,
    vanished bytea,
    documents bigint NOT NULL DEFAULT 0,
    hash text NOT NULL DEFAULT '',
    reverts bigint
);

CREATE TABLE changes (
    revision bigint NOT NULL REFERENCES entries,
    position integer NOT NULL,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    before bytea,
    after bytea,
    previous bigint,
    lead bigint NOT NULL DEFAULT 0,
    trail bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (revision, position)
);

CREATE UNIQUE INDEX changes_by_document ON changes (kind, id, revision);

CREATE TABLE memos (
    key text COLLATE "C" PRIMARY KEY,
    time text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    body bytea NOT NULL
);

CREATE TABLE forgone (
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, id)
);

CREATE TABLE views (
    endpoint text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    field text COLLATE "C" NOT NULL
);

CREATE TABLE tombstones_before (
    revision bigint NOT NULL REFERENCES entries,
    dns text COLLATE "C" NOT NULL,
    id text COLLATE "C",
    since bigint,
    PRIMARY KEY (revision, dns)
);

CREATE TABLE forgone_before (
    revision bigint NOT NULL REFERENCES entries,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    forgone integer NOT NULL,
    PRIMARY KEY (revision, kind, id)
);

CREATE TABLE applied (
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    manager text COLLATE "C" NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (kind, id, manager)
);

CREATE INDEX applied_by_manager ON applied (manager, kind, id);
