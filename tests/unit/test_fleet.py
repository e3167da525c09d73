"""The read model: what Flux is answered, when it is empty, when it is 404, and when it is doubt."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec
import pytest

from flux_resourceset import answers, changes, errors, fleet, flux_limits
from flux_resourceset.changes import Change, Entry, Snapshot, Stored
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from unit import samples
from unit.samples import cluster, create, namespace, write

KNOWN = kind_files.load()
EMPTY = b'{"inputs":[]}'


@pytest.fixture
def ledger() -> Ledger:
    made = samples.ledger_of(KNOWN)
    create(made, "namespaces", namespace("a"), namespace("b"), namespace("c"))
    create(made, "clusters", cluster("c1", namespaces=[{"id": "c"}, {"id": "a"}]), cluster("c2"))
    return made


def inputs(ledger: Ledger, key: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(ledger.fleet.answer(key))["inputs"]
    return found


def test_the_order_is_the_clusters_own(ledger: Ledger) -> None:
    assert [item["id"] for item in inputs(ledger, b"c1.example.com/namespaces")] == ["c", "a"]


def test_a_cluster_without_references_is_answered_with_an_empty_list(ledger: Ledger) -> None:
    for endpoint in (b"namespaces", b"rolebindings", b"platform-components"):
        assert ledger.fleet.answer(b"c2.example.com/" + endpoint) == EMPTY


@pytest.mark.parametrize("key", [b"never.example.com/namespaces", b"c1/namespaces", b"C1.example.com/namespaces", b"/namespaces"])
def test_a_name_that_never_existed_is_not_found(ledger: Ledger, key: bytes) -> None:
    with pytest.raises(errors.NotFound):
        ledger.fleet.answer(key)


def test_a_view_that_does_not_exist_is_not_found(ledger: Ledger) -> None:
    with pytest.raises(errors.NotFound, match="view 'clusters' not found"):
        ledger.fleet.answer(b"c1.example.com/clusters")


def test_a_decommissioned_cluster_is_answered_with_an_empty_list(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.delete(KNOWN.clusters, "c1"))
    assert ledger.fleet.answer(b"c1.example.com/namespaces") == EMPTY
    assert ledger.fleet.get("clusters", "c1") is None


def test_a_revived_cluster_is_answered_again(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.delete(KNOWN.clusters, "c1"))
    ledger.fleet.answer(b"c1.example.com/namespaces")
    create(ledger, "clusters", cluster("c1", namespaces=[{"id": "b"}]))
    assert [item["id"] for item in inputs(ledger, b"c1.example.com/namespaces")] == ["b"]
    assert ledger.fleet.tombstones == {}


def test_a_revived_id_with_a_new_name_leaves_the_old_name_empty(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.delete(KNOWN.clusters, "c1"))
    create(ledger, "clusters", cluster("c1", cluster_dns="new.example.com", namespaces=[{"id": "b"}]))
    assert ledger.fleet.answer(b"c1.example.com/namespaces") == EMPTY
    assert [item["id"] for item in inputs(ledger, b"new.example.com/namespaces")] == ["b"]


def test_a_definition_lost_by_force_is_skipped_and_reported(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.delete(KNOWN.by_name["namespaces"], "c", force=True))
    assert [item["id"] for item in inputs(ledger, b"c1.example.com/namespaces")] == ["a"]
    assert ledger.fleet.dangling() == [("c1", "namespaces", "c")]


def test_a_definition_that_is_back_may_not_be_done_without_any_more(ledger: Ledger) -> None:
    write(ledger, lambda draft: draft.delete(KNOWN.by_name["namespaces"], "c", force=True))
    assert ledger.fleet.forgone == {("namespaces", "c")}
    create(ledger, "namespaces", namespace("c"))
    assert ledger.fleet.forgone == set()
    del ledger.fleet.documents["namespaces"]["c"]  # lost, and the log does not say why
    with pytest.raises(errors.Unavailable, match='"c", which is missing'):
        ledger.fleet.answer(b"c1.example.com/namespaces")


def test_a_change_of_one_view_leaves_the_prepared_others(ledger: Ledger) -> None:
    kept = ledger.fleet.answer(b"c1.example.com/rolebindings")
    other = ledger.fleet.answer(b"c2.example.com/namespaces")
    write(ledger, lambda draft: draft.merge(KNOWN.by_name["namespaces"], "a", {"labels": {"x": "y"}}))
    assert ledger.fleet.answers.get(b"c1.example.com/rolebindings") is kept
    assert ledger.fleet.answers.get(b"c2.example.com/namespaces") is other
    assert b"c1.example.com/namespaces" not in ledger.fleet.answers


def test_the_packed_answer_is_the_same_answer(ledger: Ledger) -> None:
    key = b"c1.example.com/namespaces"
    packed = ledger.fleet.answer(key, packed=True)
    assert gzip.decompress(packed) == ledger.fleet.answer(key)
    assert packed == answers.compressed(ledger.fleet.answer(key))
    assert len(packed) < len(ledger.fleet.answer(key))
    write(ledger, lambda draft: draft.merge(KNOWN.by_name["namespaces"], "a", {"labels": {"x": "y"}}))
    assert gzip.decompress(ledger.fleet.answer(key, packed=True)) == ledger.fleet.answer(key)


def test_a_gap_in_the_log_is_doubt(ledger: Ledger) -> None:
    change = Change("namespaces", "z", "create", None, {"id": "z"})
    entry = Entry(ledger.fleet.revision + 2, "2026-01-01T00:00:00.000000Z", "t", None, None, None, False, (change,))
    with pytest.raises(errors.Unavailable, match="jumps from revision 2 to 4"):
        ledger.fleet.apply([entry])


def test_entries_that_are_known_are_passed_over(ledger: Ledger) -> None:
    before = ledger.fleet.documents["namespaces"].copy()
    ledger.fleet.apply(samples.history(ledger))
    assert (ledger.fleet.revision, ledger.fleet.documents["namespaces"]) == (2, before)


def test_documents_of_a_kind_that_is_gone_are_kept_aside() -> None:
    found = samples.fleet_of(KNOWN, gadgets=[{"id": "x"}], namespaces=[namespace("a")])
    assert found.unknown == ["gadgets"]
    assert "gadgets" not in found.documents


def test_a_cluster_stored_before_a_kind_came_gets_its_empty_list() -> None:
    known = kind_files.load(samples.KINDS_DIR)
    before = cluster("c1", labels={}, platform_components=[], namespaces=[], rolebindings=[], patches={})
    found = samples.fleet_of(known, clusters=[before])
    stored = found.get("clusters", "c1")
    assert stored is not None
    assert stored.body["network_policies"] == []
    assert found.answer(b"c1.example.com/network-policies") == EMPTY


def test_a_document_stored_before_a_field_came_gets_its_default() -> None:
    found = samples.fleet_of(KNOWN, namespaces=[{"id": "a"}])
    stored = found.get("namespaces", "a")
    assert stored is not None
    assert (stored.body["labels"], stored.body["annotations"], stored.revision) == ({}, {}, 1)


def test_tombstones_are_loaded_with_a_snapshot() -> None:
    found = fleet.Fleet(KNOWN)
    found.load(Snapshot("e", 3, {}, (changes.Tombstone("old.example.com", "old", 2),)))
    assert found.answer(b"old.example.com/namespaces") == EMPTY


def test_a_fleet_that_was_never_loaded_stands_at_the_beginning_of_no_log() -> None:
    assert fleet.Fleet(KNOWN).head == changes.Head("", 0, "")


def test_answers_that_were_prepared_are_not_given_once_their_view_is_doubted(ledger: Ledger) -> None:
    key = b"c1.example.com/namespaces"
    for packed in (False, True):
        ledger.fleet.answer(key, packed)
    ledger.fleet.compare_views([changes.View("namespaces", "places", "namespaces")])
    for packed in (False, True):
        with pytest.raises(errors.Unavailable, match="retire-kind places"):
            ledger.fleet.answer(key, packed)
    ledger.fleet.compare_views([])
    assert [item["id"] for item in inputs(ledger, key)] == ["c", "a"]


# One input of an answer

KEY = b"c1.example.com/namespaces"


def of_one(ledger: Ledger, id: str, packed: bool = False) -> bytes:
    return ledger.fleet.answer(KEY + b"/" + id.encode(), packed)


def test_inputs_one_by_one_are_those_of_the_answer(ledger: Ledger) -> None:
    whole = inputs(ledger, KEY)
    assert [msgspec.json.decode(of_one(ledger, id)) for id in ("c", "a")] == [{"inputs": [item]} for item in whole]
    single = [of_one(ledger, id).removeprefix(b'{"inputs":[').removesuffix(b"]}") for id in ("c", "a")]
    assert b'{"inputs":[' + b",".join(single) + b"]}" == ledger.fleet.answer(KEY)
    for id in ("c", "a"):
        for _ in range(2):  # also when it is remembered
            assert of_one(ledger, id, packed=True) == answers.compressed(of_one(ledger, id))


@pytest.mark.parametrize("packed", [False, True])
def test_an_input_that_is_not_assigned_is_not_found_and_no_empty_list(ledger: Ledger, packed: bool) -> None:
    for _ in range(2):
        with pytest.raises(errors.NotFound, match="cluster \"c1\" has no namespace 'b'; assign it"):
            of_one(ledger, "b", packed)
        with pytest.raises(errors.NotFound, match='cluster "c2" has no namespace'):  # whose list is empty
            ledger.fleet.answer(b"c2.example.com/namespaces/a", packed)
    with pytest.raises(errors.NotFound, match="none has the DNS name"):
        ledger.fleet.answer(b"never.example.com/namespaces/a", packed)
    with pytest.raises(errors.NotFound, match="view 'clusters' not found"):
        ledger.fleet.answer(b"c1.example.com/clusters/a", packed)


def test_whatever_is_asked_of_a_decommissioned_cluster_is_empty(ledger: Ledger) -> None:
    of_one(ledger, "a")
    write(ledger, lambda draft: draft.delete(KNOWN.clusters, "c1"))
    for id in ("a", "b", "é"):
        assert of_one(ledger, id) == EMPTY
        assert of_one(ledger, id, packed=True) == answers.compressed(EMPTY)
    create(ledger, "clusters", cluster("c1", namespaces=[{"id": "b"}]))
    assert msgspec.json.decode(of_one(ledger, "b"))["inputs"] == inputs(ledger, KEY)
    with pytest.raises(errors.NotFound):
        of_one(ledger, "a")


def test_an_input_whose_definition_was_deleted_by_force_is_not_found(ledger: Ledger) -> None:
    of_one(ledger, "c")
    write(ledger, lambda draft: draft.delete(KNOWN.by_name["namespaces"], "c", force=True))
    with pytest.raises(errors.NotFound, match="refers to namespace 'c', which was deleted by force; create it again"):
        of_one(ledger, "c")
    assert msgspec.json.decode(of_one(ledger, "a"))["inputs"] == inputs(ledger, KEY)


def test_a_missing_definition_is_doubt_whichever_input_is_asked_for(ledger: Ledger) -> None:
    del ledger.fleet.documents["namespaces"]["c"]
    for id in ("a", "c", "nobody"):
        with pytest.raises(errors.Unavailable, match='"c", which is missing'):
            of_one(ledger, id)


def test_inputs_that_were_cut_out_are_forgotten_with_their_answer(ledger: Ledger) -> None:
    before = {(id, packed): of_one(ledger, id, packed) for id in ("a", "c") for packed in (False, True)}
    write(ledger, lambda draft: draft.merge(KNOWN.by_name["namespaces"], "a", {"labels": {"x": "y"}}))
    assert b'"x":"y"' in of_one(ledger, "a")
    assert b'"x":"y"' in gzip.decompress(of_one(ledger, "a", packed=True))
    assert [of_one(ledger, "c", packed) for packed in (False, True)] == [before["c", False], before["c", True]]
    ledger.fleet.compare_views([changes.View("namespaces", "places", "namespaces")])
    for packed in (False, True):
        with pytest.raises(errors.Unavailable, match="retire-kind places"):
            of_one(ledger, "a", packed)


def test_an_id_of_any_length_is_refused_in_few_words(ledger: Ledger) -> None:
    with pytest.raises(errors.NotFound) as refused:
        of_one(ledger, "x" * 10_000)
    assert len(refused.value.detail) < 300


def test_what_was_packed_or_cut_once_is_remembered(ledger: Ledger) -> None:
    packed, cut = of_one(ledger, "a", packed=True), ledger.fleet._cuts.by_key[KEY]
    with pytest.raises(errors.NotFound):
        of_one(ledger, "b")
    assert of_one(ledger, "a", packed=True) is packed
    assert ledger.fleet._cuts.by_key[KEY] is cut


def test_what_is_remembered_of_single_inputs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"inputs":[{"id":"a"},{"id":"b"}]}'
    cuts, each = answers.Cuts(), 3 * answers._BYTES_BESIDE + len(answers.compressed(b'{"inputs":[{"id":"a"}]}'))
    monkeypatch.setattr(answers, "MAX_CUT_BYTES", 2 * each)

    def remembered(number: int) -> list[bytes]:
        cuts.add(b"%d" % number, body)
        assert cuts.input(b"%d/a" % number, True) == answers.compressed(b'{"inputs":[{"id":"a"}]}')
        return list(cuts.by_key)

    assert [remembered(number) for number in range(5)] == [[b"0"], [b"0", b"1"], [b"2"], [b"2", b"3"], [b"4"]]
    monkeypatch.setattr(answers, "MAX_CUT_BYTES", 2 * each - 1)
    cuts = answers.Cuts()
    assert [remembered(number) for number in range(2)] == [[b"0"], []]  # the second was packed, and then there was no room


# The fleet list


def test_the_list_is_sorted_by_id_and_filtered(ledger: Ledger) -> None:
    create(ledger, "clusters", cluster("b9", environment="prod"), cluster("b10", environment="prod"))

    def ids(found: bytes) -> list[str]:
        return [item["id"] for item in msgspec.json.decode(found)["inputs"]]

    assert ids(ledger.fleet.list_answer(lambda document: True, [])) == ["b10", "b9", "c1", "c2"]
    assert ids(ledger.fleet.list_answer(lambda document: document["environment"] == "prod", [])) == ["b10", "b9"]
    assert ledger.fleet.list_answer(lambda document: False, []) == EMPTY


def test_the_list_holds_ten_thousand_clusters_and_no_more() -> None:
    found = samples.fleet_of(KNOWN)
    found.documents["clusters"] = {f"c{n}": Stored(cluster(f"c{n}", cluster_dns=f"c{n}"), 1) for n in range(10_001)}
    assert len(msgspec.json.decode(found.list_answer(lambda document: document["id"] != "c7", []))["inputs"]) == 10_000
    with pytest.raises(errors.AnswerTooLarge, match=r"10001 clusters .* narrow the list with environment or selector"):
        found.list_answer(lambda document: True, ["environment", "selector"])


def test_the_list_stays_below_the_bytes_that_flux_takes() -> None:
    found = samples.fleet_of(KNOWN)
    long = "n" * 250
    found.documents["clusters"] = {f"c{n}": Stored(cluster(f"c{n}", cluster_name=long), 1) for n in range(3_500)}
    with pytest.raises(errors.AnswerTooLarge):
        found.list_answer(lambda document: True, [])


# Limits at serving time


def test_an_answer_beyond_the_limits_is_doubt_and_never_cut() -> None:
    many = [namespace(f"n{number}", labels={}, annotations={"a": "x" * 1000}, allow_prune=False) for number in range(900)]
    references = [{"id": document["id"]} for document in many]
    found = samples.fleet_of(KNOWN, namespaces=many, clusters=[cluster("c1", namespaces=references)])
    with pytest.raises(errors.Unavailable, match="900 inputs"):
        found.answer(b"c1.example.com/namespaces")


@pytest.mark.parametrize(("size", "inputs", "too_much"), [(921_599, 10_000, False), (921_600, 1, True), (1, 10_001, True)])
def test_the_limits_are_those_of_flux(size: int, inputs: int, too_much: bool) -> None:
    assert flux_limits.exceeds(b"x" * size, inputs) is too_much


def test_the_same_data_is_the_same_bytes_whatever_its_history(ledger: Ledger) -> None:
    again = samples.ledger_of(KNOWN)
    create(again, "namespaces", namespace("a"))
    create(again, "namespaces", namespace("c"), namespace("b"))
    create(again, "clusters", cluster("c1"))
    write(again, lambda draft: draft.merge(KNOWN.clusters, "c1", {"namespaces": [{"id": "c"}, {"id": "a"}]}))
    assert again.fleet.answer(b"c1.example.com/namespaces") == ledger.fleet.answer(b"c1.example.com/namespaces")
