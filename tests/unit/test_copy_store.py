"""What copy-store shows to people, and what it takes for a password."""

from __future__ import annotations

import io

import pytest

from flux_resourceset import copying


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_tells_how_far_it_is() -> None:
    terminal = Terminal()
    tell = copying._progress(terminal)
    tell("entries", 500)
    tell("documents", 20)
    assert terminal.getvalue() == "\r\x1b[Kentries: 500\r\x1b[Kdocuments: 20"


def test_elsewhere_nothing_is_told() -> None:
    file = io.StringIO()
    copying._progress(file)("documents", 20)
    assert file.getvalue() == ""


@pytest.mark.parametrize(
    ("url", "holds"),
    [
        ("postgresql://me@host/db", False),
        ("postgresql://me:hush@host/db", True),
        ("postgresql://host/db?sslmode=require", False),
        ("postgresql://host/db?sslmode=require&password=hush", True),
        ("postgresql://host/db?sslpassword=hush", True),
        ("postgresql://me:hush@[host/db", True),  # no URL, and a password all the same
        ("sqlite:///var/fleet.db", False),
    ],
)
def test_a_password_is_recognised_wherever_it_stands(url: str, holds: bool) -> None:
    assert copying._has_password(url) is holds
