"""The operations of a batch: read strictly, then carried out on one draft, all or nothing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from flux_resourceset import applications, documents, errors, records, selectors
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Change, Document, Entry, Stored
from flux_resourceset.drafts import Draft
from flux_resourceset.errors import Violation
from flux_resourceset.json_pointers import pointer
from flux_resourceset.kinds.model import CLUSTERS, Kind, Kinds, Referenced

MAX_DOCUMENTS = 10_000  # a large fleet at once; more would hold up other writers for long
MAX_CHANGES = 10 * MAX_DOCUMENTS  # for several operations on the same ones, each of which costs a check
_MAX_SELECTIONS = 100  # to remember: each may hold the ids of a whole fleet
_TOGETHER = 100  # results at a time, to ask in one go who made what was kept
_PLACES = 10  # of what is wrong, to find the operation that is to blame

_ON_DOCUMENTS = ("create", "replace", "patch", "delete")
_ON_CLUSTERS = ("assign", "unassign", "patch-values")
_BY_MANAGERS = ("apply", "prune")
_ALL = _ON_DOCUMENTS + _ON_CLUSTERS + _BY_MANAGERS
_GOES_WITH = {
    "document": ("create", "replace", "patch", "assign", "apply"),
    "values": ("patch-values",),
    "force": ("delete", "apply"),
    "only_assigned": ("assign",),
    "manager": _BY_MANAGERS,
    "revive": ("apply",),
    "keep": ("prune",),
}
_NAMES = re.compile(r"\w+")  # of a place in an operation, as msgspec writes it: clusters[0]

Selection = tuple[str | None, str | None]  # selector and environment


class Operation(msgspec.Struct):
    op: str
    kind: str
    id: str = ""  # required of all that is not about many
    document: Any = msgspec.UNSET
    values: Any = msgspec.UNSET
    clusters: list[str] | None = None
    selector: str | None = None
    environment: str | None = None
    force: bool = False
    only_assigned: bool = False
    manager: str | None = None
    revive: bool = False
    keep: list[str] | None = None


class Result(msgspec.Struct):
    """What became of one document."""

    index: int
    op: str
    kind: str
    id: str
    change: str  # create, update, delete or unchanged
    revision: int | None
    before: Document | None
    after: Document | None
    kept: list[Document] | msgspec.UnsetType = msgspec.UNSET  # of what was applied: path, actor and revision


def parsed(kinds: Kinds, body: Any, budget: Budget) -> list[Operation]:
    """The operations of a request's body, or everything that is wrong with them."""
    if not isinstance(body, dict) or not isinstance(body.get("operations"), list):
        raise _wrong([Violation("/operations", "must be an array of operations")])
    unknown = [Violation(pointer([name]), documents.NOT_KNOWN) for name in body if name != "operations"]
    if len(body["operations"]) > MAX_DOCUMENTS:
        raise _wrong([Violation("/operations", f"has more than {MAX_DOCUMENTS} operations; split the batch")])
    operations, violations, failing = [], unknown[: errors.MAX_VIOLATIONS], []
    wrong_selectors: dict[str, str] = {}  # each is read once, however often it stands there
    for index, item in enumerate(body["operations"]):
        budget.spend()
        try:
            _check_names(item)
            operation = msgspec.convert(item, Operation)
            found = itertools.chain(_unknown_fields(item), _mistakes(kinds, operation, wrong_selectors))
            mistakes = [Violation(pointer(["operations", index, name]), text) for name, text in found]
            operations.append(operation)
        except msgspec.ValidationError as exc:
            text, _, place = str(exc).partition(" - at `$.")
            mistakes = [Violation(pointer(["operations", index, *_NAMES.findall(place)]), text)]
        violations += mistakes
        failing += [index] if mistakes else []
        if len(violations) >= errors.MAX_VIOLATIONS:
            break
    if violations:
        refusal = _wrong(violations)
        raise _with_index(refusal, failing[0]) if failing else refusal
    return operations


