"""Imports obey every rule of a write; what they may do beyond it is told, and agreed to before it is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flux_resourceset import drafts, errors, imports, transfer
from flux_resourceset.changes import Document, Forgone
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import Kinds
from flux_resourceset.ledger import Ledger
from unit import samples
from unit.samples import cluster, component, create, namespace, pointers, refused, write

KNOWN = kind_files.load()
READ_ONLY = samples.PLAIN + "methods:\n  resource: [get]\n  instance: [get]\n"

Edit = Callable[[Document], Any]


def unedited(data: Document) -> None:
    pass


def fleet_of(known: Kinds = KNOWN) -> Ledger:
    """A cluster with everything, and one that goes without something that was deleted by force."""
    made = samples.ledger_of(known)
    create(made, "platform_components", component("app"))
    create(made, "namespaces", namespace("a"), namespace("b"), namespace("lost"))
    whole = cluster(
        "whole", namespaces=[{"id": "a"}, {"id": "b"}], platform_components=[{"id": "app"}], patches={"app": {"x": "1"}}
    )
    create(made, "clusters", whole, cluster("lacking", namespaces=[{"id": "a"}, {"id": "lost"}]), cluster("old"))
    write(made, lambda draft: draft.delete(known.clusters, "old"))
    write(made, lambda draft: draft.delete(known.by_name["namespaces"], "lost", force=True))
    return made


def export_of(ledger: Ledger, change: Edit = unedited, history: bool = False) -> Document:
    """An export, with a change and a checksum that fits it."""
    data: Document = json.loads(transfer.export_now(ledger.follower, history))
    change(data)
    data["checksum"] = transfer.checksum(data)
    return data


def file_of(data: Document, path: Path) -> Path:
    path.write_text(json.dumps(data))
    return path


def merging(data: Document, known: Kinds = KNOWN) -> Callable[[drafts.Draft], None]:
    return imports.importing(transfer.parsed(known, data, "the file"), "", merge=True)


def merged(ledger: Ledger, data: Document) -> list[str]:
    """The warnings of a merge that succeeds."""
    return warnings_of(ledger, merging(data, ledger.kinds))


def warnings_of(ledger: Ledger, load: Callable[[drafts.Draft], None]) -> list[str]:
    """The warnings of a write."""
    return list(ledger.write_now(load, samples.ORIGIN).warnings)


def of(data: Document, id: str, kind: str = "clusters") -> Document:
    found: Document = next(document for document in data["documents"][kind] if document["id"] == id)
    return found


# A merge is a write


def test_a_merge_of_what_is_there_changes_nothing() -> None:
    ledger = fleet_of()
    before = ledger.fleet.revision
    merged(ledger, export_of(ledger))
    assert ledger.fleet.revision == before


def test_a_merge_does_not_rename_a_cluster() -> None:
    ledger = fleet_of()
    data = export_of(ledger, lambda data: of(data, "whole").update(cluster_dns="other.example.com"))
    found = refused(errors.Invalid, ledger, merging(data))
    assert pointers(found) == ["/cluster_dns"]
    assert "whole.example.com" in ledger.fleet.cluster_ids


def test_a_merge_does_not_take_a_name_from_a_cluster() -> None:
    ledger = fleet_of()
    data = export_of(ledger, lambda data: data["documents"]["clusters"].remove(of(data, "whole")))
    of(data, "lacking")["id"] = "thief"
    of(data, "thief")["cluster_dns"] = "whole.example.com"
    data["checksum"] = transfer.checksum(data)
    assert "belongs to cluster" in refused(errors.AlreadyExists, ledger, merging(data)).detail


@pytest.mark.parametrize("field", ["namespaces", "platform_components", "patches"])
def test_a_merge_does_not_empty_what_a_file_leaves_out(field: str) -> None:
    ledger = fleet_of()

    def leave_out(data: Document) -> None:
        del of(data, "whole")[field]
        if field == "platform_components":
            of(data, "whole")["patches"] = {}

    found = refused(errors.Invalid, ledger, merging(export_of(ledger, leave_out)))
    assert pointers(found) == [f"/{field}"]
    assert "to empty it: the file must name it" in found.detail


def test_a_merge_may_empty_what_a_file_names() -> None:
    ledger = fleet_of()
    merged(ledger, export_of(ledger, lambda data: of(data, "whole").update(namespaces=[])))
    assert samples.stored(ledger, "clusters", "whole")["namespaces"] == []


def test_a_new_cluster_may_leave_out_what_it_does_not_have() -> None:
    ledger = fleet_of()
    merged(ledger, export_of(ledger, lambda data: data["documents"]["clusters"].append(cluster("new"))))
    assert samples.stored(ledger, "clusters", "new")["namespaces"] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: of(data, "app", "platform_components").update(depends_on=["none"]), "not found"),
        (lambda data: of(data, "app", "platform_components").update(depends_on=["app"]), "cycle"),
        (lambda data: of(data, "whole").update(environment="moon"), "/environment"),
        (lambda data: of(data, "whole")["labels"].update({"-": "x"}), "/labels"),
        (lambda data: of(data, "whole").update(patches={"app": {"db.password": "x"}}), "looks like a secret"),
        (lambda data: of(data, "whole")["namespaces"].append({"id": "a"}), "listed twice"),
        (lambda data: data["tombstones"].append({"dns": "x.example.com", "id": "a\x1b[2J", "revision": 1}), "no id of a cluster"),
    ],
)
def test_a_merge_obeys_the_other_rules_of_a_write(change: Edit, said: str) -> None:
    ledger = fleet_of()
    data = export_of(ledger, change)
    with pytest.raises(errors.Invalid, match=said):
        merged(ledger, data)


def test_a_merge_does_not_write_what_the_api_does_not_let_anybody_write(tmp_path: Path) -> None:
    known = samples.kinds_from(tmp_path, READ_ONLY)
    ledger = samples.ledger_of(known)
    create(ledger, "widgets", {"id": "w"})
    same = export_of(ledger)
    assert merged(ledger, same) == []
    more = export_of(ledger, lambda data: data["documents"]["widgets"].append({"id": "more"}))
    assert "widgets do not take create" in refused(errors.Invalid, ledger, merging(more, known)).detail
    load = imports.importing(transfer.parsed(known, same, "the file"), "")
    assert warnings_of(samples.ledger_of(known), load) == ["1 widgets come along, though the API lets nobody create them"]


# References whose definition was deleted by force


def test_an_export_names_what_was_deleted_by_force_and_is_referred_to() -> None:
    ledger = fleet_of()
    assert export_of(ledger)["deleted_by_force"] == [{"kind": "namespaces", "id": "lost"}]
    write(ledger, lambda draft: draft.unassign("lacking", KNOWN.referenced_by_name["namespaces"], "lost"))
    assert export_of(ledger)["deleted_by_force"] == []


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("field", ["namespaces", "platform_components"])
def test_a_reference_that_leads_nowhere_is_refused(merge: bool, field: str) -> None:
    ledger = samples.ledger_of(KNOWN)
    data = export_of(fleet_of(), lambda data: of(data, "whole")[field].insert(0, {"id": "nowhere"}))
    load = imports.importing(transfer.parsed(KNOWN, data, "the file"), "", merge=merge)
    found = refused(errors.Invalid, ledger, load)
    assert pointers(found) == [f"/{field}/0/id"]
    assert "deleted_by_force does not name it; create it first" in found.detail


def test_a_definition_that_the_file_lacks_and_the_fleet_has_is_no_loss() -> None:
    ledger = fleet_of()
    data = export_of(ledger, lambda data: data["documents"]["namespaces"].remove(of(data, "b", "namespaces")))
    merged(ledger, data)
    path_refused = refused(errors.Invalid, ledger, imports.importing(transfer.parsed(KNOWN, data, "the file"), "", replace=True))
    assert pointers(path_refused) == ["/namespaces/1/id"]


@pytest.mark.parametrize("older", [False, True])
def test_a_reference_that_force_left_is_taken_with_a_warning(older: bool) -> None:
    ledger = samples.ledger_of(KNOWN)
    found = merged(ledger, export_of(fleet_of(), lambda data: data.pop("deleted_by_force") if older else None))
    assert 'namespaces "lost" was deleted by force; 1 cluster(s) go without it: lacking' in found
    (entry,) = samples.history(ledger)
    assert entry.forced
    assert entry.forgone == (Forgone("namespaces", "lost"),)
    assert ledger.fleet.forgone == {("namespaces", "lost")}


def test_what_was_deleted_by_force_here_may_be_lacking_too() -> None:
    ledger = fleet_of()
    data = export_of(ledger, lambda data: data.update(deleted_by_force=[]))
    of(data, "whole")["labels"] = {"new": "label"}
    data["checksum"] = transfer.checksum(data)
    merged(ledger, data)
    assert samples.history(ledger)[-1].forgone == ()  # the log says so already


# Tombstones


def test_a_merge_does_not_decommission_a_cluster_that_lives() -> None:
    ledger = fleet_of()
    data = export_of(ledger, lambda data: data["documents"].update(clusters=[]))
    data["tombstones"] += [{"dns": "whole.example.com", "id": "whole", "revision": 1}]
    data["checksum"] = transfer.checksum(data)
    found = merged(ledger, data)
    assert ledger.fleet.cluster_ids.keys() == {"whole.example.com", "lacking.example.com"}
    assert set(ledger.fleet.tombstones) == {"old.example.com"}
    assert [text for text in found if "whole" in text] == [
        'whole.example.com of cluster "whole" was decommissioned where the file was made; cluster "whole" has the name and stays'
    ]


def test_a_tombstone_that_is_new_here_is_told() -> None:
    ledger = samples.ledger_of(KNOWN)
    create(ledger, "clusters", cluster("mine"))
    found = merged(ledger, export_of(fleet_of()))
    assert 'old.example.com of cluster "old" was decommissioned where the file was made; its answers are [] from now on' in found
    assert merged(ledger, export_of(ledger)) == [text for text in found if "lost" in text]  # known by now


# Histories


def change_of(data: Document, revision: int, position: int = 0) -> Document:
    found: Document = data["history"][revision - 1]["changes"][position]
    return found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["history"][4].update(retired=[{"dns": "whole.example.com", "id": "x"}]), "tombstones"),
        (lambda data: data["history"][4].update(retired=[{"dns": "elsewhere.example.com", "id": "x"}]), "tombstones"),
        (lambda data: data["history"][3].update(vanished=["old.example.com"]), "tombstones"),
        (lambda data: data["tombstones"].append({"dns": "elsewhere.example.com", "id": "x", "revision": 1}), "tombstones"),
        (lambda data: data["tombstones"].clear(), "tombstones"),
        (lambda data: change_of(data, 4)["before"].update(cluster_dns="victim.example.com"), "clusters/old in revision 4"),
        (lambda data: change_of(data, 4).update(operation="update"), "clusters/old in revision 4"),
        (
            lambda data: change_of(data, 1).update(before={"id": "app"}, operation="update"),
            "platform_components/app in revision 1",
        ),
        (lambda data: change_of(data, 1).update(id="other"), "platform_components/other in revision 1"),
        (lambda data: change_of(data, 1).update(kind="gadgets"), "gadgets"),
    ],
)
def test_a_history_that_says_what_no_write_could_is_refused(change: Edit, said: str) -> None:
    data = export_of(fleet_of(), change, history=True)
    with pytest.raises(errors.Invalid, match=said):
        transfer.parsed(KNOWN, data, "the file")


def test_a_history_does_not_lead_to_dependencies_in_a_circle(tmp_path: Path) -> None:
    def depend(data: Document) -> None:
        for document in (of(data, "app", "platform_components"), change_of(data, 1)["after"]):
            document["depends_on"] = ["app"]

    ledger = samples.ledger_of(KNOWN)
    path = file_of(export_of(fleet_of(), depend, history=True), tmp_path / "fleet.json")
    with pytest.raises(errors.Invalid, match="makes a cycle"):
        transfer.import_file(ledger, path, replace=False)
    assert imports.is_empty(ledger.fleet)


@pytest.mark.parametrize("older", [False, True])
def test_a_history_obeys_the_rules_that_bind_documents_together(tmp_path: Path, older: bool) -> None:
    """A cluster that refers to what never was; a file of the first release may, and then the log says so."""

    def refer(data: Document) -> None:
        for document in (of(data, "whole"), change_of(data, 3)["after"]):
            document["namespaces"].append({**document["namespaces"][0], "id": "nowhere"})
        if older:
            del data["deleted_by_force"]

    data = export_of(fleet_of(), refer, history=True)
    path = file_of(data, tmp_path / "fleet.json")
    ledger = samples.ledger_of(KNOWN)
    if older:
        transfer.import_file(ledger, path, replace=False)
        assert samples.history(ledger)[-1].forgone == (Forgone("namespaces", "nowhere"),)
        assert ledger.fleet.revision == len(data["history"]) + 1
        return
    with pytest.raises(errors.Invalid, match="/namespaces/2/id"):
        transfer.import_file(ledger, path, replace=False)
    assert imports.is_empty(ledger.fleet)


# What is done was agreed to


@pytest.fixture(params=[False, True], ids=["plain", "history"])
def older(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Ledger, Path]:
    """A fleet that went on after it was exported, and the export."""
    ledger = fleet_of()
    path = file_of(export_of(ledger, history=request.param), tmp_path / "fleet.json")
    create(ledger, "namespaces", namespace("new"))
    create(ledger, "clusters", cluster("later", namespaces=[{"id": "new"}]))
    write(ledger, lambda draft: draft.merge(KNOWN.clusters, "whole", {"namespaces": [{"id": "a"}, {"id": "new"}]}))
    write(ledger, lambda draft: draft.delete(KNOWN.clusters, "lacking"))
    return ledger, path


def answers(ledger: Ledger) -> Any:
    names = [*ledger.fleet.cluster_ids, *ledger.fleet.tombstones]
    return ledger.fleet.revision, {name: ledger.fleet.answer(f"{name}/namespaces".encode()) for name in names}


def meanwhile(ledger: Ledger, kind: str, document: Document) -> Callable[[imports.Plan], None]:
    """Agree, while somebody else writes."""

    def agree(plan: imports.Plan) -> None:
        create(ledger, kind, document)

    return agree


def test_the_plan_tells_what_changes_for_whom(older: tuple[Ledger, Path]) -> None:
    ledger, path = older
    plans: list[imports.Plan] = []
    transfer.import_file(ledger, path, replace=True, agree=plans.append)
    assert [str(each) for each in plans[0].consequences] == [
        "whole.example.com loses inputs: namespaces 1 lost, 1 gained",
        "later.example.com vanishes",
        "lacking.example.com appears",
    ]
    assert not plans[0].into_empty
    assert any('namespaces "lost"' in text for text in plans[0].warnings)


@pytest.mark.parametrize("history", [False, True])
def test_the_outcome_of_an_import_tells_what_its_plan_told(tmp_path: Path, history: bool) -> None:
    path = file_of(export_of(fleet_of(), history=history), tmp_path / "fleet.json")
    ledger = samples.ledger_of(KNOWN)
    plans: list[imports.Plan] = []
    outcome = transfer.import_file(ledger, path, replace=False, agree=plans.append)
    assert list(outcome.warnings) == plans[0].warnings != []
    assert outcome.entry == samples.history(ledger)[-1]
    assert (outcome.result, outcome.revision) == (sum(map(len, ledger.fleet.documents.values())), ledger.fleet.revision)


def test_nothing_is_done_that_was_not_agreed_to(older: tuple[Ledger, Path]) -> None:
    ledger, path = older
    before = answers(ledger)

    def decline(plan: imports.Plan) -> None:
        raise errors.StartupError("no")

    with pytest.raises(errors.StartupError):
        transfer.import_file(ledger, path, replace=True, agree=decline)
    assert answers(ledger) == before


def test_nothing_is_done_but_what_was_agreed_to(older: tuple[Ledger, Path]) -> None:
    ledger, path = older
    with pytest.raises(errors.PlanChanged, match="nothing was written"):
        transfer.import_file(ledger, path, replace=True, agree=meanwhile(ledger, "clusters", cluster("new")))
    assert "new.example.com" in ledger.fleet.cluster_ids
    assert "later.example.com" in ledger.fleet.cluster_ids


def test_what_nobody_agreed_to_lose_is_not_replaced(older: tuple[Ledger, Path]) -> None:
    ledger, path = older
    with pytest.raises(errors.PlanChanged):
        transfer.import_file(ledger, path, replace=True, agree=meanwhile(ledger, "namespaces", namespace("x")))
    assert ledger.fleet.get("namespaces", "x") is not None


@pytest.mark.parametrize("replace", [False, True])
def test_somebody_who_fills_the_store_meanwhile_is_not_replaced(older: tuple[Ledger, Path], replace: bool) -> None:
    ledger = samples.ledger_of(KNOWN)
    with pytest.raises(errors.Conflict if not replace else errors.PlanChanged):
        transfer.import_file(ledger, older[1], replace, agree=meanwhile(ledger, "clusters", cluster("new")))
    assert ledger.fleet.cluster_ids == {"new.example.com": "new"}


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("filled", ["namespaces", "clusters"])
def test_an_empty_file_takes_the_place_of_nothing(tmp_path: Path, history: bool, filled: str) -> None:
    empty = file_of(export_of(samples.ledger_of(KNOWN), history=history), tmp_path / "empty.json")
    ledger = samples.ledger_of(KNOWN)
    create(ledger, filled, cluster() if filled == "clusters" else namespace("a"))
    with pytest.raises(errors.Invalid, match=r"empty\.json: holds no documents.*import another file"):
        transfer.import_file(ledger, empty, replace=True)
    assert ledger.fleet.revision == 1


@pytest.mark.parametrize("history", [False, True])
def test_a_file_without_clusters_takes_the_place_of_no_cluster(tmp_path: Path, history: bool) -> None:
    definitions = samples.ledger_of(KNOWN)
    create(definitions, "namespaces", namespace("a"))
    path = file_of(export_of(definitions, history=history), tmp_path / "fleet.json")
    ledger = fleet_of()
    before = answers(ledger)
    with pytest.raises(errors.Invalid, match="holds no clusters, and the fleet has 2"):
        transfer.import_file(ledger, path, replace=True)
    assert answers(ledger) == before
