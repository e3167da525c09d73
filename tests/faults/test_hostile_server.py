"""A server whose every string is meant to steer the terminal of whoever asks it."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

import live
from cli.command import PROGRAM, Cli

# a title, a colour, a cleared screen (also as one character of C1), a letter taken back, text turned round, and a line of its own
POISON = "\x1b]0;owned\x07\x1b[31mPOISONED\x1b[2J\x9b2J\x7f\b\x00\x85\u2028\u202elive\u2066\r\nerror: forged\t\x1bc"

OWN = re.compile("\x1b\\[(?:0|1|2|31|32|33|36)m")  # the colours of the program itself
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def poisoned(value: Any, depth: int = 0) -> Any:
    """Every text but those that the program must understand."""
    if isinstance(value, str):
        return value + POISON
    if isinstance(value, list):
        return [poisoned(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {name: poisoned(item, depth + 1) for name, item in value.items()}
    return value


def poisoned_schema(value: Any) -> Any:
    if isinstance(value, list):
        return [poisoned_schema(item) for item in value]
    if isinstance(value, dict):
        telling = {"description", "example", "format", "enum"}
        return {name: poisoned(item) if name in telling else poisoned_schema(item) for name, item in value.items()}
    return value


KINDS = poisoned_schema(json.loads((live.ROOT / "src/flux_resourceset/cli/builtin_kinds.json").read_text()))
SEED = json.loads((live.ROOT / "data/seed.json").read_text())
LABELLED = {"labels": {f"key{POISON}": f"value{POISON}"}}
DOCUMENTS = {kind: [{**poisoned(item), **LABELLED} for item in found] for kind, found in SEED.items()}
ENTRY = {"revision": 7, "time": "2026-01-31T12:00:00Z", "forced": False} | poisoned(
    {"actor": "a", "on_behalf_of": "b", "request_id": "c", "reason": "d"}
)
CHANGE = poisoned({"operation": "update", "kind": "clusters", "id": "x"}) | {"before": {}, "after": {}}

INPUT = poisoned({"view": "namespaces", "input": "x"})
FIELD = {f"path{POISON}": POISON} | poisoned({"path": "/x", "before": "a", "after": ["b"]})
GROUP = {"count": 1, "clusters": [POISON], "environments": {POISON: POISON}, "changes": [
    {**INPUT, "change": "changed", "fields": [FIELD]}, {**INPUT, "change": "removed"}, {**INPUT, "change": POISON},
]}  # fmt: skip
PLAN = {"plan": "0", "groups": [GROUP], "groups_total": POISON, "summary": POISON, "guards": [
    {"guard": "freeze", "tripped": True, "id": "f", "reason": POISON, "until": POISON, "confirm": {"X-Override-Freeze": "f"}},
    {"guard": POISON, "tripped": True, "clusters": POISON, "confirm": {POISON: "1"}},
]}  # fmt: skip


class Hostile(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        kind, _, id = path.strip("/").partition("/")
        if path == "/kinds":
            self._answer(200, KINDS)
        elif path == "/changes":
            self._answer(200, [{**ENTRY, "changes": [CHANGE]}])
        elif path == "/changes/7":
            self._answer(200, {**ENTRY, "changes": [CHANGE]})
        elif path.startswith("/api/"):
            self._answer(200, {"inputs": poisoned([{"id": "x", "labels": {}}])})
        elif path == "/export":
            self._answer(200, {"documents": DOCUMENTS, "revision": 1, "checksum": POISON})
        elif id == "there" and kind in DOCUMENTS:
            self._answer(200, {**DOCUMENTS[kind][0], "id": "there", "cluster_dns": "there.example.com"})  # no other is taken
        elif id or kind not in DOCUMENTS:
            self._answer(404, poisoned({"detail": "no", "code": "not-found", "kind": "k", "id": "i"}))
        else:
            self._answer(200, DOCUMENTS[kind])

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        if b"refuse" in sent:
            self._answer(422, poisoned({"detail": "no", "errors": [{"pointer": "/x", "message": "m"}], "kind": "k", "id": "i"}))
            return
        result = {"change": "update", "revision": 3, "before": DOCUMENTS["namespaces"][0], "after": {**LABELLED, "id": POISON}}
        results = [{**result, **poisoned({"kind": "namespaces", "id": "x"})}]
        self._answer(200, {"warnings": [POISON], "results": results, **PLAN})

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(200, DOCUMENTS["namespaces"][0])

    def _answer(self, status: int, value: Any) -> None:
        body = json.dumps(value, ensure_ascii=self.path.startswith("/changes")).encode()  # escaped or as it is, it means the same
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"1"')
        for name in ("X-Warning", "X-Server-Version"):
            self.send_header(name, POISON.partition("\x85")[0].replace("\x00", ""))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@contextlib.contextmanager
def served(handler: type[Hostile], directory: Path) -> Iterator[Cli]:
    """A command line whose server is such a one."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield Cli(directory, f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with served(Hostile, tmp_path_factory.mktemp("hostile")) as cli:
        yield cli


