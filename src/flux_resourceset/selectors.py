"""The label selector grammar of Kubernetes: `tier=edge,team!=x,zone in (a,b),!beta`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from flux_resourceset import errors, formats

Labels = Mapping[str, str]
Selector = Callable[[Labels], bool]

MAX_LENGTH = 16 * 1024  # no list of names is that long, and every cluster is held against it

# possessive throughout: what was taken is never given back, so that a mistake is found in one pass
_TERM = re.compile(
    r"\s*+(?:"
    r"(?P<key>[^\s,!=<>()]++)\s*+(?P<op>==|=|!=|<|>)\s*+(?P<value>[^\s,!=<>()]*+)"
    r"|(?P<set_key>[^\s,!=<>()]++)\s++(?P<set_op>in|notin)\s*+\((?P<values>[^()]*+)\)"
    r"|(?P<absent>!)?\s*+(?P<has_key>[^\s,!=<>()]++)"
    r")\s*+(?:,|$)"
)


def parse(text: str) -> Selector:
    """The selector as a predicate on labels; an empty one matches everything."""
    if len(text) > MAX_LENGTH:
        raise errors.BadQuery(f"selector has {len(text)} characters; {MAX_LENGTH} are the most")
    terms: list[Selector] = []
    position = 0 if text.strip() else len(text)
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None:
            raise _wrong(text, f"cannot be read at {text[position:]!r}")
        if match.end() == len(text) and text.endswith(","):
            raise _wrong(text, "ends with a comma")
        terms.append(_term(text, match))
        position = match.end()
    return lambda labels: all(term(labels) for term in terms)


def _term(text: str, match: re.Match[str]) -> Selector:
    key = match["key"] or match["set_key"] or match["has_key"]
    if not formats.is_label_key(key):
        raise _wrong(text, f"{key!r} is not a label key")
    if match["has_key"]:
        wanted = match["absent"] is None
        return lambda labels: (key in labels) is wanted
    if match["set_key"]:
        values = _values(text, match["values"].split(","))
        inside = match["set_op"] == "in"
        # like Kubernetes: `notin` and `!=` also match where the key is not there at all
        return lambda labels: (labels.get(key) in values) is inside
    operator = match["op"]
    if operator in "<>":
        return _comparison(text, key, operator, match["value"])
    (value,) = _values(text, [match["value"]])
    return lambda labels: (labels.get(key) == value) is (operator != "!=")


def _values(text: str, raw: list[str]) -> frozenset[str]:
    values = frozenset(value.strip() for value in raw)
    for value in values:
        if not formats.is_label_value(value):
            raise _wrong(text, f"{value!r} is not a label value")
    return values


def _comparison(text: str, key: str, operator: str, raw: str) -> Selector:
    if not re.fullmatch(r"-?[0-9]{1,18}", raw):
        raise _wrong(text, f"{raw!r} is not an integer")
    bound = int(raw)

    def compares(labels: Labels) -> bool:
        value = labels.get(key, "")
        if not re.fullmatch(r"-?[0-9]{1,18}", value):
            return False
        return int(value) > bound if operator == ">" else int(value) < bound

    return compares


def _wrong(text: str, why: str) -> errors.BadQuery:
    return errors.BadQuery(f"selector {text!r} {why}; write it as in tier=edge,team!=x,zone in (a,b),!beta")
