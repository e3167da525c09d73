-- Version 4: updates are kept as the stretch in which a document changed; what leads back to tombstones of the past; a base.
ALTER TABLE identity ADD COLUMN base_time TEXT NOT NULL DEFAULT '';
ALTER TABLE identity ADD COLUMN base_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE identity ADD COLUMN seal TEXT NOT NULL DEFAULT '';

ALTER TABLE entries ADD COLUMN reverts INTEGER;

ALTER TABLE changes ADD COLUMN previous INTEGER;
ALTER TABLE changes ADD COLUMN lead INTEGER NOT NULL DEFAULT 0;
ALTER TABLE changes ADD COLUMN trail INTEGER NOT NULL DEFAULT 0;

DROP INDEX changes_by_document;
CREATE UNIQUE INDEX changes_by_document ON changes (kind, id, revision);

CREATE TABLE tombstones_before (
    revision INTEGER NOT NULL REFERENCES entries,
    dns TEXT NOT NULL,
    id TEXT,
    since INTEGER,
    PRIMARY KEY (revision, dns)
) STRICT, WITHOUT ROWID;

CREATE TABLE forgone_before (
    revision INTEGER NOT NULL REFERENCES entries,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    forgone INTEGER NOT NULL,
    PRIMARY KEY (revision, kind, id)
) STRICT, WITHOUT ROWID;