def _check_names(item: Any) -> None:
    """Before anything is made of them: millions would be copied in one go, and nobody else could run."""
    names = item.get("clusters") if isinstance(item, dict) else None
    if isinstance(names, list) and len(names) > MAX_DOCUMENTS:
        raise msgspec.ValidationError(f"names more than {MAX_DOCUMENTS} clusters; split the batch")
    keep = item.get("keep") if isinstance(item, dict) else None
    if isinstance(keep, list) and len(keep) > MAX_DOCUMENTS:
        raise msgspec.ValidationError(f"keeps more than {MAX_DOCUMENTS} documents; split the batch")
    if isinstance(item, dict) and "id" not in item and item.get("op") != "prune":
        raise msgspec.ValidationError("Object missing required field `id`")


def _unknown_fields(item: dict[str, Any]) -> Iterator[tuple[str, str]]:
    unknown = (name for name in item if name not in Operation.__struct_fields__)
    return ((name, documents.NOT_KNOWN) for name in itertools.islice(unknown, errors.MAX_VIOLATIONS))


def _wrong(violations: list[Violation]) -> errors.Invalid:
    return errors.Invalid.document("batch", violations)


def _mistakes(kinds: Kinds, operation: Operation, wrong_selectors: dict[str, str]) -> Iterator[tuple[str, str]]:
    kind = kinds.by_name.get(operation.kind)
    if kind is None:
        yield "kind", f"must be one of {', '.join(kinds.by_name)}"
    if operation.op not in _ALL:
        yield "op", f"must be one of {', '.join(_ALL)}"
        return
    on_clusters = operation.op in _ON_CLUSTERS
    if kind is not None and not on_clusters and not _is_offered(kind, operation.op):
        yield "op", f"{kind.name} do not take {operation.op}, neither here nor on their own routes"
    if on_clusters and kind is not None and not isinstance(kind, Referenced):
        yield "kind", f"clusters do not refer to {kind.name}"
    if operation.op == "patch-values" and isinstance(kind, Referenced) and not kind.patches:
        yield "kind", f"{kind.name} take no patches"
    if operation.op in ("create", "replace", "patch", "apply") and operation.document is msgspec.UNSET:
        yield "document", "is required"
    elif operation.document is not msgspec.UNSET and not isinstance(operation.document, dict):
        yield "document", "must be a JSON object"
    if operation.op == "patch-values" and not isinstance(operation.values, dict):
        yield "values", "is required, as an object"
    selected = operation.selector is not None or operation.environment is not None
    if on_clusters and selected == (operation.clusters is not None):
        yield "clusters", "or else selector and environment must say which clusters are meant"
    if not on_clusters and (operation.clusters is not None or (selected and operation.op != "prune")):
        yield "clusters", f"does not go with {operation.op}"
    yield from _mistakes_of_managers(operation) if operation.op in _BY_MANAGERS else ()
    for name, words in _GOES_WITH.items():
        given = getattr(operation, name)
        if given is not msgspec.UNSET and given is not None and given is not False and operation.op not in words:
            yield name, f"does not go with {operation.op}"  # ignored, it would look as if it had been done
    if operation.environment is not None and operation.environment not in kinds.environments:
        yield "environment", f"must be one of {', '.join(kinds.environments)}"
    if operation.selector is not None:
        wrong = wrong_selectors.get(operation.selector)
        if wrong is None:
            wrong = wrong_selectors[operation.selector] = _wrong_selector(operation.selector)
        if wrong:
            yield "selector", wrong


def _mistakes_of_managers(operation: Operation) -> Iterator[tuple[str, str]]:
    if operation.manager is None:
        yield "manager", "is required: who applies"
    elif not records.is_manager(operation.manager):
        yield "manager", "must have 1 to 64 characters of a-z, 0-9, . and -"
    if operation.op == "apply":
        return
    if operation.id:
        yield "id", "does not go with prune, which is about all that the manager applied of a kind; name ids in keep"
    if operation.keep is None:
        yield "keep", "is required: the ids that stay; [] prunes all that the manager applied of the kind"
    for name in ("environment", "selector"):
        if getattr(operation, name) is not None and operation.kind != CLUSTERS:
            yield name, f"selects {CLUSTERS}, and does not go with kind {operation.kind}"


