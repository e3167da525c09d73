"""Many clusters at once: which are meant, how many, all or none."""

from __future__ import annotations

import httpx
import pytest

from cli.command import Cli


@pytest.fixture(scope="module")
def fleet(api: httpx.Client) -> list[str]:
    """Three clusters with podinfo and one without, told apart from all others by a label."""
    ids = [f"bulk-{n}" for n in range(4)]
    operations = [
        {
            "op": "create", "kind": "clusters", "id": id,
            "document": {
                "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "prod" if n < 2 else "qa",
                "labels": {"bulk": "yes"}, "platform_components": [{"id": "podinfo"}] if n < 3 else [],
            },
        }
        for n, id in enumerate(ids)
    ]  # fmt: skip
    existing = api.get("/clusters/bulk-0").status_code == 200
    if not existing:
        assert api.post("/batch", json={"operations": operations}).status_code == 200
    return ids


def references(api: httpx.Client, field: str = "platform_components") -> list[list[dict[str, object]]]:
    return [cluster[field] for cluster in api.get("/clusters?selector=bulk").json()]


def newest(api: httpx.Client) -> int:
    found: int = api.get("/changes?limit=1").json()[0]["revision"]
    return found


def test_a_bulk_command_is_one_transaction_and_says_how_many_it_touches(cli: Cli, api: httpx.Client, fleet: list[str]) -> None:
    cli.ok("namespace", "create", "bulk-ns")
    before = newest(api)
    done = cli.ok("namespace", "assign", "bulk-ns", "-l", "bulk=yes", "--yes", "--reason", "bulk test")
    assert "4 clusters" in done.err
    assert [cluster["id"] for cluster in done.data] == fleet
    entries = [
        entry for entry in api.get("/changes?limit=50").json() if entry["reason"] == "bulk test" and entry["revision"] > before
    ]
    assert [len(entry["changes"]) for entry in entries] == [4]
    done = cli.ok("namespace", "unassign", "bulk-ns", "--selector", "bulk", "--environment", "prod", "--yes", "-o", "name")
    assert done.out.split() == ["clusters/bulk-0", "clusters/bulk-1"]
    assert [bool(found) for found in references(api, "namespaces")] == [False, False, True, True]


def test_without_a_word_about_clusters_nothing_is_guessed(cli: Cli, fleet: list[str]) -> None:
    for words in (
        ("namespace", "assign", "podinfo"),
        ("component", "disable", "podinfo"),
        ("component", "patch", "podinfo", "--set", "a=b"),
    ):
        assert cli.refused(2, *words) == ["say which clusters: --cluster ID, --selector, --environment or --all"]
    assert cli.refused(2, "namespace", "assign", "podinfo", "--all", "--cluster", "bulk-0")


def test_more_than_one_cluster_needs_a_yes(cli: Cli, api: httpx.Client, fleet: list[str]) -> None:
    before = newest(api)
    assert "--yes" in cli.refused(2, "component", "disable", "podinfo", "-l", "bulk")[0]
    assert newest(api) == before
    cli.ok("component", "enable", "podinfo", "-l", "bulk", "--environment", "qa")  # one of the two has it, and one is no crowd


def test_selecting_nothing_says_so_and_is_no_error(cli: Cli, fleet: list[str]) -> None:
    done = cli.ok("namespace", "assign", "podinfo", "-l", "bulk=no")
    assert "0 clusters" in done.err
    assert done.data == []


def test_clusters_that_lack_the_component_are_skipped_and_counted(cli: Cli, api: httpx.Client, fleet: list[str]) -> None:
    done = cli.ok("component", "pin", "podinfo", "-l", "bulk", "--oci-tag", "v2", "--yes")
    assert "skipping 1 cluster " in done.err
    assert [cluster["id"] for cluster in done.data] == fleet[:3]
    assert [ref["oci_tag"] for found in references(api) for ref in found] == ["v2"] * 3
    cli.ok("component", "pin", "podinfo", "--cluster", "bulk-0", "--component-path", "p")
    assert references(api)[0] == [{"id": "podinfo", "enabled": True, "oci_tag": "v2", "component_path": "p"}]
    cli.ok("component", "disable", "podinfo", "--cluster", "bulk-0", "--cluster", "bulk-1", "--yes")
    assert [found[0]["enabled"] for found in references(api)[:3]] == [False, False, True]
    cli.ok("component", "unpin", "podinfo", "-l", "bulk", "--yes")
    assert references(api)[0] == [{"id": "podinfo", "enabled": False}]
    cli.ok("component", "enable", "podinfo", "-l", "bulk", "--yes")
    assert references(api)[:3] == [[{"id": "podinfo", "enabled": True}]] * 3
    assert references(api)[3] == []


