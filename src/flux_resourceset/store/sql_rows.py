"""What a store holds now, from the rows of a database: where its log stands, documents and what goes with them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from flux_resourceset import errors
from flux_resourceset.changes import Head, Snapshot, Stored, Tombstone, View
from flux_resourceset.store import Key, sql_connection
from flux_resourceset.store.sql_connection import Connection

_DOCUMENT_BYTES = 4096  # of one that is not large
_BROUGHT_BYTES = 64  # of a name that an import brings along, about

_decode = msgspec.json.Decoder().decode
_names = msgspec.json.Decoder(tuple[str, ...]).decode


# Where the log stands


class Identity(NamedTuple):
    epoch: str
    replaced: tuple[str, ...]
    opened: str
    base: int  # the revision up to which the log was folded away
    base_hash: str
    base_documents: int
    base_time: str
    base_digest: str

    @property
    def seal(self) -> str:
        """For no chain of hashes says any of this."""
        return hashlib.sha256(msgspec.json.encode(tuple(self))).hexdigest()


def identity(db: Connection) -> Identity:
    return standing(db).whose


def write_identity(db: Connection, whose: Identity) -> None:
    db.execute(
        "UPDATE identity SET epoch = ?, replaced = ?, opened = ?, base = ?, base_hash = ?, base_documents = ?, base_time = ?,"
        " base_digest = ?, seal = ?",
        (whose.epoch, msgspec.json.encode(whose.replaced).decode(), *whose[2:], whose.seal),
    )


class End(NamedTuple):
    revision: int
    hash: str
    documents: int  # how many there are


class Standing(NamedTuple):
    whose: Identity
    end: End
    registered: tuple[int | None, str]  # revision and hash of the log's end, as the last writer registered them

    @property
    def head(self) -> Head:
        return Head(self.whose.epoch, self.end.revision, self.end.hash)

    @property
    def fault(self) -> str:
        """How the log differs from what the last writer registered; empty if it does not."""
        if self.registered == self.end[:2]:
            return ""
        if self.registered[0] is None:
            return "where its log ends is not registered any more"
        return f"its log ends at revision {self.end.revision}, and the last writer registered revision {self.registered[0]}"


_STANDING = (
    "SELECT epoch, replaced, opened, base, base_hash, base_documents, base_time, base_digest, log_head.revision, log_head.hash,"
    " newest.revision, newest.hash, newest.documents FROM identity LEFT JOIN log_head ON true"
    " LEFT JOIN (SELECT revision, hash, documents FROM entries ORDER BY revision DESC LIMIT 1) AS newest ON true"
)


def standing(db: Connection) -> Standing:
    """Read identity and end of the log; Doubt if the log is not the one that the last writer registered."""
    found = recorded(db)
    if found.fault:
        raise errors.Doubt(f"the database has lost data: {found.fault}; restore a backup")
    return found


def recorded(db: Connection) -> Standing:
    """Read identity and end of the log as they are; a log without entries ends at its base."""
    row = db.execute(_STANDING).fetchone()
    if row is None:
        raise errors.Doubt("the database has lost its identity; restore a backup")
    whose = Identity(row[0], _names(row[1]), *row[2:8])
    end = End(whose.base, whose.base_hash, whose.base_documents) if row[10] is None else End(*row[10:])
    return Standing(whose, end, (row[8], row[9]))


def register_head(db: Connection, revision: int, hash: str) -> None:
    """Store where the log ends, so that a log that later lost entries is noticed. In a table of its own: of a SQLite file that is
    overwritten by a backup, the identity may still be in the -wal file, because a writer that starts writes to it."""
    db.execute("UPDATE log_head SET revision = ?, hash = ?", (revision, hash))


def head(db: Connection) -> Head:
    return standing(db).head


def end(db: Connection) -> End:
    return standing(db).end


def continues(db: Connection, known: Head) -> bool:
    """Whether the log goes on from a head, or ends there."""
    return goes_on(db, standing(db), known)


def goes_on(db: Connection, now: Standing, known: Head) -> bool:
    """The same where it is known how it stands."""
    whose = now.whose
    if known == now.head:
        return True
    if whose.epoch != known.epoch or known.revision < whose.base:
        return False
    if known.revision == whose.base:
        return known.hash == whose.base_hash
    row = db.execute("SELECT hash FROM entries WHERE revision = ?", (known.revision,)).fetchone()
    return row is not None and row[0] == known.hash


def check_whole(db: Connection, path: object) -> None:
    """The log has no gaps, and the documents are those that it speaks of. Grows with documents, and a little with the log."""
    whose, newest, _ = standing(db)
    base = whose.base
    first, count = db.execute("SELECT min(revision), count(*) FROM entries").fetchone()
    if newest.revision - base != count or (count and first != base + 1):
        since = f" since revision {base}" if base else ""
        there = f"{count} entries up to revision {newest.revision}{since}"
        raise errors.Doubt(f"the change log of {path} has {there}; restore a backup")
    wanted, found = newest.documents, db.execute("SELECT count(*) FROM documents").fetchone()[0]
    if wanted != found:
        raise errors.Doubt(f"{path} has {found} documents, and its log speaks of {wanted}; restore a backup")
    unlike = db.execute(
        "SELECT kind, id FROM documents WHERE revision <> coalesce("
        "(SELECT max(c.revision) FROM changes AS c WHERE c.kind = documents.kind AND c.id = documents.id),"
        " CASE WHEN revision <= ? THEN revision END, -1) LIMIT 1",  # what last changed it may be folded away
        (base,),
    ).fetchone()
    if unlike:
        raise errors.Doubt(f"{path}: {unlike[0]} {unlike[1]!r} is not what the log says it is; restore a backup")


# Reading


def snapshot(db: Connection) -> Snapshot:
    now = standing(db)
    whose, at = now.whose, now.head
    documents: dict[str, dict[str, Stored]] = {}
    for kind, id, revision, body in db.stream("SELECT kind, id, revision, body FROM documents ORDER BY kind, id"):
        documents.setdefault(kind, {})[id] = Stored(_decode(body), revision)
    tombstones = db.execute("SELECT dns, id, revision FROM tombstones ORDER BY dns").fetchall()
    forgone = db.execute("SELECT kind, id FROM forgone").fetchall()
    return Snapshot(
        epoch=whose.epoch,
        revision=at.revision,
        documents=documents,
        tombstones=tuple(Tombstone(*row) for row in tombstones),
        hash=at.hash,
        forgone=frozenset(forgone),
        views=views(db),
        replaced=whose.replaced,
        opened=whose.opened,
        base=whose.base,
    )


def views(db: Connection) -> tuple[View, ...]:
    return tuple(View(*row) for row in db.execute("SELECT endpoint, kind, field FROM views ORDER BY endpoint"))


def documents(db: Connection, keys: Iterable[Key]) -> dict[Key, Stored]:
    """Those of them that there are."""
    return {key: Stored(_decode(body), revision) for key, (body, revision) in bodies(db, keys).items()}


def bodies(db: Connection, keys: Iterable[Key]) -> dict[Key, tuple[bytes, int]]:
    """The same as they are kept, and the revision that last changed each."""
    statement = "SELECT kind, id, body, revision FROM documents WHERE (kind, id) IN "
    return {(kind, id): (body, revision) for kind, id, body, revision in sql_connection.of_keys(db, keys, statement.__add__)}


def has_more(db: Connection, after: int, few: int) -> bool:
    """Whether the log behind a revision changes, or brings along, more than a few, or few that are large. Grows with these."""
    first = "SELECT lead + length(after) + trail AS size FROM changes WHERE revision > ? LIMIT ?"
    count, size = db.execute(f"SELECT count(*), coalesce(sum(size), 0) FROM ({first}) AS first_ones", (after, few + 1)).fetchone()  # noqa: S608  # our words
    (brought,) = db.execute(
        "SELECT coalesce(sum(length(retired)), 0) + coalesce(sum(length(forgone)), 0) FROM entries WHERE revision > ?", (after,)
    ).fetchone()
    return bool(count > few or size > few * _DOCUMENT_BYTES or brought > few * _BROUGHT_BYTES)


def changed(db: Connection, after: int) -> frozenset[tuple[str, str]]:
    """Kind and id of every document that was changed behind a revision. A microsecond or two for each."""
    return frozenset(db.stream("SELECT kind, id FROM changes WHERE revision > ?", (after,)))
