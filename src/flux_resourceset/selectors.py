"""The label selector grammar of Kubernetes: `zone=edge,team!=x,region in (a,b),!beta`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from flux_resourceset import errors, names

Labels = Mapping[str, str]
Term = Callable[[Labels], bool]

MAX_LENGTH = 16 * 1024  # of the whole, with the lists of values in it; no list of names is that long
MAX_TERMS = 64  # a person writes five, and every cluster is held against each
_SHOWN = 200  # characters of a selector in a message: enough to recognise it

# possessive throughout: what was taken is never given back, so that a mistake is found in one pass
_TERM = re.compile(
    r"\s*+(?:"
    r"(?P<key>[^\s,!=<>()]++)\s*+(?P<op>==|=|!=|<|>)\s*+(?P<value>[^\s,!=<>()]*+)"
    r"|(?P<set_key>[^\s,!=<>()]++)\s++(?P<set_op>in|notin)\s*+\((?P<values>[^()]*+)\)"
    r"|(?P<absent>!)?\s*+(?P<has_key>[^\s,!=<>()]++)"
    r")\s*+(?:,|$)"
)


class Selector:
    """A predicate on labels: every term holds. Without terms it matches everything."""

    def __init__(self, terms: Iterable[Term]) -> None:
        self._terms = tuple(terms)
        self.cost = max(1, len(self._terms))  # of one look at one cluster

    def __call__(self, labels: Labels) -> bool:
        return all(term(labels) for term in self._terms)


def parse(text: str) -> Selector:
    if len(text) > MAX_LENGTH:
        raise errors.BadQuery(f"selector has {len(text)} characters; {MAX_LENGTH} are the most")
    terms: dict[str, Term] = {}  # by their text: saying a thing again costs nothing
    position, count = 0 if text.strip() else len(text), 0
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None:
            raise _wrong(text, f"cannot be read at {errors.shortened(text[position:], _SHOWN)!r}")
        if match.end() == len(text) and text.endswith(","):
            raise _wrong(text, "ends with a comma")
        count += 1
        if count > MAX_TERMS:
            raise errors.BadQuery(f"selector has more than {MAX_TERMS} terms; narrow it with fewer, or with in (…)")
        said = match[0].strip(" ,")
        terms[said] = terms.get(said) or _term(text, match)
        position = match.end()
    return Selector(terms.values())


def _term(text: str, match: re.Match[str]) -> Term:
    key = match["key"] or match["set_key"] or match["has_key"]
    if not names.is_label_key(key):
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
        if not names.is_label_value(value):
            raise _wrong(text, f"{value!r} is not a label value")
    return values


def _comparison(text: str, key: str, operator: str, raw: str) -> Term:
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
    shown = errors.shortened(text, _SHOWN)
    return errors.BadQuery(f"selector {shown!r} {why}; write it as in zone=edge,team!=x,region in (a,b),!beta")
