"""Tombstones, and definitions that references may do without: as they are in a database, and what every entry found of them.

An entry says what they become; what they were is kept beside it, so that a state of the past is found from the present.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from flux_resourceset import changes
from flux_resourceset.changes import Entry, Tombstone
from flux_resourceset.store import Key, sql_connection
from flux_resourceset.store.sql_connection import Connection, Runs


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


def names(db: Connection) -> Names:
    tombstones = {row[0]: Tombstone(*row) for row in db.stream("SELECT dns, id, revision FROM tombstones")}
    return Names(tombstones, set(db.stream("SELECT kind, id FROM forgone")))


def names_at(db: Connection, revision: int) -> Names:
    """When the log stood at a revision. Grows with what entries since have changed of them."""
    found = names(db)
    before = "SELECT dns, id, since FROM tombstones_before WHERE revision > ? ORDER BY revision DESC"
    for dns, id, since in db.stream(before, (revision,)):
        if id is None:
            found.tombstones.pop(dns, None)
        else:
            found.tombstones[dns] = Tombstone(dns, id, since)
    before = "SELECT kind, id, forgone FROM forgone_before WHERE revision > ? ORDER BY revision DESC"
    for kind, id, was in db.stream(before, (revision,)):
        (found.forgone.add if was else found.forgone.discard)((kind, id))
    return found


def found(db: Connection) -> tuple[Runs, Runs]:
    """What is kept of every entry: the rows of Found."""
    of_tombstones = "SELECT revision, dns, id, since FROM tombstones_before ORDER BY revision, dns"
    of_forgone = "SELECT revision, kind, id, forgone FROM forgone_before ORDER BY revision, kind, id"
    return Runs(db.stream(of_tombstones)), Runs(db.stream(of_forgone))


# Writing


def carry_out(db: Connection, entry: Entry) -> None:
    """What an entry makes of them. Grows with the entry."""
    tombstones, forgone = dict(changes.tombstone_changes(entry)), dict(changes.forgoings(entry))
    there = Names(_some_tombstones(db, tombstones), _some_forgone(db, forgone))
    found = there.carried_out(entry)
    keep(db, found)
    changed = [(dns, tombstones[dns]) for _, dns, _, _ in found.tombstones]
    db.executemany("DELETE FROM tombstones WHERE dns = ?", [(dns,) for dns, _ in changed])
    new = [(each.dns, each.id, each.revision) for _, each in changed if each is not None]
    db.executemany("INSERT INTO tombstones (dns, id, revision) VALUES (?, ?, ?)", new)
    gone = [(kind, id) for _, kind, id, was in found.forgone if was]
    sql_connection.run_for_keys(db, gone, "DELETE FROM forgone WHERE (kind, id) IN {}")
    db.executemany("INSERT INTO forgone (kind, id) VALUES (?, ?)", [(kind, id) for _, kind, id, was in found.forgone if not was])


def _some_tombstones(db: Connection, dns: Iterable[str]) -> dict[str, Tombstone]:
    rows = sql_connection.of_values(db, dns, "SELECT dns, id, revision FROM tombstones WHERE dns IN ".__add__)
    return {row[0]: Tombstone(*row) for row in rows}


def _some_forgone(db: Connection, keys: Iterable[Key]) -> set[Key]:
    return set(sql_connection.of_keys(db, keys, "SELECT kind, id FROM forgone WHERE (kind, id) IN ".__add__))


def keep(db: Connection, found: Found) -> None:
    db.executemany("INSERT INTO tombstones_before (revision, dns, id, since) VALUES (?, ?, ?, ?)", found.tombstones)
    db.executemany("INSERT INTO forgone_before (revision, kind, id, forgone) VALUES (?, ?, ?, ?)", found.forgone)
