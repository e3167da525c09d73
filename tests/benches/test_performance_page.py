"""What benchmarks hand over, and the page that shows it: what is missing or failed is told, and nothing vanishes."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import live

sys.path.insert(0, str(live.ROOT))

from bench import figures, performance, plot

HANDS_OVER = """
from bench import figures
figures.row("Polls", {"Clusters": "100", "p99": "2 ms"})
figures.row("Polls", {"Clusters": "1,000", "p99": "3 ms"})
figures.note("A sentence.")
figures.bar("a poll", "3 ms", "≤ 2 ms", False, anchor="nginx", ratio=1.5)
print("for people")
raise SystemExit(1)
"""


@pytest.fixture
def benches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for benchmarks of a test."""
    monkeypatch.setattr(performance, "ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(live.ROOT))
    (tmp_path / "bench").mkdir()
    return tmp_path / "bench"


def block(benches: Path, program: str, minutes: float = 5.0) -> str:
    (benches / "some.py").write_text(f"import sys; sys.path.insert(0, {str(live.ROOT)!r})\n{program}")
    return performance.block(performance.run(performance.Bench("some", minutes=minutes)))


def test_rows_become_tables_and_a_missed_bar_is_no_failure(benches: Path) -> None:
    shown = block(benches, HANDS_OVER)
    assert "Polls:\n\n| Clusters | p99 |\n| --- | --- |\n| 100 | 2 ms |\n| 1,000 | 3 ms |\n" in shown
    assert "\n- A sentence.\n" in shown
    assert "| a poll | 3 ms | 1.50 × nginx | ≤ 2 ms | **not held** |" in shown
    assert "Not measured" not in shown
    assert "for people" not in shown


def test_of_a_benchmark_that_hands_nothing_over_the_page_shows_what_it_prints(benches: Path) -> None:
    assert "```text\n12 ms\n```" in block(benches, "print('12 ms')")


def test_bars_that_are_only_printed_count_as_well(benches: Path) -> None:
    (benches / "some.py").write_text("print('met     polls: 1.0 (bar: >= 0.9)\\nMISSED  writes: 3 s (bar: <= 2 s; quiet)')")
    shown = performance.summary([performance.run(performance.Bench("some"))])
    assert shown.startswith("1 of 2 bars were held.")
    assert "| `some` | writes | 3 s | <= 2 s | **not held** |" in shown


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("raise SystemExit('nginx is not here')", "it failed with exit code 1: `nginx is not here`"),
        ("1 / 0", "it failed with exit code 1: `ZeroDivisionError: division by zero`"),
        (f"{HANDS_OVER.replace('raise SystemExit(1)', 'raise SystemExit(2)')}", "it failed with exit code 2: `it said nothing`"),
    ],
)
def test_a_benchmark_that_fails_says_so_in_its_place(benches: Path, program: str, told: str) -> None:
    assert f"**Not measured, or not to the end:** {told}." in block(benches, program)


@pytest.mark.long
def test_a_benchmark_that_takes_too_long_is_ended_and_what_it_had_is_shown(benches: Path) -> None:
    shown = block(benches, "print('so far', flush=True)\nimport time; time.sleep(60)", minutes=0.05)
    assert "it was ended after 0.05 minutes" in shown
    assert "so far" in shown


def test_a_benchmark_that_is_not_here_is_named() -> None:
    result = performance.run(performance.Bench("of-another-day"))
    assert "**Not measured, or not to the end:** bench/of-another-day.py is not here." in performance.block(result)
    assert "`of-another-day`" in performance.summary([result])


def test_the_summary_counts_bars_and_shows_those_that_were_not_held(benches: Path) -> None:
    (benches / "some.py").write_text(
        f"import sys; sys.path.insert(0, {str(live.ROOT)!r})\nfrom bench import figures\n"
        "figures.bar('good', '1', '≤ 2', True)\nfigures.bar('bad', '3', '≤ 2', False)\n"
    )
    shown = performance.summary([performance.run(performance.Bench("some"))])
    assert shown.startswith("1 of 2 bars were held.\n")
    assert "| `some` | bad | 3 |" in shown
    assert "good" not in shown


def test_the_page_has_a_place_for_every_benchmark() -> None:
    page = performance.PAGE.read_text(encoding="utf-8")
    for name in [*(bench.name for bench in performance.BENCHES), "machine", "bars"]:
        page = performance.put(page, name, "something else")
    assert page.count("\n\nsomething else\n<!-- end of figures -->") == len(performance.BENCHES) + 2


def test_every_benchmark_of_the_folder_is_run() -> None:
    parts = {"arrivals", "figures", "generated", "load", "machine", "performance", "plot", "servers", "stores"}
    there = {path.stem for path in (live.ROOT / "bench").glob("*.py")} - parts
    assert there <= {bench.name for bench in performance.BENCHES}


def test_a_page_without_a_place_is_refused() -> None:
    with pytest.raises(SystemExit, match="0 places"):
        performance.put("no markers", "poll", "")


def test_nothing_is_handed_over_unless_somebody_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(figures.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    figures.row("a", {"b": 1})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("power", "factor"), [(0.0, 5.0), (1.0, 0.02), (2.0, 3.0)])
def test_the_exponent_is_that_of_the_growth(power: float, factor: float) -> None:
    points = [(size, factor * size**power) for size in (100.0, 1_000.0, 10_000.0, 100_000.0)]
    assert plot.exponent(points) == pytest.approx(power, abs=1e-9)


def test_a_drawing_is_xml_with_a_line_for_each_series_of_each_panel() -> None:
    series = {"one <&>": [(100, 0.5), (1000, 4.0)], "two": [(100, 7.0), (1000, 7.0)]}
    panels = [plot.Panel(f"panel {number} & more", "ms", series) for number in range(5)]
    root = ElementTree.fromstring(plot.svg(panels, "clusters"))
    assert len(root.findall(".//{*}polyline")) == 10
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for point in root.findall(".//{*}circle"):
        assert 0 <= float(point.attrib["cx"]) <= width
        assert 0 <= float(point.attrib["cy"]) <= height
