"""A bar on a terminal for what takes more than a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO


class Bar:
    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._since = self._clock()
        self._drawn = False

    def __call__(self, what: str, done: int, total: int) -> None:
        if not what:
            self._clear()
            self._since = self._clock()
            return
        elapsed = self._clock() - self._since
        if elapsed < 0.5:  # nobody wants to see a bar flash by
            return
        if total:
            filled = 30 * done // total
            text = f"{what} [{'#' * filled}{'.' * (30 - filled)}] {100 * done // total} %"
        else:
            text = f"{what} … {elapsed:.0f} s"
        self._stream.write(f"\r\x1b[K{text}")
        self._stream.flush()
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False
