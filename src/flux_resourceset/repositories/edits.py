"""Edits of YAML files that replace the bytes of one value and no others, proved by reading the file again.

An edit writes a scalar in place of another, or behind a key that was missing; a whole map, such as `spec`; or one document more
or less. Whatever else stands in the file stays: comments, quotes, anchors, line ends, indentation. Where that cannot be, the edit
is refused. Documents are counted as Kubernetes counts them: empty ones are none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import yaml

from flux_resourceset import differences, strict_yaml
from flux_resourceset.repositories import yaml_scalars
from flux_resourceset.repositories.yaml_places import File, Found, Step, named
from flux_resourceset.repositories.yaml_places import Refused as Refused  # those who edit know only this module

_BLANK_LINE = re.compile(" +(?:[\r\n]|$)")


class _Splice(NamedTuple):
    start: int
    end: int
    text: str
    position: int  # of the first event that it replaces
    before: int  # how many events it replaces
    after: int | None  # by how many; None: any number


def scalar(text: bytes, steps: Sequence[Step], *, document: int = 0) -> Any:
    """The value at a place as Kubernetes reads it, or differences.ABSENT."""
    return _at(File(text).manifest(document).data, steps)


def _at(value: Any, steps: Sequence[Step]) -> Any:
    for step in steps:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step, differences.ABSENT)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return differences.ABSENT
    return value


def with_value(text: bytes, steps: Sequence[Step], value: str | int | float | bool | None, *, document: int = 0) -> bytes:
    """The text with another scalar at a place. The key may be missing; the map that holds it may not."""
    file = File(text)
    new = yaml_scalars.as_read(value)
    if differences.same(_at(file.manifest(document).data, steps), new):
        return text
    found = file.found(document, steps)
    splice = _addition(file, found, steps, new) if found.value is None else _replacement(file, found, steps, new)
    return _proved(file, splice, document, steps, new)


def _replacement(file: File, found: Found, steps: Sequence[Step], value: Any) -> _Splice:
    position = found.value or 0
    event = file.events[position]
    if not isinstance(event, yaml.ScalarEvent):
        raise Refused(f"{named(steps)} is a map or a list, and only a scalar can be replaced; edit the file by hand")
    if file.is_shared(position):
        raise Refused(f"{named(steps)}: its anchor &{event.anchor} is used elsewhere; write the value out there first")
    if event.tag is not None and not (event.tag.endswith(":str") and isinstance(value, str)):
        raise Refused(f"{named(steps)} has a tag, {event.tag}; remove it first")
    span = file.span(position)
    new = _written(value, steps, event.style or yaml_scalars.PLAIN, found.flow)
    if span.start == span.end:
        return _filling(file.text, span.start, new, position)
    return _Splice(span.start, span.end, new + span.kept, position, 1, 1)


def _filling(text: str, at: int, new: str, position: int) -> _Splice:
    """A value where there was none, with one blank before it."""
    if _BLANK_LINE.match(text, at):  # blanks and nothing else: the first of them is the one
        return _Splice(at + 1, at + 1, new, position, 1, 1)
    return _Splice(at, at, new if text[at - 1 : at] in (" ", "\t") else f" {new}", position, 1, 1)


def _addition(file: File, found: Found, steps: Sequence[Step], value: Any) -> _Splice:
    holder = file.events[found.holder]
    if found.flow or not isinstance(holder, yaml.MappingStartEvent):
        raise Refused(
            f"{named(steps)} is not there, and nothing is added within brackets or to lists; write it into the file first"
        )
    line = f"{' ' * file.column(found.holder)}{_written(steps[-1], steps)}: {_written(value, steps)}"
    at = file.behind(found.holder)
    line_break = file.line_break(at)
    ended = file.text[at - 1] in "\r\n"
    if not ended and at < len(file.text):
        raise Refused(f"{named(steps)} would follow a break that is none to many readers; end that line with a plain one first")
    added = line + line_break if ended else line_break + line
    return _Splice(at, at, added, file.ends[found.holder], 0, 2)


def _written(value: Any, steps: Sequence[Step], style: str = yaml_scalars.PLAIN, flow: bool = False) -> str:
    try:
        new = yaml_scalars.written(value, style, flow=flow)
    except ValueError as exc:
        raise Refused(f"{named(steps)}: {exc}") from exc
    if not differences.same(strict_yaml.values(new), [value]):  # a reader that is not Kubernetes
        raise Refused(f"{named(steps)}: readers of YAML disagree about this value; write it into the file by hand")
    return new


def with_block(text: bytes, steps: Sequence[Step], value: dict[str, Any], *, document: int = 0) -> bytes:
    """The text with another map at a place, in block style; the comments within the one before are gone."""
    file = File(text)
    new = yaml_scalars.as_read(value)
    if differences.same(_at(file.manifest(document).data, steps), new):
        return text
    found = file.found(document, steps)
    if found.value is None or not isinstance(file.events[found.value], yaml.MappingStartEvent):
        raise Refused(f"{named(steps)} is no map; make it one first")
    return _proved(file, _block(file, found, steps, new), document, steps, new)


def _block(file: File, found: Found, steps: Sequence[Step], value: dict[str, Any]) -> _Splice:
    position = found.value or 0
    event, end = file.events[position], file.ends[position]
    if event.flow_style and (found.flow or found.holder == position):
        raise Refused(f"{named(steps)} stands within brackets; write what holds it line by line first")
    behind = file.events[end].end_mark.index
    stop = file.line_end(behind) if event.flow_style else file.last_line_end(position)
    try:
        lines = list(yaml_scalars.lines(value, literals=stop < len(file.text)))  # they need the break behind their last line
    except ValueError as exc:
        raise Refused(f"{named(steps)}: {exc}") from exc
    start, column = event.end_mark.index, file.column(position)
    if event.flow_style:  # it begins on a line of its own, and a comment behind it stays where it was
        start, column = len(file.text[: start - 1].rstrip(" ")), file.column(found.holder) + 2
        lines.insert(0, file.text[behind:stop])
    lines[1:] = [" " * column + line if line else "" for line in lines[1:]]
    return _Splice(start, stop, file.line_break(start).join(lines), position, end + 1 - position, None)


def _proved(file: File, splice: _Splice, document: int, steps: Sequence[Step], value: Any) -> bytes:
    """The text after an edit, read again: nothing but this field may have become another."""
    body = file.encoded(file.text[: splice.start] + splice.text + file.text[splice.end :])
    expected = [manifest.data for manifest in file.manifests]
    expected[document] = _with(expected[document], steps, value)
    try:
        edited = File(body)
    except Refused as exc:
        raise Refused(f"{named(steps)} cannot be replaced where it stands; edit the file by hand") from exc
    if not differences.same([manifest.data for manifest in edited.manifests], expected) or not _is_spliced(file, edited, splice):
        raise Refused(f"{named(steps)}: more than this field would change; edit the file by hand")
    return body


def _is_spliced(file: File, edited: File, splice: _Splice) -> bool:
    """Whether all else says the same, also that of which the values know nothing, such as anchors."""
    old, new = ([_sense(event) for event in each.events] for each in (file, edited))
    grown = len(new) - len(old)
    first, behind = splice.position, splice.position + splice.before
    if splice.after is not None and grown != splice.after - splice.before:
        return False
    if splice.before and new[first][:2] != old[first][:2]:  # anchor and tag stay where they are
        return False
    return new[:first] == old[:first] and new[behind + grown :] == old[behind:]


def _sense(event: Any) -> tuple[Any, ...]:
    anchor, tag, implicit, value = (getattr(event, name, None) for name in ("anchor", "tag", "implicit", "value"))
    return anchor, tag, type(event), implicit, value


def _with(holder: Any, steps: Sequence[Step], value: Any) -> Any:
    """A copy of data with something else at a place; what shared it through an alias keeps what it had."""
    if not steps:
        return value
    copy: Any = holder.copy()
    copy[steps[0]] = _with(_at(holder, steps[:1]), steps[1:], value)
    return copy


def with_document(text: bytes, manifest: bytes) -> bytes:
    """The text with a document more at its end; it ends with a break if it did before, by which the way back is known."""
    file, added = File(text), File(manifest)
    if len(added.manifests) != 1 or len(list(added.starts())) != 1:  # an empty one beside it would stay behind on the way back
        raise Refused("one document can be added at a time, and no empty one")
    line_break = (file if "\n" in file.text else added).line_break(0)
    body = re.sub("\r\n|\r|\n", line_break, _unmarked(added).rstrip("\r\n"))
    complete = not file.text or file.text.endswith(("\n", "\r"))
    lead, trail = ("", line_break) if complete else (line_break, "")
    result = file.encoded(f"{file.text}{lead}---{line_break}{body}{trail}")
    return _same_documents(result, [*file.manifests, *added.manifests])


def _unmarked(file: File) -> str:
    """The one document of a file without the line that begins it."""
    event = file.events[file.start(0)]
    start, end = event.start_mark.index, event.end_mark.index
    if not event.explicit:
        return file.text
    if file.text[start:end] != "---":
        raise Refused("a document with directives of YAML cannot be added; remove them first")
    return file.text[:start] + re.sub("^(?:\r\n|\r|\n)", "", file.text[end:])


def without_document(text: bytes, index: int) -> bytes:
    """The text without one of its documents, from the line that begins it to the one that begins the next."""
    file = File(text)
    start = file.start(index)
    following = next((position for position in file.starts() if position > start), None)
    first = file.events[start].start_mark.index
    first -= file.events[start].start_mark.column  # what has no line of its own to begin it may be indented
    head, tail = file.text[:first], "" if following is None else file.text[file.events[following].start_mark.index :]
    if following is None and not file.text.endswith(("\n", "\r")):
        head = re.sub("(?:\r\n|\r|\n)\\Z", "", head)
    others = [manifest for place, manifest in enumerate(file.manifests) if place != index]
    return _same_documents(file.encoded(head + tail), others)


def _same_documents(body: bytes, expected: Sequence[Any]) -> bytes:
    try:
        found = File(body).manifests
    except Refused as exc:
        raise Refused("the documents of the file cannot be told apart; edit it by hand") from exc
    if not differences.same([each.data for each in found], [each.data for each in expected]):
        raise Refused("the other documents of the file would change; edit it by hand")
    return body
