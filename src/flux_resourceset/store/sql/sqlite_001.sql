-- Version 1: documents, tombstones, the change log, answers kept by idempotency key.
CREATE TABLE identity (
    epoch TEXT NOT NULL -- changes when the log is replaced
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
    retired BLOB -- JSON: tombstones that an import brought along
) STRICT;

CREATE TABLE changes (
    revision INTEGER NOT NULL REFERENCES entries,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    operation TEXT NOT NULL,
    before BLOB, -- JSON
    after BLOB,
    PRIMARY KEY (revision, position)
) STRICT, WITHOUT ROWID;

CREATE INDEX changes_by_document ON changes (kind, id, revision);

CREATE TABLE memos (
    key TEXT PRIMARY KEY NOT NULL,
    time TEXT NOT NULL,
    digest TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;