def assert_harmless(shown: str) -> None:
    for found in ("\x1b[31mPOISONED", "\nerror: forged"):
        assert found not in shown
    rest = OWN.sub("", shown).replace("\r\x1b[K", "")
    assert not STEERING.search(rest), repr(rest)


COMMANDS = [
    "cluster list", "cluster list -o wide", "cluster get there", "cluster get nowhere", "namespace list",
    "component list -o wide", "rolebinding list -o wide", "changes", "changes 7", "overrides", "tags",
    "overrides --cluster there",
    "explain cluster", "explain cluster.labels", "explain namespace.nothing", "explain nothing", "--help", "cluster --help",
    "cluster update --help", "namespace create there", "namespace create refuse", "namespace update there --label a=b",
    "namespace update there --label a=b --dry-run", "namespace update there --allow-prune=x", "namespace delete there --yes",
    "inputs x.example.com namespaces", "export", "version", "--debug cluster get nowhere", "cluster list --nothing",
    "render there --view namespaces", "simulate there --once", "component assign x --cluster there", "nothing",
    "demo flux-namespaces x.example.com", "namespace edit there", "namespace delete there --reason x",
    "namespace delete there --dry-run --full",
]  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS)
def test_nothing_that_steers_reaches_the_terminal(hostile: Cli, tmp_path: Path, words: str) -> None:
    changed = hostile.but(EDITOR="sed -i s/allow_prune.*/allow_prune:true/", TMPDIR=str(tmp_path))
    shown = changed.on_terminal(*words.split(), answers="n\n", piped={"cwd": tmp_path}).out
    assert_harmless(shown)
    assert "Traceback" not in shown


@pytest.mark.parametrize("form", ["table", "wide", "name", "json", "yaml", "jsonpath={..*}", "custom-columns=ALL:{.},X:.labels"])
@pytest.mark.parametrize("words", ["cluster list", "cluster get there", "changes", "tags", "overrides", "explain cluster"])
def test_no_form_of_output_steers_a_terminal_and_data_stays_what_it_is(hostile: Cli, words: str, form: str) -> None:
    command = [*words.split(), "-o", form]
    assert_harmless(hostile.on_terminal(*command).out)
    piped = hostile.ok(*command).out
    if "jsonpath" not in form:
        assert_harmless(piped)
    assert not STEERING.search(piped.replace("\t", ""))
    if words == "cluster list" and form in ("json", "yaml"):
        (found,) = json.loads(piped) if form == "json" else list(yaml.safe_load_all(piped))
        assert found["labels"] == LABELLED["labels"]
        assert found["cluster_name"].endswith(POISON)


def test_a_forged_line_is_no_line_of_its_own(hostile: Cli) -> None:
    done = hostile("cluster", "get", "nowhere")
    assert len(done.err.splitlines()) == 1
    assert r"\x1b[31mPOISONED" in done.err
    names = hostile.ok("namespace", "list", "-o", "name").out.splitlines()
    assert len(names) == len(DOCUMENTS["namespaces"])


def test_a_question_is_harmless_too(hostile: Cli) -> None:
    words = ("namespace", "delete", f"x{POISON[:20]}".replace("\x00", ""), "--reason", "there is a freeze")
    shown = hostile.on_terminal(*words, answers="n\n").out
    assert "[y/N]" in shown
    assert_harmless(shown)


