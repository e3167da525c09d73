"""What a change means to clusters, told before it is made."""

from __future__ import annotations

from flux_resourceset import effects
from flux_resourceset.changes import Document
from flux_resourceset.effects import Difference
from flux_resourceset.kinds import kind_files
from unit.samples import cluster, component, namespace

KNOWN = kind_files.load()


def state(*clusters: Document, tombstones: tuple[str, ...] = (), **definitions: list[Document]) -> effects.State:
    complete = {
        "clusters": {
            c["id"]: {"namespaces": [], "platform_components": [], "rolebindings": [], "patches": {}, **c} for c in clusters
        }
    }
    complete |= {kind: {found["id"]: found for found in of_kind} for kind, of_kind in definitions.items()}
    return effects.state(complete, set(tombstones))


def effect_texts(before: effects.State, after: effects.State) -> list[str]:
    return [str(effect) for effect in effects.between(KNOWN, before, after)]


def test_comings_and_goings() -> None:
    before = state(
        cluster("stays"), cluster("goes"), cluster("ends"), tombstones=("back.example.com", "known.example.com", "gone")
    )
    after = state(cluster("stays"), cluster("back"), cluster("new"), tombstones=("ends.example.com", "known.example.com"))
    assert effect_texts(before, after) == [
        "ends.example.com is decommissioned",
        "goes.example.com vanishes",
        "gone vanishes",
        "back.example.com appears",
        "new.example.com appears",
    ]


def test_a_cluster_whose_name_stays_under_another_id_is_the_same() -> None:
    assert (
        effect_texts(state(cluster("a", cluster_name="x")), state(cluster("b", cluster_dns="a.example.com", cluster_name="x")))
        == []
    )


def test_inputs_that_are_lost_gained_and_changed_are_counted_by_view() -> None:
    spaces = [namespace("a"), namespace("b"), namespace("c", labels={"x": "1"})]
    before = state(
        cluster(namespaces=[{"id": "a"}, {"id": "c"}], platform_components=[{"id": "app"}]),
        namespaces=spaces,
        platform_components=[component("app")],
    )
    after = state(
        cluster(namespaces=[{"id": "c"}, {"id": "b"}], platform_components=[{"id": "app"}]),
        namespaces=[*spaces[:2], namespace("c")],
        platform_components=[component("app", oci_tag="2.0.0")],
    )
    (effect,) = effects.between(KNOWN, before, after)
    assert set(effect.views) == {Difference("namespaces", 1, 1, 1), Difference("platform-components", 0, 0, 1)}
    assert effect.sort == "loses inputs"


def test_a_definition_that_goes_is_lost_in_every_cluster_that_refers_to_it() -> None:
    clusters = [cluster("a", namespaces=[{"id": "n"}]), cluster("b")]
    assert effect_texts(state(*clusters, namespaces=[namespace("n")]), state(*clusters)) == [
        "a.example.com loses inputs: namespaces 1 lost"
    ]


def test_another_order_is_no_change() -> None:
    spaces = [namespace("a"), namespace("b")]
    one, other = [{"id": "a"}, {"id": "b"}], [{"id": "b"}, {"id": "a"}]
    assert (
        effect_texts(state(cluster(namespaces=one), namespaces=spaces), state(cluster(namespaces=other), namespaces=spaces)) == []
    )


def test_the_worst_is_shown_first_and_the_rest_is_counted() -> None:
    before = state(*(cluster(f"c{number}") for number in range(30)))
    after = state(cluster("new"), tombstones=("c7.example.com",))
    lines = effects.described(effects.between(KNOWN, before, after))
    assert [line.partition(" (")[0] for line in lines[:3]] == ["is decommissioned: 1", "vanishes: 29", "appears: 1"]
    assert lines[3] == "  c7.example.com is decommissioned"
    assert len(lines) == 3 + 20 + 1
    assert lines[-1] == "  and 11 more"
    assert effects.described([]) == ["nothing changes for any cluster"]
