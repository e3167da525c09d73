"""Serves bare Git repositories over HTTP on loopback, through git's own `http-backend`; it can be taken down and up again.

with git_server.serving(tmp_path) as forge:
    url = forge.create("acme-fleet-config", work_tree)   # http://127.0.0.1:PORT/acme-fleet-config.git
    git_server.commit(work_tree, {"README.md": "changed"}, "a change")
    forge.push("acme-fleet-config", work_tree)
    with forge.down(): ...
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from . import processes

EVERYTHING = ("refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*")
MAX_BODY_BYTES = 64 * 1024 * 1024  # of a push or a negotiation; the repositories here have kilobytes
BACKENDS_AT_ONCE = 8  # Flux looks at all its sources at the same time, and two cores have other work
BACKEND_SECONDS = 60.0  # it only ends a git that hangs
IDLE_SECONDS = 10.0  # what a connection may be silent; stopping waits for it

_SOMEONE = {"NAME": "Somebody", "EMAIL": "somebody@acme.example"}
_PASSED_ON = {"Content-Type": "CONTENT_TYPE", "Content-Encoding": "HTTP_CONTENT_ENCODING", "Git-Protocol": "GIT_PROTOCOL"}


class GitFailed(Exception):
    """git ended with an error; the message is what it said."""


def git(directory: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """What git says in a work tree; neither the user's nor the machine's configuration has a say."""
    command = ["git", *arguments]
    done = subprocess.run(
        command, cwd=directory, env=_environment() | dict(env or {}), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=BACKEND_SECONDS, check=False,
    )  # fmt: skip
    if done.returncode:
        raise GitFailed(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


def init(directory: Path) -> Path:
    """An empty work tree on `main`."""
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "--quiet", "--initial-branch=main")
    return directory


def commit(work_tree: Path, files: Mapping[str, str | None], message: str, *, date: str | None = None) -> str:
    """Writes the files (None removes one) and commits them alone; answers the commit. The date is for both of its dates."""
    for name, text in files.items():
        path = work_tree / name
        if text is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if files:
        git(work_tree, "add", "--all", "--", *files)
    dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date} if date else {}
    git(work_tree, "commit", "--quiet", "--allow-empty", "--only", "--message", message, "--", *files, env=dates)
    return git(work_tree, "rev-parse", "HEAD")


@dataclass(frozen=True)
class Request:
    """What a client asked, and with which headers (lower case)."""

    method: str
    path: str
    headers: Mapping[str, str]


@dataclass
class GitServer:
    """Repositories in a directory, on a port that stays theirs while the server is down."""

    directory: Path
    port: int
    requests: list[Request] = field(default_factory=list)
    _running: tuple[_Server, threading.Thread] | None = None

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}.git"

    def path(self, name: str) -> Path:
        """The bare repository itself: what is done to it there needs no server."""
        return self.directory / f"{name}.git"

    def create(self, name: str, work_tree: Path | None = None) -> str:
        """A bare repository with the branches and tags of the work tree, or an empty one; answers its URL."""
        bare = self.path(name)
        bare.mkdir(parents=True)
        git(bare, "init", "--quiet", "--bare", "--initial-branch=main")
        git(bare, "config", "http.receivepack", "true")  # else only those who have logged in may push
        if work_tree is not None:
            git(work_tree, "push", "--quiet", str(bare), *EVERYTHING)
        return self.url(name)

    def push(self, name: str, work_tree: Path, *refspecs: str, force: bool = False) -> None:
        """Pushes over HTTP: all branches and tags unless told which."""
        forced = ("--force",) if force else ()
        git(work_tree, "push", "--quiet", *forced, self.url(name), *(refspecs or EVERYTHING))

    def head(self, name: str, revision: str = "main") -> str:
        """The commit that a branch or tag of the repository names."""
        return git(self.path(name), "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")

    def asked_for(self, name: str) -> int:
        """How many times somebody looked for what is new in the repository: it grows while Flux polls."""
        return sum(each.method == "GET" and each.path.startswith(f"/{name}.git/info/refs") for each in self.requests)

    def start(self) -> None:
        """Listens, on the same port as before."""
        assert self._running is None, "it runs"
        server = _Server(self)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="git-server", daemon=True)
        thread.start()
        self._running = server, thread

    def stop(self) -> None:
        """Refuses connections from now on; whoever is being answered gets the rest of it."""
        if self._running is not None:
            server, thread = self._running
            self._running = None
            server.shutdown()
            thread.join()
            server.server_close()

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Nobody listens within the context."""
        self.stop()
        try:
            yield
        finally:
            self.start()


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[GitServer]:
    """A running server whose repositories are kept below the directory."""
    forge = GitServer(directory / "git", processes.free_ports(1)[0])
    forge.directory.mkdir(parents=True, exist_ok=True)
    forge.start()
    try:
        yield forge
    finally:
        forge.stop()


