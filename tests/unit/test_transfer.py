"""Whole fleets in files: what an export holds, and that an import brings all of it back, or nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import live
import zygote
from contract.folding import fold
from flux_resourceset import applications, changes, drafts, errors, imports, transfer
from flux_resourceset.changes import Change, Entry
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.store.memory import MemoryStore
from flux_resourceset.store.sqlite import SqliteStore
from unit import samples
from unit.samples import cluster, component, create, namespace, write

KNOWN = kind_files.load()
NAMESPACES = KNOWN.by_name["namespaces"]


@pytest.fixture
def ledger() -> Ledger:
    """A fleet with a past: a decommissioned cluster and a reference that dangles."""
    made = samples.ledger_of(KNOWN)
    create(made, "platform_components", component("app"), component("base"))
    create(made, "namespaces", namespace("a"), namespace("lost"))
    create(made, "clusters", cluster("c1", namespaces=[{"id": "a"}, {"id": "lost"}]), cluster("old"))
    write(made, lambda draft: draft.delete(KNOWN.clusters, "old"))
    write(made, lambda draft: draft.delete(NAMESPACES, "lost", force=True))
    return made


def export_of(ledger: Ledger, path: Path, history: bool = False) -> Path:
    path.write_bytes(transfer.export_now(ledger.follower, history))
    return path


def edited(path: Path, change: Callable[[dict[str, Any]], Any], *, checked: bool = True) -> Path:
    """The export with a change, and a checksum that fits it."""
    data = json.loads(path.read_text())
    change(data)
    if checked:
        data["checksum"] = transfer.checksum(data)
    path.write_text(json.dumps(data))
    return path


def state(ledger: Ledger) -> Any:
    fleet = ledger.fleet
    bodies = {kind: {id: stored.body for id, stored in found.items()} for kind, found in fleet.documents.items()}
    return bodies, {(dns, tombstone.id) for dns, tombstone in fleet.tombstones.items()}


def refusal(ledger: Ledger, path: Path, replace: bool = False) -> str:
    before = state(ledger), ledger.fleet.revision
    with pytest.raises(errors.Error) as caught:
        transfer.import_file(ledger, path, replace)
    ledger.follower.refresh()
    assert (state(ledger), ledger.fleet.revision) == before
    return str(caught.value)


@pytest.mark.parametrize("history", [False, True])
def test_a_fleet_survives_the_journey(ledger: Ledger, tmp_path: Path, history: bool) -> None:
    path = export_of(ledger, tmp_path / "fleet.json", history)
    arrived = samples.ledger_of(KNOWN, SqliteStore(tmp_path / "fleet.db"))
    assert transfer.import_file(arrived, path, replace=False).result == 4
    assert state(arrived) == state(ledger)
    assert arrived.fleet.dangling() == [("c1", "namespaces", "lost")]
    assert arrived.fleet.answer(b"old.example.com/namespaces") == b'{"inputs":[]}'
    assert arrived.fleet.answer(b"c1.example.com/namespaces") == ledger.fleet.answer(b"c1.example.com/namespaces")
    arrived.close()


def test_history_goes_along_when_it_is_asked_for(ledger: Ledger, tmp_path: Path) -> None:
    arrived = samples.ledger_of(KNOWN)
    transfer.import_file(arrived, export_of(ledger, tmp_path / "fleet.json", history=True), replace=False)
    assert samples.history(arrived) == samples.history(ledger)
    assert arrived.fleet.documents == ledger.fleet.documents
    entry = create(arrived, "namespaces", namespace("next"))
    assert entry is not None
    assert entry.revision == ledger.fleet.revision + 1


# What managers applied


def applied(ledger: Ledger, *keys: tuple[str, str]) -> Any:
    return ledger.follower.store.applied(keys)


def apply(ledger: Ledger, manager: str, kind: str, id: str, **fields: Any) -> None:
    def work(draft: drafts.Draft) -> None:
        applications.apply(draft, 0, KNOWN.by_name[kind], id, manager, fields, force=False, revive=False)

    write(ledger, work)


def test_what_managers_applied_goes_along_with_the_history(ledger: Ledger, tmp_path: Path) -> None:
    apply(ledger, "cli", "namespaces", "a", labels={"x": "1"})
    apply(ledger, "ci", "namespaces", "a", labels={"y": "1"})
    apply(ledger, "ci", "clusters", "c1", node_count=3)
    path = export_of(ledger, tmp_path / "fleet.json", history=True)
    told = json.loads(path.read_text())["applied"]
    assert [(each["kind"], each["id"], each["manager"]) for each in told] == [
        ("clusters", "c1", "ci"), ("namespaces", "a", "ci"), ("namespaces", "a", "cli"),
    ]  # fmt: skip
    assert told[0]["document"] == {"node_count": 3}
    arrived = samples.ledger_of(KNOWN, SqliteStore(tmp_path / "fleet.db"))
    transfer.import_file(arrived, path, replace=False)
    keys = [("clusters", "c1"), ("namespaces", "a")]
    assert applied(arrived, *keys) == applied(ledger, *keys) != {}
    assert transfer.export_now(arrived.follower, True) == path.read_bytes()
    apply(arrived, "ci", "clusters", "c1", node_count=4)
    assert samples.stored(arrived, "clusters", "c1")["node_count"] == 4
    arrived.close()


def test_a_history_takes_the_place_of_all_records_and_a_plain_export_leaves_those_of_what_stays(
    ledger: Ledger, tmp_path: Path
) -> None:
    plain = export_of(ledger, tmp_path / "plain.json")
    whole = export_of(ledger, tmp_path / "whole.json", history=True)
    assert "applied" not in json.loads(plain.read_text())
    assert json.loads(whole.read_text())["applied"] == []
    create(ledger, "namespaces", namespace("more"))
    apply(ledger, "ci", "namespaces", "a")
    apply(ledger, "ci", "namespaces", "more")
    keys = [("namespaces", "a"), ("namespaces", "more")]
    transfer.import_file(ledger, plain, replace=True)
    assert applied(ledger, *keys) == {("namespaces", "a"): {"ci": {}}}
    transfer.import_file(ledger, edited(whole, lambda data: data.pop("applied")), replace=True)  # of an earlier release
    assert applied(ledger, *keys) == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "namespaces", "id": "nobody", "manager": "ci", "document": {}},
        {"kind": "namespaces", "id": "a", "manager": "Me", "document": {}},
        {"kind": "namespaces", "id": "a", "manager": "ci", "document": None},
        {"kind": "namespaces", "id": "a", "manager": "ci", "document": []},
        {"kind": "namespaces", "id": "a", "manager": "cli", "document": {}},  # twice
    ],
)
def test_records_that_cannot_stand_beside_the_documents_are_refused(ledger: Ledger, tmp_path: Path, wrong: Any) -> None:
    apply(ledger, "cli", "namespaces", "a")
    path = edited(export_of(ledger, tmp_path / "f.json", history=True), lambda data: data["applied"].append(wrong))
    assert "f.json" in refusal(ledger, path, replace=True)
    assert applied(ledger, ("namespaces", "a")) == {("namespaces", "a"): {"cli": {}}}


def test_a_record_that_is_newer_than_the_exported_document_stays_out(ledger: Ledger) -> None:
    apply(ledger, "ci", "clusters", "c1", node_count=3)
    apply(ledger, "ci", "namespaces", "a")
    still = ledger.fleet.copied()
    apply(ledger, "ci", "clusters", "c1", node_count=4)
    data = json.loads(b"".join(transfer.exported(still, ledger.follower.store)))
    assert [each["id"] for each in data["applied"]] == ["a"]


def test_without_history_an_import_is_one_transaction(ledger: Ledger, tmp_path: Path) -> None:
    arrived = samples.ledger_of(KNOWN)
    transfer.import_file(arrived, export_of(ledger, tmp_path / "fleet.json"), replace=False)
    (entry,) = samples.history(arrived)
    assert (entry.actor, {change.operation for change in entry.changes}) == ("import", {"create"})


def test_an_export_is_the_same_twice_and_lies_in_order(ledger: Ledger) -> None:
    assert transfer.export_now(ledger.follower, True) == transfer.export_now(ledger.follower, True)
    data = json.loads(transfer.export_now(ledger.follower, False))
    assert [document["id"] for document in data["documents"]["platform_components"]] == ["app", "base"]
    assert data["format"] == "flux-resourceset/v1"
    assert "history" not in data


def test_an_export_of_an_export_is_that_export(ledger: Ledger, tmp_path: Path) -> None:
    path = export_of(ledger, tmp_path / "fleet.json", history=True)
    arrived = samples.ledger_of(KNOWN)
    transfer.import_file(arrived, path, replace=False)
    assert transfer.export_now(arrived.follower, True) == path.read_bytes()


def test_an_export_beside_a_writer_is_of_one_moment(tmp_path: Path) -> None:
    store = MemoryStore()
    writer, exporter = samples.ledger_of(KNOWN, store), samples.ledger_of(KNOWN, store)
    create(writer, "namespaces", namespace("a"))
    path = export_of(exporter, tmp_path / "fleet.json", history=True)
    arrived = samples.ledger_of(KNOWN)
    transfer.import_file(arrived, path, replace=False)
    assert set(arrived.fleet.documents["namespaces"]) == {"a"}


class Busy(MemoryStore):
    """A store into which somebody writes whenever the log is about to be read whole."""

    def entries(self, after: int, until: int | None = None) -> list[Entry]:
        if after == 0:
            change = Change("namespaces", f"n{len(self.log)}", "create", None, {"id": f"n{len(self.log)}"})
            self.begin().commit(Entry(len(self.log) + 1, "2026-01-01T00:00:00.000000Z", "t", None, None, None, False, (change,)))
        return super().entries(after, until)


def test_an_export_while_somebody_writes_is_of_one_moment(tmp_path: Path) -> None:
    path = export_of(samples.ledger_of(KNOWN, Busy()), tmp_path / "fleet.json", history=True)
    data = json.loads(path.read_text())
    assert len(data["history"]) == data["revision"] == len(data["documents"]["namespaces"])
    transfer.import_file(samples.ledger_of(KNOWN), path, replace=False)


def test_an_export_with_history_is_refused_where_the_log_is_not_whole(tmp_path: Path) -> None:
    store = MemoryStore()
    folded = samples.ledger_of(KNOWN, store)
    create(folded, "namespaces", namespace("a"))
    create(folded, "namespaces", namespace("b"))
    fold(store, 1)
    with pytest.raises(errors.Compacted, match=r"folded up to revision 1, .*export without history"):
        transfer.export_now(folded.follower, True)
    arrived = samples.ledger_of(KNOWN)
    transfer.import_file(arrived, export_of(folded, tmp_path / "fleet.json"), replace=False)
    assert set(arrived.fleet.documents["namespaces"]) == {"a", "b"}


def test_nothing_of_an_export_is_made_before_it_is_read(ledger: Ledger) -> None:
    """It is read in a thread, so nothing is sorted or encoded on the event loop."""

    class Unread(dict[str, Any]):
        def __iter__(self) -> Any:
            raise AssertionError("it was read")

    state = ledger.fleet.copied()
    state.documents = {kind: Unread(found) for kind, found in state.documents.items()}
    pieces = transfer.exported(state, None)
    with pytest.raises(AssertionError, match="it was read"):
        next(pieces)


def test_an_empty_fleet_can_be_moved(tmp_path: Path) -> None:
    for history in (False, True):
        path = export_of(samples.ledger_of(KNOWN), tmp_path / "fleet.json", history)
        arrived = samples.ledger_of(KNOWN)
        assert transfer.import_file(arrived, path, replace=False).result == 0
        assert imports.is_empty(arrived.fleet)


# Into a store that is not empty


@pytest.mark.parametrize("history", [False, True])
def test_a_store_that_is_not_empty_is_refused(ledger: Ledger, tmp_path: Path, history: bool) -> None:
    path = export_of(ledger, tmp_path / "fleet.json", history)
    other = samples.ledger_of(KNOWN)
    create(other, "namespaces", namespace("mine"))
    assert "not empty" in refusal(other, path)


@pytest.mark.parametrize("history", [False, True])
def test_replacing_puts_the_file_in_the_place_of_everything(ledger: Ledger, tmp_path: Path, history: bool) -> None:
    path = export_of(ledger, tmp_path / "fleet.json", history)
    other = samples.ledger_of(KNOWN)
    create(other, "namespaces", namespace("mine"), namespace("a", allow_prune=True))
    create(other, "clusters", cluster("c1", namespaces=[{"id": "mine"}]))
    transfer.import_file(other, path, replace=True)
    assert state(other)[0] == state(ledger)[0]
    assert other.fleet.answer(b"c1.example.com/namespaces") == ledger.fleet.answer(b"c1.example.com/namespaces")


def test_replacing_keeps_the_log(ledger: Ledger, tmp_path: Path) -> None:
    path = export_of(ledger, tmp_path / "fleet.json")
    other = samples.ledger_of(KNOWN)
    create(other, "clusters", cluster("mine"))
    transfer.import_file(other, path, replace=True)
    assert [entry.actor for entry in samples.history(other)] == ["tester", "import"]


def served(ledger: Ledger, dns: str) -> str:
    """What the namespaces of a cluster are: 404, or the inputs by name."""
    try:
        inputs = json.loads(ledger.fleet.answer(f"{dns}/namespaces".encode()))["inputs"]
    except errors.NotFound:
        return "404"
    return ",".join(found["id"] for found in inputs) or "[]"


def assert_everybody_serves(path: Path, ledger: Ledger, expected: dict[str, str]) -> None:
    """The one who wrote, one who starts now, and the log, played again."""
    started = samples.ledger_of(KNOWN, SqliteStore(path, read_only=True))
    for each in (ledger, started):
        assert {dns: served(each, dns) for dns in expected} == expected
    _, tombstones = changes.replayed(samples.history(started))
    assert {tombstone.dns for tombstone in tombstones} & expected.keys() == {d for d, found in expected.items() if found == "[]"}
    started.close()


@pytest.mark.parametrize(("history", "decommission", "absent"), [(h, d, "[]" if d else "404") for h in (0, 1) for d in (0, 1)])
def test_absence_in_a_file_is_no_decommission(tmp_path: Path, history: bool, decommission: bool, absent: str) -> None:
    database = tmp_path / "fleet.db"
    here = samples.ledger_of(KNOWN, SqliteStore(database))
    follower = samples.ledger_of(KNOWN, SqliteStore(database, read_only=True))
    create(here, "namespaces", namespace("a"))
    create(here, "clusters", cluster("kept", namespaces=[{"id": "a"}]), cluster("moved"), cluster("old"))
    write(here, lambda draft: draft.delete(KNOWN.clusters, "old"))
    path = export_of(here, tmp_path / "fleet.json", history)
    create(here, "clusters", cluster("later", namespaces=[{"id": "a"}]))
    write(here, lambda draft: draft.delete(KNOWN.clusters, "moved"))
    create(here, "clusters", cluster("moved", cluster_dns="new-name.example.com"))
    follower.follower.refresh()
    transfer.import_file(here, path, replace=True, decommission_absent=decommission)
    expected = {
        "kept.example.com": "a",
        "later.example.com": absent,
        "new-name.example.com": absent,
        "moved.example.com": "[]",
        "old.example.com": "[]",
    }
    follower.follower.refresh()
    assert {dns: served(follower, dns) for dns in expected} == expected
    assert follower.fleet.cluster_ids.keys() == {"kept.example.com", "moved.example.com"}  # which has no namespaces
    assert follower.fleet.tombstones.keys() == {dns for dns, found in expected.items() if found == "[]"} - {"moved.example.com"}
    expected.pop("moved.example.com")
    assert_everybody_serves(database, here, expected)
    for each in (here, follower):
        each.close()


@pytest.mark.parametrize("history", [False, True])
def test_a_tombstone_in_the_file_counts_as_it_is(ledger: Ledger, tmp_path: Path, history: bool) -> None:
    path = export_of(ledger, tmp_path / "fleet.json", history)
    create(ledger, "clusters", cluster("old"), cluster("later"))
    plans: list[imports.Plan] = []
    transfer.import_file(ledger, path, replace=True, agree=plans.append)
    assert (served(ledger, "old.example.com"), served(ledger, "later.example.com")) == ("[]", "404")
    assert [str(each) for each in plans[0].consequences] == ["old.example.com is decommissioned", "later.example.com vanishes"]


def test_a_name_that_goes_from_one_cluster_to_another_lives_on(tmp_path: Path) -> None:
    here = samples.ledger_of(KNOWN)
    create(here, "clusters", cluster("c1", cluster_dns="a.example.com"), cluster("c2", cluster_dns="b.example.com"))
    path = export_of(here, tmp_path / "fleet.json")
    other = samples.ledger_of(KNOWN)
    create(other, "clusters", cluster("c1", cluster_dns="b.example.com"), cluster("c2", cluster_dns="c.example.com"))
    transfer.import_file(other, path, replace=True)
    assert other.fleet.cluster_ids == {"a.example.com": "c1", "b.example.com": "c2"}
    assert other.fleet.tombstones == {}
    assert samples.history(other)[-1].vanished == ("c.example.com",)


@pytest.mark.parametrize(("decommission", "answer"), [(False, "404"), (True, "[]")])
def test_replacing_may_give_a_cluster_another_name(ledger: Ledger, tmp_path: Path, decommission: bool, answer: str) -> None:
    path = export_of(ledger, tmp_path / "fleet.json")
    other = samples.ledger_of(KNOWN)
    create(other, "clusters", cluster("c1", cluster_dns="before.example.com"))
    transfer.import_file(other, path, replace=True, decommission_absent=decommission)
    assert served(other, "before.example.com") == answer
    assert other.fleet.cluster_ids == {"c1.example.com": "c1"}


def test_replacing_what_is_equal_changes_no_document(ledger: Ledger, tmp_path: Path) -> None:
    before = state(ledger)
    transfer.import_file(ledger, export_of(ledger, tmp_path / "fleet.json"), replace=True)
    assert state(ledger) == before


def test_a_name_that_lives_is_not_buried_by_a_tombstone(ledger: Ledger, tmp_path: Path) -> None:
    tombstone = {"dns": "c1.example.com", "id": "x", "revision": 1}
    for history in (False, True):
        path = export_of(ledger, tmp_path / "fleet.json", history)
        arrived = samples.ledger_of(KNOWN)
        transfer.import_file(arrived, edited(path, lambda data: data["tombstones"].append(tombstone)), replace=False)
        assert set(arrived.fleet.tombstones) == {"old.example.com"}


# Files that are not right


def test_a_file_that_was_edited_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    path = export_of(ledger, tmp_path / "fleet.json")
    edited(path, lambda data: data["documents"]["namespaces"][0]["labels"].update(x="y"), checked=False)
    assert "checksum" in refusal(samples.ledger_of(KNOWN), path)


def test_a_file_that_was_cut_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    path = export_of(ledger, tmp_path / "fleet.json")
    path.write_bytes(path.read_bytes()[:-20])
    assert "invalid JSON value" in refusal(samples.ledger_of(KNOWN), path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.update(format="other/v1"), "format must be flux-resourceset/v1"),
        (lambda data: data.pop("documents"), "documents"),
        (lambda data: data["documents"].update(gadgets=[]), "'gadgets' is no kind here"),
        (lambda data: data["documents"]["namespaces"].append({"id": "a"}), 'duplicate id "a"'),
        (lambda data: data["documents"]["clusters"].append(cluster("c2", cluster_dns="c1.example.com")), "cluster_dns"),
        (lambda data: data["documents"]["clusters"][0].update(environment="moon"), "/environment"),
        (lambda data: data["documents"]["clusters"].append({}), "/cluster_dns is required"),
        (lambda data: data["tombstones"].append({"dns": 1}), "tombstones"),
    ],
)
def test_a_wrong_export_is_refused(ledger: Ledger, tmp_path: Path, change: Callable[[Any], Any], said: str) -> None:
    path = edited(export_of(ledger, tmp_path / "fleet.json"), change)
    found = refusal(samples.ledger_of(KNOWN), path)
    assert said in found
    assert "fleet.json" in found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["history"].pop(0), "gaps"),
        (lambda data: data["history"].reverse(), "gaps"),
        (lambda data: data["history"].pop(), "does not lead to the namespaces"),
        (lambda data: data["documents"]["namespaces"].append({"id": "new"}), "does not lead to the namespaces"),
    ],
)
def test_a_history_that_does_not_fit_is_refused(ledger: Ledger, tmp_path: Path, change: Callable[[Any], Any], said: str) -> None:
    path = edited(export_of(ledger, tmp_path / "fleet.json", history=True), change)
    assert said in refusal(samples.ledger_of(KNOWN), path, replace=True)


def test_documents_of_an_older_release_are_completed(ledger: Ledger, tmp_path: Path) -> None:
    path = export_of(ledger, tmp_path / "fleet.json")
    edited(path, lambda data: data["documents"]["namespaces"][0].pop("allow_prune"))
    arrived = samples.ledger_of(KNOWN)
    transfer.import_file(arrived, path, replace=False)
    assert samples.stored(arrived, "namespaces", "a")["allow_prune"] is False


def test_a_fleet_with_documents_of_no_kind_is_not_exported() -> None:
    known = kind_files.load(samples.KINDS_DIR)
    store = MemoryStore()
    create(samples.ledger_of(known, store), "workloads", {"id": "w", "image": "x"})
    with pytest.raises(errors.Error, match="workloads"):
        transfer.export_now(samples.ledger_of(KNOWN, store).follower, False)


@pytest.mark.parametrize("history", [False, True])
def test_a_fleet_with_documents_of_no_kind_is_not_replaced(ledger: Ledger, tmp_path: Path, history: bool) -> None:
    known = kind_files.load(samples.KINDS_DIR)
    store = MemoryStore()
    create(samples.ledger_of(known, store), "workloads", {"id": "w", "image": "x"})
    path = export_of(ledger, tmp_path / "fleet.json", history)
    assert "workloads, which is no kind here" in refusal(samples.ledger_of(KNOWN, store), path, replace=True)


# The command


def moved(directory: Path, *words: str, given: bytes = b"", **overrides: str) -> subprocess.CompletedProcess[bytes]:
    return zygote.run(zygote.SERVER, words, live.environment(directory, **overrides), directory, given=given)


@pytest.mark.long
def test_a_fleet_is_exported_to_standard_output_and_imported_from_standard_input(ledger: Ledger, tmp_path: Path) -> None:
    content = transfer.export_now(ledger.follower, True)
    assert moved(tmp_path, "import", "-", given=content).returncode == 0
    done = moved(tmp_path, "export", "-", "--history")
    assert done.returncode == 0
    assert json.loads(done.stdout)["documents"] == json.loads(content)["documents"]


@pytest.mark.parametrize(
    ("words", "overrides", "told"),
    [
        (("export", "-"), {"STORE_BACKEND": "memory"}, "STORE_BACKEND=memory holds nothing to move; name a DATABASE_URL instead"),
        (("export", "absent/fleet.json"), {}, "absent/fleet.json: cannot be written: No such file or directory"),
        (("import", "-", "--decommission-absent"), {}, "--decommission-absent goes with --replace"),
    ],
)
def test_what_cannot_be_moved_is_told_in_a_line(
    words: tuple[str, ...], overrides: dict[str, str], told: str, tmp_path: Path
) -> None:
    assert moved(tmp_path, "import", "-", given=b'{"documents": {}}').returncode in (0, 2)
    done = moved(tmp_path, *words, given=b"", **overrides)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", f"flux-resourceset: {told}\n")
