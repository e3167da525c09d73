"""JSON that is too long to be scanned at once: read in pieces, as strictly as a short one."""

from __future__ import annotations

from typing import Any

import pytest

from flux_resourceset import errors, strict_json

GAP = " " * 100_000  # more than is scanned at once


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"[{GAP}]", []),
        (f"{{{GAP}}}", {}),
        (f"{GAP}[]{GAP}", []),
        (f"[1,{GAP}2.5, true]", [1, 2.5, True]),
        (f'{{"a": {{{GAP}"b": [{GAP}null]}} , "c": "x"}}', {"a": {"b": [None]}, "c": "x"}),
        (f'["{"é" * 90_000}"]', ["é" * 90_000]),
    ],
)
def test_a_long_text_means_what_a_short_one_means(text: str, value: Any) -> None:
    assert strict_json.decoded(text.encode()) == value


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"[]{GAP}1", "Extra data (char 100002)"),
        (f"[{GAP}nothing]", "Expecting value (char 100001)"),
        (f"[{GAP}1 2]", "Expecting ',' delimiter (char 100003)"),
        (f"{{{GAP}a: 1}}", "Expecting property name enclosed in double quotes (char 100001)"),
        (f'{{{GAP}"a" 1}}', "Expecting ':' delimiter (char 100005)"),
        (f'{{{GAP}"a": 1, "a": 2}}', 'duplicate key "a"'),
        (f"{'[' * 65}{GAP}{']' * 65}", "it is nested deeper than 64 levels"),
        (f'["{"x" * 2**21}"]', "a string or number has more than 1048576 characters"),
        (f"{{{','.join(f'{number}: 1' for number in range(100_001))}}}".replace(":", '":').replace(",", ',"').replace("{", '{"'),
         "an object has more than 100000 names"),
    ],
    ids=lambda given: given[:40],
)  # fmt: skip
def test_a_mistake_in_a_long_text_is_told_with_its_place(text: str, words: str) -> None:
    with pytest.raises(errors.MalformedBody) as told:
        strict_json.decoded(text.encode())
    assert str(told.value) == f"invalid JSON value: {words}"
