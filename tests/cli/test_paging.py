"""Long output goes through a pager, on a terminal."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from cli.command import Cli

SMALL, TALL = (100, 6), (100, 200)


@pytest.fixture
def paged(cli: Cli, tmp_path: Path) -> Cli:
    """With a pager that marks what it shows."""
    script = tmp_path / "pager.py"
    script.write_text("import sys\nprint('BEGIN', *sys.argv[1:])\nprint(sys.stdin.read() + 'END')\n")
    return cli.but(NO_COLOR="1", PAGER=shlex.join([sys.executable, str(script), "-x"]))


@pytest.mark.long
def test_what_is_longer_than_the_terminal_goes_through_the_pager(paged: Cli) -> None:
    shown = paged.on_terminal("cluster", "get", "demo-cluster-01", "-o", "json", size=SMALL)
    assert shown.code == 0
    assert shown.out.startswith("BEGIN -x\n{\n")
    assert shown.out.endswith("}\nEND\n")
    assert "BEGIN" in paged.on_terminal("--help", size=SMALL).out
    assert "BEGIN" in paged.on_terminal("namespace", "create", "paged", "--dry-run", "-o", "json", size=SMALL).out


def test_what_fits_does_not(paged: Cli) -> None:
    assert "BEGIN" not in paged.on_terminal("cluster", "get", "demo-cluster-01", "-o", "json", size=TALL).out
    assert "BEGIN" not in paged.on_terminal("cluster", "get", "demo-cluster-01", size=SMALL).out


@pytest.mark.long
def test_it_can_be_switched_off(paged: Cli) -> None:
    words = ("cluster", "get", "demo-cluster-01", "-o", "json")
    whole = paged.on_terminal(*words, "--no-pager", size=SMALL).out
    assert whole.startswith("{\n")
    for pager in ("", "cat", "/does/not/exist", "'"):
        assert paged.but(PAGER=pager).on_terminal(*words, size=SMALL).out == whole
    assert paged.but(PAGER=None, PATH="/nowhere").on_terminal(*words, size=SMALL).out == whole


def test_a_pager_that_ends_early_is_no_error(paged: Cli) -> None:
    early = paged.but(PAGER=shlex.join([sys.executable, "-c", "print('seen enough')"]))
    done = early.on_terminal("explain", "cluster", size=SMALL)
    assert (done.code, done.out) == (0, "seen enough\n")


def test_messages_come_behind_what_is_paged(paged: Cli) -> None:
    shown = paged.on_terminal("component", "list", "--limit", "1", "-o", "json", size=(20, 4)).out
    assert shown.index("END") < shown.index("--limit and --offset show the others")
    wrong = paged.on_terminal("namespace", "get", "nowhere", size=SMALL)
    assert wrong.code == 4
    assert wrong.out.startswith("error: ")


def test_a_question_is_never_paged(paged: Cli) -> None:
    paged.ok("namespace", "create", "unpaged")
    done = paged.on_terminal("namespace", "delete", "unpaged", answers="y\n", size=(40, 2))
    assert done.code == 0
    assert "BEGIN" not in done.out
