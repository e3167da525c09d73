"""What is longer than a terminal, shown through a pager."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from typing import TextIO

from flux_resourceset.cli.output.terminal_text import columns

_COLOUR = re.compile("\x1b\\[[0-9;]*m")


class Held(io.TextIOBase):
    """In the place of a stream: keeps what is written, so that it can be counted first."""

    def __init__(self, page: Page, stream: TextIO) -> None:
        self._page, self._stream = page, stream

    def write(self, text: str) -> int:
        self._page.add(self._stream, text)
        return len(text)

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()


class Page:
    """What a command wrote, in the order in which it was written: data, and messages."""

    def __init__(self, pager: list[str], environment: Mapping[str, str]) -> None:
        self._pager = pager
        self._environment = environment
        self._pieces: list[tuple[TextIO, str]] = []

    def add(self, stream: TextIO, text: str) -> None:
        self._pieces.append((stream, text))

    def show(self, data: TextIO, size: tuple[int, int]) -> None:
        """Write it all: the data through the pager if it is longer than the terminal, and the messages behind it."""
        pieces, self._pieces = self._pieces, []
        text = "".join(text for stream, text in pieces if stream is data)
        if _height(text, size[0]) >= size[1] and self._paged(text):
            pieces = [(stream, text) for stream, text in pieces if stream is not data]
        for stream, piece in pieces:
            stream.write(piece)
            stream.flush()

    def _paged(self, text: str) -> bool:
        """Whether it could be shown so. A pager may be left before its end, and gets every Ctrl-C for itself."""
        import signal
        import subprocess

        try:
            environment = {"LESS": "FRX", **self._environment}
            process = subprocess.Popen(self._pager, stdin=subprocess.PIPE, env=environment)  # noqa: S603  # whoever runs us named it
        except OSError:
            return False
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            process.communicate(text.encode("utf-8", "backslashreplace"))  # which minds no broken pipe
        finally:
            signal.signal(signal.SIGINT, before)
        return True


def pager(environment: Mapping[str, str]) -> list[str] | None:
    """What $PAGER names, or less if it is there."""
    import shlex
    import shutil

    named = environment.get("PAGER")
    if named is None:
        return ["less", "-FRX"] if shutil.which("less", path=environment.get("PATH")) else None
    try:
        words = shlex.split(named)
    except ValueError:
        return None
    return words if words and words != ["cat"] else None


def size(stream: TextIO, environment: Mapping[str, str]) -> tuple[int, int]:
    """Columns and lines of a terminal; 0 where nobody knows."""
    try:
        told = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return 0, 0
    named = (environment.get(name, "") for name in ("COLUMNS", "LINES"))
    known = [int(text) if text.isdecimal() and len(text) < 6 else 0 for text in named]
    return told.columns or known[0], told.lines or known[1]


def _height(text: str, width: int) -> int:
    """The lines that a text takes on a terminal."""
    lines = _COLOUR.sub("", text).splitlines()
    return sum(max(1, -(-columns(line) // width)) for line in lines) if width else len(lines)
