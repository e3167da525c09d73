"""Hands the figures of a benchmark over to the performance page: bench/performance.py reads them where BENCH_FIGURES says.

A benchmark prints for people as it likes, and calls `row` beside its prints, `bar` for what it was held against, `note` for a
sentence. Without BENCH_FIGURES nothing happens.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

VARIABLE = "BENCH_FIGURES"  # the file, one JSON object per line


def row(table: str, cells: dict[str, Any]) -> None:
    """A row of a table of the page: title of the column → what it holds. The rows of a table have the same columns."""
    _hand_over({"table": table, "cells": {name: str(value) for name, value in cells.items()}})


def bar(name: str, measured: object, limit: str, held: bool, *, anchor: str = "", ratio: float | None = None) -> None:
    """Something that was to hold, and whether it did; the anchor is what it was measured against, the ratio to it in this run."""
    against = f"{'' if ratio is None else f'{ratio:.2f} × '}{anchor}"
    _hand_over({"bar": {"What": name, "Measured": str(measured), "Against": against, "Bar": limit, "": told(held)}})


def note(text: str) -> None:
    """A sentence that belongs to the figures."""
    _hand_over({"note": text})


def told(held: bool) -> str:
    return "held" if held else "**not held**"


def verdict(name: str, measured: object, limit: str, held: bool, **anchor: Any) -> bool:
    """A bar, printed too."""
    print(f"{'held    ' if held else 'NOT HELD'}  {name}: {measured} (bar: {limit})", flush=True)
    bar(name, measured, limit, held, **anchor)
    return held


def _hand_over(line: dict[str, Any]) -> None:
    if place := os.environ.get(VARIABLE):
        with Path(place).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
