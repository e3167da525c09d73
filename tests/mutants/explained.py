"""Faults that no test can notice, and why: they are named as the run names them."""

from __future__ import annotations

_SRC = "src/flux_resourceset"

EXPLAINED: dict[str, str] = {
    f'{_SRC}/merge.py _part: patches = cluster["patches"].get(reference["id"]) if kind.patches else None '
    '→ patches = cluster["patches"].get(reference["id"]) if True else None': (
        "a kind without patches never sends them; looking them up only costs its being remembered"
    ),
    f"{_SRC}/rules.py _bound: if len(references) > fleet.MAX_INPUTS: → if False:": (
        "so many references make a bound above the limit by themselves, at 400 bytes each; this only saves adding them up"
    ),
    f"{_SRC}/rules.py _doubts: continue → pass": (
        "a reference that pins no version gives nothing to doubt; this only saves looking its definition up"
    ),
}
