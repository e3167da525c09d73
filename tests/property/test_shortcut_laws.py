"""What is left out because nothing can come of it, or was found before: the result is that of the long way."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset import answers, cautions, documents, drafts, effects, merge
from flux_resourceset.budgets import Budget
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.validation import _ABSENT, Shape
from flux_resourceset.ledger import Ledger
from flux_resourceset.overlay import Overlay
from property.test_merge_laws import every_kind
from unit import samples

KNOWN = kind_files.load(samples.KINDS_DIR)
COMPONENTS = KNOWN.referenced_by_name["platform_components"]

encode = msgspec.json.encode
canonical = msgspec.json.Encoder(order="deterministic").encode

# Texts and numbers


odd = st.sampled_from(["\0", "\n", "\x7f", "\x85", "\ufffe", "\uffff", "\\", '"', "é", ":1e9", ",9007199254740993", "null", "€"])
scalars = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | odd | st.text()
)  # fmt: skip
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(odd | st.text(), inner, max_size=4))


@given(st.dictionaries(st.text(max_size=3), values, max_size=4))
def test_what_looks_harmless_as_a_whole_is_harmless_in_every_part(document: dict[str, Any]) -> None:
    found = list(documents._unsafe(document, ()))
    assert not found or not documents._is_plain(encode(document))


# Completion


def completed(shape: Shape, value: Any) -> Any:
    """The long way: everything is made anew."""
    if isinstance(value, list) and shape.items is not None:
        return [completed(shape.items, item) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, inner in shape.properties.items():
        if name in value or inner.default is not _ABSENT:
            result[name] = completed(inner, value.get(name, inner.default))
    for name in [name for name in value if name not in shape.properties]:
        result[name] = completed(shape.others, value[name]) if shape.others is not None else value[name]
    if shape.condition is not None:
        for name, inner in (shape.then if shape.condition.is_valid(result) else shape.otherwise).items():
            if name not in result and inner.default is not _ABSENT:
                result[name] = completed(inner, inner.default)
    return result


references = st.lists(
    st.permutations(["id", "enabled", "oci_tag"]).flatmap(
        lambda names: st.fixed_dictionaries({}, optional={name: st.sampled_from(["x", True, None]) for name in names})
    )
    | scalars,
    max_size=3,
)
names = st.sampled_from(["id", "environment", "labels", "platform_components", "namespaces", "patches", "of_no_kind"])
fields = {"platform_components": references, "namespaces": references, "labels": st.dictionaries(st.text(max_size=2), scalars)}


@st.composite
def clusters(draw: st.DrawFn) -> dict[str, Any]:
    chosen = draw(st.lists(names, unique=True))
    return {name: draw(fields.get(name, scalars)) for name in chosen}


@given(st.lists(clusters(), min_size=1, max_size=4))
def test_a_document_is_completed_as_if_no_other_had_been(given_clusters: list[dict[str, Any]]) -> None:
    for cluster in given_clusters:
        before = encode(cluster)
        done = documents.completed(KNOWN.clusters, cluster)
        assert encode(done) == encode(completed(KNOWN.clusters.shape, cluster))
        assert documents.completed(KNOWN.clusters, done) is done
        assert encode(cluster) == before


# Answers


@given(st.lists(every_kind, min_size=1, max_size=6))
def test_an_answer_does_not_depend_on_those_before_it(cases: list[Any]) -> None:
    encoder = answers.Encoder()
    for kind, cluster, definitions in cases:
        block = b',"cluster":' + encode(merge.identity(cluster))
        wanted = []
        for item in merge.assignments(kind, cluster, definitions):
            content = merge.part(kind, item)
            digest = hashlib.sha256(canonical(content) + block).hexdigest()[:32]
            wanted.append(encode(content)[:-1] + block + b',"digest":"' + digest.encode() + b'"}')
        answer = encoder.answer(kind, cluster, definitions).body
        assert answer == b'{"inputs":[' + b",".join(wanted) + b"]}"
        cuts = answers.Cuts()
        cuts.add(b"dns/view", answer)
        ids = [item.reference["id"].encode() for item in merge.assignments(kind, cluster, definitions)]
        assert [cuts.input(b"dns/view/" + id, False) for id in ids] == [b'{"inputs":[' + each + b"]}" for each in wanted]


# Effects and warnings


PATHS = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(["a", "a.b", "hosts[1]", "k"], st.integers(0, 2)), "hosts": st.just([1])}
)
VERSIONS = st.sampled_from(["1.0.0", "1", "~2", "latest"])


@st.composite
def fleets(draw: st.DrawFn) -> Ledger:
    ledger = samples.ledger_of(KNOWN)
    needed = draw(st.sampled_from([[], ["base"]]))
    app = samples.component("app", depends_on=needed, oci_tag=draw(VERSIONS))
    samples.create(ledger, "platform_components", samples.component("base"), app)
    made = []
    for number in range(3):
        held = [{"id": id} for id in draw(st.lists(st.sampled_from(["base", "app"]), unique=True))]
        held = [{**each, "oci_tag": draw(VERSIONS)} if draw(st.booleans()) else each for each in held]
        patches = {each["id"]: draw(PATHS) for each in held}
        place = draw(st.sampled_from(["dev", "prod"]))
        made.append(samples.cluster(f"c{number}", environment=place, platform_components=held, patches=patches))
    samples.create(ledger, "clusters", *made)
    return ledger


@st.composite
def deeds(draw: st.DrawFn) -> Any:
    id = f"c{draw(st.integers(0, 2))}"
    patch, tag = draw(PATHS), draw(VERSIONS)

    def patched(draft: drafts.Draft) -> None:
        cluster = draft.require("clusters", id)
        if any(held["id"] == "app" for held in cluster["platform_components"]):
            draft.merge_patches(id, "app", patch)

    return draw(
        st.sampled_from(
            [
                patched,
                lambda draft: draft.assign(id, COMPONENTS, "app", {"oci_tag": tag}),
                lambda draft: draft.merge(KNOWN.clusters, id, {"labels": {"x": tag.strip("~")}}),
                lambda draft: draft.merge(KNOWN.clusters, id, {"environment": "prod"}),
                lambda draft: draft.merge(COMPONENTS, "app", {"oci_tag": tag}),
                lambda draft: draft.merge(COMPONENTS, "app", {"depends_on": ["base"]}),
            ]
        )
    )


@given(fleets(), st.lists(deeds(), min_size=1, max_size=4), st.sampled_from([frozenset(), frozenset({"prod"})]))
def test_what_stayed_the_same_object_makes_no_difference_to_warnings(ledger: Ledger, doing: Any, protected: Any) -> None:
    draft = drafts.Draft(ledger.fleet, protected=protected)
    for deed in doing:
        deed(draft)
    view = draft._view
    for change in draft.changes():
        copied = msgspec.structs.replace(change, before=copy.deepcopy(change.before))
        assert [*cautions.new_warnings(view, change, True)] == [*cautions.new_warnings(view, copied, True)]
        after, before = ([*_risks(view, change, side, protected)] for side in ("after", "before"))
        assert [*cautions.new_risks(view, change, protected)] == [each for each in after if each not in before]


def _risks(view: Overlay, change: Any, side: str, protected: frozenset[str]) -> Any:
    """Of every kind, whatever has changed."""
    seen = view if side == "after" else Overlay(view.base, Budget())
    kinds = KNOWN.referenced if change.kind == "clusters" else [KNOWN.referenced_by_name[change.kind]]
    return cautions._risks(seen, kinds, change, getattr(change, side), protected)


@given(fleets(), st.lists(deeds(), min_size=1, max_size=4))
def test_the_effect_on_a_cluster_is_the_same_whatever_others_it_is_compared_with(ledger: Ledger, doing: Any) -> None:
    draft = drafts.Draft(ledger.fleet)
    for deed in doing:
        deed(draft)
    made = draft.changes()
    together = {each.id: each for each in draft.effect(made).clusters}
    copied = [msgspec.structs.replace(change, after=copy.deepcopy(change.after)) for change in made]
    for id in ledger.fleet.documents["clusters"]:
        mine = [change for change in copied if change.kind != "clusters" or change.id == id]
        alone = {each.id: each for each in effects.of(ledger.fleet, mine).clusters}
        assert alone.get(id) == together.get(id)
