"""Looking after a store, from the command line: whether it agrees with itself, and folding what nobody looks back to any more."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import logging
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from flux_resourceset import changes, errors, logs, settings
from flux_resourceset.store import Store, opening

_DAYS = re.compile(r"([0-9]{1,6})d")
_REVISION = re.compile(r"[0-9]{1,15}")
_TAKES = "it must be a revision, a time as in 2026-01-31T12:00:00Z, or an age as in 90d"


# Verifying


def verification(store: Store) -> tuple[bool, str]:
    """Whether a store agrees with itself, in one line; also while others write. Grows with documents and log."""
    try:
        base, revision, documents, fault = store.verified()
    except errors.Doubt as doubt:  # so damaged that it cannot even be read
        return False, f"revision 0 does not agree: {doubt.detail}"
    if fault is not None:
        return False, f"revision {fault.revision} does not agree: {fault.what}"
    since = f"from the base at revision {base} " if base else ""
    return True, f"verified {since}to revision {revision}: log, {documents} documents and tombstones agree"


# Compacting


class Fold(NamedTuple):
    """What is to be folded: the entries below a revision."""

    before: int
    entries: int
    head: changes.Head  # of the log that was looked at

    def line(self, done: bool) -> str:
        if not self.entries:
            return "nothing to fold: no entry of the log is older"
        deed = "folded" if done else "would fold"
        return f"{deed} {self.entries} entries; the log goes on from revision {self.before}"


def planned(store: Store, before: str, now: datetime.datetime) -> Fold:
    """From what stands behind --before."""
    head, base = store.head(), store.base()
    revision = int(before) if _REVISION.fullmatch(before) else _revision_at(store, _moment(before, now))
    if revision > head.revision:
        raise errors.StartupError(f"revision {revision} is not there yet; the newest is {head.revision}")
    return Fold(revision, max(revision - 1 - base, 0), head)


def _revision_at(store: Store, moment: datetime.datetime) -> int:
    """The one that was there then stays reachable."""
    try:
        return store.revision_at(changes.timestamp(moment))
    except errors.Compacted:
        return 0


def _moment(text: str, now: datetime.datetime) -> datetime.datetime:
    try:
        if match := _DAYS.fullmatch(text):
            return now - datetime.timedelta(days=int(match[1]))
        moment = datetime.datetime.fromisoformat(text.upper())
        if moment.tzinfo is None or "T" not in text.upper():
            raise ValueError(text)
        return moment.astimezone(datetime.UTC)
    except (ValueError, OverflowError) as exc:
        raise errors.StartupError(f"--before is {text!r}; {_TAKES}") from exc


def compact(fold: Fold, looked_at: Store, open_writer: Callable[[], Store]) -> int:
    """How many entries went. What takes long is done before anybody has to wait; then nobody else writes for a moment."""
    if not fold.entries:
        return 0
    digest = looked_at.digest_at(fold.before - 1)
    with contextlib.closing(open_writer()) as store, store.begin() as transaction:
        if not store.continues(fold.head):
            raise errors.StartupError("the log was replaced just now; nothing was folded")
        return transaction.fold(fold.before, digest)


# The commands


def add_commands(commands: Any) -> None:
    """To the parser of the program; they run with its arguments and the environment."""
    verify = commands.add_parser("verify", help="check that the log is whole and leads to the documents; also beside a server")
    verify.set_defaults(run=_verify)
    compact = commands.add_parser("compact", help="fold old entries of the log into a base; also beside a server")
    compact.add_argument(
        "--before",
        required=True,
        metavar="REVISION|TIME|90d",
        help="fold what is older; from there on every state stays reachable",
    )
    compact.add_argument("--dry-run", action="store_true", help="only say what would be folded")
    compact.set_defaults(run=_compact)


def _location(environment: Mapping[str, str], *, writing: bool) -> opening.Location:
    mode = {"API_MODE": "crud" if writing else "read-only", "AUTH_TOKEN": "unused"}
    configured = settings.Settings.from_env({**environment, **mode})
    logs.configure(max(configured.log_level, logging.ERROR))  # the commands tell by themselves
    if not configured.store.is_kept:
        raise errors.StartupError("STORE_BACKEND=memory holds nothing to look after; name a DATABASE_URL instead")
    return configured.store


def _verify(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    with contextlib.closing(opening.opener(_location(environment, writing=False), writing=False)()) as store:
        good, line = verification(store)
    # what a file holds may stand in it, and must not reach the terminal as anything but text
    print("".join(sign if sign.isprintable() else " " for sign in line), file=sys.stdout if good else sys.stderr)
    return 0 if good else 1


def _compact(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    where = _location(environment, writing=not arguments.dry_run)
    with contextlib.closing(opening.opener(where, writing=False)()) as store:
        fold = planned(store, arguments.before, datetime.datetime.now(datetime.UTC))
        if not arguments.dry_run:
            there = where._replace(mode="rw")  # there is nothing to create
            compact(fold, store, opening.opener(there, writing=True))
    print(fold.line(done=not arguments.dry_run))
    return 0
