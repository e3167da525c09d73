"""YAML that people write: every key once, every key a text, nothing without end; and JSON has the same words for it."""

from __future__ import annotations

import datetime
import json

import pytest

from flux_resourceset import errors, strict_json, strict_yaml


def refusal(text: str) -> tuple[int | None, str]:
    with pytest.raises(strict_yaml.ERRORS) as caught:
        strict_yaml.values(text)
    return strict_yaml.reason(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 'duplicate key "a"'),
        ("- x:\n    - {y: 1,\n       y: 2}\n", 3, 'duplicate key "y"'),
        ("a: 1\n---\nb: 1\nb: 2\n", 4, 'duplicate key "b"'),
        ('"a": 1\na: 2\n', 2, 'duplicate key "a"'),
        ("a: {}\n1: 2\n", 2, "the key 1 is not text; put it in quotes"),
        ("true: 2\n", 1, "the key true is not text; put it in quotes"),
        ("a: 1\n[x]: 2\n", 2, "a list or a map is no key; keys must be text"),
        ("a: &x\n  - *x\n", 1, "it holds itself"),
        ("a: &x\n  b: {c: *x}\n", 1, "it holds itself"),
        ("a:\n- " + "[" * 70 + "]" * 70, 2, "nested more than 64 levels deep"),
        ("a: !!python/name:os x\n", 1, "could not determine a constructor"),
        ("a: [\n", 2, "invalid YAML"),
        ("a: 2024-13-45\n", None, "month must be in 1..12"),
    ],
)
def test_what_can_be_taken_in_two_ways_is_refused_with_its_line(text: str, line: int | None, words: str) -> None:
    found, why = refusal(text)
    assert (found, words in why, why.startswith("invalid YAML: ")) == (line, True, True), why


def test_merged_keys_are_no_duplicates_wherever_the_anchor_stands() -> None:
    text = "base: &base {k: 0, z: 9}\nx: {y: {z: &own {<<: *base, k: 1}}}\nb: {<<: *own, k: 2}\nagain: [*own, *own]\n"
    (value,) = strict_yaml.values(text)
    own = {"k": 1, "z": 9}
    assert value == {"base": {"k": 0, "z": 9}, "x": {"y": {"z": own}}, "b": {"k": 2, "z": 9}, "again": [own, own]}


def test_every_document_of_a_text_is_read() -> None:
    assert strict_yaml.values("a: 1\n---\n- 2\n---\n") == [{"a": 1}, [2], None]
    assert strict_yaml.values("# nothing\n") == []


def test_dates_are_text_for_those_who_send_json() -> None:
    assert strict_yaml.values("a: 2024-01-31", dates_as_text=True) == [{"a": "2024-01-31"}]
    assert strict_yaml.values("a: 2024-01-31") == [{"a": datetime.date(2024, 1, 31)}]


@pytest.mark.parametrize("name", ["x", 'a "quoted" one', "x" * 1000, "line\nbreak"])
def test_a_duplicate_key_has_the_same_words_in_json_and_yaml(name: str) -> None:
    quoted = json.dumps(name)
    with pytest.raises(errors.MalformedBody) as caught:
        strict_json.decoded(f"{{{quoted}: 1, {quoted}: 2}}".encode())
    words = str(caught.value).removeprefix("invalid JSON value: ")
    assert words.startswith('duplicate key "')
    assert len(words) < 250
    assert refusal(f"{quoted}: 1\n{quoted}: 2\n")[1] == f"invalid YAML: {words}"
