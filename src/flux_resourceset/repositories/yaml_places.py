"""Places in a YAML file: where the characters of a value begin and end, and where a key that is missing would go."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import yaml

from flux_resourceset.render import yaml_bounds
from flux_resourceset.repositories import manifests, trees

Step = str | int

_BOM = "\ufeff"
_BREAKS = "\r\n\x85\u2028\u2029"  # what ends a line in YAML 1.1
_BREAK = re.compile(f"\r\n|[{_BREAKS}]")
_BLANK = f" \t{_BREAKS}"
_PROPERTIES = re.compile(f"(?:[&!][^{_BLANK}]*[{_BLANK}]*|#[^{_BREAKS}]*[{_BLANK}]*)*")  # anchor and tag, and comments behind
_HEADER = re.compile("[|>][-+0-9]*")

_UNFIT = (TypeError, LookupError, AttributeError)  # PyYAML raises these where a tag stands before a value that it does not fit


class Refused(Exception):
    """An edit that cannot be made by replacing only the bytes of a value; one line that says why and what to do."""


class Span(NamedTuple):
    start: int
    end: int
    kept: str = ""  # what stands within, but is no part of the value: the comment behind the head of a block


class Found(NamedTuple):
    """Where a value stands, as positions in the list of events."""

    holder: int  # the map or list; the document itself is its own
    value: int | None  # None: the map lacks the key
    flow: bool  # within brackets


class File:
    """A file as Kubernetes reads it, and its events, which know their places, those of aliases too."""

    def __init__(self, body: bytes) -> None:
        self.manifests = _manifests(body)
        text = body.decode()
        self._mark = _BOM if text.startswith(_BOM) else ""
        self.text = text.removeprefix(_BOM)  # libyaml does not count it

    def encoded(self, text: str) -> bytes:
        return (self._mark + text).encode()

    def manifest(self, document: int) -> manifests.Manifest:
        if not 0 <= document < len(self.manifests):
            raise Refused(f"there is no document {document + 1} in the file; it has {len(self.manifests)}")
        return self.manifests[document]

    @functools.cached_property
    def events(self) -> list[Any]:
        return list(yaml.parse(self.text, Loader=yaml_bounds.PARSER))

    @functools.cached_property
    def ends(self) -> dict[int, int]:
        """Where maps and lists end, by where they begin."""
        ends, opened = {}, []
        for position, event in enumerate(self.events):
            if isinstance(event, yaml.CollectionStartEvent):
                opened.append(position)
            elif isinstance(event, yaml.CollectionEndEvent):
                ends[opened.pop()] = position
        return ends

    def starts(self) -> Iterator[int]:
        """The documents, empty ones too."""
        return (position for position, event in enumerate(self.events) if isinstance(event, yaml.DocumentStartEvent))

    def start(self, document: int) -> int:
        """Of a document; its value follows."""
        index = self.manifest(document).node.start_mark.index
        return next(position for position in self.starts() if self.events[position + 1].start_mark.index == index)

    def found(self, document: int, steps: Sequence[Step]) -> Found:
        """Raises Refused where something else stands in the way."""
        root = self.start(document) + 1
        found = Found(root, root, False)
        for depth, step in enumerate(steps):
            if found.value is None:
                raise Refused(f"{named(steps[:depth])} is not there; write it into the file first")
            found = self._inside(found.value, step, steps[: depth + 1])
        return found

    def _inside(self, holder: int, step: Step, steps: Sequence[Step]) -> Found:
        event = self.events[holder]
        if isinstance(event, yaml.SequenceStartEvent) and isinstance(step, int):
            value = next((child for place, child in enumerate(self._children(holder)) if place == step), None)
        elif isinstance(event, yaml.MappingStartEvent) and isinstance(step, str):
            value = self._member(holder, step, steps)
        else:
            wanted = "map" if isinstance(step, str) else "list"
            raise Refused(f"{named(steps)}: what should hold it is no {wanted}; make it one first")
        if value is not None and isinstance(self.events[value], yaml.AliasEvent):
            alias = self.events[value].anchor
            raise Refused(f"{named(steps)} is the alias *{alias}, and what it stands for is used elsewhere; write it out first")
        return Found(holder, value, bool(event.flow_style))

    def _children(self, position: int) -> Iterator[int]:
        """Of a map these are keys and values by turns."""
        end = self.ends[position]
        child = position + 1
        while child < end:
            yield child
            child = self.ends.get(child, child) + 1

    def _member(self, holder: int, name: str, steps: Sequence[Step]) -> int | None:
        children = self._children(holder)
        value = None
        for key in children:
            following = next(children)
            if self._is_merge(key) and value is not None:
                # some readers let what is merged win over what stands before it, others never do
                raise Refused(f"{named(steps)} stands before a merge key, which not all readers take alike; move it behind <<")
            if getattr(self.events[key], "value", None) == name and not self._is_merge(key):
                value = following
        return value

    def _is_merge(self, key: int) -> bool:
        event = self.events[key]
        return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]

    def is_shared(self, position: int) -> bool:
        """Whether the anchor of a value is used elsewhere."""
        anchor = self.events[position].anchor
        for event in self.events[position + 1 :] if anchor is not None else ():
            if isinstance(event, yaml.DocumentEndEvent):
                break  # elsewhere it stands for something else
            if isinstance(event, yaml.AliasEvent) and event.anchor == anchor:
                return True
        return False

    def span(self, position: int) -> Span:
        """The characters of a scalar, without its anchor and its tag."""
        event = self.events[position]
        start, end = event.start_mark.index, event.end_mark.index
        properties = _PROPERTIES.match(self.text, start, end)
        behind = properties.end() if properties else start
        return self._block_span(behind, end) if event.style in ("|", ">") else Span(behind, end)

    def _block_span(self, start: int, end: int) -> Span:
        """All of a block but the empty lines behind it, which part it from what follows."""
        header = _HEADER.match(self.text, start)
        behind = header.end() if header else start
        first = self.line_end(behind)
        last = start + len(self.text[start:end].rstrip(_BLANK))
        return Span(start, self.line_end(last) if last > first else first, self.text[behind:first])

    def line_end(self, index: int) -> int:
        """Where a line ends, before its break."""
        found = _BREAK.search(self.text, index)
        return found.start() if found else len(self.text)

    def column(self, position: int) -> int:
        """Of the first key of a map in block style."""
        return int(self.events[position].end_mark.column)  # it begins behind an anchor

    def last_line_end(self, position: int) -> int:
        """Where the last line of a map in block style ends, before its break."""
        last = self._last(position)
        return self.span(last).end if _is_block(self.events[last]) else self.line_end(self.events[last].end_mark.index)

    def behind(self, position: int) -> int:
        """Where a line goes that is to follow a map in block style."""
        last = self._last(position)
        if _is_block(self.events[last]) and "+" in self.text[(head := self.span(last).start) : head + 3]:
            return int(self.events[last].end_mark.index)  # the empty lines are part of the value
        found = _BREAK.search(self.text, self.last_line_end(position))
        return found.end() if found else len(self.text)

    def _last(self, position: int) -> int:
        """The last event of a map that has characters of its own, or could have some: where a block ends there are none."""
        last = self.ends[position] - 1
        while self._is_empty_end(last):
            last -= 1
        return last

    def _is_empty_end(self, position: int) -> bool:
        start, end = self.events[position].start_mark.index, self.events[position].end_mark.index
        return isinstance(self.events[position], yaml.CollectionEndEvent) and start == end

    def line_break(self, index: int) -> str:
        """How the line before a place ends, or else the first of the file."""
        end = self.text.rfind("\n", 0, index) if "\n" in self.text[:index] else self.text.find("\n")
        return "\r\n" if end > 0 and self.text[end - 1] == "\r" else "\n"


def _manifests(body: bytes) -> Sequence[manifests.Manifest]:
    if len(body) > trees.LARGEST:
        raise Refused(f"the file has more than {trees.LARGEST} bytes; make it smaller")
    if body.startswith((_BOM * 2).encode()):
        raise Refused("the file begins with two byte order marks; remove one")
    try:
        return manifests.of_bytes(body)
    except manifests.Unreadable as exc:
        where = "" if exc.line is None else f"line {exc.line}: "
        raise Refused(f"{where}{_on_one_line(exc.reason)}; correct it first") from exc
    except _UNFIT as exc:
        raise Refused("invalid YAML: a tag stands before a value that it does not fit; correct it first") from exc


def _is_block(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.style in ("|", ">")


def named(steps: Sequence[Step]) -> str:
    """A place, as people write it."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".") or "the document"
    return _on_one_line(text)


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else ascii(text)
