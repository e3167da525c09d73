"""What describe and usage print fits a terminal, over a fleet with long names; in a pipe nothing is cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import live
from cli.command import Cli
from cli.test_tables import COMPONENT, LONG, WIDTHS, with_long_names
from flux_resourceset.cli.output.terminal_text import columns

CLUSTER = f"{LONG[:-2]}-1"
READ = [
    f"describe cluster {CLUSTER}", f"describe component {COMPONENT}", "describe freeze end-of-year",
    "component usage", "component usage --summary", "get clusters", f"get clusters {CLUSTER}",
]  # fmt: skip


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with with_long_names(tmp_path_factory.mktemp("described")) as cli:
        yield cli


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("words", READ)
def test_it_fits_a_terminal(fleet: Cli, words: str, width: int) -> None:
    lines = fleet.on_terminal(*words.split(), size=(width, 200)).out.splitlines()
    assert lines
    assert max(map(columns, lines)) <= width


@pytest.mark.parametrize("words", READ)
def test_in_a_pipe_it_is_for_reading_and_nothing_is_cut(fleet: Cli, words: str) -> None:
    text = fleet.but(NO_COLOR=None).ok(*words.split()).out
    assert "…" not in text
    assert "\x1b" not in text
    assert not text.startswith(("{", "["))
    assert fleet.ok(*words.split(), "-o", "json").data


def test_what_usage_shows_first_is_the_version(fleet: Cli) -> None:
    lines = fleet.on_terminal("component", "usage", COMPONENT, size=(140, 200)).out.splitlines()
    assert "OCI TAG" in lines[0]
    order = fleet.ok("component", "usage", "--sort-by", ".environment", "-o", "jsonpath={.items[*].environment}").out
    assert order == "dev prod qa uat"


def test_templates_take_descriptions_and_single_documents(fleet: Cli) -> None:
    assert fleet.ok("get", "cl", CLUSTER, "-o", "jsonpath={.environment}").out == "qa"
    assert fleet.ok("get", "cl", "-o", "jsonpath={.items[*].environment}").out
    assert fleet.ok("describe", "cl", CLUSTER, "-o", "jsonpath={.document.id}").out == CLUSTER


@pytest.mark.long
def test_in_a_pipe_every_cluster_that_differs_and_every_changed_field_is_told(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE="") as server, server.client() as api:
        component = {"id": "app", "component_path": "app", "oci_url": "https://charts.example.com", "oci_tag": "1.0.0"}
        documents: list[tuple[str, dict[str, Any]]] = [("platform_components", component)]
        for number in range(22):
            id = f"c-{number:02d}"
            own = {"id": id, "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "dev"}
            documents.append(("clusters", {**own, "platform_components": [{"id": "app", "oci_tag": "1.0.1"}]}))
        operations = [{"op": "create", "kind": kind, "id": body["id"], "document": body} for kind, body in documents]
        assert api.post("/batch", json={"operations": operations}).status_code == 200
        labels = {f"label-{number}": "x" for number in range(7)}
        assert api.patch("/clusters/c-00", json={"labels": {"a": "b"}}).status_code == 200
        assert api.patch("/clusters/c-00", json={"labels": labels}).status_code == 200
        cli = Cli(tmp_path, server.url, NO_COLOR="1")
        assert "c-21" in cli.ok("describe", "component", "app").out
        assert "… and 2 more; see" in cli.on_terminal("describe", "component", "app", size=(100, 200)).out
        assert "/labels/label-6: " in cli.ok("describe", "cluster", "c-00").out
        assert "… and 2 more fields" in cli.on_terminal("describe", "cluster", "c-00", size=(100, 200)).out
