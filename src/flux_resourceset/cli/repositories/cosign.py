"""cosign: whether images are signed and attested, as the program of that name finds. Nothing else of this package runs it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, NamedTuple

from flux_resourceset.cli import failures
from flux_resourceset.repositories.images import Answer, Question

SECONDS = 120.0  # for one answer: a registry far away takes some seconds, and a pipeline must not hang
_AT_ONCE = 4  # each waits for a registry most of the time, and registries limit how often they are asked
_PAUSE = 0.02  # seconds between two looks whether it is through: little beside the quarter of a second that it takes
_REST = 1.0  # seconds for what is left in its pipes when it is through
_MOST = 1024 * 1024  # bytes that are kept of what it says; a hundred signatures take less than a tenth
_LINE = 300  # characters of it that are repeated

# As `verify` calls signatures among all that the key has signed of an image. Its exit code is 0 for an attestation alone, too,
# whatever that attests.
_SIGNATURES = frozenset({"cosign container image signature", "https://sigstore.dev/cosign/sign/v1"})


class _Done(NamedTuple):
    code: int
    out: bytes
    err: bytes


def ask(
    questions: Iterable[Question], key: Callable[[str], bytes], environment: Mapping[str, str], timeout: float = SECONDS
) -> dict[Question, Answer]:
    """The answer to each; `key` reads the file that the policy names."""
    asked = list(dict.fromkeys(questions))
    if not asked:
        return {}
    bodies = {each.by.key: key(each.by.key) for each in asked if each.by.key is not None}
    program = shutil.which("cosign", path=environment.get("PATH"))
    if program is None:
        raise failures.usage("cosign is not on the PATH; install it, for a rule of images in fleet.yaml asks for signatures")
    stop = threading.Event()

    def answer(question: Question) -> Answer:
        command = [program, *arguments(question, files)]
        return _answer(question, command, environment, timeout, stop)

    with tempfile.TemporaryDirectory(prefix="flux-resourceset-") as folder:
        files = _written(bodies, Path(folder))
        with ThreadPoolExecutor(min(_AT_ONCE, len(asked))) as pool:
            try:
                return dict(zip(asked, pool.map(answer, asked), strict=True))
            except BaseException:  # Ctrl-C: nobody waits for the rest
                pool.shutdown(wait=False, cancel_futures=True)
                stop.set()
                raise


def arguments(question: Question, files: Mapping[str, str]) -> list[str]:
    """The command line for a question; `files` are those of the keys."""
    by = question.by
    if by.key is not None:
        trusted = ["--key", files[by.key]]
    else:
        trusted = ["--certificate-identity", by.identity or "", "--certificate-oidc-issuer", by.issuer or ""]
    log = [] if by.transparency_log else ["--insecure-ignore-tlog=true"]
    form = ["--output", "json"]
    if question.attestation is None:
        return ["verify", *trusted, *log, *form, question.image]
    return ["verify-attestation", *trusted, *log, *form, "--type", question.attestation, question.image]


def _written(keys: Mapping[str, bytes], folder: Path) -> dict[str, str]:
    """Files of our own: a name from the policy could be one that cosign does not take for a file."""
    files = {}
    for number, (name, body) in enumerate(keys.items()):
        file = folder / f"{number}.pub"
        file.write_bytes(body)
        files[name] = str(file)
    return files


# What it says


def _answer(
    question: Question, command: list[str], environment: Mapping[str, str], timeout: float, stop: threading.Event
) -> Answer:
    try:
        done = _run(command, environment, timeout, stop)
    except OSError as exc:
        return Answer(False, f"cosign cannot be started: {exc.strerror or exc}", silent=True)
    if done is None:
        return Answer(False, f"cosign did not answer within {timeout:g} s", silent=True)
    if done.code < 0:
        return Answer(False, f"cosign was ended by signal {-done.code}", silent=True)
    if done.code:
        return Answer(False, f"cosign: {_useful_line(done.err)}")
    if question.attestation is None:
        types = _found(done.out)
        if types is None:
            return Answer(False, "the answer of cosign verify is not understood", silent=True)
        if _SIGNATURES.isdisjoint(types):
            return Answer(False, f"cosign found no signature{', only attestations' if types else ''}")
    elif not done.out.lstrip().startswith(b"{"):  # the attestations, one per line, of which the first may be longer than is kept
        return Answer(False, "the answer of cosign verify-attestation is not understood", silent=True)
    return Answer(True)


def _found(out: bytes) -> set[str] | None:
    """The types of what `verify` found; None if the answer is not complete, or not the JSON that was asked for."""
    try:
        found: Any = json.loads(out) if len(out) <= _MOST else None
        types = {each["critical"]["type"] for each in found}
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return types if all(isinstance(each, str) for each in types) else None


def _useful_line(err: bytes) -> str:
    lines = [line.strip() for line in err.decode(errors="replace").splitlines()]
    told = [line for line in lines if line and not line.startswith("WARNING:")]
    line = next((line for line in told if line.startswith("Error:")), told[0] if told else "it refuses, and does not say why")
    return line.removeprefix("Error:").strip().rstrip(":")[:_LINE]


# Running it


def _run(command: list[str], environment: Mapping[str, str], timeout: float, stop: threading.Event) -> _Done | None:
    """None if it was not through in time."""
    process = subprocess.Popen(  # noqa: S603  # no shell
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environment),
        start_new_session=True,  # so that what it starts, to log in to a registry, ends with it
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Kept(process.stdout), _Kept(process.stderr)
    ends = time.monotonic() + timeout
    while process.poll() is None and time.monotonic() < ends and not stop.wait(_PAUSE):
        pass
    if process.returncode is None:
        _end(process)
        return None
    return _Done(process.returncode, out.all(), err.all())


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):  # it is through by now
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


class _Kept(threading.Thread):
    """What comes out of a pipe; the beginning is kept, and the rest taken, so that no writer waits."""

    def __init__(self, pipe: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._body = bytearray()
        self.start()

    def run(self) -> None:
        with self._pipe:
            while piece := os.read(self._pipe.fileno(), 65536):
                self._body += piece[: _MOST + 1 - len(self._body)]

    def all(self) -> bytes:
        self.join(_REST)  # something that it has started may still hold the pipe
        return bytes(self._body)
