-- The schema as a whole; sqlite_001.sql and its followers lead to it step by step, and a test proves both equal.
CREATE TABLE identity (
    epoch TEXT NOT NULL, -- changes when the log is replaced
    replaced TEXT NOT NULL DEFAULT '[]', -- JSON: the epochs in whose place an import has put this one
    opened TEXT NOT NULL DEFAULT '', -- when a writer last vouched for it
    base INTEGER NOT NULL DEFAULT 0, -- the revision up to which the log was folded away
    base_hash TEXT NOT NULL DEFAULT '', -- of the log up to there
    base_documents INTEGER NOT NULL DEFAULT 0, -- how many there were then
    base_time TEXT NOT NULL DEFAULT '', -- of the entry that was the last one then
    base_digest TEXT NOT NULL DEFAULT '', -- of all documents and tombstones then, and of what could be done without
    seal TEXT NOT NULL DEFAULT '' -- a digest of this row
) STRICT;

CREATE TABLE log_head ( -- where the log ends: one row, registered with every commit
    revision INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;

CREATE TABLE documents (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL, -- that last changed it
    body BLOB NOT NULL, -- JSON
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE tombstones (
    dns TEXT PRIMARY KEY NOT NULL,
    id TEXT NOT NULL,
    revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE entries (
    revision INTEGER PRIMARY KEY NOT NULL,
    time TEXT NOT NULL, -- UTC, fixed width
    actor TEXT NOT NULL,
    on_behalf_of TEXT,
    request_id TEXT,
    reason TEXT,
    forced INTEGER NOT NULL,
    retired BLOB, -- JSON: tombstones that an import brought along
    forgone BLOB, -- JSON: definitions deleted by force elsewhere, that an import brought along
    vanished BLOB, -- JSON: DNS names of clusters that went without being decommissioned
    documents INTEGER NOT NULL DEFAULT 0, -- how many there are after it
    hash TEXT NOT NULL DEFAULT '', -- over the hash of the entry before it
    reverts INTEGER -- the revision that it undoes
) STRICT;

CREATE TABLE changes (
    revision INTEGER NOT NULL REFERENCES entries,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    operation TEXT NOT NULL,
    before BLOB, -- JSON; of an update the stretch that changed
    after BLOB,
    previous INTEGER, -- the revision that had last changed the document; NULL where it is created
    lead INTEGER NOT NULL DEFAULT 0, -- of an update: how many bytes stay before the stretch
    trail INTEGER NOT NULL DEFAULT 0, -- and behind it
    PRIMARY KEY (revision, position)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX changes_by_document ON changes (kind, id, revision);

CREATE TABLE memos (
    key TEXT PRIMARY KEY NOT NULL,
    time TEXT NOT NULL,
    digest TEXT NOT NULL,
    body BLOB NOT NULL -- zlib
) STRICT, WITHOUT ROWID;

CREATE TABLE forgone ( -- definitions that the log says were deleted by force, so that references may do without them
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE views ( -- what the documents were written for
    endpoint TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    field TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tombstones_before ( -- what an entry found of the tombstones that it changed
    revision INTEGER NOT NULL REFERENCES entries,
    dns TEXT NOT NULL,
    id TEXT, -- NULL: there was none
    since INTEGER,
    PRIMARY KEY (revision, dns)
) STRICT, WITHOUT ROWID;

CREATE TABLE forgone_before ( -- and of the definitions that references may do without
    revision INTEGER NOT NULL REFERENCES entries,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    forgone INTEGER NOT NULL,
    PRIMARY KEY (revision, kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE applied ( -- what managers applied last to a document; it goes with the document
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    manager TEXT NOT NULL,
    body BLOB NOT NULL, -- JSON, as it was sent
    PRIMARY KEY (kind, id, manager)
) STRICT, WITHOUT ROWID;

CREATE INDEX applied_by_manager ON applied (manager, kind, id);
