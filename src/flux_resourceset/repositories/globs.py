"""Patterns of paths in the policy: `*` within a segment, `**` across segments, all else as it stands."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

# A pattern is a row of tokens. A character stands for itself, beside these three:
_Tokens = tuple[str, ...]
_WITHIN = "*"  # any text without a slash
_ACROSS = "**"  # any text
_MAYBE = ""  # the next two tokens may be left out

_WILDCARDS = (_WITHIN, _ACROSS, _MAYBE)

_PIECES = re.compile(r"(?P<folders>(?:(?<=/)|\A)(?:\*{2,}/)+)|(?P<across>\*{2,})|.", re.DOTALL)


def matches(pattern: str, path: str) -> bool:
    """Whether the whole path, from the root on, is one that the pattern means: `dev/**` is all below dev, `**/x` is also x.

    All places in the pattern are followed at once, so that no pattern takes longer than its length times the path's.
    """
    literal, star, _ = pattern.partition("*")
    if not star:
        return pattern == path
    if not path.startswith(literal) or not path.endswith(pattern.rpartition("*")[2].lstrip("/")):
        return False
    tokens = _tokens(pattern)
    places = _places(tokens, [len(literal)])
    for character in path[len(literal) :]:
        if tokens[-1] == _ACROSS and len(tokens) - 1 in places:
            return True
        places = _places(tokens, _steps(tokens, places, character))
    return len(tokens) in places


def overlap(one: str, other: str) -> bool:
    """Whether there can be a path that both patterns mean."""
    first, second = _tokens(one), _tokens(other)
    waiting, seen = [(0, 0)], {(0, 0)}
    while waiting:
        pair = waiting.pop()
        if pair == (len(first), len(second)):
            return True
        for further in _common_steps(first, second, *pair):
            if further not in seen:
                seen.add(further)
                waiting.append(further)
    return False


def covers(broader: str, narrower: str) -> bool:
    """Whether the first pattern means all that the second means, as far as that can be told star by star."""
    tokens = _tokens(broader)
    places = without = _places(tokens, [0])
    optional = 0  # how many tokens come of those that may be left out
    for token in _tokens(narrower):
        if token == _MAYBE:
            without, optional = places, 2
            continue
        places = _places(tokens, _steps(tokens, places, token))
        optional -= 1
        if optional == 0:
            places &= without  # whether they were there or not
    return len(tokens) in places


def specificity(pattern: str) -> tuple[int | str, ...]:
    """A key to sort by: a pattern that means all that another means, and more, comes before it.

    All paths of a pattern begin with its text before the first star, and none is shorter than its text without stars: both can
    only grow from the broader pattern to the narrower. Where they are the same, that with the wider stars is the broader.
    """
    tokens = _tokens(pattern)
    folders = tokens.count(_MAYBE)
    least = sum(token not in _WILDCARDS for token in tokens) - folders
    return len(pattern.partition("*")[0]), least, -tokens.count(_ACROSS), folders, -tokens.count(_WITHIN), pattern


@functools.lru_cache(maxsize=1024)  # a policy has a few patterns, a change thousands of paths
def _tokens(pattern: str) -> _Tokens:
    tokens: list[str] = []
    for piece in _PIECES.finditer(pattern):
        if piece["folders"]:  # `**/`, also several in a row: no folder at all, or any
            tokens += [_MAYBE, _ACROSS, "/"]
        else:
            tokens.append(_ACROSS if piece["across"] else piece[0])
    return tuple(tokens)


def _places(tokens: _Tokens, reached: Iterable[int]) -> set[int]:
    """These places in the pattern, and those that are reached from them without a character."""
    waiting, places = list(reached), set[int]()
    while waiting:
        place = waiting.pop()
        if place not in places:
            places.add(place)
            waiting.extend(_free_steps(tokens, place))
    return places


def _free_steps(tokens: _Tokens, place: int) -> tuple[int, ...]:
    if place == len(tokens) or tokens[place] not in _WILDCARDS:
        return ()
    return (place + 1, place + 3) if tokens[place] == _MAYBE else (place + 1,)


def _steps(tokens: _Tokens, places: Iterable[int], character: str) -> Iterator[int]:
    """Where a character leads from these places, or one of the stars of another pattern, which only its like or wider take in."""
    for place in places:
        token = tokens[place] if place < len(tokens) else _MAYBE
        if token == _ACROSS or (token == _WITHIN and character not in ("/", _ACROSS)):
            yield place
        elif token == character:
            yield place + 1


def _common_steps(first: _Tokens, second: _Tokens, one: int, other: int) -> Iterator[tuple[int, int]]:
    """Where two patterns can be after one more character that suits both, or after none."""
    yield from ((place, other) for place in _free_steps(first, one))
    yield from ((one, place) for place in _free_steps(second, other))
    if one < len(first) and other < len(second):
        for character in {first[one], second[other]} - {*_WILDCARDS}:
            for place in _steps(first, [one], character):
                yield from ((place, further) for further in _steps(second, [other], character))
