"""What tests of every directory may ask for."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest

import live
import postgres_server

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell does to what it starts in the background; children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=["as Flux", "ordinary"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test runs twice: its polls take the fast path, and then the ordinary route."""
    monkeypatch.setattr(live, "ordinary", request.param == "ordinary")


_until_the_end = contextlib.ExitStack()


def pytest_configure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:  # workers use what the one that starts them has made
        _until_the_end.enter_context(postgres_server.template())


def pytest_unconfigure(config: pytest.Config) -> None:
    postgres_server.end_shared()
    _until_the_end.close()
