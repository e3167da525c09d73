"""The checker itself: of a history that is right it says nothing, and whatever is wrong it finds."""

from __future__ import annotations

import copy
import functools
import json
import math
import random
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import live
from faults import checker, liar
from faults.checker import UNLIMITED, History, Poll, Write
from faults.instances import Instance
from faults.load import CLUSTERS, ENDPOINT, KEYS, SHARED, VISITOR, Load, cluster, log_of, seed
from flux_resourceset import answers, fleet
from flux_resourceset.changes import Change, Document, Entry, Operation
from flux_resourceset.kinds import kind_files

KINDS = kind_files.load()
ONE, TWO = (f"{id}.example.com/{ENDPOINT}" for id in CLUSTERS[:2])
GONE = f"{VISITOR}.example.com/{ENDPOINT}"


def entry(revision: int, kind: str, id: str, before: Document | None, after: Document | None) -> Entry:
    operation: Operation = "create" if before is None else "update" if after is not None else "delete"
    made = Change(kind, id, operation, before, after)
    return Entry(revision, "2026-01-31T12:00:00.000000Z", "tester", None, None, f"w{revision}", False, (made,))


def log(length: int) -> list[Entry]:
    """A seed, and then something of one cluster and of another in turn; the visitor goes with the last but one."""
    component = {"id": SHARED, "component_path": "x", "oci_url": "oci://a.example.com/x", "oci_tag": "1.0.0"}
    entries = [entry(1, "platform_components", SHARED, None, component)]
    documents: dict[str, Document] = {}
    for id in (*CLUSTERS, VISITOR):
        documents[id] = cluster(id, "0")
        entries.append(entry(len(entries) + 1, "clusters", id, None, documents[id]))
    while len(entries) < length:
        revision = len(entries) + 1
        id = VISITOR if revision == length - 1 else CLUSTERS[revision % 2]
        after = None if id == VISITOR else cluster(id, str(revision))
        entries.append(entry(revision, "clusters", id, documents[id], after))
        documents[id] = after or {}
    return entries


BEGAN = 5  # the seed
LOG = log(20)


@functools.cache
def body(key: str, revision: int) -> bytes:
    known = fleet.Fleet(KINDS)
    known.apply(LOG[:revision])
    return known.list_answer(lambda _: True, ()) if key == checker.FLEET_LIST else known.answer(key.encode())


def poll(asked: float, key: str, revision: int, process: str = "a", ended: float | None = None) -> Poll:
    return Poll(process, asked, asked + 0.2 if ended is None else ended, key, 200, body(key, revision))


def right() -> History:
    """A write each second, that takes half of one; and in the pauses every process says what is there."""
    writes = [Write(f"w{each.revision}", "a", each.revision, each.revision + 0.5, (200,)) for each in LOG[BEGAN:]]
    polls = [poll(each.revision + 0.6, key, each.revision, process) for each in LOG[BEGAN:] for process in "ab" for key in KEYS]
    return History(LOG, polls, writes, BEGAN)


def found(history: History) -> list[str]:
    """The first word of each finding."""
    return [text.partition(":")[0] for text in checker.findings(history, KINDS)]


@pytest.mark.quick
def test_a_history_that_is_right_is_right() -> None:
    assert found(right()) == []
    checker.assert_right(right(), polls=100, writes=10)


@pytest.mark.quick
def test_a_history_in_which_nothing_happened_proves_nothing() -> None:
    with pytest.raises(AssertionError, match="0 good polls"):
        checker.assert_right(History(LOG, began=len(LOG)))


@pytest.mark.quick
def test_answers_of_the_time_of_a_write_may_be_of_before_or_after_it() -> None:
    history = right()
    during = [poll(12.1, key, revision, "c") for key in KEYS for revision in (11, 12)]
    history.polls = [*history.polls, *during[:1], *during[3:]]  # each key is asked at once: none is before another
    assert found(history) == []


@pytest.mark.quick
def test_failures_are_fine() -> None:
    history = right()
    history.polls = [*history.polls, Poll("a", 12.6, 12.7, ONE, 503, b"{}"), Poll("a", 12.6, 40, ONE, None)]
    history.writes = [*history.writes, Write("w90", "", 12.0, 12.5, (None, 503)), Write("w91", "", 12.0, 12.5, (409,))]
    assert found(history) == []


# What is wrong


def planted(change: Callable[[History], None]) -> list[str]:
    history = copy.copy(right())
    change(history)
    return found(history)


def also(*polls: Poll) -> Callable[[History], None]:
    def change(history: History) -> None:
        history.polls = [*history.polls, *polls]

    return change


@pytest.mark.quick
@pytest.mark.parametrize("process", ["a", "c"])
def test_a_stale_answer_is_found(process: str) -> None:
    assert planted(also(poll(14.6, ONE, 11, process))) == ["stale"]


@pytest.mark.quick
def test_an_answer_from_the_future_is_found() -> None:
    assert planted(also(poll(10.6, TWO, 13, "c"))) == ["too early"]


@pytest.mark.quick
def test_an_empty_list_is_found_while_its_cluster_is_there() -> None:
    assert planted(also(Poll("c", 12.6, 12.7, ONE, 200, answers.EMPTY))) == ["empty"]
    assert planted(also(Poll("c", 12.6, 12.7, GONE, 200, answers.EMPTY))) == ["empty"]
    assert planted(also(Poll("c", 20.6, 20.7, GONE, 200, answers.EMPTY))) == []


