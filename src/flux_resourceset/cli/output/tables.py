"""How wide the columns of a table are: as wide as their cells, or as a terminal lets them be, the important ones first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flux_resourceset.cli.output.terminal_text import columns

GAP = 3  # blanks between two columns, as kubectl has it
_NARROW_GAP = 2  # where room is short
_LEAST = 12  # columns of a cell that is cut: with fewer, nobody knows what it was
_WHOLE = 63  # columns of a key that are shown before others are: as long as a name in Kubernetes may be
_SHORT = 20  # what is no longer than this is shown as a whole or not at all, such as a time


class Column(NamedTuple):
    head: str
    rank: int = 1  # the lowest ones give way last
    kept: bool = False  # whether it is never left out, and cut only when the others are
    least: int = 0  # columns to which it is cut before others are left out


class Layout(NamedTuple):
    """Which columns are shown, and how wide."""

    places: list[int]
    widths: list[int]
    gap: int = GAP
    cuts: bool = False  # whether there is a room, into which also later rows have to fit


def layout(heads: Sequence[Column], rows: Sequence[Sequence[str]], room: int | None) -> Layout:
    """Without a room everything is shown. The column of the lowest rank is cut only where it stands alone."""
    natural = [max(map(columns, cells)) for cells in zip([column.head for column in heads], *rows, strict=True)]
    if room is None or sum(natural) + GAP * (len(natural) - 1) <= room:
        return Layout(list(range(len(heads))), natural, cuts=room is not None)
    order = sorted(range(len(heads)), key=lambda place: (not heads[place].kept, heads[place].rank, place))
    least = [_least(column, width) for column, width in zip(heads, natural, strict=True)]
    shown = _shown(order, heads, least, natural, room)
    left = room - _NARROW_GAP * (len(shown) - 1)
    widths = {place: least[place] for place in shown}
    for place in shown:  # what is left goes to the important ones first
        others = sum(widths.values()) - widths[place]
        widths[place] = max(1, min(natural[place], left - others))
    places = sorted(shown)
    return Layout(places, [widths[place] for place in places], _NARROW_GAP, cuts=True)


def _least(column: Column, natural: int) -> int:
    if natural <= _SHORT and not column.kept:
        return natural
    return min(natural, max(column.least or _LEAST, columns(column.head)))


def _shown(order: Sequence[int], heads: Sequence[Column], least: list[int], natural: list[int], room: int) -> list[int]:
    """The columns that there is room for, in the order of their importance; the first as a whole, if that is possible."""
    first, *others = order
    needed = [place for place in others if heads[place].kept]
    room_for_first = room - sum(least[place] + _NARROW_GAP for place in needed)
    least[first] = max(1, min(natural[first], max(least[first], room_for_first)))
    spare = room_for_first - least[first]
    for place in needed:
        if spare > 0 and not heads[place].least:
            grown = min(natural[place] - least[place], max(_WHOLE - least[place], 0), spare)
            least[place], spare = least[place] + grown, spare - grown
    shown, used = [first], least[first]
    for place in others:
        if used + _NARROW_GAP + least[place] <= room or heads[place].kept:
            shown.append(place)
            used += _NARROW_GAP + least[place]
    if used > room and needed:
        _squeeze(shown, least, room - _NARROW_GAP * (len(shown) - 1))
    return shown


def _squeeze(shown: Sequence[int], least: list[int], room: int) -> None:
    """So narrow a terminal that not even what must be shown fits: each has its part of it."""
    for place in reversed(shown):
        excess = sum(least[each] for each in shown) - room
        least[place] = max(room // len(shown), least[place] - max(excess, 0), 1)
