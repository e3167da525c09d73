"""What a store holds beyond what a fleet knows, and who may say that a log does not go on; read in threads."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from flux_resourceset import changes, errors, fleet
from flux_resourceset.kinds.model import Kinds
from flux_resourceset.store import Followed, Outline, Store

log = logging.getLogger(__name__)


class Remembered(NamedTuple):
    """The state that a snapshot file says was served before this start."""

    file: Path
    head: changes.Head
    opened: str  # when a writer had last vouched for it


class Known(NamedTuple):
    """Where the fleet stands: what a thread is to go on from, however the fleet goes on meanwhile."""

    fleet: fleet.Fleet
    head: changes.Head
    own_step: fleet.Step | None
    outline: Outline | None
    opened: str  # when a writer last vouched for the log
    stands_in: bool = False  # the fleet comes from a snapshot file, because the store was away at the start
    vouches: bool = False  # this process is a writer
    remembered: Remembered | None = None


class News(NamedTuple):
    """What a store holds beyond what was known."""

    known: Known
    store: Store
    version: object  # before it was read: what came while it was read is found by the next look
    own_step: fleet.Step | None  # of this process, if the log has it
    behind: Followed | Outline | changes.Snapshot  # that; a snapshot where the log does not go on from what was known
    loaded: fleet.Fleet | None  # of the snapshot


def own_step(store: Store, known: Known) -> fleet.Step | None:
    """What this very process has just committed need not be read again, however large it is."""
    step = known.own_step
    return step if step is not None and step.before == known.head and store.continues(step.after) else None


# Everything anew


def loaded(kinds: Kinds, known: Known, store: Store, snapshot: changes.Snapshot) -> fleet.Fleet:
    """Load a fleet, unless its log lacks what was served before and nothing shows that this is intended."""
    if known.fleet.epoch and not known.stands_in:
        _check_may_differ(known, snapshot)
    elif known.remembered is not None and not store.continues(known.remembered.head):
        _check_snapshot_file(known.remembered, known.vouches, snapshot)
    fresh = fleet_of(kinds, snapshot)
    if known.fleet.epoch:
        revisions = {"before": known.head.revision, "now": fresh.revision}
        log.warning("the log does not go on from where it was: everything was loaded anew", extra=revisions)
    return fresh


def _check_may_differ(known: Known, snapshot: changes.Snapshot) -> None:
    before = known.fleet.epoch
    if snapshot.epoch != before and before not in snapshot.replaced:
        raise errors.Doubt(
            f"the store is another one now (its epoch is {snapshot.epoch}, not {before}), and no import says why; "
            "put the right one back, or restart this server if it is meant"
        )
    folded = snapshot.base > known.head.revision  # then nobody can tell any more, and the log has gone on at any rate
    if before == snapshot.epoch and known.opened >= snapshot.opened and not folded:
        raise errors.Doubt(
            f"the log ends at revision {snapshot.revision} and does not go on from revision {known.head.revision}, which was "
            "followed; put the newest files back, or restart the writer if an older state is meant"
        )


def _check_snapshot_file(remembered: Remembered, vouches: bool, snapshot: changes.Snapshot) -> None:
    """Refuse a database that lacks what the snapshot file proves was served. A reader accepts it once a writer has; a writer
    never, because it would make the step back valid for all readers."""
    file, head, opened = remembered
    if snapshot.epoch != head.epoch:
        if head.epoch in snapshot.replaced:
            return
        raise errors.Doubt(
            f"the snapshot file {file} is of another store: its epoch is {head.epoch}, and that of the database is "
            f"{snapshot.epoch}; check DATABASE_URL, put the right database back, or remove the file to give up what it holds"
        )
    if snapshot.base > head.revision or (snapshot.opened > opened and not vouches):
        return
    remedy = "remove the file" if vouches else "start a writer"
    raise errors.Doubt(
        f"the database has stepped back: its log ends at revision {snapshot.revision} and does not continue from revision "
        f"{head.revision}, which the snapshot file {file} holds; restore the newest state, or {remedy} to serve the older one"
    )


def fleet_of(kinds: Kinds, snapshot: changes.Snapshot) -> fleet.Fleet:
    fresh = fleet.Fleet(kinds)
    fresh.load(snapshot)
    _report(fresh)
    return fresh


def _report(fresh: fleet.Fleet) -> None:
    """What is odd about a fleet that was loaded."""
    if fresh.unknown:
        log.warning("documents of unknown kinds are kept, not served", extra={"kinds": ", ".join(fresh.unknown)})
    for doubt in fresh.doubts.values():
        log.error(doubt)
    skipped = fresh.dangling()
    if skipped:
        shown = ", ".join(f"{kind}/{id} of {cluster}" for cluster, kind, id in skipped[:20])
        log.warning("references without a definition", extra={"count": len(skipped), "first": shown})


@contextlib.contextmanager
def damage_reported() -> Iterator[None]:
    """What the store holds was checked when it was written, so it is only looked at as it is used."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as exc:
        raise errors.Doubt(f"a stored document is damaged ({exc!r}); restore a backup") from exc
