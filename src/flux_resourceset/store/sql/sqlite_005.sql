-- Version 5: what managers applied last, beside the documents.
CREATE TABLE applied (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    manager TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (kind, id, manager)
) STRICT, WITHOUT ROWID;

CREATE INDEX applied_by_manager ON applied (manager, kind, id);
