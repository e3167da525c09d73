"""What tests of every directory may ask for."""

from __future__ import annotations

import pytest

import live


@pytest.fixture(params=["as Flux", "ordinary"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs twice: its polls take the fast path, and then the ordinary route."""
    monkeypatch.setattr(live, "ordinary", request.param == "ordinary")
