"""The bar on a terminal: not for what is over in a moment, and gone when it is over."""

from __future__ import annotations

import io

import pytest

from flux_resourceset.cli.output.progress import Bar

CLEARED = "\r\x1b[K"


class Screen(io.StringIO):
    """What is written to a terminal, and a clock to turn."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 1000.0
        self.bar = Bar(self, lambda: self.seconds)

    def after(self, seconds: float, what: str, done: int = 0, total: int = 0) -> str:
        """What is written when the bar is told so many seconds later."""
        self.seconds += seconds
        before = len(self.getvalue())
        self.bar(what, done, total)
        return self.getvalue()[before:]


@pytest.fixture
def screen() -> Screen:
    return Screen()


def test_nothing_is_shown_in_the_first_half_second(screen: Screen) -> None:
    assert screen.after(0, "waiting") == ""
    assert screen.after(0.499, "waiting") == ""
    assert screen.after(0.001, "waiting") == f"{CLEARED}waiting … 0 s"


def test_what_has_no_known_end_tells_its_seconds(screen: Screen) -> None:
    assert screen.after(3, "waiting") == f"{CLEARED}waiting … 3 s"
    assert screen.after(61, "waiting") == f"{CLEARED}waiting … 64 s"


@pytest.mark.parametrize(
    ("done", "shown"),
    [(0, f"[{'.' * 30}] 0 %"), (50, f"[{'#' * 15}{'.' * 15}] 50 %"), (99, f"[{'#' * 29}.] 99 %"), (100, f"[{'#' * 30}] 100 %")],
)
def test_what_has_an_end_tells_how_far_it_is(screen: Screen, done: int, shown: str) -> None:
    assert screen.after(1, "sending", done, 100) == f"{CLEARED}sending {shown}"


def test_what_is_over_leaves_nothing_and_the_next_one_begins_anew(screen: Screen) -> None:
    screen.after(1, "waiting")
    assert screen.after(0, "") == CLEARED
    assert screen.after(0.4, "waiting") == ""
    assert screen.after(0.1, "waiting") == f"{CLEARED}waiting … 0 s"


def test_where_nothing_was_shown_nothing_is_cleared(screen: Screen) -> None:
    screen.after(0.1, "waiting")
    assert screen.after(0, "") == ""
