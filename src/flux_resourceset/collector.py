"""When Python's garbage collector runs in a server: often, and over so few objects that no poll waits for it.

A full collection looks at every object while nothing else runs, which can take 100 ms for ten thousand clusters. So the fleet
is frozen once it is loaded: later collections leave it out. What is written afterwards is frozen in turn, in portions,
each time right after a collection that has proved it to be in use; garbage is never frozen. Frozen objects are still freed as
soon as nothing refers to them, but a cycle among them is not. That is why requests and connections must not leave cycles.
"""

from __future__ import annotations

import gc

# An automatic full collection comes as soon as one of the middle generation was made since the last: it looks at about 8,000
# objects with the other thresholds of CPython 3.11 and 3.12, and takes no longer than that one, 1 to 3 ms; at about 22,000 with
# those of 3.13, 3 to 6 ms. (CPython 3.14.0 to 3.14.4 ignore this number: their automatic collections are incremental.)
FULL_AFTER = 0
MAX_OBJECTS = 1_000  # that may stay for the next full collection: what a quiet server has open; with more it would take longer
_NEVER = 1_000_000_000
_FULL = 2  # the oldest generation


def hold_back() -> None:
    """No full collections from now on: while a fleet is loaded, they would look at all of it again and again."""
    _after(_NEVER)


def freeze_loaded() -> None:
    """Leave everything that is there now out of later collections, and let these begin."""
    gc.collect()
    gc.freeze()
    gc.collect()  # CPython waits until there is a quarter more than the last one found: that must not be the fleet
    _after(FULL_AFTER)
    if _freeze_survivors not in gc.callbacks:
        gc.callbacks.append(_freeze_survivors)


def _after(collections: int) -> None:
    youngest, middle, _ = gc.get_threshold()
    gc.set_threshold(youngest, middle, collections)


def _freeze_survivors(phase: str, about: dict[str, int]) -> None:
    """After a full collection: what is left is in use. Called by the interpreter, in whichever thread is running."""
    if phase == "stop" and about["generation"] == _FULL and _survivors() > MAX_OBJECTS:
        gc.freeze()


def _survivors() -> int:
    """How many objects the last full collection left. In one call into C, so that no other thread runs while there is a list of
    them: it may refer to a tuple that is just being made from a generator, and CPython cannot enlarge that then (SystemError)."""
    return next(map(len, map(gc.get_objects, (_FULL,))))
