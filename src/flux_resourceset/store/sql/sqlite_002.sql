-- Version 2: a chain of hashes over the log, definitions that references may do without, what views were written for.
ALTER TABLE identity ADD COLUMN replaced TEXT NOT NULL DEFAULT '[]';
ALTER TABLE identity ADD COLUMN opened TEXT NOT NULL DEFAULT '';

ALTER TABLE entries ADD COLUMN forgone BLOB;
ALTER TABLE entries ADD COLUMN vanished BLOB;
ALTER TABLE entries ADD COLUMN documents INTEGER NOT NULL DEFAULT 0;
ALTER TABLE entries ADD COLUMN hash TEXT NOT NULL DEFAULT '';

CREATE TABLE forgone (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (kind, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE views (
    endpoint TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    field TEXT NOT NULL
) STRICT, WITHOUT ROWID;
