"""Inputs on their way into the API, for random fleets: it then gives Git's values back, and to all others what they had."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset import budgets, documents, merge, operations
from flux_resourceset.cli.output import yaml_text
from flux_resourceset.differences import same
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import Kinds
from flux_resourceset.ledger import Ledger
from flux_resourceset.repositories import bridging, signature_kinds, signatures
from unit import samples

Values = dict[str, Any]

TENANT = "payment"
CLUSTERS = ("c1", "c2", "c3", "c4", "c5")
SIGNATURE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["image"],
    "properties": {
        "image": {"type": "string"},
        "replicas": {"type": "integer"},
        "ratio": {"type": "number"},
        "debug": {"type": "boolean"},
        "level": {"enum": ["DEBUG", "INFO"]},
        "limits": {"type": "object", "additionalProperties": {"type": ["integer", "object"]}},
        "hosts": {"type": "array", "items": {"type": "string"}},
        "anything": True,
    },
}


def known_kinds(signature: Values, blueprint: str = "app") -> Kinds:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kind.yaml").write_text(yaml_text.dumped([signature_kinds.kind_file(blueprint, signature)]))
        return kind_files.load(Path(folder))


KNOWN = known_kinds(SIGNATURE)
KIND = KNOWN.referenced_by_name["apps"]

few = st.sampled_from  # so that clusters often agree
values = st.fixed_dictionaries(
    {},
    optional={
        "image": few(["app:1", "app:2"]),
        "replicas": few([0, 1, 2]),
        "ratio": few([0, 0.5, 1]),
        "debug": st.booleans(),
        "level": few(["DEBUG", "INFO"]),
        "limits": few([{}, {"cpu": 1}, {"cpu": 2, "memory": 1}, {"cpu": {"least": 1}}, {"cpu": {"most": 2}}]),
        "hosts": few([[], ["a"], ["a", "b"]]),
        "anything": few([0, 1, False, True, "", "1", [], {}, {"a": [1]}]),
    },
)
fleets = st.dictionaries(few(CLUSTERS), values, max_size=5)


def ledger_with(definition: Values | None, references: dict[str, Values]) -> Ledger:
    ledger = samples.ledger_of(KNOWN)
    if definition is not None:
        samples.create(ledger, "apps", {"id": TENANT, **definition})
    for id in CLUSTERS:
        own = [{"id": TENANT, **references[id]}] if definition is not None and id in references else []
        samples.create(ledger, "clusters", samples.cluster(id, apps=own))
    return ledger


def polled(ledger: Ledger) -> dict[str, Values | None]:
    """What Flux gets, by cluster; None: nothing."""
    found: dict[str, Values | None] = dict.fromkeys(CLUSTERS)
    for id in CLUSTERS:
        for each in json.loads(ledger.fleet.answer(f"{id}.example.com/{KIND.endpoint}".encode()))["inputs"]:
            found[id] = bridging.inputs(each)
    return found


def planned(ledger: Ledger, selected: dict[str, Values]) -> list[Values]:
    stored = ledger.fleet.get("apps", TENANT)
    definition = {name: value for name, value in stored.body.items() if name != "id"} if stored else None
    references = {}
    for id in CLUSTERS:
        cluster = ledger.fleet.get("clusters", id)
        assert cluster is not None
        for reference in cluster.body["apps"]:
            references[id] = {name: value for name, value in reference.items() if name != "id"}
    return bridging.operations("apps", TENANT, definition, references, bridging.split(selected, definition or {}, references))


def carry_out(ledger: Ledger, given: list[Values]) -> None:
    batch = operations.Batch(operations.parsed(KNOWN, {"operations": given}, budgets.Budget()))
    samples.write(ledger, batch.work)


@given(values | st.none(), fleets, st.lists(fleets.filter(bool), min_size=1, max_size=3))
def test_what_was_imported_is_what_flux_gets_and_nobody_else_gets_anything_else(
    definition: Values | None, references: dict[str, Values], imports: list[dict[str, Values]]
) -> None:
    ledger = ledger_with(definition, references)
    for selected in imports:
        before = polled(ledger)
        carry_out(ledger, planned(ledger, selected))
        after = polled(ledger)
        assert all(bridging.differing(git, after[id] or {}) == [] and after[id] is not None for id, git in selected.items())
        assert all(same(after[id], before[id]) for id in CLUSTERS if id not in selected)
        assert planned(ledger, selected) == []


@given(fleets.filter(bool))
def test_the_first_import_splits_by_majority_and_the_merge_gives_each_cluster_its_values_back(fleet: dict[str, Values]) -> None:
    made = bridging.split(fleet, {}, {})
    for id, git in fleet.items():
        cluster = samples.cluster(id, apps=[{"id": TENANT, **made.references[id]}])
        (merged,) = merge.inputs(KIND, cluster, {TENANT: {"id": TENANT, **made.definition}})
        assert same(bridging.inputs(merged), {name: git[name] for name in bridging.inputs(merged)})
        assert {*bridging.inputs(merged)} == {*git}
    for name, value in made.definition.items():
        votes = [values[name] for values in fleet.values()]  # nobody lacks it
        support = [sum(same(vote, other) for other in votes) for vote in votes]
        assert same(value, votes[support.index(max(support))])
    lacking = {name for values in fleet.values() for name in SIGNATURE["properties"] if name not in values}  # type: ignore[attr-defined]
    assert not lacking & {*made.definition}


@given(values, values)
def test_a_merge_patch_makes_the_one_of_the_other(before: Values, after: Values) -> None:
    patch = bridging.merge_patch(before, after)
    assert same(documents.merge_patch(before, patch), after)
    assert bool(patch) == (not same(before, after))


# Kind files

leaves = st.sampled_from(
    [
        {"type": "string", "minLength": 1, "pattern": "^[a-z]"},
        {"type": "integer", "minimum": 0, "default": 3},
        {"type": ["string", "integer"]},
        {"enum": ["a", 1, None]},
        {"const": "a"},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "format": "date"},
        {"type": "string", "format": "made-up"},
        {"$ref": "#/$defs/word"},
        {"$ref": "#/$defs/word", "description": "A word.", "maxLength": 1},
        {},
    ]
)


def _nested(inner: st.SearchStrategy[Values]) -> st.SearchStrategy[Values]:
    fields = st.dictionaries(few(["p", "q"]), inner, min_size=1)
    ways: list[Values] = [{}, {"additionalProperties": False}, {"additionalProperties": True}, {"required": ["p"]}]
    return (
        st.lists(inner, min_size=1, max_size=2).flatmap(lambda each: few([{"anyOf": each}, {"allOf": each}, {"oneOf": each}]))
        | inner.map(lambda each: {"type": "array", "items": each, "maxItems": 2})
        | inner.map(lambda each: {"not": each})
        | st.tuples(fields, few(ways)).map(lambda each: {"type": "object", "properties": each[0], **each[1]})
        | inner.map(lambda each: {"type": "object", "additionalProperties": each})
    )


texts = few(["", "a", "b", "ab", "2026-01-31"])
samples_of_json = st.recursive(
    texts | few([0, 1, -1, 0.5, True]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(few(["p", "q", "r"]), inner, max_size=2),
    max_leaves=4,
)


@given(st.recursive(leaves, _nested, max_leaves=4), st.lists(samples_of_json, min_size=1, max_size=8))
def test_a_kind_takes_what_the_signature_takes_in_definitions_and_in_references(field: Values, given: list[Any]) -> None:
    signature = {
        "type": "object",
        "additionalProperties": False,
        "required": ["field"],
        "properties": {"field": field},
        "$defs": {"word": {"type": "string", "pattern": "^[a-z]*$"}},
    }
    kinds = known_kinds(signature)
    kind = kinds.referenced_by_name["apps"]
    for value in given:
        fits = not signatures.violations(signature, {"field": value})
        assert kind.validator.is_valid({"id": TENANT, "field": value}) == fits
        cluster = samples.cluster("c1", labels={}, apps=[{"id": TENANT, "field": value}], patches={})
        assert kinds.clusters.validator.is_valid(documents.completed(kinds.clusters, cluster)) == fits
    unset = samples.cluster("c1", labels={}, apps=[{"id": TENANT, "field": None}], patches={})
    assert kinds.clusters.validator.is_valid(documents.completed(kinds.clusters, unset))
    assert documents.completed(kind, {"id": TENANT}) == {"id": TENANT}
