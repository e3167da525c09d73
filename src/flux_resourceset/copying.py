"""The command copy-store: a whole store, with its log, from one database into another."""

from __future__ import annotations

import argparse
import contextlib
import logging
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import parse_qsl, urlsplit

from flux_resourceset import errors, logs
from flux_resourceset.store import opening
from flux_resourceset.store.sql_copying import Progress
from flux_resourceset.store.sql_store import SqlStore

_ANEW = "\r\x1b[K"  # to a terminal: the line from its beginning
NOT_EMPTY = 6  # the exit code of what has to be said explicitly, as of the command line


def add_command(commands: Any) -> None:
    """To the parser of the program."""
    copy = commands.add_parser("copy-store", help="copy documents, log and all into another store; stop the writers first")
    copy.add_argument("source", metavar="FROM_URL", help="sqlite://… or postgresql://…, as in DATABASE_URL")
    copy.add_argument("target", metavar="TO_URL", help="likewise; it is created where it is not there")
    copy.add_argument("--replace", action="store_true", help="also into a store that is not empty, in the place of everything")
    copy.set_defaults(run=_copy)


def _copy(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    logs.configure(logging.ERROR)  # the command tells by itself
    source = _location("FROM_URL", arguments.source, environment)
    target = _location("TO_URL", arguments.target, environment)
    if target.database is not None:  # to name it here is to ask for it
        target = target._replace(mode="rwc")
    if source.target == target.target:
        raise errors.StartupError("FROM_URL and TO_URL are the same store; nothing was copied")
    with contextlib.closing(_opened(source, writing=False)) as there, contextlib.closing(_opened(target, writing=True)) as here:
        if there.epoch() == here.epoch():
            raise errors.StartupError("FROM_URL and TO_URL are the same store, or one is a copy of its files; nothing was copied")
        try:
            counted = there.copy_into(here, replace=arguments.replace, progress=_progress(sys.stderr))
        except errors.Conflict as conflict:
            print(f"flux-resourceset: {conflict.detail}", file=sys.stderr)
            return NOT_EMPTY
        finally:
            if sys.stderr.isatty():
                print(_ANEW, end="", file=sys.stderr)
        revision = here.head().revision
    print(f"copied {counted} documents with the log up to revision {revision} to {target.target}", file=sys.stderr)
    return 0


def _location(argument: str, url: str, environment: Mapping[str, str]) -> opening.Location:
    if _has_password(url):
        raise errors.StartupError(
            f"{argument} holds a password, which everybody can read who lists processes; leave it out, and put it into a file "
            "that DATABASE_PASSWORD_FILE names"
        )
    named = environment.get("DATABASE_PASSWORD_FILE")
    try:
        found = opening.location(url, Path(named) if named else None)
    except errors.StartupError as exc:
        raise errors.StartupError(str(exc).replace("DATABASE_URL", argument)) from exc
    if not found.is_kept:
        raise errors.StartupError(f"{argument} is {url}, which holds nothing to copy; use sqlite://… or postgresql://…")
    return found


def _has_password(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.password) or any(name in ("password", "sslpassword") for name, _ in parse_qsl(parts.query))
    except ValueError:  # no URL; but what it holds may be one
        return bool(re.search(r":[^/@]*@|password=", url))


def _opened(where: opening.Location, *, writing: bool) -> SqlStore:
    store = opening.opener(where, writing=writing)()
    assert isinstance(store, SqlStore)  # memory was refused
    return store


def _progress(terminal: TextIO) -> Progress:
    """One line that is written over, for people only."""

    def tell(table: str, rows: int) -> None:
        print(f"{_ANEW}{table}: {rows}", end="", file=terminal, flush=True)

    return tell if terminal.isatty() else lambda table, rows: None
