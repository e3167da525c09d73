"""The examples of the documentation, carried out against a real server; CONTRIBUTING.md has the rules."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx

import live
from cli import command as command_line

_BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COPIED = re.compile(r"^<!-- copied: (\S+) -->$", re.MULTILINE)  # a file of the repository that a page has without showing it
_TERMINAL = re.compile(r"^<!-- terminal: (\d+) columns -->$", re.MULTILINE)  # the commands of a page run on a terminal
_PROGRESS = re.compile(r"^.*\r\x1b\[K", re.MULTILINE)  # what a terminal shows for a while, and then does not any more
ANYTHING = "…"
REFUSED = ' || echo "exit $?"'  # at the end of a command that is meant to fail
_PROGRAMS = {"flux-resourceset": "flux_resourceset.server", "flux-resourceset-cli": "flux_resourceset.cli"}
_TOOLS = {"python3": sys.executable, "sed": "sed", "rm": "rm", "git": "git"}  # for the files that a page works on
_COMMITTER = {  # who commits in the examples, and nothing else of whoever runs them
    f"GIT_{name}": value
    for role in ("AUTHOR", "COMMITTER")
    for name, value in ((f"{role}_NAME", "Dev"), (f"{role}_EMAIL", "dev@acme.example"), ("CONFIG_GLOBAL", os.devnull))
}

_OLDER_PHRASES = {413: "Request Entity Too Large", 422: "Unprocessable Entity"}  # which Python 3.13 has renamed


class Step(NamedTuple):
    line: int
    command: str
    expected: str


def steps(page: str) -> list[Step]:
    """The commands of a page, each with what must come out."""
    found: list[Step] = []
    for block in _BLOCK.finditer(page):
        if block[1] != "console":
            continue
        first = page.count("\n", 0, block.start(3)) + 1
        lines = enumerate(block[3].splitlines(), start=first)
        for number, line in lines:
            if line.startswith("$ "):
                command = line.removeprefix("$ ")
                while not _is_whole(command):
                    command = command.removesuffix("\\") + "\n" + next(lines)[1]
                found.append(Step(number, command, ""))
            else:
                assert found, f"line {number}: output without a command"
                found[-1] = found[-1]._replace(expected=f"{found[-1].expected}\n{line}".lstrip("\n"))
    return found


def _is_whole(command: str) -> bool:
    """Whether a shell would begin: no backslash at the end, no open quotation."""
    try:
        shlex.split(command)
    except ValueError:
        return False
    return not command.endswith("\\")


def files(page: str) -> dict[str, str]:
    """The files that a page shows: the server of its examples has them in its directory."""
    copied = {f"resources/{Path(name).name}": (live.ROOT / name).read_text(encoding="utf-8") for name in _COPIED.findall(page)}
    return copied | {block[2]: block[3] for block in _BLOCK.finditer(page) if block[2]}


def settings(text: str) -> dict[str, str]:
    """The variables of a file with a NAME=value on each line."""
    return dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))


class Session:
    """A server with the demo data, or with the seed.json, the resources/ and the server.env that the page shows."""

    def __init__(self, directory: Path, page: str) -> None:
        self.directory = self.here = directory
        on_terminal = _TERMINAL.search(page)
        self.columns = int(on_terminal[1]) if on_terminal else None
        shown = files(page)
        for name, text in shown.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        tokens = directory / "tokens"
        tokens.write_text(f"demo-reader read {live.READ}\ndemo-writer write {live.WRITE}\n")
        tokens.chmod(0o600)
        seed = directory / "seed.json" if "seed.json" in shown else live.ROOT / "data" / "seed.json"
        resources = str(directory / "resources") if any(name.startswith("resources/") for name in shown) else ""
        self.environment = live.environment(
            directory,
            AUTH_TOKEN="",
            CRUD_AUTH_TOKEN="",
            TOKENS_FILE=str(tokens),
            SEED_FILE=str(seed),
            RESOURCES_DIR=resources,
            **settings(shown.get("server.env", "")),
        )
        self.server = live.Server(directory, self.environment)

    def run(self, command: str) -> str:
        for name, value in (
            ("$FLUX_API_URL", self.server.url),
            ("$FLUX_API_TOKEN", live.READ),
            ("$FLUX_API_WRITE_TOKEN", live.WRITE),
        ):
            command = command.replace(name, value)
        is_refused = command.endswith(REFUSED)
        program, *arguments = shlex.split(command.removesuffix(REFUSED))
        if program == "curl":
            return _curl(arguments)
        if program == "cd":
            self.here = (self.here / arguments[0]).resolve()
            return ""
        if arguments[-2:-1] == [">"]:
            return self._written(program, arguments)
        done = self._done(program, arguments)
        assert (done.code != 0) == is_refused, f"exit {done.code}\n{done.out}{done.err}"
        return f"{done.out}{done.err}exit {done.code}\n" if is_refused else done.out or done.err

    def _written(self, program: str, arguments: list[str]) -> str:
        """What `> FILE` leaves to see: the messages."""
        done = self._done(program, arguments[:-2], is_piped=True)
        assert done.code == 0, done
        (self.here / arguments[-1]).write_text(done.out, encoding="utf-8")
        return done.err

    def _done(self, program: str, arguments: list[str], *, is_piped: bool = False) -> command_line.Done:
        environment = {**self.environment, **self._client_environment()}
        if program == "flux-resourceset-cli" and self.columns is not None and not is_piped:
            terminal = command_line.Cli(self.directory, **environment, NO_COLOR="1", PAGER="cat")
            shown = terminal.on_terminal(*arguments, piped={"cwd": self.here}, size=(self.columns, 1000))
            return shown._replace(out=_PROGRESS.sub("", shown.out))
        known = {**_TOOLS, **dict.fromkeys(_PROGRAMS, sys.executable)}
        assert program in known, f"examples run curl, {', '.join(known)}, not {program}"
        own = ["-m", _PROGRAMS[program]] if program in _PROGRAMS else []
        whole = [known[program], *own, *arguments]
        done = subprocess.run(whole, cwd=self.here, env=environment, capture_output=True, text=True, timeout=60)
        return command_line.Done(done.returncode, done.stdout, done.stderr)

    def _client_environment(self) -> dict[str, str]:
        return {
            "FLUX_API_URL": self.server.url,
            "FLUX_API_TOKEN": live.READ,
            "FLUX_API_WRITE_TOKEN": live.WRITE,
            "HOME": str(self.directory),
            **_COMMITTER,
            "PATH": os.defpath,  # without a flux-operator CLI, which would take the place of the engine that is shown
        }


@contextlib.contextmanager
def session(directory: Path, page: str) -> Iterator[Session]:
    found = Session(directory, page)
    try:
        found.server.wait("/ready")
        yield found
    finally:
        if found.server.process.poll() is None:
            found.server.stop()


def _curl(arguments: list[str]) -> str:
    """What curl would print, as far as the examples use it."""
    method, body, url, shows_head = None, None, None, False
    headers = {"Accept-Encoding": "identity"}
    words = iter(arguments)
    for word in words:
        match word:
            case "-s":
                pass
            case "-i":
                shows_head = True
            case "-X":
                method = next(words)
            case "-d":
                body = next(words)
                headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
            case "-H":
                name, _, value = next(words).partition(":")
                headers[name] = value.strip()
            case _:
                assert not word.startswith("-"), f"curl {word} is not known to the examples"
                assert url is None, f"curl gets two addresses: {url} and {word}"
                url = word
    assert url is not None
    answer = httpx.request(method or ("POST" if body else "GET"), url, headers=headers, content=body, timeout=30)
    if not shows_head:
        assert answer.is_success, f"{answer.status_code}: {answer.text}\n(show the status with -i if the refusal is meant)"
        return answer.text
    phrase = _OLDER_PHRASES.get(answer.status_code, answer.reason_phrase)
    head = [f"HTTP/1.1 {answer.status_code} {phrase}", *(f"{n}: {v}" for n, v in answer.headers.multi_items())]
    return "\n".join(head) + "\n\n" + answer.text


# Comparing


def difference(expected: str, actual: str) -> str | None:
    """Where an output is not what the page shows, or None. Nothing shown: nothing compared."""
    expected = expected.rstrip()
    if expected.startswith("HTTP/1.1 "):
        shown, _, expected = expected.partition("\n\n")
        head, _, actual = actual.partition("\n\n")
        found = _heads_differ(shown, head)
        if found or not expected:
            return found
    if not expected:
        return None
    if expected[0] in "{[":
        return _values_differ(json.loads(_quoted(expected)), json.loads(actual), "")
    return _lines_differ(expected, actual)


def _lines_differ(expected: str, actual: str) -> str | None:
    """Every line that is shown must be there, in this order; those that are not shown may be."""
    left = iter(actual.splitlines())
    for line in expected.splitlines():
        if not any(_matches(line, other) for other in left):
            return f"{line!r} is not among, or not in its place in\n{actual}"
    return None


def _heads_differ(expected: str, actual: str) -> str | None:
    """The same of a status line and headers, whose order does not matter."""
    lines = actual.lower().splitlines()
    missing = (line for line in expected.lower().splitlines() if not any(_matches(line, other) for other in lines))
    return next((f"{line!r} is not among {lines}" for line in missing), None)


def _matches(shown: str, line: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, shown.split(ANYTHING))), line) is not None


def _quoted(text: str) -> str:
    """JSON from JSON in which a bare … stands for any value, or for further members or items."""
    result, inside = "", [""]
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|[^"]', text):
        if token in "{[":
            inside.append(token)
        elif token in "}]":
            inside.pop()
        if token == ANYTHING:
            is_member = inside[-1] == "{" and not result.rstrip().endswith(":")
            token = f'"{ANYTHING}": "{ANYTHING}"' if is_member else f'"{ANYTHING}"'
        result += token
    return result


def _values_differ(expected: Any, actual: Any, path: str) -> str | None:
    if expected == ANYTHING:
        return None
    if isinstance(expected, dict) and isinstance(actual, dict):
        names = expected.keys() - {ANYTHING}
        if names != actual.keys() and not (ANYTHING in expected and names <= actual.keys()):
            return f"{path or '/'} has the members {sorted(actual)}, not {sorted(expected)}"
        pairs = [(name, expected[name], actual[name]) for name in sorted(names)]
    elif isinstance(expected, list) and isinstance(actual, list):
        more = expected[-1:] == [ANYTHING]
        wanted = expected[:-1] if more else expected
        if len(wanted) != len(actual) and not (more and len(wanted) < len(actual)):
            return f"{path or '/'} has {len(actual)} items, not {len(wanted)}"
        pairs = [(str(position), *both) for position, both in enumerate(zip(wanted, actual, strict=False))]
    else:
        return None if expected == actual else f"{path or '/'} is {actual!r}, not {expected!r}"
    return next(filter(None, (_values_differ(one, other, f"{path}/{name}") for name, one, other in pairs)), None)
