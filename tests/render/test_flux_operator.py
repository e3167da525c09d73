"""The built-in engine against Flux Operator's own: the same objects from the same templates and inputs.

Skipped where its CLI is not built; with REQUIRE_FLUX_OPERATOR set, a missing CLI is a failure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import live
from flux_resourceset import cluster_bundle, render
from flux_resourceset.kinds import kind_files, model
from flux_resourceset.render import dialect
from render import oracle, samples
from render.generated import Maker

pytestmark = pytest.mark.thorough

EXAMPLES = live.ROOT / "examples" / "kinds"
KINDS = kind_files.load(EXAMPLES)
INPUTS = {True: 500, False: 100}  # for a shipped view, and for an example


def _templates() -> Iterator[tuple[model.Referenced, str]]:
    for kind in KINDS.referenced:
        text = kind.resourceset or cluster_bundle.resourceset(kind.endpoint)
        if text is not None:
            yield kind, text


@pytest.mark.parametrize(("kind", "text"), [pytest.param(*each, id=each[0].endpoint) for each in _templates()])
def test_every_shipped_template_makes_the_same_objects_of_generated_inputs(
    kind: model.Referenced, text: str, tmp_path: Path
) -> None:
    ((_, template),) = dialect.documents(text)
    inputs = Maker(seed=5).inputs(KINDS, kind, INPUTS[kind.resourceset is None])
    expected = oracle.build(tmp_path, template, inputs)
    assert len(expected) >= len(inputs) / 2
    _assert_same(render.resourceset(template, inputs), expected)


def test_every_view_ships_a_template() -> None:
    assert {kind.endpoint for kind, _ in _templates()} == set(KINDS.by_endpoint)


def _assert_same(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    """Object by object, so that a difference is told with its object; true is not 1 here, though it is in Python."""
    for own, other in zip(ours, theirs, strict=False):
        assert json.dumps(own, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert len(ours) == len(theirs)


def test_samples_have_the_values_that_flux_operator_gives_them(tmp_path: Path) -> None:
    values = [f'  e{number}: << printf "%v" ({text}) | quote >>' for number, (text, _) in enumerate(samples.EXPRESSIONS)]
    source = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n" + "\n".join(values)
    (found,) = oracle.build(tmp_path, oracle.resourceset(source), [samples.INPUT])
    assert [found["data"][f"e{number}"] for number in range(len(values))] == [expected for _, expected in samples.EXPRESSIONS]


def test_actions_leave_what_flux_operator_leaves(tmp_path: Path) -> None:
    values = [f"  e{number}: |\n    .{text}." for number, (text, _) in enumerate(samples.ACTIONS)]
    source = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n" + "\n".join(values)
    (found,) = oracle.build(tmp_path, oracle.resourceset(source), [samples.INPUT])
    assert [found["data"][f"e{number}"].rstrip("\n") for number in range(len(values))] == [
        f".{text}." for _, text in samples.ACTIONS
    ]


@pytest.mark.parametrize("broken", samples.BROKEN)
def test_what_we_refuse_flux_operator_refuses(broken: str, tmp_path: Path) -> None:
    source = f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata:\n  x: |\n    {broken}\n"
    with pytest.raises(AssertionError):
        oracle.build(tmp_path, oracle.resourceset(source), [samples.INPUT])


SCALARS = (
    "y", "n", "yes", "No", "ON", "off", "true", "False", "null", "~", "1", "-1", "+1", "007", "08", "0o17", "0x1F", "0b11",
    "1_000", "1e3", "1E3", "1.10", ".5", "1.", "-.5", "1:30", "1:30:45", "2024-01-01", "2024-01-01T00:00:00Z",
    "12345678901234567890", "0.1", "--", "a:b", "a#b", "=", "1e", "0x", "_1", "1__0", "-0", "0.0", "-0.0", "1e21", "1e-7",
    "Null", "NULL", "TRUE", "yEs", "+.5", "0b2", "0b_", "0x_", "0o_", "-0b_", "1e400", "9" * 400, "9" * 5000, "1_", "0_",
)  # fmt: skip


def test_plain_scalars_mean_what_they_mean_to_flux_operator(tmp_path: Path) -> None:
    source = "apiVersion: v1\nkind: Sample\nmetadata:\n  name: x\nvalues:\n" + "\n".join(f"- {word}" for word in SCALARS)
    source += "\nkeys:\n" + "\n".join(f"  {word}: x" for word in ("y", "off", "1", "1.5", "'quoted'", '"2"', "a-b"))
    template = oracle.resourceset(source)
    _assert_same(render.resourceset(template, [{"id": "a"}]), oracle.build(tmp_path, template, [{"id": "a"}]))


def test_every_character_makes_the_slug_that_flux_operator_makes(tmp_path: Path) -> None:
    """All that have a name in the first two planes; a few thousand per input, for a template has its limits."""
    codes = [code for code in (*range(0xA0, 0x20000), 0xE0001, 0x10FFFD) if not 0xD800 <= code < 0xE000]
    inputs = [
        {"id": str(start), "letters": [chr(code) for code in codes[start : start + 4096]]} for start in range(0, len(codes), 4096)
    ]
    template = oracle.resourceset(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: << inputs.id | quote >>\nslugs:\n"
        "<< range inputs.letters >>- << printf `a%sb` . | slugify | quote >>\n<< end >>"
    )
    for own, other in zip(render.resourceset(template, inputs), oracle.build(tmp_path, template, inputs), strict=True):
        letters = inputs[int(own["metadata"]["name"]) // 4096]["letters"]
        differing = [each for each in zip(letters, own["slugs"], other["slugs"], strict=True) if each[1] != each[2]]
        assert differing == []


def test_resources_duplicates_and_common_metadata_come_out_alike(tmp_path: Path) -> None:
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "<< inputs.id >>", "labels": {"own": "<< inputs.colour >>"}},
        "data": {"text": "<< inputs.text | quote >>", "number": "<< inputs.number >>", "lines": "one\ntwo << inputs.id >>\n"},
    }
    text = """
apiVersion: v1
kind: ConfigMap
metadata: {name: << inputs.id >>}
data: {shadowed: "true"}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Secret, metadata: {name: same}, stringData: {from: << inputs.id | quote >>}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: excluded-<< inputs.id >>, annotations: {fluxcd.controlplane.io/reconcile: disabled}}
---
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
metadata: {name: not-for-a-cluster}
"""
    common = {"labels": {"own": "overridden", "team": "platform"}, "annotations": {"note": "a # b"}}
    template = oracle.resourceset(text, resources=[config_map], commonMetadata=common)
    inputs = [
        {"id": "one", "colour": "red", "text": 'a: "b"', "number": 3},
        {"id": "two", "colour": "blue", "text": "x", "number": 1.5},
        {"id": "one", "colour": "green", "text": "second", "number": 0},
    ]
    expected = oracle.build(tmp_path, template, inputs)
    assert len(expected) == 3
    _assert_same(render.resourceset(template, inputs), expected)
