"""Names that a server gives become paths on the operator's machine: one that leads out of its place is not taken."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import live
from cli.command import Cli
from flux_resourceset.kinds import kind_files

CLUSTER = {"id": "edge", "cluster_name": "edge", "cluster_dns": "edge.example.com", "environment": "dev"}
API = "https://fleet.example.com"


class _Hostile(BaseHTTPRequestHandler):
    """Answers as our server does, but for the names."""

    answers: dict[str, Any]

    def do_GET(self) -> None:  # the name that http.server calls
        body = json.dumps(self.answers.get(self.path, {})).encode()
        self.send_response(200 if self.path in self.answers else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def hostile() -> Iterator[tuple[str, dict[str, Any]]]:
    """Its URL, and what it answers."""
    handler = type("Handler", (_Hostile,), {"answers": {"/clusters/edge": CLUSTER}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", handler.answers  # type: ignore[attr-defined]  # made above
        server.shutdown()
        thread.join()


def kinds_with(member: str, name: str) -> list[dict[str, Any]]:
    described = [kind.described() for kind in kind_files.load()]
    return [{**kind, member: name} if kind["kind"] == "namespaces" else kind for kind in described]


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


NAMES = ["../../x", "/x", "..", ".", "", "a/b", "a\\b", "a b", "a\n", "A", "a\x1b[31m", "%2e%2e"]


@pytest.mark.parametrize(
    ("member", "name"),
    [*(("endpoint", name) for name in NAMES), *((member, "../../x") for member in ("kind", "singular", "cluster_field"))],
)
def test_a_name_that_no_kind_may_have_is_not_taken_from_a_server(
    member: str, name: str, hostile: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    url, answers = hostile
    answers["/kinds"] = kinds_with(member, name)
    (tmp_path / "a" / "b").mkdir(parents=True)
    cli = Cli(tmp_path / "home", url)
    (line, *_) = cli.refused(5, "bootstrap", "edge", "--api-url", API, "--directory", str(tmp_path / "a" / "b" / "bundle"))
    assert "kinds" in line
    assert files(tmp_path) == set()


@pytest.mark.parametrize(
    "dns", ['x" || "x" == "x', "../../x", "a/b", "a\n", "${INTERNAL_API_URL}", "A.example.com", "", "a\x1b[31m"]
)
def test_a_cluster_whose_name_would_say_something_else_gets_no_bundle(
    dns: str, hostile: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    """In the address of a provider, or in the expression that a ResourceSet waits for: every cluster could be meant."""
    url, answers = hostile
    answers["/kinds"] = [kind.described() for kind in kind_files.load()]
    answers["/clusters/edge"] = {**CLUSTER, "cluster_dns": dns}
    for words in (
        ("bootstrap", "edge", "--api-url", API),
        ("render", "edge"),
        ("simulate", "edge", "--once", "--directory", str(tmp_path / "x")),
    ):
        done = Cli(tmp_path / "home", url)(*words)
        assert (done.code, done.out) == (5, "")
        assert "cluster_dns" in done.err


def test_names_that_were_remembered_are_looked_at_too(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(live.ROOT / "data" / "seed.json")) as server:
        cli = Cli(tmp_path / "home", server.url)
        cli.ok("namespace", "list")
        (cache,) = (tmp_path / "home").rglob("kinds-*.json")
        content = json.loads(cache.read_text())
        content["kinds"] = kinds_with("endpoint", "../../x")
        cache.write_text(json.dumps(content))
        before = files(tmp_path)
        cli.ok("bootstrap", "demo-cluster-01", "--api-url", API, "--directory", str(tmp_path / "a" / "b" / "bundle"))
        made = {path for path in files(tmp_path) - before if not path.startswith("a/b/bundle/")}
    assert made == set()


def test_objects_with_names_that_lead_elsewhere_stay_in_the_directory(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text(
        "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: x, namespace: x}\nspec:\n"
        "  inputsFrom: [{kind: ResourceSetInputProvider, name: x}]\n  resourcesTemplate: |\n"
        "    apiVersion: << inputs.id | quote >>\n    kind: << inputs.id | quote >>\n"
        "    metadata: {name: << inputs.id | quote >>, namespace: << inputs.id | quote >>}\n"
    )
    inputs = tmp_path / "inputs.json"
    inputs.write_text(json.dumps([{"id": name} for name in ("../../../x", "..", ".", "/x", "a\\..\\b", "a\x00b")]))
    before = files(tmp_path)
    folder = tmp_path / "a" / "b" / "objects"
    done = Cli(tmp_path / "home")("render", "-f", str(template), "--inputs", str(inputs), "--directory", str(folder))
    made = files(tmp_path) - before
    assert done.code in (0, 1, 2)
    assert all(path.startswith("a/b/objects/") for path in made), made
