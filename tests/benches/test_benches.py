"""Benchmarks that take long run in a tiny form, so that they do not rot. Their bars are no matter here: tests do not measure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import live

pytestmark = pytest.mark.long

SIZES = ("--sizes", "10", "20")


def run(tmp_path: Path, name: str, *words: str) -> tuple[str, list[dict[str, Any]]]:
    """What a benchmark prints, and what it hands over. It may end with 1, which says that a bar was not held."""
    handed = tmp_path / "figures"
    done = subprocess.run(
        [sys.executable, str(live.ROOT / "bench" / f"{name}.py"), *words],
        cwd=tmp_path, env={**os.environ, "BENCH_FIGURES": str(handed)}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout, [json.loads(line) for line in handed.read_text(encoding="utf-8").splitlines()]


def bars(lines: list[dict[str, Any]]) -> dict[str, str]:
    return {line["bar"]["What"]: line["bar"]["Measured"] for line in lines if "bar" in line}


@pytest.mark.parametrize("store", ["SQLite", "PostgreSQL"])
def test_a_herd_asks_for_every_view_in_every_round(tmp_path: Path, store: str) -> None:
    words = ("--clusters", "20", "--rounds", "2", "--every", "0.5", "--within", "0.3", "--stores", store)
    printed, lines = run(tmp_path, "herd", *words)
    assert bars(lines)[f"a herd on {store}: failed polls"] == "0 of 120", printed
    assert bars(lines)[f"a herd on {store}: failed writes meanwhile"].startswith("0 of "), printed
    assert [line["cells"]["Round"] for line in lines if "cells" in line] == ["1", "2"]


def test_growth_is_measured_on_both_stores_and_drawn(tmp_path: Path) -> None:
    printed, lines = run(tmp_path, "growth", *SIZES, "--seconds", "0.1", "--rounds", "1", "--plot", "growth.svg")
    rows = [line["cells"] for line in lines if "cells" in line]
    assert {row["Store"] for row in rows} == {"SQLite", "PostgreSQL"}
    assert all(set(row) == {"Store", "What", "10", "20", "Exponent"} for row in rows), printed
    drawn = ElementTree.parse(tmp_path / "growth.svg").getroot()
    assert len(drawn.findall(".//{*}polyline")) == len(rows)


def test_a_steady_load_meets_no_error(tmp_path: Path) -> None:
    printed, lines = run(tmp_path, "steady", "--clusters", "20", "--seconds", "0.4")
    for store in ("memory", "SQLite"):
        for rate in (10, 50, 167):
            assert bars(lines)[f"{rate} polls per second, {store}: failed"] == "0", printed


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("plan", (*SIZES, "--rounds", "1")),
        ("apply", (*SIZES, "--rounds", "1")),
        ("cli", ("--rounds", "1")),
    ],
)
def test_others_hand_over_what_they_print(tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    printed, lines = run(tmp_path, name, *words)
    assert printed
    assert lines
