"""After any sequence of writes, what is cached is what would be computed from scratch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset import changes, drafts, errors
from flux_resourceset.ahead import Ahead, Late, Unread
from flux_resourceset.changes import Document
from flux_resourceset.fleet import Fleet, Key
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.store import Outline, Store
from flux_resourceset.store.memory import MemoryStore
from unit import samples

KNOWN = kind_files.load(samples.KINDS_DIR)
DNS = ("one.example.com", "two.example.com", "three.example.com")
CLUSTERS = ("c1", "c2", "c3")
IDS = ("a", "b", "c")
FIELDS = {"platform_components": "platform_components", "namespaces": "namespaces", "workloads": "assigned_workloads"}

Operation = tuple[Any, ...]
catalog = st.sampled_from(sorted(FIELDS))
cluster_ids = st.sampled_from(CLUSTERS)
ids = st.sampled_from(IDS)
lists = st.lists(ids, unique=True).map(lambda found: [{"id": id} for id in found])

operations: st.SearchStrategy[Operation] = st.one_of(
    st.tuples(st.just("define"), catalog, ids, st.sampled_from(["red", "blue"]), st.lists(ids, max_size=1)),
    st.tuples(st.just("recolour"), catalog, ids, st.sampled_from(["red", "blue"])),
    st.tuples(st.just("remove"), catalog, ids, st.booleans()),
    st.tuples(st.just("cluster"), cluster_ids, st.sampled_from(DNS), catalog, lists),
    st.tuples(st.just("list"), cluster_ids, catalog, lists),
    st.tuples(st.just("rename"), cluster_ids, st.sampled_from(["north", "south"])),
    st.tuples(st.just("decommission"), cluster_ids),
    st.tuples(st.just("hand over"), cluster_ids, cluster_ids, st.booleans()),
    st.tuples(st.just("assign"), cluster_ids, catalog, ids, st.booleans()),
    st.tuples(st.just("unassign"), cluster_ids, catalog, ids),
    st.tuples(st.just("patch"), cluster_ids, ids, st.integers(0, 2)),
)


def definition(kind: str, id: str, colour: str, needs: list[str]) -> dict[str, Any]:
    if kind == "platform_components":
        return samples.component(id, oci_tag=colour, depends_on=needs)
    return {"id": id, "image": colour} if kind == "workloads" else {"id": id, "labels": {"colour": colour}}


def heir(id: str, dns: str) -> dict[str, Any]:
    return samples.cluster(id, cluster_dns=dns, namespaces=[{"id": "a"}])


def recolouring(kind: str, colour: str) -> dict[str, Any]:
    patches: dict[str, dict[str, Any]] = {
        "platform_components": {"oci_tag": colour},
        "workloads": {"image": colour},
        "namespaces": {"labels": {"x": colour}},
    }
    return patches[kind]


def perform(draft: drafts.Draft, operation: Operation) -> None:
    of, referenced = KNOWN.by_name, KNOWN.referenced_by_name
    match operation:
        case "define", kind, id, colour, needs:
            draft.create(of[kind], definition(kind, id, colour, needs))
        case "recolour", kind, id, colour:
            draft.merge(of[kind], id, recolouring(kind, colour))
        case "remove", kind, id, force:
            draft.delete(of[kind], id, force)
        case "cluster", id, dns, kind, references:
            draft.create(KNOWN.clusters, samples.cluster(id, cluster_dns=dns, **{FIELDS[kind]: references}))
        case "list", id, kind, references:
            draft.merge(KNOWN.clusters, id, {FIELDS[kind]: references})
        case "rename", id, name:
            draft.merge(KNOWN.clusters, id, {"cluster_name": name})
        case "decommission", id:
            draft.delete(KNOWN.clusters, id)
        case "hand over", giver, taker, create_first:
            dns = draft.require("clusters", giver)["cluster_dns"]
            if create_first and giver != taker:
                draft.create(KNOWN.clusters, heir(taker, dns))
            draft.delete(KNOWN.clusters, giver)
            if not create_first or giver == taker:
                draft.create(KNOWN.clusters, heir(taker, dns))
        case "assign", cluster, kind, id, enabled:
            draft.assign(cluster, referenced[kind], id, {"enabled": enabled} if "enabled" in referenced[kind].reference else {})
        case "unassign", cluster, kind, id:
            draft.unassign(cluster, referenced[kind], id)
        case "patch", cluster, id, value:
            draft.merge_patches(cluster, id, {"k": value or None})
        case _:
            raise AssertionError(operation)


def begun(store: Store | None = None) -> Ledger:
    """A fleet in which most operations find what they are about."""
    ledger = samples.ledger_of(KNOWN, store)
    for kind, field in FIELDS.items():
        samples.create(ledger, kind, *(definition(kind, id, "green", []) for id in IDS[:2]))
        references = {field: [{"id": "a"}, {"id": "b"}]}
        samples.create(ledger, "clusters", samples.cluster(f"{kind[0]}-user", **references))
    every = {field: [{"id": "b"}] for field in ("platform_components", "namespaces")}
    samples.create(ledger, "clusters", samples.cluster("c1", cluster_dns=DNS[0], **every))
    return ledger


def attempted(ledger: Ledger, transaction: list[Operation]) -> None:
    """The transaction without the operations that would be refused, or nothing."""

    def work(draft: drafts.Draft) -> None:
        for operation in transaction:
            try:
                perform(draft, operation)
            except errors.Refusal:
                continue

    try:
        samples.write(ledger, work)
    except errors.Refusal:
        pass  # refused as a whole: then nothing may have changed, which is looked at as well


def answers(fleet: Fleet) -> dict[tuple[str, str, bool], bytes | type[errors.Refusal]]:
    """What everybody would be told, by name and view, also of one input, plain and packed."""
    by_question: dict[tuple[str, str, bool], bytes | type[errors.Refusal]] = {}
    for dns in (*DNS, "p-user.example.com", "n-user.example.com", "w-user.example.com"):
        for endpoint in (path for view in KNOWN.by_endpoint for path in (view, f"{view}/a")):
            for packed in (False, True):
                by_question[dns, endpoint, packed] = answer_or_refusal(fleet.answer, dns, endpoint, packed)
    return by_question


def answer_or_refusal(
    answer: Callable[[bytes, bool], bytes], dns: str, endpoint: str, packed: bool
) -> bytes | type[errors.Refusal]:
    try:
        return answer(f"{dns}/{endpoint}".encode(), packed)
    except errors.Refusal as refusal:
        return type(refusal)


def indexes(fleet: Fleet) -> Any:
    users = {key: found for key, found in fleet.users.items() if found}
    dangling = sorted(fleet.dangling())
    return fleet.revision, fleet.documents, fleet.cluster_ids, fleet.tombstones, fleet.forgone, users, dangling


@given(st.lists(st.lists(operations, min_size=1, max_size=4), min_size=1, max_size=12))
def test_what_is_cached_is_what_would_be_computed(transactions: list[list[Operation]]) -> None:
    store = MemoryStore()
    writer, follower = begun(store), samples.ledger_of(KNOWN, store)
    for transaction in transactions:
        attempted(writer, transaction)
        follower.follower.refresh()
        scratch = Fleet(KNOWN)
        scratch.load(store.snapshot())
        wanted = answers(scratch)
        for ledger in (writer, follower):
            assert answers(ledger.fleet) == wanted
            assert indexes(ledger.fleet) == indexes(scratch)


@given(st.lists(st.lists(operations, min_size=1, max_size=4), min_size=1, max_size=12), st.integers(0, 6))
def test_what_is_said_while_the_log_is_ahead_is_what_will_be_said(transactions: list[list[Operation]], lead: int) -> None:
    store = MemoryStore()
    writer, behind = begun(store), samples.ledger_of(KNOWN, store).follower
    for number, transaction in enumerate(transactions):
        attempted(writer, transaction)
        if number < lead:
            behind.refresh()
            answers(behind.fleet)  # are remembered
    outline = store.follow_few(behind.fleet.head, 0)
    if not isinstance(outline, Outline):
        return  # nothing came
    wanted = answers(writer.fleet)
    ahead = Ahead(behind.fleet, outline, store, has_other_views=False)

    def answered(key: bytes, packed: bool) -> bytes:
        read: dict[Key, Document | None] = {}
        for _ in range(3):  # the cluster is read, then its definitions, and then there is nothing left to ask for
            try:
                return ahead.answer(key, packed, read)
            except Unread as unread:
                read |= ahead.read(unread.keys)
        raise AssertionError(read)

    for (dns, endpoint, packed), answer in wanted.items():
        with contextlib.suppress(Late):
            assert answer_or_refusal(answered, dns, endpoint, packed) == answer


@given(st.lists(st.lists(operations, min_size=1, max_size=4), min_size=1, max_size=12))
def test_the_log_adds_up_to_the_fleet(transactions: list[list[Operation]]) -> None:
    ledger = begun()
    for transaction in transactions:
        attempted(ledger, transaction)
    documents, tombstones = changes.replayed(samples.history(ledger))
    assert {kind: found for kind, found in ledger.fleet.documents.items() if found} == {
        kind: found for kind, found in documents.items() if found
    }
    assert {tombstone.dns: tombstone for tombstone in tombstones} == ledger.fleet.tombstones


@given(st.lists(st.lists(operations, min_size=1, max_size=4), min_size=1, max_size=12))
def test_no_name_both_lives_and_is_buried(transactions: list[list[Operation]]) -> None:
    ledger = begun()
    ever = set(ledger.fleet.cluster_ids)
    for transaction in transactions:
        attempted(ledger, transaction)
        fleet = ledger.fleet
        ever |= set(fleet.cluster_ids)
        assert set(fleet.cluster_ids) & set(fleet.tombstones) == set()
        assert set(fleet.cluster_ids) | set(fleet.tombstones) == ever
        assert {stored.body["cluster_dns"]: id for id, stored in fleet.documents["clusters"].items()} == fleet.cluster_ids
