"""Documents of files: apply, delete and diff, and that what is printed can be applied."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cli.command import Cli

# what YAML, of one version or another, takes for something else than text
TRAPS = ["1e3", "0o7", "yes", "null", "2024-01-01", "1_0", "0x1", "on", "0b1", "1.0", "012", "NaN", "y"]
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20),
    st.sampled_from(
        [*TRAPS, "~", "=", "12:30:45", "- a", "a: b", "# c", " x ", "!t", "&a", "*a", "%d", "@x", "'", '"', "<<", ".inf"]
    ),
)
ID = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
KEY = st.one_of(st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,6}[A-Za-z0-9])?", fullmatch=True), st.sampled_from(TRAPS))
VALUE = st.one_of(st.just(""), KEY)
SCALAR = st.one_of(TEXT, st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), st.floats(-1e15, 1e15, allow_nan=False))
SAFE_KEY = st.from_regex(r"[A-Ja-j0-9_-]{1,5}(\.[A-Ja-j0-9_-]{1,5})?", fullmatch=True)  # no word that looks like a secret


@st.composite
def fleets(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Documents of every built-in kind, with the strings that YAML is known to mistake for something else."""
    id = f"p-{draw(ID)}"
    text = draw(TEXT.filter(bool))
    component = {
        "kind": "component", "id": id, "component_path": text, "oci_url": "oci://r/x", "oci_tag": draw(VALUE.filter(bool)),
    }  # fmt: skip
    namespace = {
        "kind": "namespaces", "id": id, "labels": draw(st.dictionaries(KEY, VALUE, max_size=3)),
        "annotations": draw(st.dictionaries(KEY, TEXT, max_size=3)),
    }  # fmt: skip
    binding = {"kind": "rolebinding", "id": id, "role": "view", "subjects": [{"kind": "Group", "name": text}]}
    cluster = {
        "kind": "cluster", "id": id, "cluster_name": text, "cluster_dns": f"{id}.example.com", "environment": "dev",
        "labels": draw(st.dictionaries(KEY, VALUE, max_size=2)), "namespaces": [{"id": id}], "rolebindings": [{"id": id}],
        "platform_components": [{"id": id, "oci_tag": draw(st.one_of(st.none(), VALUE.filter(bool)))}],
        "patches": {id: draw(st.dictionaries(SAFE_KEY, SCALAR, min_size=1, max_size=4))},
    }  # fmt: skip
    return [cluster, component, namespace, binding]  # the cluster first: one transaction does not mind the order


# no shrinking: every example starts five processes
@pytest.mark.long
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(fleets())
def test_whatever_is_printed_as_yaml_can_be_applied_and_changes_nothing(
    cli: Cli, api: httpx.Client, documents: list[dict[str, Any]]
) -> None:
    cli.ok("apply", "-f", "-", stdin=json.dumps(documents[:1]) + json.dumps(documents[1:]))
    id = documents[0]["id"]
    before = api.get("/changes?limit=1").json()[0]["revision"]
    printed = cli.ok("cluster", "get", id, "-o", "yaml").out + "---\n"
    printed += "---\n".join(cli.ok(group, "list", "-o", "yaml").out for group in ("component", "namespace"))
    done = cli("apply", "-f", "-", "-o", "table", stdin=printed)
    assert done.code == 0, done
    assert done.out == ""
    assert re.fullmatch(r"\d+ unchanged; nothing to do\n", done.err), done
    assert api.get("/changes?limit=1").json()[0]["revision"] == before


