"""What is different on Windows: files without modes, names that no file may have, another editor, terminals without escapes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence

HERE = os.name == "nt"

DEFAULT_EDITOR = "notepad" if HERE else "vi"
# What a name of a file may hold beside letters, digits and `_.-~`: a colon would name a stream within a file.
SAFE_IN_NAMES = "+@" if HERE else ":+@"
# Devices, whatever suffix they have.
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))})


def others_can_read(descriptor: int) -> bool:
    """By the modes of a file; Windows has none, and keeps what is in a profile for its owner."""
    return not HERE and bool(stat.S_IMODE(os.fstat(descriptor).st_mode) & (stat.S_IRWXG | stat.S_IRWXO))


def is_device(name: str) -> bool:
    return HERE and name.partition(".")[0].lower() in _DEVICES


def home(environment: Mapping[str, str]) -> str | None:
    return environment.get("HOME") or environment.get("USERPROFILE")


def takes_escapes(environment: Mapping[str, str]) -> bool:
    """Whether a terminal understands colours and `erase this line`: older ones of Windows show them as signs."""
    return environment.get("TERM") != "dumb" and (not HERE or bool(environment.get("WT_SESSION") or environment.get("TERM")))


def editor_command(editor: str, file: str) -> str | Sequence[str]:
    """What starts the editor, which may have options. Windows takes a line as it is, with backslashes in it."""
    if HERE:
        return f'{editor} "{file}"'
    import shlex

    return [*shlex.split(editor), file]


def is_broken_pipe(exc: OSError) -> bool:
    """Whether nobody reads any more; Windows says `invalid argument` then."""
    return isinstance(exc, BrokenPipeError) or (HERE and exc.errno == errno.EINVAL)
