-- Version 3: the revision up to which the log was folded away; nothing folds it yet.
ALTER TABLE identity ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
ALTER TABLE identity ADD COLUMN base_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE identity ADD COLUMN base_documents INTEGER NOT NULL DEFAULT 0;
