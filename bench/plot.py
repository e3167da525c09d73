"""Draws how figures grow: a panel for each, both axes logarithmic, a line for each series; written as SVG.

The colours are of middle brightness and there is no background, so it can be read on a light page and on a dark one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

INK, GRID = "#848d97", "#848d9755"
COLOURS = ("#2f81f7", "#d9730d", "#2da44e")
COLUMNS = 3
WIDTH, HEIGHT = 270, 170  # of a panel, with its margins
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 30, 26  # margins

Points = Sequence[tuple[float, float]]


class Panel(NamedTuple):
    title: str
    unit: str
    series: Mapping[str, Points]  # by name; the same names in every panel have the same colour


def exponent(points: Points) -> float:
    """How y grows with x, by least squares on the logarithms: 0 does not grow, 1 grows in proportion."""
    logs = [(math.log(x), math.log(y)) for x, y in points]
    middle_x, middle_y = (sum(column) / len(logs) for column in zip(*logs, strict=True))
    slope: float = sum((x - middle_x) * (y - middle_y) for x, y in logs) / sum((x - middle_x) ** 2 for x, _ in logs)
    return slope


def svg(panels: Sequence[Panel], x_title: str) -> str:
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    rows = math.ceil(len(panels) / COLUMNS)
    width, height = COLUMNS * WIDTH, rows * HEIGHT + 30
    legend = "".join(
        f'<circle cx="{LEFT + 110 * place}" cy="12" r="4" fill="{_colour(names, name)}"/>'
        f'<text x="{LEFT + 8 + 110 * place}" y="16">{escape(name)}</text>'
        for place, name in enumerate(names)
    )
    drawn = "".join(
        f'<g transform="translate({number % COLUMNS * WIDTH},{number // COLUMNS * HEIGHT + 20})">{_panel(panel, names)}</g>\n'
        for number, panel in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11" '
        f'fill="{INK}">\n{legend}<text x="{width - RIGHT}" y="16" text-anchor="end">{escape(x_title)}</text>\n{drawn}</svg>\n'
    )


def _colour(names: Sequence[str], name: str) -> str:
    return COLOURS[names.index(name) % len(COLOURS)]


class _Axis(NamedTuple):
    """From decade to decade, onto a stretch of the picture."""

    first: int
    last: int
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> _Axis:
        first, last = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
        return cls(first, max(last, first + 1), start, end)

    def place(self, value: float) -> float:
        return self.start + (math.log10(value) - self.first) / (self.last - self.first) * (self.end - self.start)

    @property
    def decades(self) -> list[float]:
        return [10.0**power for power in range(self.first, self.last + 1)]


def _panel(panel: Panel, names: Sequence[str]) -> str:
    points = [point for series in panel.series.values() for point in series]
    across = _Axis.over([x for x, _ in points], LEFT, WIDTH - RIGHT)
    up = _Axis.over([y for _, y in points], HEIGHT - BOTTOM, TOP)
    parts = [f'<text x="{LEFT}" y="{TOP - 10}" font-weight="bold">{escape(panel.title)}</text>']
    for value in across.decades:
        x = across.place(value)
        parts.append(f'<path d="M{x:.1f} {up.start}V{up.end}" stroke="{GRID}"/>')
        parts.append(f'<text x="{x:.1f}" y="{up.start + 14}" text-anchor="middle">{_short(value)}</text>')
    for value in up.decades:
        y = up.place(value)
        parts.append(f'<path d="M{across.start} {y:.1f}H{across.end}" stroke="{GRID}"/>')
        parts.append(f'<text x="{LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{_short(value)} {escape(panel.unit)}</text>')
    for name, series in panel.series.items():
        line = " ".join(f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in series)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{_colour(names, name)}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{across.place(x):.1f}" cy="{up.place(y):.1f}" r="3" fill="{_colour(names, name)}">'
            f"<title>{escape(name)}: {y:.4g} {escape(panel.unit)} at {x:,.0f}</title></circle>"
            for x, y in series
        ]
    return "\n".join(parts)


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
