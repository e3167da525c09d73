"""Apply: what others changed stays, what both changed is a conflict, and what is no longer named goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.command import Cli


def namespace(id: str, **labels: str) -> dict[str, Any]:
    return {"kind": "namespace", "id": id, "labels": labels}


def applied(cli: Cli, *documents: dict[str, Any], words: tuple[str, ...] = ()) -> Any:
    return cli("apply", "-f", "-", *words, stdin=json.dumps(list(documents)))


def labels(api: httpx.Client, id: str) -> Any:
    return api.get(f"/namespaces/{id}").json()["labels"]


@pytest.mark.long
def test_what_others_changed_stays_and_is_told(cli: Cli, api: httpx.Client) -> None:
    assert applied(cli, namespace("kept-a", one="1", two="2")).code == 0
    api.patch("/namespaces/kept-a", json={"labels": {"one": "hotfix"}})
    revision = api.get("/changes?limit=1").json()[0]["revision"]
    done = applied(cli, namespace("kept-a", one="1", two="3"), words=("-o", "table"))
    assert done.code == 0, done
    assert "namespaces/kept-a updated" in done.out
    assert f"namespaces/kept-a kept: /labels/one (by write, revision {revision})" in done.err
    assert labels(api, "kept-a") == {"one": "hotfix", "two": "3"}


def test_what_is_no_longer_named_goes_and_a_second_manager_minds_its_own_fields(cli: Cli, api: httpx.Client) -> None:
    assert applied(cli, namespace("two-managers", one="1", two="2")).code == 0
    assert applied(cli, namespace("two-managers", three="3"), words=("--manager", "pipeline")).code == 0
    assert labels(api, "two-managers") == {"one": "1", "two": "2", "three": "3"}
    assert applied(cli, namespace("two-managers", one="1")).code == 0
    assert labels(api, "two-managers") == {"one": "1", "three": "3"}


def test_a_conflict_is_a_line_per_field_and_force_takes_the_file(cli: Cli, api: httpx.Client) -> None:
    assert applied(cli, namespace("contested", one="1", two="2"), namespace("contested-too", one="1")).code == 0
    for id in ("contested", "contested-too"):
        api.patch(f"/namespaces/{id}", json={"labels": {"one": "theirs"}})
    wanted = [namespace("contested", one="mine", two="2"), namespace("contested-too", one="mine")]
    done = applied(cli, *wanted)
    assert done.code == 6
    assert [line.partition(": ")[2].partition(" (by")[0] for line in done.lines] == [
        '/labels/one: theirs is "theirs"',
        '/labels/one: theirs is "theirs"',
    ]
    assert all(line.endswith('yours is "mine"; --force-conflicts takes yours') for line in done.lines)
    assert labels(api, "contested") == {"one": "theirs", "two": "2"}
    assert applied(cli, *wanted, words=("--force-conflicts",)).code == 0
    assert labels(api, "contested") == {"one": "mine", "two": "2"}


def test_diff_shows_conflicts_and_what_force_would_do(cli: Cli, api: httpx.Client) -> None:
    assert applied(cli, namespace("differs-from-file", one="1", two="2")).code == 0
    same = cli("diff", "-f", "-", stdin=json.dumps(namespace("differs-from-file", one="1", two="2")))
    assert same.code == 0, same
    api.patch("/namespaces/differs-from-file", json={"labels": {"one": "theirs", "two": "x"}})
    done = cli("diff", "-f", "-", "-o", "table", stdin=json.dumps(namespace("differs-from-file", one="mine", two="2")))
    assert done.code == 1, done
    assert 'conflict: namespaces "differs-from-file": /labels/one: theirs is "theirs"' in done.err
    assert "namespaces/differs-from-file kept: /labels/two" in done.err
    assert "+  one: mine" in done.out
    assert labels(api, "differs-from-file") == {"one": "theirs", "two": "x"}


def test_apply_is_one_request_and_no_get_of_a_document(cli: Cli) -> None:
    done = applied(cli, *(namespace(f"counted-{number}", a="b") for number in range(3)), words=("--debug",))
    asked = [line for line in done.err.splitlines() if "GET " in line or "POST " in line]
    assert [line for line in asked if "/namespaces" in line] == []
    assert len([line for line in asked if "POST" in line and "/batch" in line]) == 1


def cluster(id: str, **fields: Any) -> dict[str, Any]:
    named = {"cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "dev"}
    return {"kind": "cluster", "id": id, **named, **fields}


def test_a_decommissioned_cluster_comes_back_only_when_that_is_said(cli: Cli, api: httpx.Client) -> None:
    assert applied(cli, cluster("revived-by-apply")).code == 0
    assert api.delete("/clusters/revived-by-apply").status_code == 200
    done = applied(cli, cluster("revived-by-apply"))
    assert done.code == 6
    assert "decommissioned" in done.lines[0]
    assert api.get("/clusters/revived-by-apply").status_code == 404
    assert applied(cli, cluster("revived-by-apply"), words=("--revive",)).code == 0
    assert api.get("/clusters/revived-by-apply").status_code == 200


def test_every_decommissioned_cluster_is_a_line_beside_the_conflicts_and_diff_shows_what_would_come_back(
    cli: Cli, api: httpx.Client
) -> None:
    files = [cluster(id) for id in ("gone-a", "gone-b")]
    assert applied(cli, *files, namespace("gone-not", one="1")).code == 0
    assert cli.ok("cluster", "decommission", "gone-a", "gone-b", "--yes")
    revision = api.get("/changes?limit=1").json()[0]["revision"]
    api.patch("/namespaces/gone-not", json={"labels": {"one": "theirs"}}, headers={"X-Actor": "jane"})
    wanted = [namespace("gone-not", one="mine"), *files, cluster("gone-c", cluster_dns="gone-a.example.com")]
    done = applied(cli, *wanted)
    remedy = "take it out of the files, or bring it back with --revive"
    assert done.code == 6
    assert done.lines == [
        f'clusters "gone-a" was decommissioned in revision {revision}; {remedy}',
        f'clusters "gone-b" was decommissioned in revision {revision}; {remedy}',
        f'clusters "gone-c" was decommissioned as "gone-a", which had its DNS name, in revision {revision}; {remedy}',
        f'namespaces "gone-not": /labels/one: theirs is "theirs" (by write for jane, revision {revision + 1}), '
        'yours is "mine"; --force-conflicts takes yours',
    ]
    assert applied(cli, *wanted, words=("--force-conflicts",)).lines == done.lines[:3]
    compared = cli("diff", "-f", "-", "-o", "table", stdin=json.dumps(wanted[:3]))
    assert compared.code == 1, compared
    assert [line for line in compared.err.splitlines() if line.startswith("conflict: ")] == [
        f"conflict: {done.lines[place]}" for place in (0, 1, 3)
    ]
    assert "+id: gone-b" in compared.out
    assert api.get("/clusters/gone-a").status_code == 404


# Prune


def test_prune_deletes_what_this_manager_no_longer_applies(cli: Cli, api: httpx.Client) -> None:
    mine = ("--manager", "pruner")
    first = [namespace("pruned-a"), namespace("pruned-b"), namespace("pruned-shared")]
    assert applied(cli, *first, words=mine).code == 0
    assert applied(cli, namespace("pruned-shared", by="other"), words=("--manager", "other")).code == 0
    assert applied(cli, namespace("not-mine"), words=("--manager", "other")).code == 0
    (line,) = cli.refused(2, "apply", "-f", "-", *mine, "--prune", stdin=json.dumps(first[:1]))
    assert "--yes" in line
    dry = applied(cli, first[0], words=(*mine, "--prune", "--dry-run", "-o", "table"))
    assert dry.err.splitlines()[-1] == "would prune 1, 1 unchanged; nothing was changed"
    done = applied(cli, first[0], words=(*mine, "--prune", "--yes", "-o", "table"))
    assert done.code == 0, done
    assert "namespaces/pruned-b pruned" in done.out
    assert api.get("/namespaces/pruned-b").status_code == 404
    assert [api.get(f"/namespaces/{id}").status_code for id in ("pruned-a", "pruned-shared", "not-mine")] == [200, 200, 200]


def test_a_dry_run_counts_what_would_be_pruned(cli: Cli, api: httpx.Client) -> None:
    mine = ("--manager", "counter")
    assert applied(cli, *(namespace(f"counted-out-{number}") for number in range(3)), words=mine).code == 0
    left = json.dumps(namespace("counted-out-0"))
    for command, code in (("apply", 0), ("diff", 1)):
        words = ("--dry-run",) if command == "apply" else ()
        done = cli(command, "-f", "-", *mine, "--prune", *words, "-o", "table", stdin=left)
        assert (done.code, done.err) == (code, "would prune 2, 1 unchanged; nothing was changed\n"), done
    assert api.get("/namespaces/counted-out-1").status_code == 200


def test_prune_of_clusters_keeps_to_the_environment(cli: Cli, api: httpx.Client) -> None:
    mine = ("--manager", "by-environment")
    here, there = cluster("prune-dev"), cluster("prune-qa", environment="qa")
    assert applied(cli, here, there, cluster("prune-stays"), words=mine).code == 0
    words = (*mine, "--prune", "--environment", "qa", "--yes")
    assert applied(cli, cluster("prune-stays"), words=words).code == 0
    assert [api.get(f"/clusters/{id}").status_code for id in ("prune-dev", "prune-qa", "prune-stays")] == [200, 404, 200]


def test_a_definition_in_use_is_not_pruned_and_nothing_is_done(cli: Cli, api: httpx.Client) -> None:
    mine = ("--manager", "in-use")
    assert applied(cli, namespace("used-ns"), namespace("other-ns"), words=mine).code == 0
    assert applied(cli, cluster("user-of-ns", namespaces=[{"id": "used-ns"}])).code == 0
    done = applied(cli, namespace("other-ns", a="b"), words=(*mine, "--prune", "--yes"))
    assert done.code == 6
    assert labels(api, "other-ns") == {}
    assert api.get("/namespaces/used-ns").status_code == 200


def test_on_a_terminal_prune_names_what_goes_and_asks(cli: Cli, api: httpx.Client, tmp_path: Path) -> None:
    mine = ("--manager", "asked")
    assert applied(cli, namespace("asked-a"), namespace("asked-b"), words=mine).code == 0
    file = tmp_path / "left.json"
    file.write_text(json.dumps(namespace("asked-a")))
    words = ("apply", "-f", str(file), *mine, "--prune")
    no = cli.on_terminal(*words, answers="n\n")
    assert no.code == 2
    assert "namespaces/asked-b would be pruned" in no.out
    assert "delete what asked does not apply any more?" in no.out
    assert api.get("/namespaces/asked-b").status_code == 200
    assert cli.on_terminal(*words, answers="y\n").code == 0
    assert api.get("/namespaces/asked-b").status_code == 404


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--environment", "dev"), "--environment says what --prune may delete"),
        (("-l", "a=b"), "--selector says what --prune may delete"),
        (("--prune", "--yes", "--environment", "dev"), "there are none in the files"),
    ],
)
def test_what_narrows_a_prune_needs_one(cli: Cli, words: tuple[str, ...], wanted: str) -> None:
    (line,) = cli.refused(2, "apply", "-f", "-", *words, stdin=json.dumps(namespace("narrowed")))
    assert wanted in line


@pytest.mark.parametrize("name", ["Not Good", ""])  # empty, as an unset variable makes it
def test_a_manager_has_a_plain_name(cli: Cli, name: str) -> None:
    (line,) = cli.refused(3, "apply", "-f", "-", "--manager", name, stdin=json.dumps(namespace("unmanaged")))
    assert "manager" in line
