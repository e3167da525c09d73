"""How a server comes to its fleet at the start, also while its database is away, and what it does beside answering."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator

from flux_resourceset import changes, errors, news, snapshot_file, transfer
from flux_resourceset.changes import Origin
from flux_resourceset.follower import Follower
from flux_resourceset.kinds import kind_files
from flux_resourceset.lagging import LaggingFollower
from flux_resourceset.ledger import Ledger
from flux_resourceset.settings import Settings
from flux_resourceset.snapshot_keeper import SnapshotKeeper
from flux_resourceset.store import opening

log = logging.getLogger(__name__)

TRYING_SECONDS = 10.0  # for a writer to reach its database, if it has nothing else to begin with
AGAIN_SECONDS = 0.25


def follower(configured: Settings, begin_anew: bool = False) -> Follower:
    """Make the follower of the configured store. A snapshot file proves what was served before: then no store is created, the
    database need not be there at once, and it must continue from that state; `begin_anew` gives that state up."""
    begin_anew = begin_anew and configured.crud
    file = configured.snapshot_file
    is_known = file is not None and file.exists()
    where = configured.store._replace(mode="rw") if is_known and not begin_anew else configured.store
    kinds = kind_files.load(configured.resources_dir, configured.environments, configured.secret_keys_allowed)
    made = LaggingFollower if configured.store.lags else Follower
    following = made(
        kinds,
        opening.opener(where, writing=configured.crud, begin_anew=begin_anew, patient=not is_known),
        max_staleness=configured.max_staleness,
        vouches=configured.crud,
    )
    if file is not None and is_known and not begin_anew and (about := snapshot_file.about(file)) is not None:
        head = changes.Head(about.epoch, about.revision, about.hash)
        following.remembered = news.Remembered(file, head, about.opened)
    return following


def open_ledger(configured: Settings, begin_anew: bool = False) -> Ledger:
    """The ledger, seeded if its store was empty and may be written."""
    ledger = Ledger(follower(configured, begin_anew), limits=configured.limits)
    if not configured.crud and configured.store.is_kept:
        _open_to_read(configured, ledger)
        return ledger
    if not begin_anew:
        _check_not_lost(configured)
    if _open_to_write(configured, ledger):
        ledger.take_charge()
        if transfer.seed(ledger, configured.seed_file, configured.seed_named):
            log.info("seeded", extra={"file": str(configured.seed_file), "revision": ledger.fleet.revision})
    return ledger


def _open_to_read(configured: Settings, ledger: Ledger) -> None:
    """Whatever is wrong may be mended while it serves."""
    try:
        ledger.follower.refresh()
    except errors.Unavailable as exc:
        try:
            if isinstance(exc, errors.Unreachable) and _stands_in(configured, ledger):
                return
        except errors.Doubt as doubt:
            log.error(doubt.detail)
        log.warning("not ready: %s", exc)


def _check_not_lost(configured: Settings) -> None:
    """An empty store is not begun where a snapshot says that there was one."""
    file = configured.snapshot_file
    if file is not None and configured.store.would_begin and file.exists():
        raise errors.StartupError(
            f"there is no database at {configured.store.path}, and the snapshot file {file} is of one that was; restore it, or "
            "start once with --begin-anew to give up what was in it"
        )


def _open_to_write(configured: Settings, ledger: Ledger) -> bool:
    """Whether the store is open; otherwise a snapshot stands in for it."""
    deadline = time.monotonic() + TRYING_SECONDS
    while True:
        try:
            ledger.follower.refresh()
            return True
        except errors.Unreachable as exc:
            refused = ""
            try:
                if _stands_in(configured, ledger):
                    ledger.owes_charge = True
                    return False
            except errors.Doubt as doubt:
                refused = f"; {doubt.detail}"
            if not configured.store.lags or time.monotonic() >= deadline:
                raise errors.StartupError(f"{exc.detail}{refused}") from exc
            time.sleep(AGAIN_SECONDS)


def _stands_in(configured: Settings, ledger: Ledger) -> bool:
    keeper = _keeper(configured, ledger)
    return keeper is not None and keeper.load()


def _keeper(configured: Settings, ledger: Ledger) -> SnapshotKeeper | None:
    file = configured.snapshot_file
    if file is None:
        return None
    return SnapshotKeeper(ledger.follower, file, configured.store.target, configured.max_staleness)


# Beside answers


@contextlib.asynccontextmanager
async def beside(configured: Settings, ledger: Ledger) -> AsyncIterator[None]:
    """As long as it serves: follow the store, keep the snapshot file, and take charge if that had to wait."""
    ledger.follower.begin()
    keeper = _keeper(configured, ledger)
    tasks = [] if keeper is None else [asyncio.ensure_future(keeper.run())]
    if ledger.owes_charge:
        tasks.append(asyncio.ensure_future(_settle_in(configured, ledger)))
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        if keeper is not None:
            keeper.write_last()


async def _settle_in(configured: Settings, ledger: Ledger) -> None:
    """What a writer does at its start, once its database is back. A write that comes first takes charge, too."""
    while ledger.owes_charge or ledger.follower.stands_in:
        await asyncio.sleep(AGAIN_SECONDS)
        with contextlib.suppress(errors.Unavailable):  # whoever asks is told so, and the log was
            await ledger.follower.fresh()
            if not ledger.follower.stands_in:
                await ledger.write(lambda draft: None, Origin(actor="start"))
    try:
        work = transfer.seeding(ledger, configured.seed_file, configured.seed_named)
        if work is not None and (await ledger.write(work, transfer.seed_origin(configured.seed_file), consent=None)).entry:
            log.info("seeded", extra={"file": str(configured.seed_file), "revision": ledger.fleet.revision})
    except errors.Error as exc:
        log.error("the seed was not loaded: %s", exc)
