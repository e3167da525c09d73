"""Files that are nested, endless or otherwise odd, of command line and server: one line, exit code 2, and never a defect."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import live
from api.test_start_up import refused
from cli.command import Cli, Done

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)
MERGED = "a: &a {x: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join([f'*{before}'] * 10)}]}}\n" for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)

NESTED = {
    "arrays": "contexts: " + "[" * 5000 + "]" * 5000,
    "arrays without an end": "contexts: " + "[" * 200_000,
    "objects": "contexts: " + "{a: " * 3000 + "1" + "}" * 3000,
    "blocks": "".join(" " * level + "a:\n" for level in range(1200)),
    "blocks in a line": "contexts: \n  " + "- " * 200_000,
    "JSON": '{"contexts":' * 3000 + "1" + "}" * 3000,
    "somewhat": "contexts: {a: {url: " + "[" * 70 + "]" * 70 + "}}",
    "in itself": "contexts: &a {a: *a}",
    "a list in itself": "&a [*a]",
    "aliases of aliases": BOMB,
    "merges of merges": MERGED,
}

ODD = {
    "a list": "- a\n",
    "a text": "hello",
    "a number": "5",
    "false": "false",
    "an empty list": "[]",
    "contexts are a list": "contexts: [a]",
    "contexts are true": "contexts: true",
    "a context is null": "contexts: {a: }",
    "a context is a list": "contexts: {a: [b]}",
    "a field is a list": "contexts: {a: {url: [b]}}",
    "a token of bytes": "contexts: {a: {token: !!binary aGVsbG8=}}",
    "an object of a program": "contexts: !!python/object:os.system {}",
    "a set": "contexts: !!set {a}",
    "a key of lists": "contexts: {[a]: {}}",
    "an object as key": "? {a: b}\n: c\n",
    "not a number": "contexts: {.nan: {}}",
    "keys twice": "contexts: {a: {url: 'http://127.0.0.1:9'}}\ncontexts: {}\n",
    "fields twice": "contexts: {a: {url: 'http://127.0.0.1:9', url: 'http://127.0.0.1:8'}}",
    "names twice": "contexts: {a: {}, a: {}}",
    "a merge with a number": "contexts: {a: {<<: 5}}",
    "two documents": "contexts: {}\n---\ncontexts: {}\n",
    "a number without an end": "contexts: " + "9" * 5000,
    "NUL": "contexts: {a\0b: {}}",
    "very long": f"contexts: {{a: {{token: '{'x' * 2_000_000}'}}}}",
}


def assert_usage(done: Done, name: str) -> None:
    assert done.code == 2, done
    assert "defect" not in done.err
    (line,) = done.err.splitlines()
    assert line.startswith(f"error: {name}")
    assert len(line) < 500


@pytest.mark.parametrize("text", [*NESTED.values(), *ODD.values()], ids=[*NESTED, *ODD])
def test_a_wrong_configuration_is_a_usage_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / ".config" / "flux-resourceset" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o600)
    for words in (("config", "get-contexts"), ("cluster", "list")):
        assert_usage(Cli(tmp_path)(*words), str(file))
    assert Cli(tmp_path).ok("--help").err == ""  # help does not need a good configuration
    assert file.read_text() == text


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    directory = tmp_path_factory.mktemp("nested")
    with live.serving(directory, STORE_BACKEND="memory") as server:
        yield Cli(directory, server.url)


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_wrong_documents_are_a_usage_error(cli: Cli, tmp_path: Path, text: str) -> None:
    file = tmp_path / "documents.yaml"
    file.write_text(text.replace("contexts", "labels"))
    for words in (("apply", "-f"), ("diff", "-f"), ("namespace", "create", "x", "--from-file")):
        assert_usage(cli(*words, str(file)), str(file))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 20_000, '{"documents": ' + "[" * 500 + "]" * 500 + "}"])
def test_other_files_and_options_are_usage_errors(cli: Cli, tmp_path: Path, text: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    assert_usage(cli("import", str(file), "--yes"), str(file))
    assert cli("rolebinding", "create", "x", "--role", "view", "--subject", text[:60_000]).code in (2, 3)
    assert cli("render", "--inputs", str(file), "--view", "namespaces").code == 2


TEMPLATE = """\
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: x, namespace: x}
spec:
  inputsFrom: [{kind: ResourceSetInputProvider, name: x}]
  resources:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: x}
      data:
"""


@pytest.mark.parametrize("text", [BOMB, MERGED, "a: " + "[" * 100_000], ids=["aliases", "merges", "arrays"])
def test_templates_and_inputs_are_usage_errors_too(tmp_path: Path, text: str) -> None:
    template, inputs = tmp_path / "template.yaml", tmp_path / "inputs.yaml"
    template.write_text(TEMPLATE + "".join(f"        {line}\n" for line in text.splitlines()))
    inputs.write_text("- id: a\n" + "".join(f"  {line}\n" for line in text.splitlines()))
    assert_usage(Cli(tmp_path)("render", "--inputs", str(inputs), "--view", "namespaces"), str(inputs))
    inputs.write_text("[{id: a}]")
    assert_usage(Cli(tmp_path)("render", "-f", str(template), "--inputs", str(inputs)), str(template))


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_a_nested_kind_file_stops_the_start(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kinds" / "odd.yaml"
    file.parent.mkdir()
    file.write_text(text.replace("contexts", "schema"))
    line = refused(tmp_path, RESOURCES_DIR=str(file.parent))
    assert line.startswith(f"flux-resourceset: {file}:")
    assert len(line) < 500


def test_a_broken_cache_of_kinds_is_made_anew(cli: Cli) -> None:
    cli.ok("cluster", "list")
    (cache,) = (cli.home / ".cache" / "flux-resourceset").glob("kinds-*.json")
    for text in ("[" * 100_000, "{}", "[]", "null", '{"url": 5}', '{"kinds": ' + "[" * 500 + "]" * 500 + "}"):
        cache.write_text(text)
        cli.ok("--help")
        cli.ok("cluster", "list")
        assert cache.stat().st_size > 1000