def test_a_named_cluster_that_lacks_the_component_is_an_error(cli: Cli, fleet: list[str]) -> None:
    for words in (("disable",), ("enable",), ("unpin",), ("pin", "--oci-tag", "v"), ("patch", "--set", "a=b")):
        assert cli.refused(4, "component", words[0], "podinfo", "--cluster", "bulk-3", *words[1:])
    assert cli.refused(4, "component", "disable", "nothing", "-l", "bulk")
    assert cli.refused(4, "component", "disable", "podinfo", "--cluster", "nowhere")
    assert cli.refused(4, "component", "assign", "nothing", "--cluster", "bulk-0")
    assert cli.refused(4, "component", "assign", "podinfo", "--cluster", "bulk-0", "--cluster", "nowhere", "--yes")
    assert cli.refused(2, "component", "pin", "podinfo", "--cluster", "bulk-0")


def test_a_rehearsal_shows_every_cluster_and_changes_nothing(cli: Cli, api: httpx.Client, fleet: list[str]) -> None:
    before = newest(api)
    done = cli.ok("component", "patch", "podinfo", "-l", "bulk", "--set", "a.b=c", "--dry-run")
    assert [(item["id"], item["change"]) for item in done.data["results"]] == [(id, "update") for id in fleet[:3]]
    table = cli.ok("component", "patch", "podinfo", "-l", "bulk", "--set", "a.b=c", "--dry-run", "-o", "table")
    assert 'clusters/bulk-0 would be updated\n  /patches/podinfo: (none) → {"a.b": "c"}\n' in table.out
    assert newest(api) == before


@pytest.mark.long
def test_values_are_text_unless_json_is_asked_for(
    cli: Cli, api: httpx.Client, fleet: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("values") / "value"
    file.write_text("from a file\n")
    words = ("component", "patch", "podinfo", "--cluster", "bulk-2")
    cli.ok(*words, "--set", "a=1", "--set", "b=x=y # z", "--set-json", "c=1.5", "--set-json", "d=true", "--set-file", f"e={file}")
    assert api.get("/clusters/bulk-2/patches/podinfo").json() == {
        "a": "1",
        "b": "x=y # z",
        "c": 1.5,
        "d": True,
        "e": "from a file",
    }
    cli.ok(*words, "--unset", "a", "--unset", "b", "--unset", "nothing", "--set", "c=now text")
    assert api.get("/clusters/bulk-2/patches/podinfo").json() == {"c": "now text", "d": True, "e": "from a file"}
    cli.ok(*words, "--set-json", 'd=["a", "3", 4, true]', "--set-json", r"f\.g.h=[]", "--set", "hosts[0].name=x")
    assert api.get("/clusters/bulk-2/patches/podinfo").json() == {
        "c": "now text",
        "d": ["a", "3", 4, True],
        "e": "from a file",
        r"f\.g.h": [],
        "hosts[0].name": "x",
    }
    cli.ok(*words, "--unset", r"f\.g.h", "--unset", "hosts[0].name")
    for wrong in (
        "--set-json=a={}",
        "--set-json=a=[[1]]",
        "--set-json=a=[null]",
        '--set-json=a=[{"b": 1}]',
        "--set-json=a=nope",
        "--set-json=a=NaN",
        "--set-json=a=1e999",
        "--set-json=a=null",
        "--set=a",
        "--set-file=a=/no/such/file",
    ):
        assert cli.refused(2, *words, wrong)
    assert cli.refused(2, *words)
    assert cli.refused(2, *words, "--set", "a=1", "--unset", "a")
    assert "looks like a secret" in cli.refused(3, *words, "--set", "db.password=x")[0]
    taken = cli.ok("component", "unassign", "podinfo", "--cluster", "bulk-2", "-o", "yaml")
    assert "3 patch value(s)" in taken.err
    assert "1 updated (revision " in taken.err
    cli.ok("component", "assign", "podinfo", "--cluster", "bulk-2", "--oci-tag", "v5", "--no-enabled")
    cli.ok("component", "assign", "podinfo", "--cluster", "bulk-2")
    assert references(api)[2] == [{"id": "podinfo", "enabled": False, "oci_tag": "v5"}]
    cli.ok("component", "assign", "podinfo", "--cluster", "bulk-2", "--enabled")
    cli.ok("component", "unpin", "podinfo", "--cluster", "bulk-2")


def test_one_bad_cluster_among_many_leaves_all_as_they_were(cli: Cli, api: httpx.Client, fleet: list[str]) -> None:
    before = newest(api)
    words = (
        "namespace",
        "create",
        "all-or-nothing",
        "--cluster",
        "bulk-0",
        "--cluster",
        "bulk-1",
        "--cluster",
        "nowhere",
        "--yes",
    )
    assert cli.refused(4, *words) == ['clusters "nowhere" not found']
    assert newest(api) == before
    assert api.get("/namespaces/all-or-nothing").status_code == 404
