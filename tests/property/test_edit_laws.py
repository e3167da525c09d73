"""Edits keep what they do not change: whatever the style of a file, one field differs afterwards, or the edit is refused."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from flux_resourceset import differences, render, strict_yaml
from flux_resourceset.render import dialect
from flux_resourceset.repositories import edits, yaml_scalars

Steps = tuple[str | int, ...]

tricky = st.sampled_from(
    [
        "", " ", "a", "3", "1e3", "yes", "~", "a: b", "a #b", "- a", "it's", '"', "\\", "a,b", "{a}", "a\nb", "x\n", "b\n\nc d\n",
        "é", "\U0001f600", "a\tb", "\ufeff", "a\x85b", "\u2028", "2026-01-01", "1:30", "*a", "&a", "!a", "%a", "...", "---", "<<",
        "=", "|", ">", "\r", "a\r\nb", "\x00",
    ]
)  # fmt: skip
texts = tricky | st.text(max_size=8)
numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
scalars = texts | numbers | st.booleans() | st.none()
keys = st.sampled_from(["a", "b", "image", "key with blanks", "é", "\U0001f600", "on", "1"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


class Writer:
    """Writes data as people do: in every style, with comments that are numbered, so that none can be missed."""

    def __init__(self, draw: st.DrawFn, anchors: bool) -> None:
        self.draw = draw
        self.anchors: list[str] | None = [] if anchors else None
        self.count = 0

    def chance(self, of: int) -> bool:
        return self.draw(st.integers(1, of)) == of

    def comment(self, lead: str) -> str:
        self.count += 1
        return f"{lead}#c{self.count}# é: 'x" if self.chance(3) else ""

    def lines_between(self, indent: int) -> str:
        return "".join(self.draw(st.sampled_from(["", "", "", "\n", f"{self.comment(' ' * indent)}\n"])) for _ in range(2))

    def anchor(self) -> str:
        if self.anchors is None or not self.chance(6):
            return ""
        self.anchors.append(f"x{len(self.anchors)}")
        return f"&{self.anchors[-1]} "

    def scalar(self, value: Any, flow: bool) -> str:
        if self.anchors and self.chance(8):
            return f"*{self.draw(st.sampled_from(self.anchors))} "
        tag = "!!str " if self.anchors is not None and isinstance(value, str) and self.chance(15) else ""
        style = self.draw(st.sampled_from(["", "'", '"']))
        written = "" if value is None and self.chance(2) else yaml_scalars.written(value, style, flow=flow)
        return self.anchor() + tag + written

    def flow(self, value: Any) -> str:
        blank = self.draw(st.sampled_from(["", " ", "  "]))
        if isinstance(value, dict):
            return (
                "{"
                + blank
                + ", ".join(f"{yaml_scalars.written(name, flow=True)}: {self.flow(item)}" for name, item in value.items())
                + blank
                + "}"
            )
        if isinstance(value, list):
            return "[" + blank + f"{blank}, ".join(map(self.flow, value)) + "]"
        return self.scalar(value, True)

    def literal(self, value: str, indent: int) -> str:
        header = self.draw(st.sampled_from(["|", "|-", "|+", ">", ">-", ">+"]))
        body = "".join(f"{' ' * indent if line else ''}{line}\n" for line in value.split("\n"))
        return f"{self.anchor()}{header}{self.comment(' ')}\n{body}"

    def behind(self, value: Any, indent: int) -> str:
        """What follows a colon or a dash, to the end of the line or of several."""
        inner = indent + self.draw(st.integers(1, 4))
        if isinstance(value, dict | list) and value and not self.chance(4):
            return f" {self.anchor()}".rstrip() + f"{self.comment(' ')}\n{self.block(value, inner)}"
        if isinstance(value, str) and re.fullmatch("[a-z][a-z #]*(\n+[a-z][a-z #]*)*\n?", value):
            return f" {self.literal(value, inner)}"
        return f"{self.draw(st.sampled_from([' ', '  ', f'{chr(10)}{inner * chr(32)}']))}{self.flow(value)}{self.comment(' ')}\n"

    def block(self, value: Any, indent: int) -> str:
        blanks = " " * indent
        if isinstance(value, dict):
            entries = [f"{blanks}{yaml_scalars.written(name)}:{self.behind(item, indent)}" for name, item in value.items()]
        else:
            entries = [f"{blanks}-{self.behind(item, indent)}" for item in value]
        return "".join(self.lines_between(indent) + entry for entry in entries) + self.lines_between(indent)


@st.composite
def files(draw: st.DrawFn, anchors: bool = True) -> bytes:
    maps = st.builds(lambda some, image: {**some, "image": image}, st.dictionaries(keys, values, max_size=4), scalars)
    documents = [draw(maps), *draw(st.lists(maps | values, max_size=1))]
    text = ""
    for place, document in enumerate(documents):
        writer = Writer(draw, anchors)
        text += "---\n" if place else draw(st.sampled_from(["", "---\n", "# head\n"]))
        text += writer.block(document, 0) if isinstance(document, dict | list) and document else writer.flow(document) + "\n"
    text = text.removesuffix("\n") if draw(st.booleans()) else text
    text = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    return (draw(st.sampled_from(["", "", "\ufeff"])) + text).encode()


styled = files()


def read(body: bytes) -> tuple[list[Any], list[Any]]:
    """To both readers; empty documents are none."""
    text = body.decode("utf-8-sig")
    strict = [value for value in strict_yaml.values(text, dates_as_text=True) if value is not None]
    return strict, [value for _, value in dialect.documents(text)]


def places(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    """Where something can be set: scalars, and keys that are missing."""
    if isinstance(value, dict):
        yield (*steps, "missing")
    for step, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*steps, step))
    if not isinstance(value, dict | list) and steps:
        yield steps


def replaced(holder: Any, steps: Steps, value: Any) -> Any:
    """A copy; what an alias shares with the place is not meant."""
    if not steps:
        return value
    result = copy.copy(holder)
    result[steps[0]] = replaced(result[steps[0]] if steps[1:] else None, steps[1:], value)
    return result


def assert_only_this_differs(before: bytes, after: bytes, document: int, steps: Steps, value: Any) -> None:
    for old, new in zip(read(before), read(after), strict=True):
        assert differences.same(new, replaced(old, (document, *steps), yaml_scalars.as_read(value)))
    assert after.startswith(b"\xef\xbb\xbf") == before.startswith(b"\xef\xbb\xbf")
    assert_one_line_is_new(before, after)


def assert_comments_stay(before: bytes, after: bytes) -> None:
    comments = re.compile(rb"#c[0-9]+#[^\r\n]*")
    assert comments.findall(after) == comments.findall(before)


def assert_one_line_is_new(before: bytes, after: bytes) -> None:
    old, new = (body.splitlines(keepends=True) for body in (before, after))
    while old and new and old[0] == new[0]:
        old, new = old[1:], new[1:]
    while old and new and old[-1] == new[-1]:
        old, new = old[:-1], new[:-1]
    assert len(new) <= 1 or (len(old) == 1 and new[0].rstrip(b"\r\n") == old[0] and len(new) == 2)


damage = st.sampled_from(
    [*"\n\r\t :-?#&*!|>'\"{}[],<%@1a\x85", "\n ", "\n  ", ": ", " #", "? ", "- ", "&q ", "*x0", "<<: *x0\n", "...\n"]
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A file into which, or over something of which, something was written that is no error."""
    text = draw(files()).decode()
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        strange = text[:at] + draw(damage) + text[at + draw(st.integers(0, 3)) :]
        text = strange if is_readable(strange.encode()) else text
    return text.encode()


