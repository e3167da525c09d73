"""The revision of the last write to a server, for some minutes: what is read afterwards, of whichever process, is not older.

It is never needed, so no failure of its file is told.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping

from flux_resourceset import atomic_files
from flux_resourceset.cli import windows

KEPT_SECONDS = 300.0  # by then every process has come there, or never will


class LastWrite:
    """To one server."""

    def __init__(self, environment: Mapping[str, str], url: str, warn: Callable[[str], None]) -> None:
        self._server = _without_user(url.rstrip("/"))
        self._file = _file(environment, self._server)
        self._warn = warn
        self._is_read = False
        self._revision: int | None = None

    def revision(self) -> int | None:
        if not self._is_read:
            self._is_read, self._revision = True, self._kept()
        return self._revision

    def wrote(self, revision: int) -> None:
        self._is_read, self._revision = True, max(revision, self._kept() or 0)  # another command may have been faster
        if self._file is None:
            return
        content = {"server": self._server, "revision": self._revision, "time": time.time()}
        try:
            os.makedirs(os.path.dirname(self._file), mode=0o700, exist_ok=True)
            atomic_files.replace(self._file, json.dumps(content).encode(), durable=False)
        except OSError:
            pass

    def is_behind(self) -> None:
        """The server has not come there: it was replaced by an older state, or its replica is cut off."""
        self._warn(f"the server has not come to revision {self._revision}, which was written last; what it tells may be older")
        self._is_read, self._revision = True, None
        try:
            os.unlink(self._file or "")
        except OSError:
            pass

    def _kept(self) -> int | None:
        try:
            with open(self._file or "", encoding="utf-8") as stream:
                content = json.load(stream)
            revision, written = content["revision"], content["time"]
            if content["server"] == self._server and abs(time.time() - written) < KEPT_SECONDS and type(revision) is int:
                return revision if 0 < revision < 10**15 else None
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            pass
        return None


def _without_user(url: str) -> str:
    """A password may stand in it."""
    scheme, mark, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path}"


def _file(environment: Mapping[str, str], server: str) -> str | None:
    folder = environment.get("XDG_STATE_HOME")
    if not folder and (home := windows.home(environment)):
        folder = os.path.join(home, ".local", "state")
    if not folder:
        return None
    plain = "".join(letter if letter.isalnum() or letter in ".-" else "_" for letter in server)[-120:]
    return os.path.join(folder, "flux-resourceset", f"last-write-{plain}.json")
