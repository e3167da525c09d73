-- The schema as a whole, in the schema flux_resourceset; postgres_001.sql and its followers lead to it step by step, and a test
-- proves both equal. Text is compared by its code points, whatever the database's collation is.
CREATE TABLE migrations (
    number integer PRIMARY KEY,
    time timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE identity (
    epoch text NOT NULL, -- changes when the log is replaced
    replaced text NOT NULL DEFAULT '[]', -- JSON: the epochs in whose place an import has put this one
    opened text NOT NULL DEFAULT '', -- when a writer last vouched for it
    base bigint NOT NULL DEFAULT 0, -- the revision up to which the log was folded away
    base_hash text NOT NULL DEFAULT '', -- of the log up to there
    base_documents bigint NOT NULL DEFAULT 0, -- how many there were then
    base_time text COLLATE "C" NOT NULL DEFAULT '', -- of the entry that was the last one then
    base_digest text NOT NULL DEFAULT '', -- of all documents and tombstones then, and of what could be done without
    seal text NOT NULL DEFAULT '' -- a digest of this row
);

CREATE TABLE log_head ( -- where the log ends: one row, registered with every commit
    revision bigint NOT NULL,
    hash text NOT NULL
);

CREATE TABLE documents (
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    revision bigint NOT NULL, -- that last changed it
    body bytea NOT NULL, -- JSON
    PRIMARY KEY (kind, id)
);

CREATE TABLE tombstones (
    dns text COLLATE "C" PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    revision bigint NOT NULL
);

CREATE TABLE entries (
    revision bigint PRIMARY KEY,
    time text COLLATE "C" NOT NULL, -- UTC, fixed width
    actor text COLLATE "C" NOT NULL,
    on_behalf_of text,
    request_id text,
    reason text,
    forced integer NOT NULL,
    retired bytea, -- JSON: tombstones that an import brought along
    forgone bytea, -- JSON: definitions deleted by force elsewhere, that an import brought along
    vanished bytea, -- JSON: DNS names of clusters that went without being decommissioned
    documents bigint NOT NULL DEFAULT 0, -- how many there are after it
    hash text NOT NULL DEFAULT '', -- over the hash of the entry before it
    reverts bigint -- the revision that it undoes
);

CREATE TABLE changes (
    revision bigint NOT NULL REFERENCES entries,
    position integer NOT NULL,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    operation text COLLATE "C" NOT NULL,
    before bytea, -- JSON; of an update the stretch that changed
    after bytea,
    previous bigint, -- the revision that had last changed the document; NULL where it is created
    lead bigint NOT NULL DEFAULT 0, -- of an update: how many bytes stay before the stretch
    trail bigint NOT NULL DEFAULT 0, -- and behind it
    PRIMARY KEY (revision, position)
);

CREATE UNIQUE INDEX changes_by_document ON changes (kind, id, revision);

CREATE TABLE memos (
    key text COLLATE "C" PRIMARY KEY,
    time text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    body bytea NOT NULL -- zlib
);

CREATE TABLE forgone ( -- definitions that the log says were deleted by force, so that references may do without them
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, id)
);

CREATE TABLE views ( -- what the documents were written for
    endpoint text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    field text COLLATE "C" NOT NULL
);

CREATE TABLE tombstones_before ( -- what an entry found of the tombstones that it changed
    revision bigint NOT NULL REFERENCES entries,
    dns text COLLATE "C" NOT NULL,
    id text COLLATE "C", -- NULL: there was none
    since bigint,
    PRIMARY KEY (revision, dns)
);

CREATE TABLE forgone_before ( -- and of the definitions that references may do without
    revision bigint NOT NULL REFERENCES entries,
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    forgone integer NOT NULL,
    PRIMARY KEY (revision, kind, id)
);

CREATE TABLE applied ( -- what managers applied last to a document; it goes with the document
    kind text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    manager text COLLATE "C" NOT NULL,
    body bytea NOT NULL, -- JSON, as it was sent
    PRIMARY KEY (kind, id, manager)
);

CREATE INDEX applied_by_manager ON applied (manager, kind, id);