def is_readable(body: bytes) -> bool:
    try:
        return bool(read(body)[1])
    except (*strict_yaml.ERRORS, render.TemplateError):
        return False


@st.composite
def changes(draw: st.DrawFn, bodies: st.SearchStrategy[bytes] = styled) -> tuple[bytes, int, Steps]:
    body = draw(bodies)
    assume(is_readable(body))  # an alias may be one of what holds it
    found = [(place, steps) for place, document in enumerate(read(body)[1]) for steps in places(document)]
    assume(found)
    return body, *draw(st.sampled_from(found))


def assert_one_field_changes(change: tuple[bytes, int, Steps], value: Any) -> None:
    body, document, steps = change
    before = edits.scalar(body, steps, document=document)
    try:
        after = edits.with_value(body, steps, value, document=document)
    except edits.Refused:
        return
    if differences.same(before, yaml_scalars.as_read(value)):
        assert after == body
        return
    assert_only_this_differs(body, after, document, steps, value)
    assert_comments_stay(body, after)
    assert edits.with_value(after, steps, value, document=document) == after
    if before is not differences.ABSENT:
        back = edits.with_value(after, steps, before, document=document)
        assert differences.same(read(back)[1], read(body)[1])


@given(change=changes(), value=scalars)
def test_an_edit_changes_one_field_and_no_comment_and_the_way_back_leads_to_the_same_values(
    change: tuple[bytes, int, Steps], value: Any
) -> None:
    assert_one_field_changes(change, value)


