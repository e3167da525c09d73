-- Version 6: identity registers where the log ends, so that a log that lost entries is noticed.
ALTER TABLE identity ADD COLUMN head INTEGER NOT NULL DEFAULT 0;
ALTER TABLE identity ADD COLUMN head_hash TEXT NOT NULL DEFAULT '';

UPDATE identity SET
    head = coalesce((SELECT max(revision) FROM entries), base),
    head_hash = coalesce((SELECT hash FROM entries ORDER BY revision DESC LIMIT 1), base_hash);