def _wrong_selector(text: str) -> str:
    try:
        selectors.parse(text)
    except errors.BadQuery as exc:
        return exc.detail
    return ""


def _is_offered(kind: Kind, op: str) -> bool:
    """A batch can do what the routes of the kind can, and no more."""
    if op == "apply":  # which of these it takes is known once it is carried out
        return "post" in kind.methods["resource"] or not {"put", "patch"}.isdisjoint(kind.methods["instance"])
    level, method = {"create": ("resource", "post"), "replace": ("instance", "put"), "prune": ("instance", "delete")}.get(
        op, ("instance", op)
    )
    return method in kind.methods[level]


class Batch:
    """Operations on one draft; remembers which operation touched which document, until its results were asked for."""

    def __init__(self, operations: list[Operation]) -> None:
        self._operations = operations
        self._count = 0
        # by kind and id, in the order of the first touch: which operations left it in which state
        self._touched: dict[tuple[str, str], list[tuple[int, Document | None]]] = {}
        self._before: dict[tuple[str, str], Stored | None] = {}
        self._selections: dict[Selection, list[str]] = {}  # of the draft as it is
        self.conflicts: list[applications.Conflict] = []
        self.buried: list[applications.Buried] = []
        self._kept: dict[tuple[str, str], list[applications.Place]] = {}
        self.base_revision = 0  # of the draft

    def work(self, draft: Draft) -> None:
        """Where others changed what is applied, it goes on as if that were forced, so that one refusal can name it all."""
        self.base_revision = draft.base.revision
        draft.applied.load((each.kind, each.id) for each in self._operations if each.op == "apply")
        for index, operation in enumerate(self._operations):
            try:
                for key in self._carry_out(draft, index, operation):
                    self._before.setdefault(key, draft.base.get(*key))
                    self._touched.setdefault(key, []).append((index, draft.get(*key)))
                    self._count += 1
                    if self._count > MAX_CHANGES:
                        raise errors.Invalid(f"a batch makes at most {MAX_CHANGES} changes; split it")
                    if len(self._touched) > MAX_DOCUMENTS:
                        raise errors.Invalid(f"a batch touches at most {MAX_DOCUMENTS} documents; split it")
            except errors.Refusal as refusal:
                if self.buried:
                    break  # perhaps it misses the cluster that did not come back
                raise _with_index(refusal, index) from None
        if self.conflicts or self.buried:
            raise applications.refusal(self.conflicts, self.buried)

    def blamed(self, refusal: errors.Refusal) -> errors.Refusal:
        """A refusal of the whole, as one of the operation that made its subject say what is wrong."""
        if "index" in refusal.extra or "kind" not in refusal.extra:
            return refusal
        touches = self._touched.get((refusal.extra["kind"], refusal.extra["id"]), [(0, None)])
        wrong = [violation.pointer for violation in refusal.violations[:_PLACES]]
        culprit, final = touches[-1]
        for index, document in reversed(touches):
            if any(documents.at(document, place) != documents.at(final, place) for place in wrong or [""]):
                break
            culprit = index
        return _with_index(refusal, culprit)

    def _carry_out(self, draft: Draft, index: int, operation: Operation) -> Iterator[tuple[str, str]]:
        kind = draft.kinds.by_name[operation.kind]
        if operation.op in _ON_CLUSTERS:
            chosen = self._selected(draft, operation)
            draft.budget.spend(len(chosen) * _size(operation))
            for cluster_id in chosen:
                _change_cluster(draft, operation, draft.kinds.referenced_by_name[kind.name], cluster_id)
                yield CLUSTERS, cluster_id
            return
        if kind.name == CLUSTERS:
            self._selections.clear()  # other clusters may be meant from here on; parts of them change nothing about that
        match operation.op:
            case "create":
                document = operation.document
                if isinstance(document, dict):
                    document = {"id": operation.id, **document}
                    if document["id"] != operation.id:
                        raise errors.Invalid(
                            f'{kind.name} "{operation.id}": /id must equal the operation\'s id',
                            violations=[Violation("/id", "must equal the operation's id")],
                        )
                draft.create(kind, document)
            case "replace":
                draft.replace(kind, operation.id, operation.document)
            case "patch":
                draft.merge(kind, operation.id, operation.document)
            case "apply":
                self._apply(draft, index, operation, kind)
            case "prune":
                given = (operation.manager or "", operation.keep or (), operation.environment, operation.selector)
                yield from applications.prune(draft, kind, *given)
                return
            case _:
                draft.delete(kind, operation.id, operation.force)
        yield kind.name, operation.id

    def _apply(self, draft: Draft, index: int, operation: Operation, kind: Kind) -> None:
        draft.budget.spend(_size(operation))
        who, document = operation.manager or "", operation.document
        flags = {"force": operation.force, "revive": operation.revive}
        done = applications.apply(draft, index, kind, operation.id, who, document, **flags)
        self.conflicts += done.conflicts
        self.buried += [done.buried] if done.buried else []
        self._kept.setdefault((kind.name, operation.id), []).extend(done.kept)

    def _selected(self, draft: Draft, operation: Operation) -> list[str]:
        if operation.clusters is not None:
            return list(dict.fromkeys(operation.clusters))
        selection = operation.selector, operation.environment
        if selection not in self._selections:
            if len(self._selections) >= _MAX_SELECTIONS:
                self._selections.clear()
            self._selections[selection] = _selected(draft, *selection)
        return self._selections[selection]

    def results(self, entry: Entry | None, last_set: applications.LastSet | None = None) -> Iterator[Result]:
        """What became of each document, once: to free ten thousand in one go holds up everybody, so each is let go when told.
        `last_set` tells who changed what was kept."""
        made = {(change.kind, change.id): change for change in entry.changes} if entry else {}
        every = list(self._touched)
        for keys in (every[start : start + _TOGETHER] for start in range(0, len(every), _TOGETHER)):
            places = [place for key in keys for place in self._kept.get(key, ())]
            setters = applications.signed(places, last_set, entry)
            for key in keys:
                index = self._touched.pop(key)[-1][0]
                change, before = made.get(key), self._before.pop(key)
                told = result(index, self._operations[index].op, key, before, entry, change)
                if told.op == "apply":
                    told.kept = applications.kept(self._kept.pop(key), setters)
                yield told


