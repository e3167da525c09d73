"""What Flux Operator takes: beyond these numbers it refuses an answer, or cuts it in silence and deletes what was cut."""

from __future__ import annotations

MAX_BODY_BYTES = 900 * 1024  # of an answer, unpacked: Flux Operator refuses a longer one; we stay below it
MAX_INPUTS = 10_000  # the largest spec.filter.limit; Flux cuts the rest in silence, and deletes it


def exceeds(body: bytes, inputs: int) -> bool:
    return len(body) >= MAX_BODY_BYTES or inputs > MAX_INPUTS
