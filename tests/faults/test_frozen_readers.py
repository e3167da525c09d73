"""A reader that stands still for a while (SIGSTOP, a paused virtual machine): awake, it does not tell what was true then."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from faults import databases, load
from faults.checker import assert_right
from faults.instances import Recovery, agree, loaded, running
from faults.load import log_of


@pytest.mark.parametrize("seconds", [pytest.param(0.5, marks=pytest.mark.quick), 60.0])
def test_a_reader_that_was_frozen_answers_what_is_true_now(tmp_path: Path, seconds: float, recovery: Recovery) -> None:
    with running(tmp_path, "writer reader reader", SEED_FILE=str(load.seed(tmp_path))) as instances:
        with loaded(instances, pause=0.02 if seconds > 1 else load.PAUSE) as made:
            os.kill(instances[1].pid, signal.SIGSTOP)
            time.sleep(seconds)
            os.kill(instances[1].pid, signal.SIGCONT)
            since = time.monotonic()
            process = instances[1].target.process
            made.until_polled(lambda poll: poll.process == process and poll.status == 200)
            recovery.until_well(made, f"SQLite: reader frozen for {seconds:g} s", since)
        agree(instances)
        assert_right(made.history(log_of(instances[0].server)))


@pytest.mark.parametrize("seconds", [60.0])
def test_a_reader_of_postgres_that_was_frozen_never_goes_back_and_catches_up(
    tmp_path: Path, seconds: float, recovery: Recovery
) -> None:
    with databases.database() as (_, url), databases.running(tmp_path, "writer reader reader", url) as instances:
        with loaded(instances, pause=0.02) as made:
            os.kill(instances[1].pid, signal.SIGSTOP)
            time.sleep(seconds)
            with made.quiet():
                os.kill(instances[1].pid, signal.SIGCONT)
                since = time.monotonic()
                agree(instances)
                recovery.note(f"PostgreSQL: reader frozen for {seconds:g} s", time.monotonic() - since)
            made.go_on()
        assert_right(databases.history(made, log_of(instances[0].server)))