# HTTP


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close waits for the answers under way

    def __init__(self, forge: GitServer) -> None:
        super().__init__(("127.0.0.1", forge.port), _Handler)
        self.forge = forge
        self.places = threading.BoundedSemaphore(BACKENDS_AT_ONCE)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away, or says nothing, is nothing to tell."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # it only prints them


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"  # to a server of 1.0 no client sends chunks
    timeout = IDLE_SECONDS

    def do_GET(self) -> None:  # the name that http.server calls
        self._answer(b"")

    def do_POST(self) -> None:  # the name that http.server calls
        try:
            body = self._body()
        except ValueError as problem:
            self.close_connection = True
            self.send_error(400, str(problem))
            return
        self._answer(body)

    def _answer(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.forge.requests.append(Request(self.command, self.path, headers))
        with self.server.places:
            status, answered, content = _asked_backend(self, self.server.forge.directory, body)
        self.send_response(status)
        for name, value in answered.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")  # a kept connection would still be served after `stop`
        self.end_headers()
        self.wfile.write(content)

    def _body(self) -> bytes:
        """As long as its header says, or in chunks: git sends them when it does not know the length yet."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        length = int(self.headers.get("Content-Length", "0"))
        if not 0 <= length <= MAX_BODY_BYTES:
            raise ValueError(f"a body of {length} bytes")
        return self.rfile.read(length)

    def _chunks(self) -> Iterator[bytes]:
        left = MAX_BODY_BYTES
        while size := int(self.rfile.readline(80).partition(b";")[0], 16):
            if not 0 < size <= left:
                raise ValueError(f"a chunk of {size} bytes")
            left -= size
            yield self.rfile.read(size)
            self.rfile.readline(80)
        while self.rfile.readline(65537).strip():
            pass  # trailers say nothing to git

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: `requests` remembers."""


# CGI


def _asked_backend(handler: _Handler, repositories: Path, body: bytes) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and content, as git's own CGI program answers the request."""
    asked = urlsplit(handler.path)
    environment = _environment() | {
        "GIT_PROJECT_ROOT": str(repositories),
        "GIT_HTTP_EXPORT_ALL": "1",
        "REQUEST_METHOD": handler.command,
        "PATH_INFO": unquote(asked.path),
        "QUERY_STRING": asked.query,
        "CONTENT_LENGTH": str(len(body)),
        "REMOTE_ADDR": "127.0.0.1",
    }
    environment |= {variable: handler.headers[name] for name, variable in _PASSED_ON.items() if name in handler.headers}
    try:
        done = subprocess.run(
            ["git", "http-backend"], env=environment, input=body, capture_output=True, timeout=BACKEND_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return 504, {}, b""
    head, found, content = done.stdout.partition(b"\r\n\r\n")
    if not found:
        return 500, {}, done.stderr
    headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n"))
    return int(headers.pop("Status", "200").split()[0]), headers, content


def _environment() -> dict[str, str]:
    """Of any git here: the PATH, somebody who commits, and no configuration from outside."""
    someone = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _SOMEONE.items()}
    return {
        "PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0", **someone,
    }  # fmt: skip
