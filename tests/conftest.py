"""What tests of every directory may ask for."""

from __future__ import annotations

import signal

import pytest

import live

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell does to what it starts in the background; children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["as Flux", "ordinary"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs twice: its polls take the fast path, and then the ordinary route."""
    monkeypatch.setattr(live, "ordinary", request.param == "ordinary")
