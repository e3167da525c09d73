"""Guards and freezes on the command line: they are named, asked about, and passed only by whoever says the numbers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import live
from cli.command import Cli

FLEET = [f"guarded-{n}" for n in range(4)]
NAMESPACE = "kind: namespace\nid: podinfo\nlabels: {{app: podinfo, edition: {edition}}}\n"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[live.Server]:
    """Four clusters with a namespace, two of them protected, and guards that trip at once."""
    settings = {"PROTECTED_ENVIRONMENTS": "prod", "GUARD_MAX_CLUSTERS": "3"}
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json"), **settings) as server, server.client() as api:
        for n, id in enumerate(FLEET):
            body = {"id": id, "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "prod" if n < 2 else "qa"}
            made = api.post("/clusters", json={**body, "labels": {"guarded": "yes"}, "namespaces": [{"id": "podinfo"}]})
            assert made.status_code == 201
        yield server


@pytest.fixture
def api(guarded: live.Server) -> Iterator[httpx.Client]:
    with guarded.client() as client:
        yield client


@pytest.fixture
def cli(guarded: live.Server, tmp_path: Path) -> Cli:
    return Cli(tmp_path, guarded.url)


def having(api: httpx.Client) -> int:
    return sum(bool(cluster["namespaces"]) for cluster in api.get("/clusters?selector=guarded").json())


def remedy(line: str) -> list[str]:
    """The words of the command that a refusal ends with, without those of the program."""
    return shlex.split(line.partition("if it is meant: ")[2])[1:]


def test_a_yes_alone_passes_no_guard_and_the_refusal_is_the_command_that_does(cli: Cli, api: httpx.Client) -> None:
    words = ["namespace", "unassign", "podinfo", "-l", "guarded", "--yes"]
    (line,) = cli.refused(6, *words)
    removals, spread = "removes 4 input(s) from 4 cluster(s), 2 of them protected", "changes the answers of 4 cluster(s)"
    assert line.startswith(f"this {removals} and {spread}; nothing was changed;")
    assert "X-Confirm" not in line
    assert remedy(line) == [*words, "--confirm-removals", "4", "--confirm-clusters", "4"]
    assert having(api) == 4
    cli.ok(*remedy(line))
    assert having(api) == 0


def test_a_wrong_number_passes_nothing_and_is_replaced_in_the_command(cli: Cli, api: httpx.Client) -> None:
    words = ["namespace", "unassign", "podinfo", "--cluster", FLEET[0], "--reason", "it's time"]
    for given in (["--confirm-removals", "7"], ["--confirm-removals=7"]):
        (line,) = cli.refused(6, *words, *given)
        assert remedy(line) == [*words, "--confirm-removals", "1"]
    assert having(api) == 4
    assert cli.refused(2, *words, "--confirm-removals", "many") == [
        "--confirm-removals is 'many'; it must be a whole number of at least 0"
    ]
    cli.ok(*remedy(line))
    assert having(api) == 3


def test_one_number_of_two_is_kept_in_the_command(cli: Cli) -> None:
    words = ["namespace", "unassign", "podinfo", "-l", "guarded", "--yes", "--confirm-clusters", "4"]
    (line,) = cli.refused(6, *words)
    assert remedy(line) == [*words, "--confirm-removals", "4"]


def test_words_behind_two_dashes_stay_behind_the_options(cli: Cli) -> None:
    (line,) = cli.refused(6, "cluster", "decommission", "--yes", "--", FLEET[0])
    assert remedy(line) == ["cluster", "decommission", "--yes", "--confirm-removals", "1", "--", FLEET[0]]
    cli.ok(*remedy(line))


@pytest.mark.long
def test_on_a_terminal_the_question_names_the_numbers(cli: Cli, api: httpx.Client) -> None:
    words = ("namespace", "unassign", "podinfo", "-l", "guarded")
    no = cli.on_terminal(*words, answers="n\n")
    asked = "4 inputs would be removed from 4 clusters, 2 of them protected; 4 clusters would get other inputs; "
    assert asked + 'unassigning namespace "podinfo" on 4 clusters? [y/N]' in no.out
    assert (no.code, having(api)) == (2, 4)
    hasty = cli.on_terminal(*words, "--yes")
    assert hasty.code == 6
    assert "--confirm-removals 4" in hasty.out
    assert having(api) == 4
    assert cli.on_terminal(*words, answers="y\n").code == 0
    assert having(api) == 0


def test_a_command_that_asks_nothing_asks_when_a_guard_holds_it_up(cli: Cli, api: httpx.Client) -> None:
    words = ("namespace", "unassign", "podinfo", "--cluster", FLEET[0])
    no = cli.on_terminal(*words, answers="n\n")
    assert "1 input would be removed from 1 cluster, 1 of them protected; do it all the same? [y/N]" in no.out
    assert (no.code, having(api)) == (2, 4)
    assert cli.on_terminal(*words, answers="y\n").code == 0
    assert having(api) == 3


def test_files_pass_guards_like_everything_else(cli: Cli, api: httpx.Client, tmp_path: Path) -> None:
    file = tmp_path / "namespace.yaml"
    file.write_text(NAMESPACE.format(edition="second"))
    (line,) = cli.refused(6, "apply", "-f", str(file))
    assert remedy(line) == ["apply", "-f", str(file), "--confirm-clusters", "5"]
    assert "guard: 5 clusters would get other inputs; it passes with --confirm-clusters 5" in (
        cli.ok("plan", "-f", str(file), "-o", "table").out
    )
    cli.ok(*remedy(line))
    assert api.get("/namespaces/podinfo").json()["labels"]["edition"] == "second"


def test_an_import_passes_guards_too(cli: Cli, api: httpx.Client, tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    api.patch("/clusters/guarded-0", json={"namespaces": []}, headers={"X-Confirm-Removals": "1"})
    cli.ok("export", str(file))
    api.patch("/clusters/guarded-0", json={"namespaces": [{"id": "podinfo"}, {"id": "traefik"}]})
    (line,) = cli.refused(6, "import", str(file), "--merge", "--yes")
    assert remedy(line) == ["import", str(file), "--merge", "--yes", "--confirm-removals", "2"]
    cli.ok(*remedy(line))
    assert api.get("/clusters/guarded-0").json()["namespaces"] == []


def test_what_was_edited_is_kept_when_a_guard_holds_it_up(cli: Cli, api: httpx.Client, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/app: podinfo/app: edited/' \"$1\"\n")
    os.chmod(editor, 0o755)
    lines = cli.but(EDITOR=str(editor)).refused(6, "namespace", "edit", "podinfo")
    words = remedy(lines[0])
    assert words[:4] == ["namespace", "edit", "podinfo", "--from-file"]
    assert words[5:] == ["--confirm-clusters", "5"]
    assert lines[1] == f"what you wrote is kept in {words[4]}"
    cli.ok(*words)
    assert api.get("/namespaces/podinfo").json()["labels"] == {"app": "edited"}


# Freezes


def test_a_freeze_is_passed_by_name_and_with_a_reason(cli: Cli, api: httpx.Client) -> None:
    cli.ok("freeze", "create", "closing", "--environment", "qa", "--reason", "year-end closing")
    cli.ok("freeze", "create", "also", "--selector", "guarded=yes", "--reason", "holidays")
    words = ["namespace", "update", "podinfo", "--label", "a=b"]
    (line,) = cli.refused(6, *words)
    assert "frozen by also (holidays); closing (year-end closing);" in line
    shown = remedy(line)
    assert shown[: len(words)] == words
    assert shown[len(words) :] == ["--confirm-clusters", "5", "--override-freeze", "also,closing", "--reason", "TEXT"]
    assert cli.refused(2, *words, "--override-freeze", "also") == ["--override-freeze needs a --reason, which is kept in the log"]
    assert cli.refused(2, *words, "--override-freeze", "ä", "--reason", "x") == ["--override-freeze is 'ä', which can be no id"]
    (line,) = cli.refused(6, *words, "--override-freeze", "also", "--reason", "an outage")
    assert "--reason TEXT" not in line
    assert api.get("/namespaces/podinfo").json()["labels"] == {"app": "podinfo"}
    several = ["--override-freeze", "also", "--override-freeze", "closing", "--confirm-clusters", "5"]
    cli.ok(*words, *several, "--reason", "an outage")
    newest = api.get("/changes?limit=1").json()[0]
    assert (newest["reason"], newest["forced"]) == ("an outage", True)


def test_on_a_terminal_a_freeze_is_named_in_the_question(cli: Cli, api: httpx.Client) -> None:
    until = ("--until", "2099-01-01T00:00:00Z")
    cli.ok("freeze", "create", "closing", "--environment", "qa", "--reason", "year-end closing", *until)
    words = ("namespace", "update", "podinfo", "--label", "a=b")
    without = cli.on_terminal(*words, answers="y\n")
    assert without.code == 6
    assert "--override-freeze closing --reason TEXT" in without.out
    assert "under freeze closing (year-end closing, until 2099-01-01T00:00:00Z)" in without.out
    asked = cli.on_terminal(*words, "--reason", "an outage", answers="y\n")
    assert asked.code == 0, asked.out
    assert "1 freeze would be overridden: closing; 5 clusters would get other inputs; do it all the same? [y/N]" in asked.out
    assert api.get("/namespaces/podinfo").json()["labels"]["a"] == "b"
