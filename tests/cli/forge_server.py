"""A forge on loopback: it tells what a test has put at its paths, and remembers what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest

from flux_resourceset.cli import failures

TOKEN = "t0p-s3cret"
HEAD, OLD, OTHER = "a" * 40, "b" * 40, "c" * 40


class Asked(NamedTuple):
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]


class Told(NamedTuple):
    value: Any
    status: int = 200
    headers: Mapping[str, str] = {}


class Forge:
    """A server that knows some paths: what it tells at each, or how it finds out."""

    def __init__(self) -> None:
        self.pages: dict[str, Told | Callable[[Asked], Told]] = {}
        self.asked: list[Asked] = []
        self.url = ""

    def answer(self, path: str, headers: Mapping[str, str]) -> Told:
        parts = urllib.parse.urlsplit(path)
        asked = Asked(parts.path, dict(urllib.parse.parse_qsl(parts.query)), headers)
        self.asked.append(asked)
        page = self.pages.get(parts.path, Told({"message": f"Not Found {TOKEN}"}, 404))
        return page(asked) if callable(page) else page

    @property
    def github(self) -> dict[str, str]:
        return {"GITHUB_API_URL": f"{self.url}/api/v3", "GITHUB_TOKEN": TOKEN}

    @property
    def gitlab(self) -> dict[str, str]:
        return {"CI_API_V4_URL": f"{self.url}/api/v4", "GITLAB_TOKEN": TOKEN}


@contextlib.contextmanager
def running() -> Iterator[Forge]:
    forge = Forge()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            told = forge.answer(self.path, {name.lower(): value for name, value in self.headers.items()})
            body = told.value if isinstance(told.value, bytes) else json.dumps(told.value).encode()
            self.send_response(told.status)
            for name, value in {"Content-Length": str(len(body)), **told.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client has seen enough
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    forge.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield forge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def paged(items: list[Any], size: int, *, links: bool = True, numbers: bool = False) -> Callable[[Asked], Told]:
    """A list in pages of a size that nobody can enlarge."""

    def tell(asked: Asked) -> Told:
        page = int(asked.query.get("page", "1"))
        more = page * size < len(items)
        headers = {}
        if links and more:
            own = f"http://{asked.headers['host']}{asked.path}"
            headers["Link"] = (
                f'<{own}?page=1>; rel="first", <{own}?per_page={size}&page={page + 1}>; rel="next", <{own}>; rel="last"'
            )
        if numbers:
            headers["X-Next-Page"] = str(page + 1) if more else ""
        return Told(items[(page - 1) * size : page * size], 200, headers)

    return tell


def refusal(ask: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(failures.Failure) as ended:
        ask()
    (line,) = ended.value.lines
    assert TOKEN not in line
    assert "\n" not in line
    return ended.value.code, line