def test_a_followed_log_is_harmless(hostile: Cli) -> None:
    for form in ("table", "json", "yaml", "name"):
        process = hostile.start("changes", "--follow", "-o", form)
        assert process.stdout is not None
        assert process.stderr is not None
        lines = [process.stdout.readline() for _ in range(3 if form == "yaml" else 1)]
        process.kill()
        process.communicate()
        assert "7" in "".join(lines)
        assert_harmless("".join(lines))


def test_half_a_character_is_an_answer_that_is_not_understood(hostile: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DOCUMENTS, "namespaces", [{"id": "half\ud800", "labels": {}}])
    monkeypatch.setattr("json.dumps", lambda value, **_: json.JSONEncoder().encode(value))
    assert r"half\ud800" in hostile.ok("namespace", "list", "-o", "name").out
    assert hostile.ok("namespace", "list", "-o", "json").data[0]["id"] == "half\ud800"
    (line,) = hostile.refused(5, "namespace", "list", "-o", "yaml")
    assert "half of a surrogate pair" in line


# Completion


@pytest.mark.parametrize("id", ["$(touch owned)", "`touch owned`", "${x}", "a;b", "a b", "*", "\\x", POISON, "", "'"])
def test_no_candidate_is_offered_that_a_shell_could_carry_out(
    hostile: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, id: str
) -> None:
    monkeypatch.setitem(DOCUMENTS, "namespaces", [{"id": id}, {"id": "good-one.x"}])
    assert hostile.ok("__complete", "namespace", "get", "").out == "good-one.x\n"
    script = hostile.ok("completion", "bash").out + (
        "\nCOMP_WORDS=(flux-resourceset-cli namespace get '') COMP_CWORD=3\n_flux_resourceset_cli\necho \"${COMPREPLY[@]}\"\n"
    )
    environment = {**hostile.environment, "PATH": f"{Path(PROGRAM[0]).parent}:{hostile.environment['PATH']}"}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["good-one.x"], done
    assert list(tmp_path.iterdir()) == []


# Templates

METADATA = {"name": "namespaces", "namespace": "x"}
FED = {"inputsFrom": [{"kind": "ResourceSetInputProvider", "name": "namespaces"}]}
MISSHAPEN: list[Any] = [
    {"spec": FED},
    {"metadata": 5, "spec": FED},
    {"metadata": {"name": 5}, "spec": FED},
    {"metadata": METADATA, "spec": 5},
    *(
        {"metadata": METADATA, "spec": {**FED, name: wrong}}
        for name in ("inputsFrom", "dependsOn", "resources")
        for wrong in (5, [5])
    ),
    {"metadata": METADATA, "spec": {**FED, "steps": [{"resources": 5}]}},
    {"metadata": METADATA, "spec": {**FED, "resourcesTemplate": 9}},
    {"metadata": METADATA, "spec": {**FED, "commonMetadata": {"labels": 5}}},
]


@pytest.mark.parametrize("template", MISSHAPEN, ids=json.dumps)
def test_a_template_of_another_shape_is_told_as_such(hostile: Cli, monkeypatch: pytest.MonkeyPatch, template: Any) -> None:
    text = json.dumps({"kind": "ResourceSet", **template})
    monkeypatch.setitem(next(kind for kind in KINDS if kind["kind"] == "namespaces"), "resourceset", text)
    for words in (
        ("bootstrap", "there", "--api-url", "https://fleet.example.com"),
        ("render", "there"),
        ("simulate", "there", "--once"),
    ):
        line = hostile.refused(2, *words)[-1]
        assert "the ResourceSet of namespaces: " in line


def test_objects_of_another_shape_are_told_as_such(hostile: Cli, tmp_path: Path) -> None:
    metadata = {"name": "x", "labels": 5}
    spec = {**FED, "resources": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}]}
    (tmp_path / "template.yaml").write_text(json.dumps({"kind": "ResourceSet", "metadata": METADATA, "spec": spec}))
    (tmp_path / "inputs.json").write_text('[{"id": "a"}]')
    (line,) = hostile.refused(3, "render", "-f", str(tmp_path / "template.yaml"), "--inputs", str(tmp_path / "inputs.json"))
    assert "the labels of an object are not a map" in line
