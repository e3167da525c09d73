"""What a store holds beyond what a fleet knows, and who may say that a log does not go on; read in threads."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import NamedTuple

from flux_resourceset import changes, errors, fleet
from flux_resourceset.kinds.model import Kinds
from flux_resourceset.store import Followed, Outline, Store

log = logging.getLogger(__name__)


class Known(NamedTuple):
    """Where the fleet stands: what a thread is to go on from, however the fleet goes on meanwhile."""

    fleet: fleet.Fleet
    head: changes.Head
    own_step: fleet.Step | None
    outline: Outline | None
    opened: str  # when a writer last vouched for the log
    stands_in: bool = False  # for a store that was away: it comes from a file, and the store knows better
    vouches: bool = False  # whoever asks is a writer that starts, and takes the store as it is


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


def loaded(kinds: Kinds, known: Known, snapshot: changes.Snapshot) -> fleet.Fleet:
    """A log that does not go on from where it was is only taken from those who may say so."""
    if known.fleet.epoch:
        _check_may_differ(known, snapshot)
    fresh = fleet_of(kinds, snapshot)
    if known.fleet.epoch:
        revisions = {"before": known.head.revision, "now": fresh.revision}
        log.warning("the log does not go on from where it was: everything was loaded anew", extra=revisions)
    return fresh


def _check_may_differ(known: Known, snapshot: changes.Snapshot) -> None:
    before = known.fleet.epoch
    if known.stands_in and (known.vouches or snapshot.epoch != before):
        if snapshot.epoch != before:
            log.warning("the snapshot file is of another store, so it is refused", extra={"epoch": before, "now": snapshot.epoch})
        return
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
