"""get, describe and delete with a kind behind them, short names, usage, and clusters that are no more."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from cli.command import Cli


def make_cluster(api: httpx.Client, id: str, **fields: object) -> None:
    document = {"id": id, "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "qa", **fields}
    assert api.post("/clusters", json=document).status_code == 201


def make_component(api: httpx.Client, id: str, tag: str = "1.0.0") -> None:
    document = {"id": id, "component_path": id, "oci_url": "https://charts.example.com", "oci_tag": tag}
    assert api.post("/platform_components", json=document).status_code == 201


def read(cli: Cli, *words: str) -> Any:
    return cli.ok(*words, "-o", "json").data


@pytest.mark.parametrize("kind", ["cl", "cluster", "clusters"])
def test_a_kind_goes_by_all_of_its_names(cli: Cli, kind: str) -> None:
    expected = read(cli, "cluster", "get", "demo-cluster-01")
    assert read(cli, "get", kind, "demo-cluster-01") == expected
    assert read(cli, kind, "get", "demo-cluster-01") == expected
    assert expected in read(cli, "get", kind)
    assert expected in read(cli, kind, "list")


@pytest.mark.parametrize("kind", ["comp", "component", "components", "platform_components", "platform-components"])
def test_the_plural_of_the_everyday_word_is_a_name_as_well(cli: Cli, kind: str) -> None:
    expected = read(cli, "component", "get", "podinfo")
    assert read(cli, "get", kind, "podinfo") == read(cli, kind, "get", "podinfo") == expected
    assert cli.ok("get", f"{kind}/podinfo", "-o", "name").out == "platform_components/podinfo\n"
    assert read(cli, kind, "usage", "podinfo") == read(cli, "component", "usage", "podinfo")
    assert read(cli, "explain", kind) == read(cli, "explain", "component")
    assert cli.ok("changes", "--kind", kind, "--limit", "1").code == 0


def test_a_plural_is_that_of_the_group_where_the_collection_says_more(cli: Cli) -> None:
    assert read(cli, "get", "components") == read(cli, "component", "list") == read(cli, "components", "list")
    assert read(cli, "explain", "components.oci_tag") == read(cli, "explain", "component.oci_tag")
    assert cli.ok("changes", "--kind", "components", "--limit", "1").code == 0


def test_every_built_in_kind_has_a_short_name(cli: Cli) -> None:
    for short, one in (("comp", "platform_components/podinfo"), ("ns", "namespaces/podinfo"), ("rb", "rolebindings/dev-readers")):
        assert cli.ok("get", short, one.partition("/")[2], "-o", "name").out == f"{one}\n"
        assert cli.ok("get", one, "-o", "name").out == f"{one}\n"
        assert one in cli.ok("get", short, "-o", "name").out.splitlines()
    cli.ok("ag", "create", "short-agent", "--channel", "stable")  # of a kind that a file adds
    assert cli.ok("get", "ag", "short-agent", "-o", "name").out == "agents/short-agent\n"
    assert cli.ok("changes", "--kind", "ns", "--limit", "1").code == 0
    assert read(cli, "explain", "comp") == read(cli, "explain", "component")


def test_get_takes_the_options_of_lists(cli: Cli) -> None:
    assert read(cli, "get", "cl", "--environment", "prod") == read(cli, "cluster", "list", "--environment", "prod")
    assert read(cli, "get", "-l", "app=podinfo", "ns") == read(cli, "namespace", "list", "-l", "app=podinfo")
    assert "goes with no ids" in cli.refused(2, "get", "cl", "demo-cluster-01", "--environment", "dev")[0]


def test_several_are_shown_together_and_unknown_ones_told_behind_them(cli: Cli) -> None:
    both = read(cli, "get", "ns", "podinfo", "traefik", "podinfo")
    assert [item["id"] for item in both] == ["podinfo", "traefik"]
    for words in (("get", "ns"), ("namespace", "get")):
        some = cli(*words, "podinfo", "nobody", "traefik", "no-one", "-o", "json")
        assert some.code == 4
        assert [item["id"] for item in some.data] == ["podinfo", "traefik"]
        assert len(some.lines) == 2
        assert "nobody" in some.lines[0]
    assert cli("get", "ns", "nobody", "no-one").out == ""
    assert len(cli.refused(4, "get", "ns", "nobody")) == 1
    assert "not found" in cli.refused(2, "get", "nonsense")[0]
    assert "did you mean component" in cli.refused(2, "get", "componnent")[0]
    assert "one kind at a time" in cli.refused(2, "get", "ns/podinfo", "comp/podinfo")[0]
    assert cli.refused(2, "namespace", "get")


def test_deleting_several_is_one_transaction(cli: Cli, api: httpx.Client) -> None:
    for id in ("gone-1", "gone-2", "gone-3"):
        cli.ok("namespace", "create", id)
    assert cli.refused(4, "delete", "ns", "gone-1", "nobody", "--yes")
    assert api.get("/namespaces/gone-1").status_code == 200
    assert "delete 2 namespaces: gone-1, gone-2?" in cli.refused(2, "delete", "ns", "gone-1", "gone-2")[0]
    done = cli.ok("delete", "ns", "gone-1", "ns/gone-2", "--yes", "--reason", "spring")
    assert [item["id"] for item in done.data] == ["gone-1", "gone-2"]
    (entry,) = api.get("/changes", params={"limit": 1}).json()
    assert [change["id"] for change in entry["changes"]] == ["gone-1", "gone-2"]
    assert read(cli, "delete", "namespace", "gone-3", "-y")["id"] == "gone-3"
    assert cli.refused(6, "delete", "ns", "podinfo", "-y")


@pytest.mark.long
def test_a_cluster_that_is_deleted_is_decommissioned_after_a_question(cli: Cli, api: httpx.Client) -> None:
    make_cluster(api, "old-1")
    make_cluster(api, "old-2")
    refused = cli.on_terminal("delete", "cl", "old-1", "old-2", answers="n\n")
    assert "decommission 2 clusters: old-1, old-2?" in refused.out
    assert api.get("/clusters/old-1").status_code == 200
    assert cli.on_terminal("delete", "cl", "old-1", "old-2", "--reason", "too old", answers="y\n").code == 0
    rows = {row["id"]: row for row in read(cli, "cluster", "list", "--decommissioned")}
    assert rows["old-1"]["reason"] == "too old"
    assert rows["old-1"]["cluster_dns"] == "old-1.example.com"
    assert "clusters/old-2" in cli.ok("get", "cl", "--decommissioned", "-o", "name").out.splitlines()
    shown = cli.on_terminal("cluster", "list", "--decommissioned").out
    assert "too old" in shown
    assert "does not go with" in cli.refused(2, "cluster", "list", "--decommissioned", "--environment", "qa")[0]


def test_a_decommissioned_cluster_is_described_by_who_and_why(cli: Cli, api: httpx.Client) -> None:
    make_cluster(api, "buried")
    cli.ok("cluster", "delete", "buried", "--yes", "--reason", "moved to another site")
    told = read(cli, "describe", "cluster", "buried")
    assert told["decommissioned"]["reason"] == "moved to another site"
    assert told["changes"][0]["operation"] == "delete"
    shown = cli.on_terminal("describe", "cl", "buried").out
    assert "Cluster buried was decommissioned." in shown
    assert "moved to another site" in shown
    assert "by write" in shown
    assert cli.refused(4, "describe", "cluster", "never-there")


@pytest.mark.long
def test_a_cluster_is_described_with_the_versions_at_work(cli: Cli, api: httpx.Client) -> None:
    make_component(api, "described-a", "1.2.3")
    make_component(api, "described-b", "4.5.6")
    make_cluster(
        api, "described", labels={"zone": "edge"},
        platform_components=[{"id": "described-a"}, {"id": "described-b", "oci_tag": "4.5.7", "enabled": False}],
        namespaces=[{"id": "podinfo"}], rolebindings=[{"id": "dev-readers"}], patches={"described-a": {"replicaCount": "3"}},
    )  # fmt: skip
    for number in range(6):
        cli.ok("cluster", "update", "described", "--label", f"n={number}", "--reason", f"why {number}")
    told = read(cli, "cluster", "describe", "described")
    first, second = told["references"]["platform_components"]
    assert first["values"]["oci_tag"] == {"value": "1.2.3", "source": "catalog"}
    assert second["values"]["oci_tag"] == {"value": "4.5.7", "source": "override"}
    assert second["values"]["component_path"]["source"] == "catalog"
    assert (first["enabled"], second["enabled"]) == (True, False)
    assert first["patches"] == {"replicaCount": "3"}
    assert [change["reason"] for change in told["changes"]] == [f"why {number}" for number in (5, 4, 3, 2, 1)]
    shown = cli.on_terminal("describe", "cl", "described").out
    for text in (
        "zone=edge",
        "1.2.3",
        "catalog",
        "override (oci_tag)",
        "replicaCount",
        "podinfo",
        "dev-readers",
        "by write: why 5",
    ):
        assert text in shown, shown


def test_a_definition_is_described_with_its_users(cli: Cli, api: httpx.Client) -> None:
    make_component(api, "used")
    make_cluster(api, "user-1", environment="qa", platform_components=[{"id": "used"}])
    make_cluster(api, "user-2", environment="prod", platform_components=[{"id": "used", "oci_tag": "2.0.0"}])
    cli.ok("component", "update", "used", "--oci-tag", "1.1.0", "--reason", "a new release")
    told = read(cli, "describe", "component", "used")
    assert told["document"]["oci_tag"] == "1.1.0"
    assert told["usage"]["environments"] == {"prod": 1, "qa": 1}
    assert [row["cluster"] for row in told["overrides"]] == ["user-2"]
    assert told["changes"][0]["reason"] == "a new release"
    shown = cli.on_terminal("describe", "comp", "used").out
    for text in ("Used by clusters (2): prod 1, qa 1", "Clusters that differ (1)", "user-2", "2.0.0", "a new release"):
        assert text in shown, shown
    assert "user-1" in cli.on_terminal("component", "usage", "used").out


@pytest.mark.long
def test_kinds_without_clusters_and_of_others_are_described_too(cli: Cli) -> None:
    cli.ok("freeze", "create", "described-freeze", "--environment", "uat", "--reason", "inventory")
    told = read(cli, "describe", "freeze", "described-freeze")
    assert told["document"]["reason"] == "inventory"
    assert "inventory" in cli.on_terminal("describe", "freeze", "described-freeze").out
    cli.ok("delete", "freeze", "described-freeze", "--yes")
    assert read(cli, "describe", "ns", "podinfo")["usage"]["clusters"] >= 1
    assert "app=podinfo" in cli.on_terminal("namespace", "describe", "podinfo").out
    assert cli.ok("describe", "ns", "podinfo", "-o", "name").out == "namespaces/podinfo\n"


def test_usage_is_a_row_per_cluster_and_a_summary_counts_them(cli: Cli, api: httpx.Client) -> None:
    make_component(api, "counted")
    made: list[tuple[str, dict[str, object]]] = [
        ("qa", {}), ("qa", {}), ("prod", {}), ("prod", {"oci_tag": "0.9.0"}), ("prod", {"enabled": False})
    ]  # fmt: skip
    for number, (environment, fields) in enumerate(made):
        reference: dict[str, object] = {"id": "counted", **fields}
        make_cluster(
            api, f"counted-{number}", environment=environment, labels={"n": str(number)}, platform_components=[reference]
        )
    rows = read(cli, "component", "usage", "counted")
    assert [(row["cluster"], row["oci_tag"]) for row in rows][2:4] == [("counted-2", "1.0.0"), ("counted-3", "0.9.0")]
    assert rows[3]["overridden"] == ["oci_tag"]
    assert [row["cluster"] for row in read(cli, "comp", "usage", "counted", "-l", "n in (1,2)")] == ["counted-1", "counted-2"]
    assert len(read(cli, "component", "usage", "counted", "--environment", "prod")) == 3
    summary = read(cli, "component", "usage", "counted", "--summary")
    assert [(row["oci_tag"], row["environment"], row["clusters"], row["disabled"]) for row in summary] == [
        ("0.9.0", "prod", 1, 0), ("1.0.0", "prod", 2, 1), ("1.0.0", "qa", 2, 0),
    ]  # fmt: skip
    assert "1 of 3" in cli.ok("component", "usage", "counted", "--summary", "--limit", "1").err
    assert {"id": "podinfo", "environment": "dev", "clusters": 1} in read(cli, "namespace", "usage", "--summary")
    assert cli.refused(4, "component", "usage", "nobody")
    shown = cli.ok("component", "usage", "counted", "--summary", "-o", "table").out
    assert shown.splitlines()[0].split() == ["ID", "OCI", "TAG", "COMPONENT", "PATH", "ENVIRONMENT", "CLUSTERS", "DISABLED"]


def test_the_version_is_told_without_a_server(offline: Cli) -> None:
    assert offline.ok("--version").out.startswith("flux-resourceset-cli ")