def result(
    index: int, op: str, key: tuple[str, str], before: Stored | None, entry: Entry | None, change: Change | None
) -> Result:
    """What became of a document that was `before`, and that an entry changed or not."""
    return Result(
        index=index,
        op=op,
        kind=key[0],
        id=key[1],
        change=change.operation if change else "unchanged",
        revision=entry.revision if change and entry else before.revision if before else None,
        before=change.before if change else before.body if before else None,
        after=change.after if change else before.body if before else None,
    )


def _with_index(refusal: errors.Refusal, index: int) -> errors.Refusal:
    """The operation's own refusal, which says by a member of its own which one it is."""
    refusal.extra = {**refusal.extra, "index": index}
    return refusal


def _selected(draft: Draft, text: str | None, environment: str | None) -> list[str]:
    selector = selectors.parse(text or "")
    ids = draft.ids(CLUSTERS)
    draft.budget.spend(len(ids) * selector.cost)
    clusters = [draft.require(CLUSTERS, id) for id in ids]
    return [
        cluster["id"] for cluster in clusters if environment in (None, cluster["environment"]) and selector(cluster["labels"])
    ]


def _size(operation: Operation) -> int:
    """How many values an operation puts into each cluster, about."""
    given = operation.values if operation.op == "patch-values" else operation.document
    return 1 + (len(given) if isinstance(given, dict) else 0)


def _change_cluster(draft: Draft, operation: Operation, kind: Referenced, cluster_id: str) -> None:
    match operation.op:
        case "assign":
            # what the cluster has already stays, but for the fields that are given
            wanted = {} if operation.document is msgspec.UNSET else operation.document
            find = draft.reference if operation.only_assigned else draft.held_reference
            held = find(cluster_id, kind, operation.id) or {}
            draft.assign(cluster_id, kind, operation.id, documents.merge_patch(held, wanted))
        case "unassign":
            draft.unassign(cluster_id, kind, operation.id)
        case _:
            draft.merge_patches(cluster_id, operation.id, operation.values)
