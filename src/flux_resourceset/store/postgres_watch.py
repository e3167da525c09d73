"""Sees that something was committed to PostgreSQL: told by NOTIFY, and by a look at least every second.

In a thread and over a connection of its own, which is made again for ever when it is lost.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import select
import threading
import time
from collections.abc import Callable

import psycopg

from flux_resourceset import errors
from flux_resourceset.store.postgres_connections import PatientConnection, Target, translated_errors

log = logging.getLogger(__name__)

CHANNEL = "flux_resourceset"
LOOK_SECONDS = 0.9  # the longest time between two looks
TOLD_SECONDS = 0.5  # by which NOTIFY may come later than a look that has found the same
PATIENCE_SECONDS = 5.0  # with a look; with the pause before it less than ten
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 2.0  # between two attempts to connect

# everything that makes a difference to whoever follows
LOOK = (
    "SELECT epoch, opened, base, revision, hash, (SELECT max(number) FROM flux_resourceset.migrations)"
    " FROM flux_resourceset.identity"
    " LEFT JOIN (SELECT revision, hash FROM flux_resourceset.entries ORDER BY revision DESC LIMIT 1) AS newest ON true"
)


class Watch:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.version: object = None
        self.seen = time.monotonic()
        self.reachable = True
        self.generation = 0  # of connections: those of an older one may lead to a server that is not the one any more
        self._lock = threading.Lock()
        self._commits = 0  # of this process
        self._listeners: list[Callable[[], None]] = []
        self._closed = False
        self._said_untold = False
        self._connection: PatientConnection | None = self._connected()
        with contextlib.ExitStack() as held:
            held.callback(self._let_go)
            self._look()
            held.pop_all()
        self._read_wake, self._write_wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name="postgres-watch", daemon=True)
        self._thread.start()

    # For others, in any thread

    def on_change(self, callback: Callable[[], None]) -> None:
        self._listeners.append(callback)

    def committed(self, version: object) -> None:
        """By this very process: it counts at once."""
        with self._lock:
            self._commits += 1
            self.version, self.seen = version, time.monotonic()
        self._tell()

    def answered(self) -> None:
        self.seen = time.monotonic()

    def check(self) -> None:
        if not self.reachable:
            self.wake()
            raise errors.Unreachable(f"the database {self.target.name} cannot be reached; try again")

    def wake(self) -> None:
        """Look now: somebody has reason to think that it is gone, or back."""
        with contextlib.suppress(OSError):
            os.write(self._write_wake, b"!")

    def close(self) -> None:
        self._closed = True
        self.wake()
        self._thread.join(1)

    # In its thread

    def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._closed:
            try:
                if self._connection is None:
                    self._connection = self._connected()
                    self._look()
                    self._became(reachable=True)
                    pause = FIRST_PAUSE_SECONDS
                told = self._wait(LOOK_SECONDS)
                if not self._closed and self._look() and not told:
                    self._expect_notice()
            except Exception as exc:  # whatever it is: nobody else would notice that nobody looks any more
                if not isinstance(exc, errors.Unavailable):
                    log.exception("cannot watch the database")
                self._let_go()
                self._became(reachable=False, why=str(exc))
                self._pause(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        self._let_go()
        os.close(self._read_wake)
        os.close(self._write_wake)

    def _connected(self) -> PatientConnection:
        connection = self.target.connect(PATIENCE_SECONDS)
        connection.patience = PATIENCE_SECONDS
        connection.add_notify_handler(lambda notice: None)  # that anything came is all that they say
        try:
            with translated_errors(self.target):
                self._listen(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _listen(self, connection: PatientConnection) -> None:
        try:
            connection.script(f"LISTEN {CHANNEL}")
        except psycopg.Error as exc:  # a standby has no NOTIFY
            if exc.sqlstate is None or connection.closed:
                raise
            self._say_untold()

    def _look(self) -> bool:
        """Whether anything is new."""
        assert self._connection is not None
        while True:
            commits = self._commits
            self._connection.silence = 0.0
            found = self._found(self._connection)
            with self._lock:
                if commits != self._commits:
                    continue  # what was found may be older than what this process has committed
                changed = found != self.version
                self.version, self.seen = found, time.monotonic()
            if changed:
                self._tell()
            return changed

    def _found(self, connection: PatientConnection) -> object:
        try:
            with translated_errors(self.target):
                return connection.execute(LOOK.encode()).fetchone()
        except errors.Doubt as doubt:
            return doubt.detail  # whoever reads is told

    def _wait(self, seconds: float) -> bool:
        """For a notice, or for whoever wakes; whether there was a notice."""
        assert self._connection is not None
        with translated_errors(self.target):
            number = self._connection.fileno()
        waiting = select.poll()
        waiting.register(number, select.POLLIN)
        waiting.register(self._read_wake, select.POLLIN)
        ready = dict(waiting.poll(seconds * 1000))
        if self._read_wake in ready:
            os.read(self._read_wake, 4096)
        return number in ready

    def _expect_notice(self) -> None:
        """A pooler that hands every transaction to another server process has no NOTIFY."""
        deadline = time.monotonic() + TOLD_SECONDS
        while not self._said_untold and not self._closed:
            left = deadline - time.monotonic()
            if left <= 0:
                self._say_untold()
            elif self._wait(left):
                return

    def _say_untold(self) -> None:
        if not self._said_untold:
            self._said_untold = True
            log.warning(
                "the database passes on no NOTIFY, as standbys and poolers of transactions: what others write is seen in a second"
            )

    def _pause(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds * random.uniform(0.5, 1.0)  # noqa: S311  # so that not all come at once
        time.sleep(min(seconds, FIRST_PAUSE_SECONDS) / 2)  # however often it is woken
        waiting = select.poll()
        waiting.register(self._read_wake, select.POLLIN)
        if waiting.poll(max(0.0, deadline - time.monotonic()) * 1000):
            os.read(self._read_wake, 4096)

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _became(self, *, reachable: bool, why: str = "") -> None:
        if self.reachable == reachable:
            return
        self.generation += 1
        self.reachable = reachable
        if reachable:
            log.info("the database is back", extra={"database": self.target.name})
        else:
            log.warning("%s", why)
        self._tell()

    def _tell(self) -> None:
        for callback in self._listeners:
            callback()
