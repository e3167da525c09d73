"""The server, with a wall clock that somebody moves: it is off by as many seconds as a file says, at every look.

Run with the path of that file, and then the words of the server. What measures durations is not moved, as on a real machine.
"""

from __future__ import annotations

import datetime
import sys
import time
from pathlib import Path

_real = time.time
_offset = Path(sys.argv.pop(1))


def moved() -> float:
    return _real() + float(_offset.read_text())


class Moved(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Moved:
        return cls.fromtimestamp(moved(), tz)


time.time = moved
datetime.datetime = Moved  # type: ignore[misc]

from flux_resourceset import server  # noqa: E402  # with the clock as it is now

if __name__ == "__main__":
    sys.exit(server.main())
