"""Several serving processes on one address: started one after the other, replaced when they die, and ended together.

They are forks of this process, which never serves, opens no store and starts no thread. It holds their listening sockets, so a
connection that waits for a worker that dies is taken by the one that comes into its place.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from flux_resourceset import errors, serving
from flux_resourceset.http.workers import Board, Worker

log = logging.getLogger(__name__)

SHORT_LIFE_SECONDS = 5.0  # a worker that lived no longer has its place taken after a delay, if it is not the first to do so
DELAYS = (0.0, 0.1, 0.2, 0.4, 0.8)  # a worker is replaced within a second, however many died before it
MAX_FAILED_STARTS = 5  # in a row: what is wrong does not go away by starting once more
END_SECONDS = serving.LAST_SECONDS + 0.5  # each worker ends by itself before; what is stuck is killed then

WRONG = 2  # the exit code of a start that cannot succeed
_ENDING = (signal.SIGTERM, signal.SIGINT)


def supervise(listener: socket.socket, count: int) -> Worker | None:
    """In the supervisor: None, once all workers have ended. In every process that it starts: which worker it is."""
    if sys.platform == "linux":
        # It was bound alone, so nobody else listens there; from now on sockets of this user may join it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    gc.collect()
    gc.freeze()  # so that what the workers share stays shared
    return _Supervisor(listener, count).run()


def _another(listener: socket.socket) -> socket.socket:
    """A socket on the same address with a queue of its own, which takes its share of the connections once it listens."""
    if sys.platform != "linux":
        return listener.dup()  # elsewhere SO_REUSEPORT does not share them out, and all take from one queue
    made = socket.socket(listener.family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if listener.family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)  # as the first one has it
    try:
        made.bind(listener.getsockname())
    except OSError as exc:
        raise errors.StartupError(f"LISTEN_ADDR cannot be used by several workers: {exc.strerror or exc}") from exc
    return made


@dataclass
class _Place:
    """Of one worker after the other; number and socket stay."""

    number: int
    listener: socket.socket
    pid: int = 0  # 0: there is none
    pulse: int = -1  # a pipe from the worker: a byte when it is up, its end when it is dead
    is_up: bool = False
    since: float = 0.0  # when it was started
    due: float = 0.0  # when the next one is to be started, if there is none
    short_lives: int = 0  # in a row


class _Supervisor:
    def __init__(self, listener: socket.socket, count: int) -> None:
        self._places = [_Place(1, listener), *(_Place(number, _another(listener)) for number in range(2, count + 1))]
        self._board = Board(count)
        self._life = os.pipe()  # its end tells the workers that this process is dead
        self._awake = os.pipe()  # the numbers of signals arrive here
        self._starts = 0
        self._was_up = False  # whether any worker ever was
        self._failed_starts = 0  # in a row
        self._end: float | None = None  # when what is stuck is killed, once all are ending
        self._failure: errors.StartupError | None = None

    def run(self) -> Worker | None:
        os.set_blocking(self._awake[1], False)
        signal.set_wakeup_fd(self._awake[1])
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # whoever started us may not have cared for children
        for number in _ENDING:
            signal.signal(number, lambda *_: None)
        while self._end is None or any(place.pid for place in self._places):
            for place in self._due():
                worker = self._start(place)
                if worker is not None:
                    return worker
            self._attend()
        if self._failure is not None:
            raise self._failure
        return None

    # Starting

    def _due(self) -> list[_Place]:
        """The first one alone until it is up: it may have to make, migrate or seed the store."""
        if self._end is not None:
            return []
        places = self._places if self._was_up else self._places[:1]
        return [place for place in places if not place.pid and place.due <= time.monotonic()]

    def _start(self, place: _Place) -> Worker | None:
        """The worker, in the new process."""
        pulse, beat = os.pipe()
        is_first, self._starts = not self._starts, self._starts + 1
        with _signals_held():
            try:
                place.pid = os.fork()
            except OSError as exc:  # too many processes, or too little memory
                os.close(pulse)
                os.close(beat)
                self._not_started(place, f"it cannot be forked: {exc.strerror}")
                return None
            if place.pid == 0:
                self._become(place, pulse)
                return Worker(place.number, is_first, self._was_up, place.listener, self._board, lambda: _tell(beat))
        os.close(beat)
        place.pulse, place.is_up, place.since = pulse, False, time.monotonic()
        log.info("worker started", extra={"worker": place.number, "pid": place.pid})
        return None

    def _become(self, own: _Place, pulse: int) -> None:
        """Let go of all that is the supervisor's or another worker's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the supervisor passes it on
        for place in self._places:
            if place is not own:
                place.listener.close()
                if place.pid:
                    os.close(place.pulse)
        for descriptor in (pulse, self._life[1], *self._awake):
            os.close(descriptor)
        threading.Thread(target=_end_with, args=(self._life[0],), daemon=True).start()

    # What happens to them

    def _attend(self) -> None:
        """Wait for the next thing that happens, and see to it."""
        places = {place.pulse: place for place in self._places if place.pid}
        ready, _, _ = select.select([self._awake[0], *places], [], [], self._patience())
        for descriptor in ready:
            if descriptor == self._awake[0]:
                for number in os.read(descriptor, 64):
                    if number in _ENDING:
                        self._signalled()
            elif os.read(descriptor, 1):
                places[descriptor].is_up = self._was_up = True
                self._failed_starts = 0
            else:
                self._died(places[descriptor])
        if self._end is not None and time.monotonic() >= self._end:
            self._send(signal.SIGKILL)

    def _patience(self) -> float | None:
        """Until the next start is due, or the end."""
        if self._end is not None:
            return max(0.0, self._end - time.monotonic())
        places = self._places if self._was_up else self._places[:1]
        waiting = [place.due - time.monotonic() for place in places if not place.pid]
        return max(0.0, min(waiting)) if waiting else None

    def _died(self, place: _Place) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(place.pid, 0)[1])
        os.close(place.pulse)
        pid, place.pid = place.pid, 0
        if self._end is not None:
            return
        if not self._was_up and code == WRONG:
            raise SystemExit(WRONG)  # the worker has said why, and that is the last word
        log.warning("worker died", extra={"worker": place.number, "pid": pid, "exit_code": code})
        if not place.is_up:
            self._not_started(place, f"its exit code is {code}")
            return
        is_short = time.monotonic() - place.since < SHORT_LIFE_SECONDS
        place.short_lives = place.short_lives + 1 if is_short else 0
        place.due = time.monotonic() + DELAYS[min(max(place.short_lives - 1, 0), len(DELAYS) - 1)]

    def _not_started(self, place: _Place, why: str) -> None:
        """Once more in a moment, but not for ever; meanwhile no connection waits for it."""
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS:
            self._failure = errors.StartupError(f"worker {place.number} did not start, after {MAX_FAILED_STARTS} tries; {why}")
            self._end_all()
            return
        place.due = time.monotonic() + DELAYS[self._failed_starts]
        former, place.listener = place.listener, _another(place.listener)
        former.close()

    # The end

    def _signalled(self) -> None:
        if self._end is None:
            self._end_all()
        else:
            self._send(serving.IN_EARNEST)

    def _end_all(self) -> None:
        self._end = time.monotonic() + END_SECONDS
        for place in self._places:
            place.listener.close()  # so that each worker's own is the last
        self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        for place in self._places:
            if place.pid:
                os.kill(place.pid, number)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Whatever arrives waits until the process knows which one it is."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _tell(beat: int) -> None:
    os.write(beat, b"!")


def _end_with(life: int) -> None:
    """A thread of a worker: when the supervisor is dead, so is the worker, as after SIGTERM."""
    os.read(life, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(END_SECONDS)
    os._exit(1)