def test_apply_takes_files_directories_and_streams_in_one_transaction(cli: Cli, api: httpx.Client, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    folder.mkdir()
    (folder / "b.json").write_text('{"kind": "namespace", "id": "applied-b", "labels": {"a": "b"}}')
    (folder / "a.yaml").write_text("kind: namespaces\nid: applied-a\n---\nkind: namespace\nid: applied-c\n")
    (folder / "README.md").write_text("no document")
    done = cli.ok("apply", "-f", str(folder), "-f", "-", stdin="[{kind: namespace, id: applied-d}]")
    assert [document["id"] for document in done.data] == ["applied-a", "applied-c", "applied-b", "applied-d"]
    entry = api.get("/changes?limit=1&id=applied-d").json()[0]
    assert len(entry["changes"]) == 4
    (folder / "b.json").write_text('{"kind": "namespace", "id": "applied-b", "labels": {}}')
    again = cli.ok("apply", "-f", str(folder), "-o", "table")
    assert again.out.splitlines() == [
        "namespaces/applied-b updated",
    ]


def test_one_document_that_is_refused_keeps_all_from_being_written(cli: Cli, api: httpx.Client) -> None:
    wrong = {"kind": "cluster", "id": "demo-cluster-01", "namespaces": [{"id": "nowhere"}]}  # what it does not name stays
    (line,) = cli.refused(3, "apply", "-f", "-", stdin=json.dumps([{"kind": "namespace", "id": "not-written"}, wrong]))
    assert line.startswith('clusters "demo-cluster-01": /namespaces/')
    assert "nowhere" in line
    assert api.get("/namespaces/not-written").status_code == 404


def test_apply_can_be_rehearsed(cli: Cli, api: httpx.Client) -> None:
    done = cli.ok("apply", "-f", "-", "--dry-run", stdin="kind: namespace\nid: rehearsed\nlabels: {a: b}\n")
    assert [(item["change"], item["after"]["labels"]) for item in done.data["results"]] == [("create", {"a": "b"})]
    assert api.get("/namespaces/rehearsed").status_code == 404


@pytest.mark.parametrize(
    "text",
    [
        "just words", "kind: namespace\n", "id: x\n", "kind: nothing\nid: x\n", "kind: namespace\nid: 1\n", "a: [",
        "kind: namespace\nid: x\nid: y\n", '{"kind": "namespace", "id": "x", "id": "y"}',
        "kind: namespace\nid: x\nlabels: {1: a}\n", "", "---\n", "kind: namespace\nid: x\n---\nkind: namespaces\nid: x\n",
        "kind: namespace\nid: x\nlabels: !!binary aGk=\n",
        "[" * 600 + "]" * 600,
    ],
)  # fmt: skip
def test_a_file_that_is_no_document_is_a_usage_error(cli: Cli, text: str) -> None:
    assert cli.refused(2, "apply", "-f", "-", stdin=text)


@pytest.mark.parametrize(
    "text",
    [
        "patches: {p: {a: [1, .nan]}}",
        "patches: {p: {a: [1, -.inf]}}",
        '{"patches": {"p": {"a": [1, NaN]}}}',
        '{"patches": {"p": {"a": [1, 1e999]}}}',
    ],
)
def test_a_number_that_json_cannot_say_is_named_with_its_place(cli: Cli, tmp_path: Path, text: str) -> None:
    file = tmp_path / "n"
    file.write_text(text)
    for words in (("apply", "-f", str(file)), ("cluster", "create", "x", "--from-file", str(file))):
        assert cli.refused(2, *words) == [f"{file}: /patches/p/a/1 is no finite number, which JSON cannot say"]


@pytest.mark.long
def test_a_file_that_holds_itself_or_too_much_is_a_usage_error(cli: Cli) -> None:
    assert cli.refused(2, "apply", "-f", "-", stdin="&a [*a, *a]") == ["stdin:1: invalid YAML: it holds itself"]
    assert cli.refused(2, "apply", "-f", "-", stdin=f"[{'1,' * 5_000_000}1]") == ["stdin: holds more than 5000000 values"]


def test_a_document_that_is_given_twice_is_a_usage_error_however_it_is_named(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "twice.yaml"
    file.write_text("kind: namespace\nid: given-twice\n")
    for other in (str(file), f"{tmp_path}/./twice.yaml"):
        for verb in ("apply", "diff", "delete"):
            (line,) = cli.refused(2, verb, "-f", str(file), "-f", other)
            assert line == f'{other}: namespaces "given-twice" is given twice; it stands in {file} already'


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_directory_that_cannot_be_read_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o000)
    for verb in ("apply", "diff", "delete"):
        assert "cannot be read" in cli.refused(2, verb, "-f", str(tmp_path / "closed"))[0]


def test_a_file_that_cannot_be_read_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    for verb in ("apply", "diff", "delete"):
        assert cli.refused(2, verb, "-f", str(tmp_path / "nothing.yaml"))
        assert cli.refused(2, verb, "-f", str(tmp_path))
        assert cli.refused(2, verb)
    assert cli.refused(2, "apply", "-f", "-", stdin=b"\xff\xfe")


def test_delete_takes_all_documents_or_none(cli: Cli, api: httpx.Client, tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    cli.ok("apply", "-f", "-", stdin="kind: namespace\nid: gone-a\n---\nkind: namespace\nid: gone-b\n")
    file.write_text("kind: namespace\nid: gone-a\n---\nkind: namespace\nid: never-there\n")
    assert "--yes" in cli.refused(2, "delete", "-f", str(file))[0]
    assert cli.refused(4, "delete", "-f", str(file), "--yes") == ['namespaces "never-there" not found']
    assert api.get("/namespaces/gone-a").status_code == 200
    file.write_text("kind: namespace\nid: gone-a\n---\nkind: namespace\nid: gone-b\nlabels: {ignored: here}\n")
    printed = cli.ok("delete", "-f", str(file), "-y", "-o", "yaml")
    assert [(item["kind"], item["id"]) for item in yaml.safe_load_all(printed.out)] == [
        ("namespaces", "gone-a"), ("namespaces", "gone-b"),
    ]  # fmt: skip
    assert "2 deleted (revision " in printed.err
    assert api.get("/namespaces/gone-b").status_code == 404


def test_diff_has_three_exit_codes(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    file.write_text("kind: namespace\nid: differing\nlabels: {a: b}\n")
    cli.ok("apply", "-f", str(file))
    same = cli("diff", "-f", str(file))
    assert (same.code, same.data["groups"], same.data["revision"]) == (0, [], same.data["base_revision"])
    file.write_text("kind: namespace\nid: differing\nlabels: {a: c}\n---\nkind: namespace\nid: differing-new\n")
    other = cli.but(FLUX_API_WRITE_TOKEN=None)("diff", "-f", str(file))  # it only reads
    assert other.code == 1
    assert [item["change"] for item in other.data["results"]] == ["update", "create"]
    shown = cli("diff", "-f", str(file), "-o", "table")
    assert "\n-  a: b\n+  a: c\n" in shown.out
    assert shown.code == 1
    assert cli("diff", "-f", str(file), "-o", "name").out == "namespaces/differing\nnamespaces/differing-new\n"
    file.write_text("kind: namespace\nid: differing\nnothing: 1\n")
    assert cli.refused(2, "diff", "-f", str(file)) == ['namespaces "differing": /nothing is not a known field']
    assert cli.but(FLUX_API_URL="http://127.0.0.1:9").refused(2, "diff", "-f", str(file))


def test_yaml_output_of_apply_can_be_applied_again(cli: Cli) -> None:
    printed = cli.ok(
        "apply", "-f", "-", "-o", "yaml", stdin="kind: namespace\nid: again\nlabels: {on: '1e3'}\n".replace("on:", '"on":')
    ).out
    assert yaml.safe_load(printed)["kind"] == "namespaces"
    assert "unchanged" in cli.ok("apply", "-f", "-", stdin=printed).err


def test_an_export_that_is_not_there_is_a_usage_error(cli: Cli, tmp_path: Path) -> None:
    (line,) = cli.refused(2, "import", str(tmp_path / "absent.json"), "--yes")
    assert line == f"{tmp_path / 'absent.json'}: cannot be read: No such file or directory"
