"""When the garbage collector runs: never over a whole fleet, never over much at once, and garbage does not stay."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from flux_resourceset import collector

GENERATIONAL = pytest.mark.skipif(
    (3, 14) <= sys.version_info < (3, 14, 5), reason="CPython 3.14.0 to 3.14.4 collect old objects incrementally"
)
FULL = 2
MANY = 200_000


class Cyclic:
    """Garbage that only the collector frees, once nothing else refers to it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def settings() -> Iterator[None]:
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks[:] = callbacks
    gc.unfreeze()


@pytest.fixture
def looked_at() -> Iterator[list[int]]:
    """How many objects each full collection has looked at that began by itself."""
    found: list[int] = []

    def note(phase: str, about: dict[str, int]) -> None:
        if phase == "start" and about["generation"] == FULL:
            found.append(len(gc.get_objects()))

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)


def test_no_full_collection_runs_while_a_fleet_is_loaded(looked_at: list[int]) -> None:
    collector.hold_back()
    loaded = [[number] for number in range(MANY)]
    assert len(loaded) == MANY
    assert looked_at == []


@pytest.mark.long
def test_garbage_is_collected_by_itself_after_the_fleet_is_loaded() -> None:
    collector.freeze_loaded()
    alive = weakref.WeakSet[Cyclic]()
    most = 0
    for _ in range(MANY):
        alive.add(Cyclic())
        most = max(most, len(alive))
    assert most < MANY / 4


@GENERATIONAL
def test_a_full_collection_looks_only_at_what_came_since_the_last_ones(looked_at: list[int]) -> None:
    fleet = [[number] for number in range(MANY)]
    collector.freeze_loaded()
    looked_at.clear()
    written = [[number] for number in range(MANY)]
    assert len(fleet) == len(written)
    youngest, middle, _ = gc.get_threshold()
    assert looked_at, "none began"
    assert max(looked_at) < collector.MAX_OBJECTS + 2 * youngest * (middle + 1)


@GENERATIONAL
def test_what_stays_is_frozen_and_garbage_is_not() -> None:
    collector.freeze_loaded()
    before = gc.get_freeze_count()
    alive = weakref.WeakSet[Cyclic]()
    written = []
    for number in range(MANY):
        written.append([number])
        if number % 10 == 0:
            alive.add(Cyclic())
    assert gc.get_freeze_count() - before > MANY / 2
    gc.collect()
    assert len(alive) < 20, "more than those that were being made when others were frozen"


def test_frozen_objects_are_freed_when_nothing_refers_to_them() -> None:
    class Document:
        pass

    written = [Document() for _ in range(1_000)]
    alive = weakref.WeakSet(written)
    collector.freeze_loaded()
    written.clear()
    assert len(alive) == 0


def test_few_objects_are_not_frozen() -> None:
    collector.freeze_loaded()
    before = gc.get_freeze_count()
    written = [[number] for number in range(collector.MAX_OBJECTS // 2)]
    gc.collect()
    assert written
    assert gc.get_freeze_count() <= before


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.long
@pytest.mark.usefixtures("eager_threads")
def test_a_tuple_that_another_thread_is_making_is_left_alone() -> None:
    """CPython raises SystemError if anything else refers to a tuple while it grows."""
    collector.freeze_loaded()
    is_over = threading.Event()

    def collect() -> None:
        while not is_over.is_set():
            gc.collect()

    collecting = [threading.Thread(target=collect) for _ in range(2)]
    for thread in collecting:
        thread.start()
    try:
        end = time.monotonic() + 1
        while time.monotonic() < end:
            assert len(tuple([number] for number in range(2_000))) == 2_000
    finally:
        is_over.set()
        for thread in collecting:
            thread.join()
