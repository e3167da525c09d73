"""What was: documents, answers and whole fleets at a revision, and how they came about, as a store tells it.

Everything is told as it was written, and made into answers by the kinds of today. Blocks, so it is called in threads.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from flux_resourceset import differences, effects, errors, rules
from flux_resourceset.budgets import Budget
from flux_resourceset.changes import Change, Document, Entry, Setter, Stored
from flux_resourceset.differences import ABSENT, Steps
from flux_resourceset.effects import Effect
from flux_resourceset.fleet import Fleet, Key
from flux_resourceset.kinds.model import CLUSTERS, Kinds, Referenced
from flux_resourceset.overlay import Overlay
from flux_resourceset.store import Store, replaced_meanwhile

Point = int | str  # a revision, or a time as the log writes it

_PAGE_ENTRIES = 50  # of one document, which may be large
_TOGETHER = 100  # documents to look at in one read
_FEW = 4  # of their newest changes: what is asked about was changed lately, as a rule
_NOTHING: Mapping[str, str] = {}


class Assigned(NamedTuple):
    """What an answer is made from."""

    kind: Referenced
    cluster: Document
    definitions: dict[str, Document]


class Changed(NamedTuple):
    """A document that is not the same at two revisions."""

    kind: str
    id: str
    before: Document | None
    after: Document | None

    @property
    def operation(self) -> str:
        return "create" if self.before is None else "delete" if self.after is None else "update"


class Past:
    def __init__(self, kinds: Kinds, store: Store, doubts: Mapping[str, str] = _NOTHING) -> None:
        self.kinds = kinds
        self.store = store
        self._doubts = doubts  # about views, as a fleet has them
        self._bare = Fleet(kinds)  # without documents, for what it knows of kinds

    # When

    def revision(self, point: Point | None) -> int:
        """The newest one at a time, or the one that is named; without either the newest of all."""
        if isinstance(point, str):
            return self.store.revision_at(point)
        newest = self.store.head().revision
        if point is None:
            return newest
        if point > newest:
            raise errors.NotYet(f"revision {point} is not there yet; the newest is {newest}")
        base = self.store.base()
        if point < base:
            raise errors.Compacted.below(base, f"revision {point}")
        return point

    # What

    def document(self, kind: str, id: str, revision: int) -> Stored:
        """Grows with its own changes since."""
        stored = self.store.document_at(kind, id, revision)
        if stored is None:
            raise not_there(kind, id, revision)
        return self._bare.current(kind, stored)

    def documents(self, keys: list[Key], revision: int) -> dict[Key, Stored]:
        """Those of them that were there."""
        found = self.store.documents_at(keys, revision)
        return {key: self._bare.current(key[0], stored) for key, stored in found.items()}

    def fleet(self, revision: int) -> Fleet:
        """All of it. Grows with documents, and with the log since."""
        then = Fleet(self.kinds)
        then.load(self.store.state_at(revision))
        return then

    def answer(self, cluster: str, view: str, revision: int) -> bytes:
        """What Flux got. Grows with the changes since of the cluster and of what it refers to."""
        then = self._around(cluster, view, revision)
        return then.answer(f"{then.documents[CLUSTERS][cluster].body['cluster_dns']}/{view}".encode())

    def assigned(self, cluster: str, view: str, revision: int) -> Assigned:
        then = self._around(cluster, view, revision)
        kind = self.kinds.by_endpoint[view]
        definitions = {id: stored.body for id, stored in then.documents[kind.name].items()}
        return Assigned(kind, then.documents[CLUSTERS][cluster].body, definitions)

    def _around(self, cluster: str, view: str, revision: int) -> Fleet:
        """A fleet that holds no more than one answer takes."""
        kind = view_of(self.kinds, view)
        stored = self.document(CLUSTERS, cluster, revision)
        then = Fleet(self.kinds)
        then.revision, then.doubts = revision, dict(self._doubts)
        then.documents[CLUSTERS][cluster] = stored
        then.cluster_ids[stored.body["cluster_dns"]] = cluster
        keys = [(kind.name, reference["id"]) for reference in stored.body.get(kind.cluster_field, ())]
        found = self.documents(keys, revision)
        then.documents[kind.name].update({id: definition for (_, id), definition in found.items()})
        if len(found) < len(keys):  # was it deleted by force? Rare enough to look at everything
            then.forgone = set(self.store.state_at(revision).forgone)
        return then

    # How it came about

    def history(self, kind: str, id: str, before: int | None, limit: int) -> Iterator[Document]:
        """The changes of a document, newest first; what was folded away is not among them. Not found: there never was one."""
        pages = self.touches(kind, id, before)
        first = next(pages, [])
        if not first and not self._is_known(kind, id):
            raise rules.not_found(kind, id)
        return self._told(kind, first, pages, limit)

    def touches(self, kind: str, id: str, before: int | None) -> Iterator[list[Entry]]:
        """The entries that changed a document, newest first, in pages; each with this change alone."""
        while before is None or before > self.store.base() + 1:
            page = self.store.touches(kind, id, before, _PAGE_ENTRIES)
            if page:
                before = page[-1].revision
                yield page
            if len(page) < _PAGE_ENTRIES:
                return

    def _is_known(self, kind: str, id: str) -> bool:
        return bool(self.store.touches(kind, id, None, 1)) or bool(self.store.document_at(kind, id, self.store.head().revision))

    def _told(self, kind: str, page: list[Entry], pages: Iterator[list[Entry]], limit: int) -> Iterator[Document]:
        references = self.kinds.references(kind)
        while page and limit > 0:
            for entry in page[:limit]:
                (change,) = entry.changes
                yield {**signature(entry), "operation": change.operation, "fields": fields(change, references)}
            limit -= len(page)
            page = next(pages, []) if limit > 0 else []

    def last_changed(self, kind: str, id: str, steps: differences.Steps) -> int | None:
        """The revision that last changed a place of a document; None if that was folded away."""
        return _setters([steps], self.touches(kind, id, None))[steps].revision

    def last_set(self, places: Mapping[Key, Collection[Steps]], until: int) -> dict[Key, dict[Steps, Setter]]:
        """Who last set places of documents, up to a revision. Grows with their changes since."""
        found: dict[Key, dict[Steps, Setter]] = {}
        every = list(places) if until > self.store.base() else []
        for keys in (every[start : start + _TOGETHER] for start in range(0, len(every), _TOGETHER)):
            newest = self.store.touches_of(keys, until + 1, _FEW)
            for key in keys:
                touches = [newest.pop(key)]
                older = self.touches(*key, touches[0][-1].revision) if len(touches[0]) == _FEW else iter(())
                found[key] = _setters(places[key], itertools.chain(touches, older))
        return found

    # Between two revisions

    def touched(self, first: int, last: int) -> list[Key]:
        """The documents that were changed behind a revision, up to another one. Grows with the entries between."""
        return sorted(key for key in self.store.touched(first, last) if key[0] in self.kinds.by_name)


def _setters(places: Iterable[Steps], pages: Iterable[list[Entry]]) -> dict[Steps, Setter]:
    """Who last set places of a document, as the entries that changed it tell, newest first."""
    found: dict[Steps, Setter] = dict.fromkeys(places, Setter())
    wanted = set(found)
    for entry in itertools.chain.from_iterable(pages):
        before, after = entry.changes[0].before, entry.changes[0].after
        set_here = [steps for steps in wanted if not differences.same(place(before, steps), place(after, steps))]
        found.update(dict.fromkeys(set_here, Setter(entry.actor, entry.revision, entry.on_behalf_of)))
        wanted.difference_update(set_here)
        if not wanted:
            break
    return found


class Diff(NamedTuple):
    """What is not the same at two revisions: documents, by kind and id, and answers."""

    first: int
    last: int
    changed: list[Changed]
    effect: Effect


def difference(past: Past, still: Fleet, first: int, last: int, budget: Budget) -> Diff:
    """Worked out on the fleet of today, with what was changed since put back. Grows with the changes behind the first one."""
    if past.store.epoch() != still.epoch:
        raise replaced_meanwhile()
    first, last = min(first, still.revision), min(last, still.revision)  # what came just now is not in it yet
    if first > last:
        raise errors.BadQuery(f"from is revision {first}, which is later than to, revision {last}; turn them round")
    before, after = (_overlaid(past, still, revision, budget) for revision in (first, last))
    keys = past.touched(first, last)
    pairs = (Changed(*key, before.get(*key), after.get(*key)) for key in keys)
    changed = [item for item in pairs if not differences.same(item.before, item.after)]
    return Diff(first, last, changed, effects.between(before, after, [(item.kind, item.id) for item in changed]))


def _overlaid(past: Past, still: Fleet, revision: int, budget: Budget) -> Overlay:
    keys = past.touched(revision, still.revision)
    budget.spend(len(keys))
    then, view = past.documents(keys, revision), Overlay(still, budget)
    for kind, id in keys:
        stored = then.get((kind, id))
        view.put(past.kinds.by_name[kind], id, stored.body if stored else None)
    return view


def view_of(kinds: Kinds, view: str) -> Referenced:
    kind = kinds.by_endpoint.get(view)
    if kind is None:
        raise errors.NotFound(f"view {view!r} not found; there are {', '.join(kinds.by_endpoint)}")
    return kind


def not_there(kind: str, id: str, revision: int) -> errors.NotFound:
    return errors.NotFound(f"{rules.subject(kind, id)} was not there at revision {revision}", extra={"kind": kind, "id": id})


def signature(entry: Entry | None) -> dict[str, Any]:
    """Who made a change, when and why; nothing but nulls where it was folded away."""
    names = ("revision", "time", "actor", "on_behalf_of", "reason")
    return {name: getattr(entry, name, None) for name in names}


def fields(change: Change | Changed, references: frozenset[str]) -> list[dict[str, Any]]:
    """What a change did to a document, field by field; one that is not there has no fields."""
    return differences.fields(differences.of_documents(change.before or {}, change.after or {}, references))


def place(document: Document | None, steps: differences.Steps) -> Any:
    """What stands at a place of a document, if both are there."""
    return ABSENT if document is None else differences.at(document, steps)
