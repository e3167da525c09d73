"""The rules of apply once more, over flat leaves and in few words: the merge does exactly that."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset import applying
from flux_resourceset.changes import Document
from flux_resourceset.differences import ABSENT, Steps
from property.test_apply_laws import anything, live, merged

Leaves = dict[Steps, Any]

REFERENCES, PATCHES = "platform_components", "patches"
THERE = object()  # the value of a reference as such


class Told(NamedTuple):
    conflicts: dict[Steps, tuple[Any, Any]]
    kept: set[Steps]
    leaves: Leaves  # as if it were forced


def leaves(document: Document) -> Leaves:
    """Of what these documents can say."""
    found: Leaves = {(name,): document[name] for name in ("node_count", "vm_image", "k0s_version") if name in document}
    found |= {("labels", key): value for key, value in document.get("labels", {}).items()}
    for reference in document.get(REFERENCES, []):
        whose = (REFERENCES, reference["id"])
        found[whose] = THERE
        found |= {(*whose, name): value for name, value in reference.items() if name != "id"}
    for id, values in document.get(PATCHES, {}).items():
        found |= {(PATCHES, id, key): value for key, value in values.items()}
    return found


def default(leaf: Steps) -> Any:
    return True if leaf[-1] == "enabled" else ABSENT


def is_reference(leaf: Steps) -> bool:
    return leaf[0] == REFERENCES and len(leaf) == 2


def owner(leaf: Steps) -> Steps | None:
    """The reference that a leaf is a field of, or patches."""
    return (REFERENCES, leaf[1]) if len(leaf) == 3 else None


class Table:
    def __init__(self, last: Leaves, new: Leaves, there: Leaves, others: set[Steps]) -> None:
        self.last, self.new, self.there, self.others = last, new, there, others
        self.told = Told({}, set(), dict(there))

    def carried_out(self) -> Told:
        dropped = [leaf for leaf in self.last if leaf not in self.new]
        gone = {leaf for leaf in dropped if is_reference(leaf) and leaf not in self.others}
        for leaf in gone:
            self.drop_reference(leaf)
        for leaf in dropped:
            if not is_reference(leaf) and owner(leaf) not in gone:
                self.drop(leaf)
        away = {leaf for leaf in self.new if is_reference(leaf) and leaf in self.last and leaf not in self.there}
        for leaf in self.new:
            if is_reference(leaf) and leaf not in away:
                self.refer(leaf)
        for leaf in self.new:
            if not is_reference(leaf) and owner(leaf) not in away:
                self.name(leaf)
        for leaf in away:
            self.name_removed(leaf)
        return self.told

    def conflict(self, leaf: Steps) -> None:
        self.told.conflicts[leaf] = (self.new.get(leaf, ABSENT), self.there.get(leaf, ABSENT))

    def refer(self, leaf: Steps) -> None:
        if leaf not in self.told.leaves:
            self.told.leaves.update({leaf: THERE, (*leaf, "enabled"): True})

    def drop_reference(self, whose: Steps) -> None:
        self.told.leaves.pop(whose, None)
        for leaf, value in self.there.items() if whose in self.there else ():
            if owner(leaf) != whose or leaf in self.new:
                continue
            touched = value not in (self.last.get(leaf, ABSENT), default(leaf))
            if touched or (leaf[0] == PATCHES and leaf in self.others):
                self.conflict(leaf)
            del self.told.leaves[leaf]

    def drop(self, leaf: Steps) -> None:
        at = self.there.get(leaf, ABSENT)
        if at != self.last[leaf]:
            if at in (ABSENT, default(leaf)):
                return
            self.conflict(leaf)
        if leaf not in self.others:
            del self.told.leaves[leaf]
            if default(leaf) is not ABSENT:
                self.told.leaves[leaf] = default(leaf)

    def name(self, leaf: Steps) -> None:
        value, at = self.new[leaf], self.there.get(leaf, ABSENT)
        if leaf not in self.last:
            agrees = at in (ABSENT, default(leaf), value)
        elif value == self.last[leaf]:
            self.told.kept.update({leaf} if at != value else ())
            return
        else:
            agrees = at in (self.last[leaf], value)
        if not agrees:
            self.conflict(leaf)
        self.told.leaves[leaf] = value

    def name_removed(self, whose: Steps) -> None:
        parts = [leaf for leaf in self.new if owner(leaf) == whose]
        changed = [leaf for leaf in parts if self.new[leaf] != self.last.get(leaf, ABSENT)]
        if not changed:
            self.told.kept.update([whose, *(leaf for leaf in parts if leaf[0] == PATCHES)])
            return
        self.refer(whose)
        for leaf in changed:
            self.conflict(leaf)
        self.told.leaves.update({leaf: self.new[leaf] for leaf in parts})


@given(st.none() | anything, anything, anything, st.lists(anything, max_size=2))
def test_the_merge_is_what_the_rules_say(last: Document | None, new: Document, there: Document, others: list[Document]) -> None:
    before = live(there)
    found = merged(last, new, before, *others)
    named = {leaf for other in others for leaf in leaves(other)}
    wanted = Table(leaves(last or {}), leaves(new), leaves(before), named).carried_out()
    assert {each.steps: (each.yours, each.theirs) for each in found.conflicts} == wanted.conflicts
    assert len(found.conflicts) == len(wanted.conflicts)
    assert (set(found.kept), len(found.kept)) == (wanted.kept, len(wanted.kept))
    assert leaves(found.document) == wanted.leaves


@given(anything)
def test_a_document_names_its_leaves(document: Document) -> None:
    named = applying.names(document, applying.Fields([REFERENCES], [REFERENCES]))
    assert {leaf: THERE if value is applying.REFERENCE else value for leaf, value in named.items()} == leaves(document)
