"""Tombstones, and definitions that references may do without: as they are in SQLite, and what every entry found of them.

An entry says what they become; what they were is kept beside it, so that a state of the past is found from the present.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from flux_resourceset import changes
from flux_resourceset.changes import Entry, Tombstone
from flux_resourceset.store import Key


class Found(NamedTuple):
    """What an entry changes of them, as it was before: rows of tombstones_before and of forgone_before, in their order."""

    tombstones: list[tuple[int, str, str | None, int | None]]  # revision, DNS name, id and revision of the tombstone
    forgone: list[tuple[int, str, str, int]]  # revision, kind, id, whether it could be done without


class Names(NamedTuple):
    tombstones: dict[str, Tombstone]
    forgone: set[Key]

    def carried_out(self, entry: Entry) -> Found:
        """Become what an entry makes of them."""
        found = Found([], [])
        for dns, new in dict(changes.tombstone_changes(entry)).items():  # of a name that is handed over, where it ends
            old = self.tombstones.get(dns)
            if old != new:
                found.tombstones.append(_tombstone_row(entry, dns, old))
        for key, may in dict(changes.forgoings(entry)).items():
            if may != (key in self.forgone):
                found.forgone.append((entry.revision, *key, int(not may)))
        changes.bury(self.tombstones, entry)
        changes.forgo(self.forgone, entry)
        return Found(sorted(found.tombstones, key=lambda row: row[1]), sorted(found.forgone))


def _tombstone_row(entry: Entry, dns: str, old: Tombstone | None) -> tuple[int, str, str | None, int | None]:
    return entry.revision, dns, old.id if old else None, old.revision if old else None


def names(db: sqlite3.Connection) -> Names:
    tombstones = {row[0]: Tombstone(*row) for row in db.execute("SELECT dns, id, revision FROM tombstones")}
    return Names(tombstones, set(db.execute("SELECT kind, id FROM forgone")))


def names_at(db: sqlite3.Connection, revision: int) -> Names:
    """When the log stood at a revision. Grows with what entries since have changed of them."""
    found = names(db)
    before = "SELECT dns, id, since FROM tombstones_before WHERE revision > ? ORDER BY revision DESC"
    for dns, id, since in db.execute(before, (revision,)):
        if id is None:
            found.tombstones.pop(dns, None)
        else:
            found.tombstones[dns] = Tombstone(dns, id, since)
    before = "SELECT kind, id, forgone FROM forgone_before WHERE revision > ? ORDER BY revision DESC"
    for kind, id, was in db.execute(before, (revision,)):
        (found.forgone.add if was else found.forgone.discard)((kind, id))
    return found


def found_by(db: sqlite3.Connection, revision: int) -> Found:
    """What is kept of an entry."""
    of_tombstones = "SELECT revision, dns, id, since FROM tombstones_before WHERE revision = ? ORDER BY dns"
    of_forgone = "SELECT revision, kind, id, forgone FROM forgone_before WHERE revision = ? ORDER BY kind, id"
    return Found(db.execute(of_tombstones, (revision,)).fetchall(), db.execute(of_forgone, (revision,)).fetchall())


# Writing


def carry_out(db: sqlite3.Connection, entry: Entry) -> None:
    """What an entry makes of them. Grows with the entry."""
    for dns, new in dict(changes.tombstone_changes(entry)).items():
        row = db.execute("SELECT dns, id, revision FROM tombstones WHERE dns = ?", (dns,)).fetchone()
        old = Tombstone(*row) if row else None
        if old != new:
            keep(db, Found([_tombstone_row(entry, dns, old)], []))
            _write_tombstone(db, dns, new)
    for key, may in dict(changes.forgoings(entry)).items():
        was = db.execute("SELECT 1 FROM forgone WHERE kind = ? AND id = ?", key).fetchone() is not None
        if was != may:
            keep(db, Found([], [(entry.revision, *key, int(was))]))
            _write_forgone(db, key, may)


def keep(db: sqlite3.Connection, found: Found) -> None:
    db.executemany("INSERT INTO tombstones_before (revision, dns, id, since) VALUES (?, ?, ?, ?)", found.tombstones)
    db.executemany("INSERT INTO forgone_before (revision, kind, id, forgone) VALUES (?, ?, ?, ?)", found.forgone)


def _write_tombstone(db: sqlite3.Connection, dns: str, new: Tombstone | None) -> None:
    if new is None:
        db.execute("DELETE FROM tombstones WHERE dns = ?", (dns,))
    else:
        db.execute("INSERT OR REPLACE INTO tombstones (dns, id, revision) VALUES (?, ?, ?)", (dns, new.id, new.revision))


def _write_forgone(db: sqlite3.Connection, key: Key, may: bool) -> None:
    if may:
        db.execute("INSERT INTO forgone (kind, id) VALUES (?, ?)", key)
    else:
        db.execute("DELETE FROM forgone WHERE kind = ? AND id = ?", key)
