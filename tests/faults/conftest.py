"""Faults of real processes take their time, so `make faults` has them; the fast suite has those that are marked as quick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faults import instances
from faults.instances import recovery

__all__ = ["recovery"]  # a fixture

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("quick") is None:
            item.add_marker("fault")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Of every fault the time to recover, without a restart unless the fault is one."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    lines = instances.table([report for report in reports if report.when == "call"])
    if lines:
        terminalreporter.section("time to recover")
        for line in lines:
            terminalreporter.write_line(line)
