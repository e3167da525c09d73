"""A clock that is set back, or forward and back, under running writers: the log's order is that of its revisions."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import live
from faults import load
from faults.checker import assert_right
from faults.instances import Instance, Recovery, agree, loaded
from faults.load import log_of
from faults.stores import copy_database

PROGRAM = (sys.executable, str(Path(__file__).with_name("clocked.py")))
HOUR = 3600


class Clock:
    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    def set(self, seconds: float) -> None:
        part = self._file.with_suffix(".new")
        part.write_text(str(seconds))
        part.rename(self._file)

    @property
    def program(self) -> tuple[str, ...]:
        return (*PROGRAM, str(self._file))


@pytest.mark.parametrize("back", [1, 30 * 24 * HOUR], ids=["a second", "a month"])
def test_a_clock_that_is_set_back_changes_no_answer_and_loses_no_write(tmp_path: Path, back: float, recovery: Recovery) -> None:
    clock = Clock(tmp_path / "clock")
    seed = str(load.seed(tmp_path))
    writer = Instance(tmp_path, "writer-0", {"SEED_FILE": seed}, clock.program)
    instances = [writer]
    try:
        writer.wait()
        instances.append(Instance(tmp_path, "reader-1", {"API_MODE": "read-only"}, clock.program))
        instances[1].wait()
        with loaded(instances) as made:
            clock.set(-back)
            recovery.until_well(made, f"clock set back by {back:,} s")
            made.go_on(20)
            writer.kill()  # and a writer that starts at a time at which the log says that another wrote
            writer.start()
            recovery.until_well(made, f"clock set back by {back:,} s, and the writer killed")
            for seconds in (back, 0):  # forward, and right again
                clock.set(seconds)
                made.go_on(20)
        agree(instances)
        entries = log_of(writer.server)
        assert_right(made.history(entries), writes=60)
        times = [entry.time for entry in entries]
        assert back == 1 or times != sorted(times)  # it was really set back
    finally:
        for instance in instances:
            instance.server.end()


def test_a_restored_backup_is_believed_to_a_writer_that_starts_with_its_clock_set_back(tmp_path: Path) -> None:
    """It vouches for an older state than others followed, at an earlier time: all the same it is the newest start."""
    clock = Clock(tmp_path / "clock")
    writer = Instance(tmp_path, "writer-0", {"SEED_FILE": str(load.seed(tmp_path))}, clock.program)
    try:
        writer.wait()
        with (
            live.serving(tmp_path, API_MODE="read-only") as reader,
            writer.server.client() as api,
            reader.client(live.READ) as polling,
        ):
            copy_database(tmp_path / "fleet.db", tmp_path / "backup.db")
            first = polling.get(load.path_of(load.KEYS[0]))
            before = first.content
            assert first.status_code == 200
            assert api.patch(f"/platform_components/{load.SHARED}", json={"oci_tag": "2.0.0"}).status_code == 200
            assert polling.get(load.path_of(load.KEYS[0])).content != before
            assert writer.server.stop() == 0
            copy_database(tmp_path / "backup.db", tmp_path / "fleet.db")
            clock.set(-24 * HOUR)
            writer.start()
            writer.wait()
            live.until(lambda: polling.get(load.path_of(load.KEYS[0])).content == before, 5)
    finally:
        writer.server.end()
