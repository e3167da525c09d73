"""Clones of documents, and for whom something is done."""

from __future__ import annotations

import httpx
import pytest

from cli.command import Cli


def test_a_cluster_is_cloned_with_another_id_and_dns_name(cli: Cli, api: httpx.Client) -> None:
    body = {"id": "cloned", "cluster_name": "a name", "cluster_dns": "cloned.example.com", "environment": "qa"}
    parts = {"platform_components": [{"id": "podinfo", "oci_tag": "6.0.0"}], "patches": {"podinfo": {"a.b": "c"}}}
    assert api.post("/clusters", json={**body, **parts, "labels": {"zone": "edge"}}).status_code == 201
    original = api.get("/clusters/cloned").json()
    words = ("cluster", "create", "clone", "--from", "cluster/cloned")
    made = cli.ok(*words, "--cluster-dns", "clone.example.com").data
    assert made == {**original, "id": "clone", "cluster_dns": "clone.example.com"}
    other = cli.ok("cl", "create", "clone-2", "--from", "cl/cloned", "--cluster-dns", "c2.example.com", "--environment", "dev")
    assert other.data["environment"] == "dev"
    assert "--cluster-dns" in cli.refused(2, *words)[0]


def test_a_definition_is_cloned_and_options_win(cli: Cli) -> None:
    made = cli.ok("component", "create", "podinfo-next", "--from", "comp/podinfo", "--oci-tag", "7.0.0").data
    assert (made["id"], made["component_path"], made["oci_tag"]) == ("podinfo-next", "podinfo", "7.0.0")


@pytest.mark.parametrize(
    ("code", "source", "words"),
    [
        (2, "namespace/podinfo", "a component can be cloned only from another"),
        (2, "podinfo", "must be KIND/ID"),
        (2, "nonsense/podinfo", 'kind "nonsense" not found'),
        (4, "component/nobody", "nobody"),
    ],
)
def test_what_cannot_be_cloned_is_refused(cli: Cli, code: int, source: str, words: str) -> None:
    assert words in cli.refused(code, "component", "create", "never-made", "--from", source)[0]
    assert "say one of them" in cli.refused(2, "component", "create", "x", "--from", source, "--from-file", "-")[0]


def test_who_it_is_for_is_in_the_log(cli: Cli, api: httpx.Client) -> None:
    def newest() -> str | None:
        on_behalf_of: str | None = api.get("/changes", params={"limit": 1}).json()[0]["on_behalf_of"]
        return on_behalf_of

    cli.ok("namespace", "create", "for-alice", "--actor", "alice")
    assert newest() == "alice"
    usual = cli.but(FLUX_API_ACTOR="Bob Ünal")
    usual.ok("namespace", "update", "for-alice", "--label", "a=b")
    assert newest() == "Bob Ünal"
    usual.ok("delete", "ns", "for-alice", "--yes", "--actor", "carol")
    assert newest() == "carol"
    cli.ok("namespace", "create", "for-nobody")
    assert newest() is None
    assert "carol" not in usual.ok("changes", "--actor", "nobody", "-o", "json").out  # there it is a filter
    assert "--actor must be one line" in cli.refused(2, "namespace", "create", "x", "--actor", " ")[0]
    assert "FLUX_API_ACTOR must be one line" in cli.but(FLUX_API_ACTOR="a\nb").refused(2, "namespace", "create", "x")[0]


# Completion


@pytest.mark.long
def test_environments_tags_patch_keys_and_label_keys_complete(cli: Cli, api: httpx.Client) -> None:
    def offered(*words: str) -> list[str]:
        return cli.ok("__complete", *words).out.split()

    body = {"id": "complete", "cluster_name": "c", "cluster_dns": "complete.example.com", "environment": "qa"}
    parts = {"platform_components": [{"id": "podinfo", "oci_tag": "6.6.6-complete"}], "labels": {"completed-zone": "edge"}}
    parts["patches"] = {"podinfo": {"completed.key": "x", r"dotted\.ini.key": "x", "listed[0].key": "x"}}
    assert api.post("/clusters", json={**body, **parts}).status_code == 201
    for words in (
        ("component", "pin", "podinfo"),
        ("cluster", "list"),
        ("get", "cl"),
        ("overrides",),
        ("cluster", "create", "x"),
    ):
        assert offered(*words, "--environment", "pr") == ["prod"], words
    assert offered("component", "pin", "podinfo", "--oci-tag", "6.6") == ["6.6.6-complete"]
    assert "latest" in offered("component", "update", "podinfo", "--oci-tag", "")
    assert offered("component", "patch", "podinfo", "--set", "completed") == ["completed.key="]
    assert offered("component", "patch", "podinfo", "--unset", "completed") == ["completed.key"]
    assert offered("component", "patch", "podinfo", "--set", "dotted") == [r"dotted\.ini.key="]
    assert offered("component", "patch", "podinfo", "--unset", "listed") == ["listed[0].key"]
    assert offered("component", "patch", "traefik", "--unset", "completed") == []
    assert offered("component", "patch", "--unset", "completed") == ["completed.key"]
    assert offered("cluster", "list", "-l", "completed") == ["completed-zone="]
    assert offered("component", "assign", "x", "-l", "a=b,completed") == ["a=b,completed-zone="]
    assert offered("cluster", "update", "complete", "--label", "completed") == ["completed-zone="]
    assert offered("component", "create", "x", "--from", "component/tr") == ["component/traefik"]
