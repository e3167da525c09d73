-- Version 2: the end of the log is registered, so that a log that lost entries is noticed.
CREATE TABLE log_head (
    revision bigint NOT NULL,
    hash text NOT NULL
);

INSERT INTO log_head (revision, hash) SELECT
    coalesce((SELECT max(revision) FROM entries), (SELECT base FROM identity), 0),
    coalesce((SELECT hash FROM entries ORDER BY revision DESC LIMIT 1), (SELECT base_hash FROM identity), '');
