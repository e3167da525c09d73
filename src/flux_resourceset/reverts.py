"""Going back, as work on a draft: a change undone on top of what came since, a document or a whole fleet as it was.

What is to be gone back to is given; nothing here reads the log. A draft is of one log, and so must be what is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from flux_resourceset import differences, errors, rules, selectors, undoing
from flux_resourceset.changes import Change, Document, Entry, Stored
from flux_resourceset.differences import ABSENT, Steps
from flux_resourceset.drafts import Draft
from flux_resourceset.errors import Violation
from flux_resourceset.json_pointers import pointer
from flux_resourceset.kinds.model import CLUSTERS, FREEZES, Kind, Kinds

SHOWN_CONFLICTS = 100  # as many as a document has violations that are told

LastChanged = Callable[[str, str, Steps], int | None]  # the revision that last changed a place of a document


class _Conflict(NamedTuple):
    kind: str
    id: str
    steps: Steps


class Undo:
    """Takes a change back, field by field. What was changed again since is a conflict; with force it is taken back, too."""

    def __init__(self, epoch: str, entry: Entry, force: bool, last_changed: LastChanged) -> None:
        self._epoch = epoch
        self._entry = entry
        self._force = force
        self._last_changed = last_changed

    def work(self, draft: Draft) -> None:
        _check_log(draft, self._epoch)
        draft.reverts = self._entry.revision
        conflicts: list[_Conflict] = []
        for change in self._entry.changes:
            draft.budget.spend()
            conflicts += self._undo(draft, change)
        if conflicts and not self._force:
            raise self._refusal(conflicts)
        draft.forced = draft.forced or bool(conflicts)

    def _undo(self, draft: Draft, change: Change) -> Iterator[_Conflict]:
        kind = draft.kinds.by_name.get(change.kind)
        if kind is None:
            raise errors.Conflict(
                f"revision {self._entry.revision} changed {rules.subject(change.kind, change.id)}, which is no kind here; "
                "set RESOURCES_DIR",
                extra={"kind": change.kind, "id": change.id},
            )
        today = draft.get(change.kind, change.id)
        before, after = (_current(draft, kind, side) for side in (change.before, change.after))
        undone = undoing.undone(before, after, ABSENT if today is None else today, draft.kinds.references(kind.name))
        _put(draft, kind, change.id, None if undone.document is ABSENT else undone.document)
        return (_Conflict(change.kind, change.id, steps) for steps in undone.conflicts)

    def _refusal(self, conflicts: list[_Conflict]) -> errors.Conflict:
        told = [
            {"kind": kind, "id": id, "path": pointer(steps), "revision": self._last_changed(kind, id, steps)}
            for kind, id, steps in conflicts[:SHOWN_CONFLICTS]
        ]
        first = told[0]
        return errors.Conflict(
            f"{len(conflicts)} field(s) that revision {self._entry.revision} changed were changed again since, the first being "
            f"{first['path'] or 'the whole'} of {rules.subject(conflicts[0].kind, conflicts[0].id)} in revision "
            f"{first['revision']}; look at them, and say force=true to undo them all the same",
            extra={"conflicts": told, "conflicts_total": len(conflicts)},
        )


def _current(draft: Draft, kind: Kind, side: Document | None) -> Any:
    """As the fleet has it: what a kind gained since is no difference."""
    return ABSENT if side is None else draft.base.current(kind.name, Stored(side, 0)).body


def restoring(epoch: str, kind: Kind, id: str, then: Document) -> Callable[[Draft], None]:
    """One document as it was."""

    def work(draft: Draft) -> None:
        _check_log(draft, epoch)
        _put(draft, kind, id, then)

    return work


# The fleet as it was


class Scope(NamedTuple):
    """Which documents of a fleet are to be as they were; freezes never are, for they say what must not change now."""

    kind: str | None = None
    environment: str | None = None
    selector: str | None = None

    def violations(self, kinds: Kinds) -> Iterator[Violation]:
        names = [kind.name for kind in kinds if kind.name != FREEZES]
        if self.kind is not None and self.kind not in names:
            yield Violation("/kind", f"must be one of {', '.join(names)}")
        narrowed = {"environment": self.environment, "selector": self.selector}
        for name in (name for name, value in narrowed.items() if value is not None):
            if self.kind not in (None, CLUSTERS):
                yield Violation(pointer([name]), f"selects {CLUSTERS}, and does not go with kind {self.kind}")
        if self.environment is not None and self.environment not in kinds.environments:
            yield Violation("/environment", f"must be one of {', '.join(kinds.environments)}")
        try:
            selectors.parse(self.selector or "")
        except errors.BadQuery as exc:
            yield Violation("/selector", exc.detail)

    def kinds(self, kinds: Kinds) -> Iterable[Kind]:
        if self.environment is not None or self.selector is not None:
            return [kinds.clusters]
        return [kind for kind in kinds if kind.name != FREEZES and self.kind in (None, kind.name)]

    def matching(self) -> Callable[[Document], bool]:
        selector = selectors.parse(self.selector or "")

        def matches(document: Document) -> bool:
            return self.environment in (None, document.get("environment")) and selector(document.get("labels") or {})

        return matches if self.environment is not None or self.selector is not None else lambda document: True


def going_back(epoch: str, then: Mapping[str, Mapping[str, Document]], scope: Scope) -> Callable[[Draft], None]:
    """The documents of a scope as they were, by kind and id; clusters that match now or matched then."""

    def work(draft: Draft) -> None:
        _check_log(draft, epoch)
        matches = scope.matching()
        for kind in scope.kinds(draft.kinds):
            of_kind = then.get(kind.name, {})
            for id in dict.fromkeys([*draft.ids(kind.name), *sorted(of_kind)]):
                draft.budget.spend()
                sides = [side for side in (draft.get(kind.name, id), of_kind.get(id)) if side is not None]
                if any(matches(side) for side in sides):
                    _put(draft, kind, id, of_kind.get(id))

    return work


# Into the draft


def _check_log(draft: Draft, epoch: str) -> None:
    if draft.base.epoch != epoch:
        raise errors.Doubt("the log was replaced meanwhile; ask again")


def _put(draft: Draft, kind: Kind, id: str, wanted: Document | None) -> None:
    """Make a document what it is to be, by no other means than its own routes have."""
    today = draft.get(kind.name, id)
    if wanted is not None and kind.name == CLUSTERS:  # what it says of kinds that are not here is not gone back in
        wanted = {**wanted, **{name: value for name, value in (today or {}).items() if name not in kind.properties}}
    if differences.same(wanted, today):
        return
    level, methods = ("resource", {"post"}) if today is None else ("instance", {"put", "patch"})
    if wanted is None:
        methods = {"delete"}
    if methods.isdisjoint(kind.methods[level]):
        word = "create" if today is None else "delete" if wanted is None else "replace"
        refused = f"{kind.name} do not take {word}, neither here nor on their own routes"
        raise rules.invalid(kind.name, id, [Violation("", refused)])
    if wanted is None:
        draft.delete(kind, id)
        return
    if today is not None and kind.name == CLUSTERS and today["cluster_dns"] != wanted["cluster_dns"]:
        draft.delete(kind, id)  # it was decommissioned and created anew since: then it is another cluster
    draft.put(kind, wanted)
