"""Writers killed with -9 at any moment, again and again, while others go on: nothing is lost, doubled or wrong."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from faults import databases, load
from faults.checker import assert_right
from faults.instances import Instance, Recovery, agree, loaded, running
from faults.load import Load, log_of

LONGEST = 0.4  # seconds between two kills: half of the writers are to be killed while they start


def killed(instances: list[Instance], made: Load, kills: int) -> float:
    """The first two again and again, each while the other goes on; the longest time that one took to be ready again."""
    chance = random.Random(kills)
    longest = ready_again(instances[0])
    for number in range(kills):
        victim = instances[number % 2]
        time.sleep(chance.uniform(0, min(1.5 * longest, LONGEST)))
        if number % 100 == 99:
            longest = max(longest, ready_again(victim))
        else:
            victim.kill()
            victim.start()
        if number % 10 == 9:
            made.go_on(2)  # however slow the machine is, something is written in between
    made.go_on()
    return longest


def ready_again(victim: Instance) -> float:
    """Seconds."""
    victim.kill()
    since = time.monotonic()
    victim.start()
    victim.wait()
    return time.monotonic() - since


@pytest.mark.parametrize("kills", [pytest.param(5, marks=pytest.mark.quick), 1000])
def test_writers_killed_at_random_points_lose_and_double_nothing(tmp_path: Path, kills: int, recovery: Recovery) -> None:
    with running(tmp_path, "writer writer reader", SEED_FILE=str(load.seed(tmp_path))) as instances:
        with loaded(instances) as made:
            recovery.note("SQLite: writer killed with -9", killed(instances, made, kills), kills)
        agree(instances)
        assert_right(made.history(log_of(instances[0].server)), polls=kills, writes=kills // 5)


@pytest.mark.parametrize("kills", [pytest.param(3, marks=pytest.mark.quick), 200])
def test_writers_on_postgres_killed_at_random_points_lose_and_double_nothing(
    tmp_path: Path, kills: int, recovery: Recovery
) -> None:
    postgres = databases.database if kills > 10 else databases.quick_database
    with postgres() as (_, url), databases.running(tmp_path, "writer writer reader", url) as instances:
        with loaded(instances) as made:
            recovery.note("PostgreSQL: writer killed with -9", killed(instances, made, kills), kills)
        agree(instances)
        assert_right(databases.history(made, log_of(instances[0].server)), polls=kills, writes=kills // 5)
