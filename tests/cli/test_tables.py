"""Tables on terminals of 80, 100 and 140 columns, over a fleet with long names; and the same in a pipe."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from cli.command import Cli
from flux_resourceset.cli.output.terminal_text import columns

LONG = "a-cluster-with-a-name-as-long-as-a-label-of-dns-may-be-in-germany"[:63]
COMPONENT = "a-component-whose-name-is-rather-long-too"
WIDTHS = [80, *(pytest.param(width, marks=pytest.mark.long) for width in (100, 140))]
LISTS = ["cluster list", "component list", "namespace list", "rolebinding list", "freeze list", "overrides", "tags", "changes"]
LISTS += ["component usage", f"component usage {COMPONENT}", "component usage --summary", "cluster list --decommissioned"]
TEXTS = ["changes 1", f"describe component {COMPONENT}", f"cluster history {LONG[:-2]}-1", f"describe cluster {LONG[:-2]}-1"]
TEXTS += ["explain cluster", "--help", "cluster --help"]


@contextlib.contextmanager
def with_long_names(folder: Path) -> Iterator[Cli]:
    with live.serving(folder, SEED_FILE="") as server, server.client() as api:
        fill(api)
        yield Cli(folder, server.url, NO_COLOR="1")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with with_long_names(tmp_path_factory.mktemp("fleet")) as cli:
        yield cli


def fill(api: httpx.Client) -> None:
    labels = {f"topology.example.com/{name}": f"a-value-of-{name}" for name in ("zone", "region", "rack", "team")}
    url = "oci://registry.internal.example.com/platform/components/of/this/company"
    component = {"component_path": "core/observability/grafana/dashboards/11.2.1", "oci_url": url, "oci_tag": "v1.2.3-rc.4"}
    documents: list[tuple[str, dict[str, Any]]] = [
        ("platform_components", {"id": COMPONENT, **component}),
        ("namespaces", {"id": "a-namespace-with-a-long-name-and-labels", "labels": labels}),
        ("rolebindings", {"id": "readers-of-all-things", "role": "view", "subjects": [{"kind": "Group", "name": "g" * 90}]}),
        ("freezes", {"id": "end-of-year", "selector": "topology.example.com/zone in (a,b,c)", "reason": "nobody is there " * 6}),
    ]
    for number, environment in enumerate(("dev", "qa", "uat", "prod")):
        id = f"{LONG[:-2]}-{number}" if number % 2 else f"{environment}-{number}"
        reference = {"id": COMPONENT, "oci_tag": "v1.2.3-a-tag-that-somebody-made-up-for-a-hotfix"}
        document = {
            "id": id, "cluster_name": id, "cluster_dns": f"{id}.kubernetes.internal.example.com", "environment": environment,
            "labels": labels, "platform_components": [reference], "patches": {COMPONENT: {"a.very.deep.value": "x" * 120}},
        }  # fmt: skip
        documents.append(("clusters", document))
    operations = [{"op": "create", "kind": kind, "id": body["id"], "document": body} for kind, body in documents]
    reason = ("all of it, at once, for these tests " * 4).strip()
    answer = api.post("/batch", json={"operations": operations}, headers={"X-Reason": reason})
    assert answer.status_code == 200, answer.text
    gone = {"id": f"{LONG[:40]}-gone", "cluster_name": "gone", "cluster_dns": f"{LONG}.example.com", "environment": "dev"}
    assert api.post("/clusters", json=gone).status_code == 201
    assert api.delete(f"/clusters/{gone['id']}", headers={"X-Reason": reason}).status_code in (200, 204)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("words", LISTS)
def test_every_list_fits_a_terminal_with_a_line_for_each_row(fleet: Cli, words: str, width: int) -> None:
    rows = len(fleet.ok(*words.split(), "-o", "json").data)
    lines = fleet.on_terminal(*words.split(), size=(width, 200)).out.splitlines()
    assert len(lines) == rows + 1
    assert max(map(columns, lines)) <= width


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("words", TEXTS)
def test_every_line_of_a_text_fits_a_terminal_and_none_breaks_within_a_word(fleet: Cli, words: str, width: int) -> None:
    lines = fleet.on_terminal(*words.split(), size=(width, 500)).out.splitlines()
    assert max(map(columns, lines)) <= width
    whole = set(fleet.ok(*words.split(), "-o", "wide").out.split())
    assert not [word for line in lines for word in line.split() if word not in whole and not word.endswith("…")]


def test_the_clusters_of_a_plan_are_folded_between_their_names(fleet: Cli) -> None:
    words = ("component", "update", COMPONENT, "--component-path", "other", "--dry-run", "--full")
    lines = fleet.on_terminal(*words, size=(80, 200)).out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("4 clusters ("))
    told = [lines[start], *itertools.takewhile(lambda line: line.startswith(" " * 6), lines[start + 1 :])]
    assert max(map(columns, told)) <= 80
    ids = fleet.ok("cluster", "list", "-o", "jsonpath={.items[*].id}").out.split()
    assert set(ids) <= {word.rstrip(",") for line in told for word in line.split()}


@pytest.mark.long
def test_what_tells_rows_apart_is_cut_after_other_columns_are_left_out(fleet: Cli) -> None:
    lines = fleet.on_terminal("component", "usage", COMPONENT, size=(140, 200)).out.splitlines()
    assert [line.split()[1] for line in lines[1:]] == sorted(
        fleet.ok("cluster", "list", "-o", "jsonpath={.items[*].id}").out.split()
    )
    heads = fleet.on_terminal("component", "usage", "--summary", size=(80, 200)).out.splitlines()[0].split()
    assert {"ID", "OCI", "CLUSTERS"} <= set(heads)
    heads = fleet.on_terminal("cluster", "list", "--decommissioned", size=(80, 200)).out.splitlines()[0].split()
    assert heads == ["ID", "TIME", "BY"]  # who and when before the name that it had


@pytest.mark.parametrize("width", WIDTHS)
def test_an_id_is_whole_where_it_fits_and_the_environment_stands_beside_it(fleet: Cli, width: int) -> None:
    lines = fleet.on_terminal("cluster", "list", size=(width, 200)).out.splitlines()
    ids = fleet.ok("cluster", "list", "-o", "jsonpath={.items[*].id}").out.split()
    assert [line.split()[0] for line in lines[1:]] == ids
    assert "ENVIRONMENT" in lines[0]


def test_an_id_is_cut_only_where_it_stands_alone(fleet: Cli) -> None:
    lines = fleet.on_terminal("cluster", "list", size=(40, 200)).out.splitlines()
    assert lines[0] == "ID"
    assert f"{LONG[:39]}…" in lines


@pytest.mark.parametrize("words", LISTS)
def test_wide_cuts_nothing_and_has_a_line_for_each_row(fleet: Cli, words: str) -> None:
    rows = len(fleet.ok(*words.split(), "-o", "json").data)
    lines = fleet.on_terminal(*words.split(), "-o", "wide", size=(80, 200)).out.splitlines()
    assert len(lines) == rows + 1
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize("words", LISTS)
def test_a_pipe_gets_a_table_without_colours_and_nothing_cut(fleet: Cli, words: str) -> None:
    coloured = fleet.but(NO_COLOR=None)
    done = coloured.ok(*words.split())
    assert "\x1b" not in done.out
    assert "…" not in done.out
    assert len(done.out.splitlines()) == len(coloured.ok(*words.split(), "-o", "json").data) + 1


def test_what_is_not_for_reading_is_json_in_a_pipe(fleet: Cli) -> None:
    for words in ("explain cluster", "version", "namespace create x --dry-run", f"component history {COMPONENT}"):
        assert json.loads(fleet.ok(*words.split()).out), words


def test_headers_labels_and_the_order_can_be_chosen(fleet: Cli) -> None:
    rows = fleet.ok("cluster", "list", "--no-headers", "--sort-by", ".environment").out.splitlines()
    assert [row.split()[3] for row in rows] == ["dev", "prod", "qa", "uat"]
    last = fleet.ok("cluster", "list", "--show-labels").out.splitlines()
    assert last[0].split()[-1] == "LABELS"
    assert all(line.endswith("topology.example.com/team=a-value-of-team") for line in last[1:])
    ids = fleet.ok("cluster", "list", "--sort-by", "id", "-o", "jsonpath={.items[*].id}").out.split()
    assert ids == sorted(ids)
    on_terminal = fleet.on_terminal("cluster", "list", "--show-labels", size=(100, 100)).out.splitlines()
    assert on_terminal[0].endswith("LABELS")
    assert "nothing here has such a field" in fleet.refused(2, "cluster", "list", "--sort-by", ".nothing")[0]


def test_templates_and_columns_print_as_kubectl_does(fleet: Cli) -> None:
    assert fleet.ok("namespace", "get", "a-namespace-with-a-long-name-and-labels", "-o", "jsonpath={.id}").out == (
        "a-namespace-with-a-long-name-and-labels"
    )
    assert fleet.ok("namespace", "list", "-o", "jsonpath={.items[*].nothing}").out == ""
    tags = fleet.ok("component", "list", "-o=custom-columns=ID:.id,TAG:.oci_tag,NO:.nothing").out.splitlines()
    assert [line.split() for line in tags] == [["ID", "TAG", "NO"], [COMPONENT, "v1.2.3-rc.4", "<none>"]]
    assert fleet.ok("changes", "--no-headers", "-o=custom-columns=FOR:.on_behalf_of").out.split() == ["<none>"] * 3
    assert fleet.ok("changes", "-o", "jsonpath={.items[0].revision}").out == "3"
    assert fleet.ok("changes", "1", "-o", "jsonpath={.revision}").out == "1"
    assert fleet.ok("tags", "-o", "jsonpath={.items[*].catalog}").out == "0 1"
    assert "no closing brace" in fleet.refused(2, "cluster", "list", "-o", "jsonpath={.id")[0]
    assert "custom-columns=…" in fleet.refused(2, "cluster", "list", "-o", "go-template={{.id}}")[0]
    assert "must be NAME:.path" in fleet.refused(2, "cluster", "list", "-o", "custom-columns=ID")[0]
