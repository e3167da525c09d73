"""What is held for a pager."""

from __future__ import annotations

import io

from flux_resourceset.cli.output.paging import Held, Page


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_held_counts_as_the_stream_that_it_is_held_for() -> None:
    terminal = Terminal()
    page = Page(["false"], {})
    held, other = Held(page, terminal), Held(page, io.StringIO())
    assert held.isatty()
    assert not other.isatty()
    held.write("a line\n")
    page.show(terminal, (80, 24))
    assert terminal.getvalue() == "a line\n"
