"""How much work a request may make, in steps and in seconds, so that nobody computes without end."""

from __future__ import annotations

import math
from collections.abc import Callable

from flux_resourceset import errors


class Budget:
    """Spent by whoever does the work; it may be stopped from another thread."""

    def __init__(self, steps: float = math.inf, seconds: float = math.inf, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._steps = self._left = steps
        self._seconds = seconds
        self._clock = clock
        self._deadline = clock() + seconds
        self._stopped: Callable[[], errors.Refusal] | None = None

    def spend(self, steps: float = 1) -> None:
        """One step is a look at one document, or at one edge between two."""
        self._left -= steps
        if self._stopped is not None:
            raise self._stopped()
        if self._left < 0:
            raise errors.TooExpensive(f"this takes more than {self._steps:,} steps over clusters and documents; {_REMEDY}")
        if self._clock() > self._deadline:
            raise errors.TooExpensive(f"this takes longer than {self._seconds:g} seconds; {_REMEDY}")

    def stop(self, reason: Callable[[], errors.Refusal]) -> None:
        """From now on spending raises this. Each time a new one: a refusal that was raised refers to frames, and those to the
        budget, so the budget must not refer to the refusal."""
        self._stopped = reason


_REMEDY = "split it, or select fewer clusters"