@pytest.mark.quick
def test_an_answer_that_was_never_true_is_found() -> None:
    torn = json.loads(body(ONE, 14))
    torn["inputs"][0]["patches"]["n"] = "15"
    assert planted(also(Poll("c", 14.6, 14.7, ONE, 200, json.dumps(torn).encode()))) == ["never true"]
    assert planted(also(Poll("c", 14.6, 14.7, ONE, 404))) == ["stale"]  # before there was anything, it was true
    assert planted(also(Poll("c", 14.6, 14.7, ONE, 200, body(ONE, 14)[:-1]))) == ["never true"]


@pytest.mark.quick
def test_a_refusal_of_a_poll_is_found() -> None:
    assert planted(also(Poll("c", 14.6, 14.7, ONE, 401))) == ["refused"]


@pytest.mark.quick
def test_a_process_that_may_be_stale_must_not_go_back() -> None:
    def change(history: History) -> None:
        history.staleness = {"c": UNLIMITED}
        also(poll(17.6, ONE, 14, "c"), poll(18.6, TWO, 13, "c"))(history)

    assert planted(change) == []  # at 14 another cluster said what it said at 13

    def back(history: History) -> None:
        history.staleness = {"c": UNLIMITED}
        also(poll(17.6, ONE, 14, "c"), poll(18.6, TWO, 11, "c"))(history)

    assert planted(back) == ["back"]

    def beside(history: History) -> None:
        """Two questions at the same time: nobody can say which was answered first."""
        history.staleness = {"c": UNLIMITED}
        also(poll(17.6, ONE, 14, "c", ended=18.7), poll(18.6, TWO, 11, "c"))(history)

    assert planted(beside) == []


@pytest.mark.quick
def test_a_process_that_may_be_stale_is_not_without_end() -> None:
    for staleness, expected in ((4.0, []), (2.0, ["stale"])):

        def change(history: History, staleness: float = staleness) -> None:
            history.staleness = {"c": staleness}
            also(poll(14.6, ONE, 10, "c"))(history)

        assert planted(change) == expected


@pytest.mark.quick
def test_a_process_that_may_be_stale_knows_its_own_writes() -> None:
    def change(history: History) -> None:
        history.staleness = {"a": UNLIMITED}
        history.polls = [poll(14.6, ONE, 11, "a")]

    assert planted(change) == ["stale"]


@pytest.mark.quick
def test_a_lost_write_is_found() -> None:
    def change(history: History) -> None:
        history.writes = [*history.writes, Write("w99", "a", 30, 30.5, (None, 503, 200))]

    assert planted(change) == ["lost"]


@pytest.mark.quick
def test_a_doubled_write_is_found() -> None:
    last = LOG[-1].changes[0]
    again = replace_reason(entry(21, "clusters", last.id, last.after, last.after), "w20")

    def change(history: History) -> None:
        history.entries = [*LOG, again]

    assert "doubled" in planted(change)


@pytest.mark.quick
def test_a_write_that_was_refused_and_done_is_found() -> None:
    def change(history: History) -> None:
        history.writes = [write._replace(statuses=(409,)) if write.id == "w20" else write for write in history.writes]

    assert planted(change) == ["refused"]


@pytest.mark.quick
def test_a_write_that_nobody_sent_is_found() -> None:
    def change(history: History) -> None:
        history.writes = history.writes[1:]

    assert "invented" in planted(change)


@pytest.mark.quick
@pytest.mark.parametrize("missing", [0, 7, 12])
def test_a_gap_is_found(missing: int) -> None:
    def change(history: History) -> None:
        history.entries = LOG[:missing] + LOG[missing + 1 :]

    assert planted(change) == ["gap"]


@pytest.mark.quick
def test_entries_in_another_order_are_found() -> None:
    def change(history: History) -> None:
        history.entries = [*LOG[:10], LOG[11], LOG[10], *LOG[12:]]

    assert planted(change) == ["gap"]


def replace_reason(entry: Entry, reason: str) -> Entry:
    return Entry(entry.revision, entry.time, entry.actor, None, None, reason, False, entry.changes)


@pytest.mark.quick
@pytest.mark.parametrize("number", range(20))
def test_any_one_answer_in_the_place_of_one_of_another_state_is_found(number: int) -> None:
    """Where the two states differ in what they say, that is."""
    chance = random.Random(number)
    history = right()
    position = chance.randrange(len(history.polls))
    there = history.polls[position]
    others = {body(there.key, revision) for revision in range(BEGAN, len(LOG) + 1)} - {there.body}
    for other in others:
        polls = [*history.polls]
        polls[position] = there._replace(body=other)
        assert found(replace(history, polls=polls)), other


@pytest.mark.quick
def test_the_time_to_recover_is_that_of_polls_and_writes() -> None:
    history = right()
    assert checker.recovered(history, 12.6) == pytest.approx(0.9)  # the write of 13 ends later than the poll of 12.6
    assert checker.recovered(history, 21) == math.inf


# Real servers that lie


@pytest.mark.parametrize("fault", liar.FAULTS)
def test_a_fault_that_is_planted_into_a_real_server_is_found(tmp_path: Path, fault: str) -> None:
    program = (sys.executable, str(Path(liar.__file__)), fault)
    honest = Instance(tmp_path, "writer-0", {"SEED_FILE": str(seed(tmp_path))})
    lying = Instance(tmp_path, "writer-1", {}, program)
    try:
        honest.wait()
        lying.wait()
        made = Load([honest.target, lying.target], [honest.target, lying.target])
        with made:
            live.until(lambda: len(made.writes) > 100)
        findings = found(made.history(log_of(honest.server)))
    finally:
        honest.server.end()
        lying.server.end()
    assert fault in findings