@pytest.mark.thorough
@settings(max_examples=1000)
@given(change=changes(), value=scalars)
def test_a_thousand_edits_change_one_field_each(change: tuple[bytes, int, Steps], value: Any) -> None:
    assert_one_field_changes(change, value)


@pytest.mark.long
@given(change=changes(damaged()), value=scalars)
def test_an_edit_of_a_file_that_looks_strange_changes_one_field_or_is_refused(
    change: tuple[bytes, int, Steps], value: Any
) -> None:
    body, document, steps = change
    try:
        after = edits.with_value(body, steps, value, document=document)
    except edits.Refused:
        return
    if after != body:
        assert_only_this_differs(body, after, document, steps, value)


@pytest.mark.long
@given(change=changes(files(anchors=False)), value=scalars)
def test_without_anchors_and_tags_every_scalar_can_be_replaced(change: tuple[bytes, int, Steps], value: Any) -> None:
    body, document, steps = change
    assume(steps[-1] != "missing")
    after = edits.with_value(body, steps, value, document=document)
    assert differences.same(edits.scalar(after, steps, document=document), yaml_scalars.as_read(value))


garbage = st.binary(max_size=60) | st.text("ab:-? \n\r\t#&*!|>'\"{}[],<%@1é\ufeff\x85.", max_size=40).map(str.encode)


@given(body=garbage, steps=st.lists(keys | st.integers(-1, 3), max_size=3), value=scalars, document=st.integers(-1, 2))
@example(body=b"a: !!map [b]\n", steps=["a"], value="x", document=0)
@example(body=b"a: !!timestamp b\n", steps=["a"], value="x", document=0)
@example(body=b"? a", steps=["a"], value="x", document=0)
@example(body=b"!!bool b: 1", steps=["a"], value="x", document=0)
def test_garbage_is_refused_or_edited_and_raises_nothing_else(
    body: bytes, steps: list[str | int], value: Any, document: int
) -> None:
    edit: list[Callable[[], bytes]] = [
        lambda: edits.with_value(body, steps, value, document=document),
        lambda: edits.with_block(body, steps, {"a": value}, document=document),
        lambda: edits.with_document(body, body),
        lambda: edits.without_document(body, document),
    ]
    for each in edit:
        assert outcome(each).isprintable()


def outcome(edit: Callable[[], bytes]) -> str:
    try:
        edit().decode()
    except edits.Refused as exc:
        return str(exc)
    return "edited"


@pytest.mark.long
@given(body=files(), manifest=files(), at_end=st.text("\n\r #-.", max_size=4))
def test_a_document_that_was_added_can_be_removed_without_a_trace(body: bytes, manifest: bytes, at_end: str) -> None:
    text = body + at_end.encode()
    try:
        longer = edits.with_document(text, manifest)
    except edits.Refused:
        return
    for new, old, one in zip(read(longer), read(text), read(manifest), strict=True):
        assert differences.same(new, old + one)
    assert edits.without_document(longer, len(read(text)[1])) == text


@given(change=changes(), block=st.dictionaries(keys, values, max_size=4))
def test_a_map_is_replaced_and_what_is_around_it_stays(change: tuple[bytes, int, Steps], block: dict[str, Any]) -> None:
    body, document, steps = change
    try:
        after = edits.with_block(body, steps[:-1], block, document=document)
    except edits.Refused:
        return
    for old, new in zip(read(body), read(after), strict=True):
        assert differences.same(new, replaced(old, (document, *steps[:-1]), yaml_scalars.as_read(block)))


@given(text=texts, style=st.sampled_from(["", "'", '"']))
def test_every_reader_takes_a_text_for_itself(text: str, style: str) -> None:
    assume(all(not 0xD800 <= ord(character) < 0xE000 for character in text))
    block, flow = yaml_scalars.written(text, style), yaml_scalars.written(text, style, flow=True)
    for reading in read(f"a: {block} # c\nb: {{c: {flow}, d: [{flow}]}}\n".encode()):
        assert reading == [{"a": text, "b": {"c": text, "d": [text]}}]
