"""Looking back: the history of documents, what was, what is different since, and why an input is as it is."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

import live
from cli.command import Cli


@pytest.fixture(scope="module")
def then(cli: Cli, api: httpx.Client) -> int:
    """The revision at which a cluster stood, which went on and is no more."""
    cli.ok("component", "create", "looked", "--component-path", "x", "--oci-url", "oci://r.example/x", "--oci-tag", "v1")
    body = {"id": "looked", "cluster_name": "looked", "cluster_dns": "looked.example.com", "environment": "qa"}
    assert api.post("/clusters", json={**body, "platform_components": [{"id": "looked"}]}).status_code == 201
    revision = newest(cli)
    cli.ok("cluster", "update", "looked", "--label", "zone=edge", "--reason", "it moved: ü")
    cli.ok("component", "pin", "looked", "--cluster", "looked", "--oci-tag", "v2")
    cli.ok("cluster", "decommission", "looked", "--yes")
    return revision


@pytest.fixture
def compacted(tmp_path: Path, home: Path) -> Iterator[Cli]:
    """With a log whose beginning was folded away."""
    with live.serving(tmp_path) as server:
        cli = Cli(home, server.url)
        for number in range(3):
            cli.ok("namespace", "create", f"folded-{number}")
        compact = [*live.PROGRAM, "compact", "--before", str(newest(cli))]
        subprocess.run(compact, env=live.environment(tmp_path), check=True, capture_output=True, timeout=60)
        yield cli


def newest(cli: Cli) -> int:
    return int(cli.ok("changes", "--limit", "1", "-o", "json").data[0]["revision"])


def test_history_is_the_apis_array_and_lines_for_people(cli: Cli, api: httpx.Client, then: int) -> None:
    told = cli.ok("cluster", "history", "looked").data
    assert told == api.get("/clusters/looked/history").json()
    assert [change["operation"] for change in told] == ["delete", "update", "update", "create"]
    assert yaml.safe_load(cli.ok("cluster", "history", "looked", "-o", "yaml").out) == told
    assert cli.ok("cluster", "history", "looked", "-o", "name").out.split() == [str(change["revision"]) for change in told]
    shown = cli.ok("cluster", "history", "looked", "-o", "table").out.splitlines()
    at = next(number for number, line in enumerate(shown) if "it moved: ü" in line)
    assert f"revision {told[2]['revision']}" in shown[at]
    assert "updated by write: it moved: ü" in shown[at]
    assert shown[at + 1] == '  /labels/zone: (none) → "edge"'
    assert '  /platform_components/looked/oci_tag: (none) → "v2"' in shown
    assert then == told[3]["revision"]


def test_history_says_for_whom_a_token_acted(cli: Cli, api: httpx.Client) -> None:
    assert api.post("/namespaces", json={"id": "behalf"}, headers={"X-Actor": "ada"}).status_code == 201
    assert "created by write for ada" in cli.on_terminal("namespace", "history", "behalf").out.replace("\x1b[32m", "").replace(
        "\x1b[0m", ""
    )


def test_history_can_be_limited_and_says_that_there_is_more(cli: Cli, then: int) -> None:
    limited = cli.ok("cluster", "history", "looked", "--limit", "2")
    assert [change["operation"] for change in limited.data] == ["delete", "update"]
    assert "the newest 2; --limit shows more" in limited.err
    assert "--limit" not in cli.ok("cluster", "history", "looked", "--limit", "4").err
    assert "not found" in cli.refused(4, "cluster", "history", "never-was")[0]


@pytest.mark.long
def test_a_long_history_is_read_in_pages(tmp_path: Path, home: Path) -> None:
    with live.serving(tmp_path, STORE_BACKEND="memory") as server, server.client() as api:
        cli = Cli(home, server.url)
        cli.ok("namespace", "create", "paged")
        for number in range(1005):
            assert api.patch("/namespaces/paged", json={"labels": {"n": str(number)}}).status_code == 200
        told = cli.ok("namespace", "history", "paged", "--limit", "5000").data
    assert [change["revision"] for change in told] == sorted({change["revision"] for change in told}, reverse=True)
    assert len(told) == 1006


def test_documents_and_lists_as_they_were(cli: Cli, api: httpx.Client, then: int) -> None:
    was = cli.ok("cluster", "get", "looked", "--at", str(then), "-o", "json")
    assert was.data == api.get(f"/clusters/looked?at={then}").json()
    assert was.data["labels"] == {}
    assert f"as of revision {then}" in was.err
    assert "looked" in [
        item["id"] for item in cli.ok("cluster", "list", "--at", str(then), "--environment", "qa", "-o", "json").data
    ]
    assert "looked" not in [item["id"] for item in cli.ok("cluster", "list", "-o", "json").data]
    moment = api.get(f"/changes/{then + 1}").json()["time"]
    at_a_time = cli.ok("cluster", "get", "looked", "--at", moment, "-o", "json")
    assert at_a_time.data["labels"] == {"zone": "edge"}
    assert f"as of revision {then + 1}" in at_a_time.err


def test_points_that_are_none_are_told_in_the_servers_words(cli: Cli, then: int) -> None:
    assert "RFC 3339" in cli.refused(3, "cluster", "get", "looked", "--at", "yesterday")[0]
    assert cli.refused(3, "cluster", "list", "--at", "99999999")
    assert cli.refused(4, "cluster", "get", "looked", "--at", "0")
    assert cli.refused(4, "cluster", "get", "looked")
    assert cli.refused(3, "inputs", "looked.example.com", "platform-components", "--at", "")


def test_what_was_folded_away_is_one_clear_line(compacted: Cli) -> None:
    (line,) = compacted.refused(4, "namespace", "list", "--at", "1")
    assert "compacted; the oldest that can be asked for is revision" in line
    (line,) = compacted.refused(2, "diff", "--from", "1")
    assert "compacted" in line


def test_inputs_of_then_also_of_a_cluster_that_is_no_more(cli: Cli, api: httpx.Client, then: int) -> None:
    wanted = api.get(f"/clusters/looked/inputs/platform-components?at={then + 2}").content
    for name in ("looked.example.com", "looked"):
        assert cli.ok("inputs", name, "platform-components", "--at", str(then + 2)).out.encode() == wanted
    assert json.loads(wanted)["inputs"][0]["source"]["oci_tag"] == "v2"
    assert cli.ok("inputs", "looked.example.com", "platform-components").data["inputs"] == []
    assert cli.refused(4, "inputs", "looked.example.com", "platform-components", "--at", str(then - 1))


def test_what_became_of_several_groups_of_clusters_is_told_as_past(cli: Cli, api: httpx.Client) -> None:
    start = api.get("/changes?limit=1").json()[0]["revision"]
    for id, namespace in (("grouped-1", "podinfo"), ("grouped-2", "traefik")):
        body = {"id": id, "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "qa"}
        assert api.post("/clusters", json={**body, "namespaces": [{"id": namespace}]}).status_code == 201
    shown = cli("diff", "--from", str(start), "--to", str(start + 2), "-o", "table").out
    assert "in all: 2 clusters got other inputs: 2 added, 0 removed, 0 changed" in shown
    assert "would" not in shown


def test_manifests_of_then(cli: Cli, then: int) -> None:
    words = ("render", "looked", "--view", "platform-components", "--engine", "builtin", "--at")
    assert "v1" in cli.ok(*words, str(then)).out
    later = cli.ok(*words, str(then + 2))
    assert "v2" in later.out
    assert f"as of revision {then + 2}" in later.err
    assert cli.ok("render", "looked", "--engine", "builtin", "--at", str(then)).err.count("as of revision") == 1
    assert cli.refused(4, *words, str(then + 3))
    assert "--at" in cli.refused(2, "render", "--inputs", "x.json", "--view", "namespaces", "--at", "1")[0]


def test_two_points_compared(cli: Cli, api: httpx.Client, then: int) -> None:
    between = ("diff", "--from", str(then), "--to", str(then + 2))
    done = cli(*between)
    assert done.code == 1
    assert done.data == api.get(f"/diff?from={then}&to={then + 2}").json()
    assert cli(*between, "-o", "name").out == "clusters/looked\n"
    shown = cli(*between, "-o", "table").out
    assert "clusters/looked updated" in shown
    assert '  /labels/zone: (none) → "edge"' in shown
    assert "/source/oci_tag" in shown
    assert "would" not in shown
    assert cli.ok("diff", "--from", str(then), "--to", str(then)).data["documents"] == []
    assert cli(*between, "--kind", "namespace").data["documents"] == []
    assert (
        cli.ok("diff", "--from", str(then), "--to", str(then + 1), "--kind", "namespace", "--cluster", "looked").data["groups"]
        == []
    )
    assert cli("diff", "--from", str(then), "--to", str(then + 3), "--cluster", "looked").data["groups"][0]["count"] == 1


def test_two_points_compared_down_to_the_objects(cli: Cli, then: int) -> None:
    shown = cli("diff", "--from", str(then), "--to", str(then + 2), "--cluster", "looked", "--render", "-o", "table").out
    assert "objects of looked:" in shown
    assert "v1" in shown.partition("objects of looked:")[2]
    gone = cli("diff", "--from", str(then + 2), "--to", str(then + 3), "--render", "-o", "table").out
    assert "platform-components/looked: removed" in gone
    assert "    - " in gone
    assert "would" not in shown + gone


def test_a_comparison_is_of_files_or_of_points(cli: Cli) -> None:
    assert "say one of them" in cli.refused(2, "diff", "-f", "x.yaml", "--from", "1")[0]
    assert "--to needs --from" in cli.refused(2, "diff", "--to", "1")[0]
    assert "RFC 3339" in cli.refused(2, "diff", "--from", "yesterday")[0]
    assert 'kind "nothing" not found' in cli.refused(2, "diff", "--from", "1", "--kind", "nothing")[0]


@pytest.mark.parametrize("field", ["/source/oci_tag", "source.oci_tag", "oci_tag"])
def test_why_a_field_is_as_it_is(cli: Cli, api: httpx.Client, then: int, field: str) -> None:
    (value,) = cli.ok("why", "looked", "looked", field, "--at", str(then + 2)).data
    assert (value["value"], value["source"], value["revision"]) == ("v2", "reference", then + 2)
    path = f"/clusters/looked/inputs/platform-components/looked/provenance?at={then + 2}"
    assert value in api.get(path).json()
    (before,) = cli.ok("why", "looked", "looked", field, "--at", str(then)).data
    assert (before["value"], before["source"], before["kind"]) == ("v1", "definition", "platform_components")


def test_why_shows_every_field_or_all_below_one(cli: Cli, api: httpx.Client, then: int) -> None:
    every = cli.ok("why", "looked", "looked", "--at", str(then)).data
    assert every == api.get(f"/clusters/looked/inputs/platform-components/looked/provenance?at={then}").json()
    below = cli.ok("why", "looked", "looked", "source", "--at", str(then)).data
    assert {value["path"] for value in below} == {value["path"] for value in every if value["path"].startswith("/source/")}
    shown = cli.ok("why", "looked", "looked", "--at", str(then + 2), "-o", "table").out.splitlines()
    (row,) = [line for line in shown if line.startswith("/source/oci_tag")]
    for word in ('"v2"', "reference", "clusters/looked /platform_components/looked/oci_tag", str(then + 2), "write"):
        assert word in row
    assert "/source/oci_tag" in cli.ok("why", "looked", "looked", "--at", str(then), "-o", "name").out.split()


def test_why_finds_values_of_patches_by_their_dotted_path(cli: Cli, api: httpx.Client) -> None:
    body = {"id": "patched-why", "cluster_name": "p", "cluster_dns": "patched-why.example.com", "environment": "qa"}
    references = {"platform_components": [{"id": "podinfo"}], "namespaces": [{"id": "podinfo"}]}
    assert api.post("/clusters", json={**body, **references}).status_code == 201
    cli.ok("component", "patch", "podinfo", "--cluster", "patched-why", "--set", "ui.color=blue", "--reason", "bluer")
    words = ("why", "patched-why", "podinfo")
    (value,) = cli.ok(*words, "ui.color", "--view", "platform-components").data
    assert (value["value"], value["source"], value["reason"]) == ("blue", "patch", "bluer")
    assert cli.ok(*words, "ui.color").data == [value]  # which the namespace of that name does not have
    assert "--view" in cli.refused(2, *words, "id")[0]  # which both have
    (line,) = cli.refused(2, *words)
    assert "platform-components" in line
    assert "namespaces" in line
    assert "--view" in line


def test_why_names_what_there_is(cli: Cli, then: int) -> None:
    (line,) = cli.refused(4, "why", "looked", "looked", "nothing", "--at", str(then))
    assert "/source/oci_tag" in line
    assert 'input "nothing" not found' in cli.refused(4, "why", "looked", "nothing", "--at", str(then))[0]
    assert cli.refused(4, "why", "looked", "looked")  # it is decommissioned
    assert cli.refused(4, "why", "demo-cluster-01", "podinfo", "--view", "nothing")


@pytest.mark.long
def test_following_from_a_moment_on_begins_with_all_that_came_since(cli: Cli) -> None:
    cli.ok("namespace", "create", "since")
    moment = cli.ok("changes", "--id", "since", "-o", "json").data[0]["time"]
    for number in range(12):
        cli.ok("namespace", "update", "since", "--label", f"n={number}")
    process = cli.start("changes", "--follow", "--since", moment, "--id", "since", "-o", "json")
    try:
        assert process.stdout
        seen = [json.loads(process.stdout.readline())["changes"][0]["operation"] for _ in range(13)]
        assert seen == ["create", *["update"] * 12]
        cli.ok("namespace", "update", "since", "--label", "n=last")
        assert json.loads(process.stdout.readline())["changes"][0]["after"]["labels"] == {"n": "last"}
    finally:
        process.send_signal(signal.SIGINT)  # as people end it; it tells how far it came, too
        process.communicate()


def test_completion_and_help_know_the_ways_back(cli: Cli) -> None:
    assert "history" in cli.ok("__complete", "cluster", "").out.split()
    assert "why" in cli.ok("__complete", "").out.split()
    assert "--at" in cli.ok("__complete", "inputs", "x", "y", "-").out.split()
    assert "demo-cluster-01" in cli.ok("__complete", "why", "").out.split()
    assert "--from" in cli.ok("diff", "--help").out
