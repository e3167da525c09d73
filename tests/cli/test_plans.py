"""Plans on the command line: what a write would do to which cluster, and that what was shown is what is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import yaml

import live
from cli.command import Cli
from flux_resourceset import merge
from flux_resourceset.cli import known_kinds

RED, GREEN, YELLOW = "\x1b[31m", "\x1b[32m", "\x1b[33m"
PODINFO = "kind: component\nid: podinfo\ncomponent_path: podinfo\noci_url: https://charts.example.com\noci_tag: {tag}\n"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[live.Server]:
    """A server of its own, for plans speak of all clusters: three beside that of the demo, all with podinfo."""
    folder = tmp_path_factory.mktemp("plans")
    with live.serving(folder, SEED_FILE=str(live.ROOT / "data" / "seed.json")) as server, server.client() as api:
        operations = [
            {
                "op": "create", "kind": "clusters", "id": f"plan-{n}",
                "document": {
                    "cluster_name": f"plan-{n}", "cluster_dns": f"plan-{n}.example.com", "environment": "uat",
                    "labels": {"plan": "yes"}, "platform_components": [{"id": "podinfo"}],
                },
            }
            for n in range(3)
        ]  # fmt: skip
        assert api.post("/batch", json={"operations": operations}).status_code == 200
        yield server


@pytest.fixture
def cli(planned: live.Server, tmp_path: Path) -> Cli:
    return Cli(tmp_path, planned.url)


@pytest.fixture
def api(planned: live.Server) -> Iterator[httpx.Client]:
    with planned.client() as client:
        yield client


def revision(api: httpx.Client) -> int:
    found: int = api.get("/changes?limit=1").json()[0]["revision"]
    return found


def test_a_plan_is_a_line_for_each_group_and_then_its_fields(cli: Cli, api: httpx.Client) -> None:
    before = revision(api)
    reading = cli.but(FLUX_API_WRITE_TOKEN=None)  # it only reads
    done = reading.ok("plan", "-f", "-", "--force-conflicts", "-o", "table", stdin=PODINFO.format(tag="6.7.1"))
    lines = done.out.splitlines()
    assert lines[0] == "4 clusters (dev 1, uat 3): 1 changed each: demo-cluster-01, plan-0, plan-1, plan-2"
    assert '  platform-components/podinfo: /source/oci_tag "latest" → "6.7.1"' in lines
    assert lines[-1].startswith("plan ")
    assert "would update 1; nothing was changed" in done.err
    assert revision(api) == before


def test_json_and_yaml_are_the_objects_of_the_api(cli: Cli, api: httpx.Client) -> None:
    shown = cli.ok("plan", "-f", "-", "--force-conflicts", stdin=PODINFO.format(tag="6.7.1")).data
    document = {**yaml.safe_load(PODINFO.format(tag="6.7.1")), "kind": None}
    del document["kind"]
    about = {"kind": "platform_components", "id": "podinfo", "manager": "cli", "force": True}
    operation = {"op": "apply", **about, "document": document}
    assert shown == api.post("/plan", json={"operations": [operation]}).json()
    assert (
        yaml.safe_load(cli.ok("plan", "-f", "-", "--force-conflicts", "-o", "yaml", stdin=PODINFO.format(tag="6.7.1")).out)
        == shown
    )
    assert cli("diff", "-f", "-", "--force-conflicts", stdin=PODINFO.format(tag="6.7.1")).data == shown
    assert cli.ok("apply", "-f", "-", "--force-conflicts", "--dry-run", stdin=PODINFO.format(tag="6.7.1")).data == shown
    names = cli.ok("plan", "-f", "-", "--force-conflicts", "-o", "name", stdin=PODINFO.format(tag="6.7.1")).out
    assert names == "platform_components/podinfo\n"


@pytest.mark.long
def test_a_plan_is_coloured_on_a_terminal(cli: Cli) -> None:
    changed = cli.on_terminal("component", "update", "podinfo", "--oci-tag", "6.7.1", "--dry-run").out
    assert f'{YELLOW}platform-components/podinfo: /source/oci_tag\x1b[0m {RED}"latest"\x1b[0m → {GREEN}"6.7.1"' in changed
    removed = cli.on_terminal("component", "disable", "podinfo", "--all", "--dry-run").out
    assert f"{RED}platform-components/podinfo: would be removed" in removed
    added = cli.on_terminal("namespace", "assign", "podinfo", "-l", "plan", "--dry-run").out
    assert f"{GREEN}namespaces/podinfo: would be added" in added


def test_a_write_without_effect_says_so(cli: Cli) -> None:
    done = cli.ok("namespace", "create", "unused", "--dry-run", "-o", "table")
    assert "no cluster would get other inputs" in done.out
    nobody = cli.ok("component", "assign", "podinfo", "-l", "nobody=here", "--dry-run")
    assert nobody.data["summary"] == {"documents": 0, "clusters": 0, "added": 0, "removed": 0, "changed": 0}


@pytest.mark.long
def test_at_most_twenty_groups_are_shown_unless_all_are_wanted(cli: Cli, api: httpx.Client) -> None:
    clusters = [
        {"kind": "cluster", "id": f"many-{n:02}", "cluster_name": "m", "cluster_dns": f"many-{n:02}.example.com",
         "environment": "dev", "namespaces": [{"id": "podinfo"}], "platform_components": [{"id": "podinfo"}]}
        for n in range(22)
    ]  # fmt: skip
    text = yaml.safe_dump_all([{**cluster, "patches": {"podinfo": {f"key{n}": "1"}}} for n, cluster in enumerate(clusters)])
    cli.ok("apply", "-f", "-", stdin=text)
    other = yaml.safe_dump_all([{**cluster, "patches": {"podinfo": {f"key{n}": "2"}}} for n, cluster in enumerate(clusters)])
    few = cli.ok("plan", "-f", "-", "-o", "table", stdin=other).out
    assert few.count("1 cluster (dev 1)") == 20
    assert "… and 2 more groups of clusters; --full shows all" in few
    assert "in all: 22 clusters would get other inputs: 0 added, 0 removed, 22 changed" in few
    assert cli.ok("plan", "-f", "-", "-o", "table", "--full", stdin=other).out.count("1 cluster (dev 1)") == 22
    words = ("namespace", "update", "podinfo", "--label", "a=b", "--dry-run")
    assert "many-03 and 18 more" in cli.ok(*words, "-o", "table").out
    assert "many-21" in cli.ok(*words, "-o", "table", "--full").out
    assert len(cli.ok(*words, "--full").data["groups"][0]["clusters"]) == 23
    for cluster in clusters:
        assert api.delete(f"/clusters/{cluster['id']}").status_code < 300


def test_render_shows_the_objects_of_one_cluster_of_each_group(cli: Cli, api: httpx.Client) -> None:
    changed = cli.ok("component", "update", "podinfo", "--oci-tag", "6.7.1", "--dry-run", "--render", "-o", "table").out
    assert "  objects of demo-cluster-01:\n    ~ HelmRelease flux-system/platform-podinfo\n" in changed
    assert '        spec.chart.spec.version: "6.7.1" is new\n' in changed
    assert "objects of plan-0" not in changed
    removed = cli.ok("component", "disable", "podinfo", "--all", "--dry-run", "--render", "-o", "table").out
    assert "    - HelmRelease flux-system/platform-podinfo\n" in removed
    words = ("namespace", "create", "rendered", "--cluster", "plan-0", "--dry-run", "--render", "-o", "table")
    assert "    + Namespace rendered\n" in cli.ok(*words).out
    assert "--render is for people" in cli.ok(*words[:-1], "json").err


def test_rendered_inputs_are_those_that_flux_then_gets(cli: Cli, api: httpx.Client) -> None:
    """Objects of the plan, against those of the cluster once it is done: merged here, and by the server."""
    chart = ("--component-path", "x", "--oci-url", "https://charts.example.com", "--oci-tag", "1.0.0")
    words = ("component", "create", "both", *chart, "--depends-on", "podinfo", "--cluster", "plan-1")
    said = cli.ok(*words, "--dry-run", "--render", "-o", "table").out
    cli.ok(*words)
    objects = [item for item in yaml.safe_load_all(cli.ok("render", "plan-1", "--view", "platform-components").out) if item]
    made = {f"{item['kind']} flux-system/{item['metadata']['name']}" for item in objects if "both" in item["metadata"]["name"]}
    assert made == {line[6:] for line in said.splitlines() if line.startswith("    + ")}
    patch = ("component", "patch", "both", "--cluster", "plan-1", "--set", "a.b=c")
    later = cli.ok(*patch, "--dry-run", "--render", "-o", "table").out
    assert "    ~ HelmRelease flux-system/platform-both\n" in later
    assert "digest" not in later
    cli.ok("component", "unassign", "both", "--cluster", "plan-1")


def test_the_command_line_merges_as_the_server_does(api: httpx.Client) -> None:
    for kind in known_kinds.Kinds(api.get("/kinds").json()):
        if isinstance(kind, known_kinds.ReferencedKind):
            definitions = {document["id"]: document for document in api.get(f"/{kind.name}").json()}
            for cluster in api.get("/clusters").json():
                got = api.get(f"/clusters/{cluster['id']}/inputs/{kind.endpoint}").json()["inputs"]
                without = [{name: value for name, value in item.items() if name != "digest"} for item in got]
                assert merge.inputs(kind, cluster, definitions) == without


# What was shown is what is done


def answering(*steps: Callable[[], object]) -> Callable[[str], object]:
    """Says yes to one question after another, and does something before each."""
    left = list(steps)

    def watch(shown: str) -> str | None:
        if shown.count("[y/N]") <= len(steps) - len(left) or not left:
            return None
        left.pop(0)()
        return "y\n"

    return watch


def test_a_question_shows_the_plan_and_a_yes_does_it(cli: Cli, api: httpx.Client) -> None:
    words = ("component", "patch", "podinfo", "-l", "plan", "--set", "shown=yes")
    done = cli.on_terminal(*words, watch=answering(lambda: None))
    assert done.code == 0
    assert done.out.index("platform-components/podinfo: /patches/shown") < done.out.index("on 3 clusters? [y/N]")
    assert api.get("/clusters/plan-0").json()["patches"]["podinfo"]["shown"] == "yes"
    no = cli.on_terminal("component", "patch", "podinfo", "-l", "plan", "--set", "shown=no", answers="n\n")
    assert no.code == 2
    assert api.get("/clusters/plan-0").json()["patches"]["podinfo"]["shown"] == "yes"


def test_a_plan_that_moved_is_shown_again(cli: Cli, api: httpx.Client) -> None:
    def disturb() -> None:
        patch = {"op": "patch-values", "kind": "platform_components", "id": "podinfo", "values": {"moved": "b"}}
        assert api.post("/batch", json={"operations": [{**patch, "clusters": ["plan-0"]}]}).status_code == 200

    words = ("component", "patch", "podinfo", "-l", "plan", "--set", "moved=a")
    done = cli.on_terminal(*words, watch=answering(disturb, lambda: None))
    assert done.code == 0
    assert done.out.count("[y/N]") == 2
    assert "because something changed meanwhile" in done.out
    first, second = done.out.split("changed meanwhile")
    assert '"b"' not in first
    assert f'{RED}"b"\x1b[0m → {GREEN}"a"' in second
    assert api.get("/clusters/plan-0").json()["patches"]["podinfo"]["moved"] == "a"


def test_without_a_terminal_a_plan_that_moved_ends_the_command(cli: Cli, api: httpx.Client) -> None:
    words = ("component", "patch", "podinfo", "--cluster", "plan-0", "--set", "agreed=1")
    plan = cli.ok(*words, "--dry-run").data["plan"]
    (line,) = cli.refused(6, *words[:-1], "agreed=2", "--if-plan", plan)
    assert line.startswith("the plan is ")
    assert "agreed" not in api.get("/clusters/plan-0").json()["patches"].get("podinfo", {})
    cli.ok(*words, "--if-plan", plan)
    assert api.get("/clusters/plan-0").json()["patches"]["podinfo"]["agreed"] == "1"


def test_an_import_is_planned_and_asked_about(cli: Cli, api: httpx.Client, tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    cli.ok("export", str(file))
    patch = {"op": "patch-values", "kind": "platform_components", "id": "podinfo", "values": {"imported": "no"}}
    assert api.post("/batch", json={"operations": [{**patch, "clusters": ["plan-2"]}]}).status_code == 200
    plan = cli.ok("import", str(file), "--merge", "--dry-run").data
    assert plan["summary"]["clusters"] == 1
    before = revision(api)
    done = cli.on_terminal("import", str(file), "--merge", answers="y\n")
    assert done.code == 0, done.out
    assert done.out.index("/patches/imported") < done.out.index("documents into")
    assert revision(api) == before + 1


def test_help_and_completion_know_plans(cli: Cli) -> None:
    assert "plan" in cli.ok("__complete", "pl").out.split()
    for words in (("plan",), ("diff",), ("apply",), ("component", "assign"), ("cluster", "decommission")):
        offered = cli.ok("__complete", *words, "--").out.split()
        assert {"--full", "--render"} <= set(offered)
        assert ("--confirm-removals" in offered) == (words not in (("plan",), ("diff",)))
