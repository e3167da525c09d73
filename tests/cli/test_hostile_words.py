"""A server whose every string is meant to steer the terminal: what describe, usage, whoami and login show of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import live
from cli.command import Cli
from faults.test_hostile_server import ENTRY, FIELD, POISON, Hostile, assert_harmless, poisoned, served

ROW = poisoned({"id": "x", "cluster": "c", "environment": "e", "oci_tag": "t", "overridden": ["oci_tag"]}) | {"patches": 3}
TOMBSTONE = {**ENTRY, **poisoned({"cluster_dns": "d"}), "id": "gone"}


class Telling(Hostile):
    def do_GET(self) -> None:  # noqa: N802  # http.server calls it
        path = self.path.partition("?")[0]
        if path == "/whoami":
            self._answer(200, {"name": POISON, "role": POISON})
        elif path.startswith("/usage/"):
            self._answer(200, [ROW])
        elif path == "/tombstones":
            self._answer(200, [TOMBSTONE])
        elif path.endswith("/history"):
            self._answer(200, [{**ENTRY, "operation": "update", "fields": [FIELD]}, {**ENTRY, "operation": POISON, "fields": []}])
        else:
            super().do_GET()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with served(Telling, tmp_path_factory.mktemp("hostile")) as cli:
        yield cli


@pytest.mark.parametrize("size", [None, (80, 200)])
@pytest.mark.parametrize(
    "words",
    [
        "describe cluster there", "describe component there", "describe cluster gone", "describe cluster nowhere", "whoami",
        "component usage", "component usage x --summary", "cluster list --decommissioned", "get cl there nowhere",
        "cluster create x --from cluster/there --cluster-dns x.example.com --dry-run", "delete ns there nowhere",
    ],
)  # fmt: skip
def test_nothing_that_steers_reaches_the_terminal(hostile: Cli, words: str, size: tuple[int, int] | None) -> None:
    shown = hostile.on_terminal(*words.split(), answers="n\n", size=size).out
    assert_harmless(shown)
    assert "Traceback" not in shown
    assert "a defect of this program" not in shown


def test_a_login_shows_no_more_than_it_may(hostile: Cli) -> None:
    typed: list[str] = []

    def answer(shown: str) -> str | None:
        if not shown.endswith("(empty: none): ") or len(typed) == 2:
            return None
        typed.append(live.READ if not typed else "")
        return f"{typed[-1]}\n"

    shown = hostile.on_terminal("login", hostile.environment["FLUX_API_URL"], watch=answer).out
    assert "is now the current one" in shown
    assert_harmless(shown)


@pytest.mark.parametrize(
    "words", [("component", "pin", "x", "--oci-tag"), ("cluster", "list", "-l"), ("component", "patch", "x", "--set")]
)
def test_no_candidate_is_offered_that_a_shell_could_carry_out(hostile: Cli, words: tuple[str, ...]) -> None:
    assert hostile.ok("__complete", *words, "").out == ""
