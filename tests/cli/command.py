"""flux-resourceset-cli as a process: its streams in pipes, or on a terminal of its own."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import live
import zygote

PROGRAM = [str(Path(sys.executable).parent / "flux-resourceset-cli")]


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """The errors, each on its line; a traceback would not look like that."""
        assert "Traceback" not in self.err, self.err
        return [line.removeprefix("error: ") for line in self.err.splitlines() if line.startswith("error: ")]


class Cli:
    """The command with an environment of its own: nothing from the outside but the PATH."""

    def __init__(self, home: Path, url: str | None = None, **variables: str) -> None:
        self.home = home
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), **zygote.MEASURED, **variables}
        if url is not None:
            self.environment |= {"FLUX_API_URL": url, "FLUX_API_TOKEN": live.READ, "FLUX_API_WRITE_TOKEN": live.WRITE}

    def but(self, **variables: str | None) -> Cli:
        """The same with other variables; None takes one away."""
        other = Cli(self.home)
        merged = {**self.environment, **variables}
        other.environment = {name: value for name, value in merged.items() if value is not None}
        return other

    def __call__(self, *words: str, stdin: str | bytes = "") -> Done:
        raw = stdin.encode() if isinstance(stdin, str) else stdin
        if zygote.can_start(self.environment):
            done = zygote.run(zygote.CLI, words, self.environment, given=raw)
        else:
            done = subprocess.run([*PROGRAM, *words], input=raw, capture_output=True, env=self.environment, timeout=60)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *words: str, stdin: str = "") -> Done:
        done = self(*words, stdin=stdin)
        assert done.code == 0, done
        return done

    def refused(self, code: int, *words: str, stdin: str | bytes = "") -> list[str]:
        """The lines of a command that must end with this code."""
        done = self(*words, stdin=stdin)
        assert done.code == code, done
        assert done.lines, done
        return done.lines

    def shell(self, script: str) -> Done:
        """A script that finds the command by its name."""
        environment = {**self.environment, "PATH": f"{Path(PROGRAM[0]).parent}{os.pathsep}{self.environment['PATH']}"}
        done = subprocess.run(
            ["sh", "-ec", script], env=environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PROGRAM, *words], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def on_terminal(
        self,
        *words: str,
        answers: str = "",
        piped: Mapping[str, Any] | None = None,
        watch: Callable[[str], object] = lambda shown: None,  # is given all that was shown so far, whenever it is more
        size: tuple[int, int] | None = None,  # columns and lines; a terminal that has none cuts nothing and pages nothing
    ) -> Done:
        """Run with a terminal for all three streams; `err` is empty, for a terminal shows both in one.

        Text that `watch` gives is typed.
        """
        master, slave = pty.openpty()
        if size is not None:
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        environment = {**self.environment, "TERM": "xterm"}
        with subprocess.Popen(
            [*PROGRAM, *words], env=environment, stdin=slave, stdout=slave, stderr=slave, **(piped or {})
        ) as process:
            os.close(slave)
            os.write(master, answers.encode())
            shown = _read(master, process, watch)
            os.close(master)
        return Done(process.returncode, shown.replace("\r\n", "\n"), "")


def _read(master: int, process: subprocess.Popen[bytes], watch: Callable[[str], object]) -> str:
    shown = b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.05)
        if ready:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            shown += chunk
            typed = watch(shown.decode(errors="replace"))  # its end may be half a character
            if isinstance(typed, str):
                os.write(master, typed.encode())
        elif process.poll() is not None:
            break
    process.wait(10)
    return shown.decode()
