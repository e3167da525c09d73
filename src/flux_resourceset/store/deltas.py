"""The stretch in which two texts differ: small where a value of a large document changed, and exact in both directions. Pure."""

from __future__ import annotations

from typing import NamedTuple


class Misfit(ValueError):
    """A delta that was not made of this text."""


class Delta(NamedTuple):
    lead: int  # length of the common beginning
    trail: int  # length of the common end
    before: bytes  # what is between them
    after: bytes

    def applied(self, before: bytes) -> bytes:
        return self._exchanged(before, self.before, self.after)

    def undone(self, after: bytes) -> bytes:
        return self._exchanged(after, self.after, self.before)

    def _exchanged(self, text: bytes, old: bytes, new: bytes) -> bytes:
        end = len(text) - self.trail
        if min(self.lead, self.trail) < 0 or end - self.lead != len(old) or text[self.lead : end] != old:
            raise Misfit
        return b"".join((text[: self.lead], new, text[end:]))


def between(before: bytes, after: bytes) -> Delta:
    shorter = min(len(before), len(after))
    lead = _common_beginning(before, after, shorter)
    trail = _common_end(before, after, shorter - lead)
    return Delta(lead, trail, before[lead : len(before) - trail], after[lead : len(after) - trail])


def _common_beginning(one: bytes, other: bytes, most: int) -> int:
    """By halves, for slices are compared in C."""
    low, high = 0, most + 1  # the first `low` are equal; so many as `high` are not, or not there
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return low


def _common_end(one: bytes, other: bytes, most: int) -> int:
    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle
    return low
