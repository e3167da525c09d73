"""Going back: a change undone, a document or the fleet as it was, with the plan and the question before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from cli.command import Cli


def newest(cli: Cli) -> int:
    return int(cli.ok("changes", "--limit", "1", "-o", "json").data[0]["revision"])


def make_cluster(api: httpx.Client, id: str, **fields: Any) -> None:
    body = {"id": id, "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "qa"}
    assert api.post("/clusters", json={**body, **fields}).status_code == 201


@pytest.fixture
def fleet(tmp_path: Path, home: Path) -> Iterator[tuple[Cli, httpx.Client]]:
    """A server of its own, for what concerns everything; it guards removals from the environment prod."""
    with (
        live.serving(
            tmp_path, STORE_BACKEND="memory", SEED_FILE=str(live.ROOT / "data" / "seed.json"), PROTECTED_ENVIRONMENTS="prod"
        ) as server,
        server.client() as api,
    ):
        yield Cli(home, server.url), api


def test_a_change_is_undone_and_what_came_since_stays(cli: Cli, api: httpx.Client) -> None:
    make_cluster(api, "undone")
    cli.ok("cluster", "update", "undone", "--label", "zone=edge")
    wrong = newest(cli)
    cli.ok("cluster", "update", "undone", "--label", "team=x")
    done = cli.ok("changes", "revert", str(wrong), "--yes", "--reason", "wrong cluster")
    assert done.data[0]["labels"] == {"team": "x"}
    entry = api.get("/changes?limit=1").json()[0]
    assert (entry["reverts"], entry["reason"]) == (wrong, "wrong cluster")
    assert f"1 updated (revision {entry['revision']})" in done.err
    assert f"update clusters/undone (reverts {wrong})" in cli.ok("changes", "--limit", "1", "-o", "table").out
    again = cli.ok("changes", "revert", str(wrong), "--yes")
    assert "nothing to do" in again.err
    assert newest(cli) == entry["revision"]


def test_a_dry_run_shows_the_plan_and_changes_nothing(cli: Cli, api: httpx.Client) -> None:
    make_cluster(api, "rehearsed")
    cli.ok("namespace", "assign", "podinfo", "--cluster", "rehearsed")
    wrong = newest(cli)
    plan = cli.but(FLUX_API_WRITE_TOKEN=None).ok("changes", "revert", str(wrong), "--dry-run").data
    assert plan["summary"] == {"documents": 1, "clusters": 1, "added": 0, "removed": 1, "changed": 0}
    shown = cli.ok("changes", "revert", str(wrong), "--dry-run", "-o", "table")
    assert "namespaces/podinfo: would be removed" in shown.out
    assert "clusters/rehearsed would be updated" in shown.out
    assert cli.ok("cluster", "revert", "rehearsed", "--to", str(wrong - 1), "--dry-run").data["plan"] == plan["plan"]
    assert newest(cli) == wrong


@pytest.mark.long
def test_somebody_has_to_agree(cli: Cli, api: httpx.Client) -> None:
    make_cluster(api, "agreed")
    cli.ok("namespace", "assign", "podinfo", "--cluster", "agreed")
    wrong = newest(cli)
    (line,) = cli.refused(2, "changes", "revert", str(wrong))
    assert "--yes" in line
    refused = cli.on_terminal("changes", "revert", str(wrong), answers="n\n")
    assert refused.code != 0
    assert "namespaces/podinfo: would be removed" in refused.out
    assert '/namespaces/podinfo: {"id": "podinfo"} → (none)' in refused.out
    assert f"undo revision {wrong}? [y/N]" in refused.out
    assert newest(cli) == wrong
    agreed = cli.on_terminal("changes", "revert", str(wrong), answers="y\n")
    assert agreed.code == 0, agreed
    assert "clusters/agreed" in agreed.out
    assert api.get("/clusters/agreed").json()["namespaces"] == []
    nothing = cli.on_terminal("changes", "revert", str(wrong))
    assert nothing.code == 0
    assert "[y/N]" not in nothing.out
    assert "nothing to do" in nothing.out


def test_only_the_plan_that_was_agreed_to_is_carried_out(cli: Cli, api: httpx.Client) -> None:
    make_cluster(api, "moved")
    cli.ok("cluster", "update", "moved", "--label", "a=1")
    to = newest(cli)
    cli.ok("cluster", "update", "moved", "--label", "a=2")
    back = ("cluster", "revert", "moved", "--to", str(to))
    plan = cli.ok(*back, "--dry-run").data["plan"]
    cli.ok("cluster", "update", "moved", "--label", "b=3")
    (line,) = cli.refused(6, *back, "--yes", "--if-plan", plan)
    assert "the new plan" in line
    assert api.get("/clusters/moved").json()["labels"] == {"a": "2", "b": "3"}
    cli.ok(*back, "--yes", "--if-plan", cli.ok(*back, "--dry-run").data["plan"])
    assert api.get("/clusters/moved").json()["labels"] == {"a": "1"}


def test_a_field_that_was_changed_again_is_a_conflict(cli: Cli, api: httpx.Client) -> None:
    make_cluster(api, "conflicting")
    cli.ok("cluster", "update", "conflicting", "--label", "zone=a", "--label", "team=x")
    wrong = newest(cli)
    cli.ok("cluster", "update", "conflicting", "--label", "zone=b", "--label", "team=y")
    for words in (("--yes",), ("--dry-run",)):
        *conflicts, remedy = cli.refused(6, "changes", "revert", str(wrong), *words)
        assert sorted(conflicts) == [
            f'clusters "conflicting": /labels/{name} was changed again by revision {wrong + 1}' for name in ("team", "zone")
        ]
        assert "--force" in remedy
    assert cli.ok("changes", "revert", str(wrong), "--force", "--yes").data[0]["labels"] == {}
    assert api.get("/changes?limit=1").json()[0]["forced"] is True


@pytest.mark.long
def test_of_many_conflicts_the_first_are_named_and_all_are_counted(fleet: tuple[Cli, httpx.Client]) -> None:
    cli, api = fleet
    for number in range(101):
        make_cluster(api, f"many-{number}")
    for zone in ("a", "b"):
        operations = [
            {"op": "patch", "kind": "clusters", "id": f"many-{number}", "document": {"labels": {"zone": zone}}}
            for number in range(101)
        ]
        assert api.post("/batch", json={"operations": operations}).status_code == 200
    *conflicts, more, remedy = cli.refused(6, "changes", "revert", str(newest(cli) - 1), "--yes")
    asked = cli.on_terminal("changes", "revert", str(newest(cli)), answers="n\n").out
    assert asked.count("/labels/zone: ") == 20
    assert "… and 81 more; --dry-run shows all" in asked
    assert len(conflicts) == 100
    assert more == "and 1 more"
    assert "--force" in remedy


def test_a_document_becomes_what_it_was(cli: Cli, api: httpx.Client) -> None:
    cli.ok("namespace", "create", "gone", "--label", "a=b")
    to = newest(cli)
    cli.ok("namespace", "delete", "gone", "--yes")
    moment = api.get(f"/changes/{to}").json()["time"]
    done = cli.ok("namespace", "revert", "gone", "--to", moment, "--yes")
    assert done.data == api.get("/namespaces/gone").json()
    assert done.data["labels"] == {"a": "b"}
    assert f"1 created (revision {to + 2})" in done.err
    assert "nothing to do" in cli.ok("namespace", "revert", "gone", "--to", str(to), "--yes").err
    assert newest(cli) == to + 2
    assert "1 unchanged; nothing to do" in cli.on_terminal("namespace", "revert", "gone", "--to", str(to)).out


def test_a_decommissioned_cluster_comes_back(cli: Cli, api: httpx.Client) -> None:
    make_cluster(api, "revived", namespaces=[{"id": "podinfo"}])
    to = newest(cli)
    cli.ok("cluster", "decommission", "revived", "--yes")
    assert cli.ok("cluster", "revert", "revived", "--to", str(to), "--yes", "-o", "name").out == "clusters/revived\n"
    assert cli.ok("inputs", "revived.example.com", "namespaces").data["inputs"][0]["id"] == "podinfo"


def test_what_cannot_be_gone_back_to(cli: Cli) -> None:
    assert "--to" in cli.refused(2, "namespace", "revert", "podinfo")[0]
    assert "--to" in cli.refused(2, "revert", "--yes")[0]
    assert cli.refused(4, "namespace", "revert", "podinfo", "--to", "0", "--yes")
    assert cli.refused(3, "namespace", "revert", "podinfo", "--to", "yesterday", "--yes")
    assert "was not found" in cli.refused(4, "changes", "revert", "99999999", "--yes")[0]
    assert "unexpected argument" in cli.refused(2, "changes", "revret", "1")[0]
    assert cli.refused(3, "revert", "--to", "1", "--kind", "namespace", "--environment", "qa", "--yes")
    assert "FLUX_API_WRITE_TOKEN" in cli.but(FLUX_API_WRITE_TOKEN=None).refused(2, "revert", "--to", "1", "--yes")[0]


@pytest.mark.long
def test_the_fleet_becomes_what_it_was(fleet: tuple[Cli, httpx.Client]) -> None:
    cli, api = fleet
    to, before = newest(cli), {kind: cli.ok(kind, "list", "-o", "json").data for kind in ("cluster", "namespace", "component")}
    cli.ok("namespace", "create", "late", "--cluster", "demo-cluster-01")
    make_cluster(api, "late", environment="qa")
    cli.ok("component", "update", "podinfo", "--oci-tag", "v9")
    part = cli.ok("revert", "--to", str(to), "--kind", "component", "--yes")
    assert [document["id"] for document in part.data] == ["podinfo"]
    cli.ok("revert", "--to", str(to), "--environment", "qa", "--yes")
    assert cli.refused(4, "cluster", "get", "late")
    assert cli.ok("namespace", "get", "late", "-o", "json").data
    shown = cli.on_terminal("revert", "--to", str(to), answers="y\n")
    assert shown.code == 0, shown
    assert f"make the whole fleet what it was at {to}? [y/N]" in shown.out
    assert {kind: cli.ok(kind, "list", "-o", "json").data for kind in before} == before
    assert "nothing to do" in cli.ok("revert", "--to", str(to), "--yes").err
    assert cli("diff", "--from", str(to)).code == 0


def test_guards_hold_up_those_who_go_back(fleet: tuple[Cli, httpx.Client]) -> None:
    cli, api = fleet
    make_cluster(api, "guarded", environment="prod")
    to = newest(cli)
    cli.ok("namespace", "assign", "podinfo", "--cluster", "guarded")
    (line,) = cli.refused(6, "revert", "--to", str(to), "--yes")
    assert "--confirm-removals 1" in line
    assert newest(cli) == to + 1
    cli.ok("revert", "--to", str(to), "--yes", "--confirm-removals", "1")
    assert api.get("/clusters/guarded").json()["namespaces"] == []
    undone = cli.on_terminal("changes", "revert", str(to + 2), answers="y\n")
    assert undone.code == 0, undone
    asked = cli.on_terminal("cluster", "revert", "guarded", "--to", str(to), answers="y\n")
    assert "1 input would be removed from 1 cluster" in asked.out
    assert asked.code == 0
    assert api.get("/clusters/guarded").json()["namespaces"] == []


def test_the_log_is_shown_as_before_and_its_help_tells_of_the_way_back(cli: Cli) -> None:
    wanted = cli.ok("changes", "--limit", "1", "-o", "json").data
    assert cli.ok("--output", "json", "changes", "--limit=1").data == wanted
    assert "unknown option --limt" in cli.refused(2, "changes", "--limt", "1")[0]
    text = cli.ok("changes", "--help").out
    assert "Usage: flux-resourceset-cli changes [REVISION] [options]" in text
    assert "changes revert" in text
    for words in ("help changes", "changes -h", "changes --limt 3 --help"):
        assert cli.ok(*words.split()).out == text
    of_revert = cli.ok("changes", "revert", "--help").out
    assert "Usage: flux-resourceset-cli changes revert <revision> [options]" in of_revert
    assert cli.ok("help", "changes", "revert").out == of_revert


def test_completion_knows_the_ways_back(cli: Cli) -> None:
    assert "revert" in cli.ok("__complete", "").out.split()
    assert "revert" in cli.ok("__complete", "namespace", "").out.split()
    offered = cli.ok("__complete", "changes", "").out.split()
    assert "revert" in offered
    assert "--follow" in cli.ok("__complete", "changes", "--").out.split()
    assert "--kind" in cli.ok("__complete", "changes", "--limit", "1", "--k").out.split()
    assert "cluster" in cli.ok("__complete", "changes", "--kind", "").out.split()
    assert "--force" in cli.ok("__complete", "changes", "revert", "1", "--").out.split()
