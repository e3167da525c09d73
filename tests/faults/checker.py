"""Whether answers and writes that were recorded while things broke can have come from a store that lost and invented nothing.

The log is replayed by the product's own merge, so that what every view said at every revision is known. A revision was made at
some time between the sending of its write and the first acknowledgement; so for any two moments there is a lowest and a highest
revision that can have been the newest between them, and an answer must be that of one of these.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from flux_resourceset import answers, errors
from flux_resourceset.changes import Entry
from flux_resourceset.fleet import Fleet
from flux_resourceset.kinds import kind_files
from flux_resourceset.kinds.model import Kinds

FLEET_LIST = "*"  # what clusters there are, as provisioners ask for it
STRICT = 0.0  # the newest of all that was acknowledged anywhere before the question, as SQLite promises
UNLIMITED = math.inf  # any state that was good once, and none older than the one before


class Poll(NamedTuple):
    """A question and its answer; without a status there was none."""

    process: str
    asked: float
    ended: float
    key: str  # "<dns>/<endpoint>", or FLEET_LIST
    status: int | None
    body: bytes = b""


class Write(NamedTuple):
    """A write with all of its attempts, which have one idempotency key; its id is the reason in the log."""

    id: str
    process: str  # that acknowledged it
    sent: float
    ended: float
    statuses: tuple[int | None, ...]

    @property
    def acknowledged(self) -> bool:
        return any(status is not None and status < 300 for status in self.statuses)

    @property
    def was_refused(self) -> bool:
        """Whoever is told no knows that nothing was done; of anything else it is unknown."""
        return all(status is not None and 400 <= status < 500 for status in self.statuses)


@dataclass
class History:
    entries: Sequence[Entry]  # the whole log, read when all was over
    polls: Sequence[Poll] = ()
    writes: Sequence[Write] = ()
    began: int = 0  # the revision before the first of these writes
    staleness: Mapping[str, float] = field(default_factory=dict)  # how old answers of a process may be, in seconds; else STRICT


def findings(history: History, kinds: Kinds | None = None) -> list[str]:
    """All that is wrong, in words; nothing if nothing is."""
    found = [*gaps(history.entries)]
    if found:  # what cannot be replayed cannot be compared
        return found
    found += accounts(history)
    replay = Replay(history.entries, {poll.key for poll in history.polls}, kinds or kind_files.load())
    return found + list(answered(history, replay, Time(history)))


def assert_right(history: History, polls: int = 1, writes: int = 1) -> None:
    """And that there was something to look at."""
    found = findings(history)
    assert not found, f"{len(found)} findings:\n" + "\n".join(found[:20])
    good = sum(poll.status == 200 for poll in history.polls)
    acknowledged = sum(write.acknowledged for write in history.writes)
    assert (good >= polls, acknowledged >= writes) == (True, True), f"{good} good polls, {acknowledged} acknowledged writes"


# The log and the writes


def gaps(entries: Sequence[Entry]) -> Iterator[str]:
    for position, entry in enumerate(entries, 1):
        if entry.revision != position:
            yield f"gap: revision {entry.revision} stands where {position} should be"
            return


def accounts(history: History) -> Iterator[str]:
    """Every acknowledged write is in the log once, one of which nobody knows at most once, and nothing that nobody sent."""
    logged = Counter(entry.reason for entry in history.entries[history.began :])
    for write in history.writes:
        count = logged.pop(write.id, 0)
        if write.acknowledged and count == 0:
            yield f"lost: {write.id} was acknowledged by {write.process}, and is not in the log"
        elif count > 1:
            yield f"doubled: {write.id} is in the log {count} times"
        elif write.was_refused and count:
            yield f"refused: {write.id} was refused with {write.statuses}, and is in the log"
    for reason in logged:
        yield f"invented: nobody sent what the log calls {reason!r}"


# The time


class Time:
    """Which revisions can have been the newest at a moment."""

    def __init__(self, history: History) -> None:
        revisions = {entry.reason: entry.revision for entry in history.entries[history.began :]}
        known = [(write, revisions[write.id]) for write in history.writes if write.id in revisions]
        self._began = history.began
        self._last = len(history.entries)
        everywhere = [(write.ended, revision) for write, revision in known if write.acknowledged]
        self._acknowledged = _Rising(everywhere, history.began)
        own: dict[str, list[tuple[float, int]]] = defaultdict(list)
        for write, revision in known:
            if write.acknowledged:
                own[write.process].append((write.ended, revision))
        self._own = {process: _Rising(pairs, history.began) for process, pairs in own.items()}
        # whatever was sent later cannot have been there, nor what came after it in the log
        self._sent = _Rising([(-write.sent, -revision) for write, revision in known], -self._last - 1)

    def lowest(self, at: float, process: str | None = None) -> int:
        """At least this was there; of a process, what it acknowledged itself."""
        if process is None:
            return self._acknowledged.until(at)
        return self._own[process].until(at) if process in self._own else self._began

    def highest(self, at: float) -> int:
        """More cannot have been there."""
        return -self._sent.until(math.nextafter(-at, -math.inf)) - 1


class _Rising:
    """The highest number up to a moment."""

    def __init__(self, pairs: Iterable[tuple[float, int]], least: int) -> None:
        ordered = sorted(pairs)
        self._times = [time for time, _ in ordered]
        self._highest = list(itertools.accumulate((number for _, number in ordered), max, initial=least))

    def until(self, time: float) -> int:
        return self._highest[bisect.bisect_right(self._times, time)]


# What should have been answered


class Span(NamedTuple):
    first: int
    last: int


class Replay:
    """What every view said at every revision."""

    def __init__(self, entries: Sequence[Entry], keys: Iterable[str], kinds: Kinds) -> None:
        fleet = Fleet(kinds)
        said: dict[str, list[tuple[int, bytes | None]]] = {key: [] for key in keys}
        for revision in range(len(entries) + 1):
            if revision:
                fleet.apply([entries[revision - 1]])
            for key, bodies in said.items():
                body = _body(fleet, key)
                if not bodies or bodies[-1][1] != body:
                    bodies.append((revision, body))
        self._spans: dict[tuple[str, bytes | None], list[Span]] = defaultdict(list)
        for key, bodies in said.items():
            for (first, body), (after, _) in zip(bodies, [*bodies[1:], (len(entries) + 1, None)], strict=True):
                self._spans[key, body].append(Span(first, after - 1))

    def spans(self, key: str, body: bytes | None) -> list[Span]:
        """The revisions at which this was what it said; None: that there is no such thing."""
        return self._spans.get((key, body), [])


def _body(fleet: Fleet, key: str) -> bytes | None:
    try:
        return fleet.list_answer(lambda _: True, ()) if key == FLEET_LIST else fleet.answer(key.encode())
    except errors.NotFound:
        return None


def answered(history: History, replay: Replay, time: Time) -> Iterator[str]:
    """Every good answer is that of a revision that can have been the newest, or of one that is not too old."""
    floors: dict[str, _Floor] = defaultdict(_Floor)
    for poll in sorted(history.polls, key=lambda poll: poll.asked):
        if poll.status is None or poll.status >= 500:
            continue
        if poll.status not in (200, 404):
            yield f"refused: {poll.process} answered {poll.status} for {poll.key}"
            continue
        body = poll.body if poll.status == 200 else None
        spans = replay.spans(poll.key, body)
        age = history.staleness.get(poll.process, STRICT)
        lowest = max(time.lowest(poll.asked - age), time.lowest(poll.asked, poll.process))
        highest, floor = time.highest(poll.ended), floors[poll.process].at(poll.asked)
        possible = [span for span in spans if span.first <= highest and span.last >= max(lowest, floor)]
        if possible:
            floors[poll.process].rise(poll.ended, max(possible[0].first, lowest, floor))
        else:
            yield _wrong(poll, spans, lowest, highest, floor)


class _Floor:
    """What a process has shown already, at a moment: it must not go back."""

    def __init__(self) -> None:
        self._shown: list[tuple[float, int]] = []  # not yet reached by those who ask
        self._lowest = 0

    def at(self, moment: float) -> int:
        """Moments only ever come later."""
        later = []
        for ended, revision in self._shown:
            if ended < moment:
                self._lowest = max(self._lowest, revision)
            else:
                later.append((ended, revision))
        self._shown = later
        return self._lowest

    def rise(self, ended: float, revision: int) -> None:
        self._shown.append((ended, revision))


def _wrong(poll: Poll, spans: Sequence[Span], lowest: int, highest: int, floor: int) -> str:
    about = f"{poll.process} for {poll.key}, with {lowest} to {highest} to choose from"
    if poll.body == answers.EMPTY:
        return f"empty: {about}"
    if not spans:
        return f"never true: {about}: {poll.status} {poll.body[:200]!r}"
    at = " and ".join(f"{span.first}–{span.last}" for span in spans[:3])
    if all(span.first > highest for span in spans):
        return f"too early: revision {at} of {about}"
    if any(span.last >= lowest for span in spans if span.first <= highest):
        return f"back: revision {at} of {about}, after {floor}"
    return f"stale: revision {at} of {about}"


# What the others ask


def recovered(history: History, since: float) -> float:
    """Seconds until polls and writes were good again, both sent after this moment."""
    polled = min((poll.ended for poll in history.polls if poll.asked >= since and poll.status == 200), default=math.inf)
    wrote = min((write.ended for write in history.writes if write.sent >= since and write.acknowledged), default=math.inf)
    return max(polled, wrote) - since
