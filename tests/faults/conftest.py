"""Faults of real processes take their time, so the thorough suite has them; the fast one has those that are marked as quick."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("quick") is None:
            item.add_marker("fault")
