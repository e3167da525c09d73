"""The workers of one server, as each of them knows the others: what each has counted, on a board that all of them share."""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import socket
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from prometheus_client.core import Metric

from flux_resourceset import errors
from flux_resourceset.follower import Follower
from flux_resourceset.http import metrics

PATIENCE_SECONDS = 1.0  # for the others to tell what they counted; without an answer, what they last told counts
_LOOK_SECONDS = 0.002
_NOTE_SECONDS = 1.0  # between the notes that a worker makes unasked: so little is lost when it is killed

_HALF = 1 << 20  # of a place, packed: ten times what every route with every method and status would take
_LENGTH = struct.Struct("=I")
_WRITTEN, _TOLD = 0, 1  # at the head of a place
_TRIES = 3  # a reading goes wrong only if its place is written twice meanwhile


class Board:
    """A place for each worker, in memory that is shared because they are forks of one process, and a bell for each.

    A place has two halves, written in turn, and numbers that say how often: a worker that is killed while it writes leaves the
    half before untouched. Whoever comes into its place goes on counting from there.
    """

    def __init__(self, count: int) -> None:
        self.numbers = range(1, count + 1)
        self._places = [mmap.mmap(-1, mmap.PAGESIZE + 2 * _HALF) for _ in self.numbers]
        self._heads = [memoryview(place).cast("Q") for place in self._places]  # each number is written at once, or not
        self._bells = [os.pipe() for _ in self.numbers]
        for descriptor in (each for bell in self._bells for each in bell):
            os.set_blocking(descriptor, False)

    def told(self, number: int) -> int:
        """How often the worker told everything."""
        return self._heads[number - 1][_TOLD]

    def write(self, number: int, families: metrics.Families, is_everything: bool) -> None:
        content = zlib.compress(json.dumps([_plain(family) for family in families]).encode(), 1)
        if len(content) + _LENGTH.size > _HALF:
            return  # what was told before stays
        head = self._heads[number - 1]
        turn = head[_WRITTEN] + 1
        place, start = self._places[number - 1], _start(turn)
        _LENGTH.pack_into(place, start, len(content))
        place[start + _LENGTH.size : start + _LENGTH.size + len(content)] = content
        head[_WRITTEN] = turn
        head[_TOLD] += is_everything

    def read(self, number: int) -> metrics.Families:
        for _ in range(_TRIES):
            turn = self._heads[number - 1][_WRITTEN]
            if not turn:
                break
            place, start = self._places[number - 1], _start(turn)
            (length,) = _LENGTH.unpack_from(place, start)
            try:
                told = json.loads(zlib.decompress(place[start + _LENGTH.size : start + _LENGTH.size + length]))
            except (zlib.error, ValueError):
                continue
            return [_family(*each) for each in told]
        return []

    def ring(self, number: int) -> None:
        try:
            os.write(self._bells[number - 1][1], b"!")
        except BlockingIOError:
            pass  # it was rung often enough

    def bell(self, number: int) -> int:
        return self._bells[number - 1][0]


def _start(turn: int) -> int:
    return mmap.PAGESIZE + turn % 2 * _HALF


def _plain(family: Metric) -> list[Any]:
    return [family.name, family.documentation, family.type, [sample[:3] for sample in family.samples]]


def _family(name: str, documentation: str, type: str, samples: list[tuple[str, dict[str, str], float]]) -> Metric:
    family = Metric(name, documentation, type)
    for sample in samples:
        family.add_sample(*sample)
    return family


class Worker(NamedTuple):
    """What a process that is one of several is told."""

    number: int
    is_first: bool  # of all, and the first time
    follows_another: bool  # one that was up: the store is there, or it was lost
    listener: socket.socket
    board: Board
    tell_up: Callable[[], None]


class Siblings:
    """The board as one worker uses it: it writes when it is asked to, and asks the others when it is asked for everything."""

    def __init__(self, worker: Worker, measures: metrics.Metrics, follower: Follower) -> None:
        self._board, self._number = worker.board, worker.number
        self._others = [number for number in self._board.numbers if number != self._number]
        self._metrics, self._follower = measures, follower
        self._telling: set[asyncio.Task[None]] = set()
        self._noted: metrics.Families = []
        measures.carried = metrics.lasting(self._board.read(self._number))
        measures.gather = self._gather

    def attend(self) -> None:
        self._tell()
        asyncio.get_running_loop().add_reader(self._board.bell(self._number), self._rung)
        self._note_regularly()

    def _tell(self) -> metrics.Families:
        families = self._metrics.collect()
        self._board.write(self._number, families, is_everything=True)
        return families

    def _note_regularly(self) -> None:
        asyncio.get_running_loop().call_later(_NOTE_SECONDS, self._note_regularly)
        self.note()

    def note(self) -> None:
        """What it has counted, without what would have to be looked up in the fleet."""
        counted = self._metrics.counted()
        if counted != self._noted:
            self._noted = counted
            self._board.write(self._number, counted, is_everything=False)

    def _rung(self) -> None:
        os.read(self._board.bell(self._number), mmap.PAGESIZE)
        task = asyncio.ensure_future(self._tell_what_is())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell_what_is(self) -> None:
        try:
            await self._follower.catch_up()
        except errors.Unavailable:
            pass  # that is what the age of the last sight tells
        self._tell()

    async def _gather(self) -> list[metrics.Families]:
        asked = {number: often for number in self._others if (often := self._board.told(number))}  # the rest are not up yet
        for number in asked:
            self._board.ring(number)
        silent, end = set(asked), asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while silent and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_LOOK_SECONDS)
            silent = {number for number in silent if self._board.told(number) == asked[number]}
        told = {number: self._board.read(number) for number in asked}
        own = self._tell()  # and nothing newer: what was told once is not lost with whoever told it
        return [own, *(metrics.lasting(told[number]) if number in silent else told[number] for number in asked)]
