"""The HTTP client of the command line: requests with the right token, repeated when that is safe, refusals as exceptions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol

from flux_resourceset.client import wire
from flux_resourceset.client.replies import Progress, Reply, Unreachable

__all__ = ["Answer", "Client", "Problem", "Progress", "Role", "Trace", "Unreachable", "not_understood", "path"]

Role = Literal["read", "write"]
Trace = Callable[[str], None]

READ_BYTES = 1024 * 1024  # what a server takes for a dry run with a token that only reads; with the other it takes more
_RETRIES = 4  # three seconds in all, while a server restarts


_OF_PROXIES = (403, 407, 502, 503, 504)  # how a proxy says that it will not, or cannot


class Problem(Exception):
    """An answer that refuses: its status and, when it is problem+json, what it says."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(body.get("detail") or f"status {status}")
        self.status = status
        self.body = body

    @property
    def code(self) -> str:
        return str(self.body.get("code", ""))

    @property
    def index(self) -> int | None:
        """Which operation of a batch it is about."""
        index = self.body.get("index")
        return index if isinstance(index, int) else None


class Answer(Reply):
    @property
    def is_json(self) -> bool:
        return "json" in self.headers.get("content-type", "").lower()

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            kind = self.headers.get("content-type", "no content type")
            raise Unreachable(f"the server answered {self.status} with {kind}, where JSON was due; is it a proxy?") from None

    def object(self, **members: type) -> dict[str, Any]:
        """A JSON object that has these members, each of its type."""
        value = self.json()
        if not isinstance(value, dict) or not all(isinstance(value.get(name), kind) for name, kind in members.items()):
            raise not_understood("it is not the object that was due")
        return value

    def objects(self) -> list[dict[str, Any]]:
        """A JSON array of objects."""
        values = self.json()
        if not isinstance(values, list) or not all(isinstance(item, dict) for item in values):
            raise not_understood("it is not the list that was due")
        return values


def decoded(text: str) -> dict[str, Any]:
    """A JSON object that came otherwise than as an answer."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise not_understood("it is not the object that was due")
    return value


def not_understood(why: str) -> Unreachable:
    return Unreachable(f"the server's answer is not understood: {why}; is it the URL of this API?")


_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def _quoted(text: str) -> str:
    return "".join(chr(byte) if byte in _UNRESERVED else f"%{byte:02X}" for byte in text.encode())


def path(*segments: str) -> str:
    return "/" + "/".join(map(_quoted, segments))


def _query(given: Mapping[str, Any]) -> str:
    return "&".join(f"{_quoted(name)}={_quoted(str(value))}" for name, value in given.items())


class LastWrite(Protocol):
    """What is remembered of the last write to a server, beyond this client."""

    def revision(self) -> int | None: ...

    def wrote(self, revision: int) -> None: ...

    def is_behind(self) -> None: ...


class Client:
    """One server, with the tokens for it."""

    def __init__(
        self,
        url: str,
        tokens: Mapping[Role, str],
        *,
        timeout: float = 60.0,
        deadline: bool = False,  # the timeout is for everything together, not for each step
        headers: Mapping[str, str] | None = None,  # of every write
        trace: Trace | None = None,
        progress: Progress | None = None,
        environment: Mapping[str, str] | None = None,  # may name a proxy, and certificate authorities
        last_write: LastWrite | None = None,  # than which nothing that is read may be older
    ) -> None:
        self.url = url.rstrip("/")
        self._tokens = tokens
        self._timeout = timeout
        self._ends = time.monotonic() + timeout if deadline else None
        self._headers = headers if headers is not None else {}  # as they are when something is sent
        self._trace = trace
        self._last_write = last_write
        self._connection = wire.Connection(self.url, self._left, progress, environment or {})

    def _left(self) -> float:
        return self._timeout if self._ends is None else max(self._ends - time.monotonic(), 0.001)

    def get(self, path: str, query: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None) -> Answer:
        least = self._least()
        answer = self._request("GET", path, query, b"", {**least, **(headers or {})}, "read")
        if least and self._is_behind(answer):
            answer = self._request("GET", path, query, b"", headers or {}, "read")
        return self._checked(answer)

    def _least(self) -> dict[str, str]:
        revision = self._last_write.revision() if self._last_write else None
        return {} if revision is None else {"X-Min-Revision": str(revision)}

    def _is_behind(self, answer: Answer) -> bool:
        """Whether the server is not where it was, or another one is; then it is asked for what it has."""
        try:
            if answer.status != 503 or answer.object().get("code") != "behind":
                return False
        except Unreachable:  # it comes from a proxy
            return False
        if self._last_write:
            self._last_write.is_behind()
        return True

    def stream(self, path: str, query: Mapping[str, Any], headers: Mapping[str, str], quiet: float) -> Iterator[Answer]:
        """An answer that goes on, over a connection of its own: its head, then each piece of its body as it comes."""
        least = self._least()
        lines = {**least, **headers, **self._authorization("read")}
        target = self._target(path, query)
        self._show_request("GET", target, lines, b"")
        answers = (Answer(*reply) for reply in self._connection.stream(target, lines, quiet))
        head = next(answers)
        if head.status != 200:
            refusal = Answer(head.status, head.headers, b"".join(piece.body for piece in answers))
            if least and self._is_behind(refusal):
                yield from self.stream(path, query, headers, quiet)
                return
            self._checked(refusal)
        self._show_answer(head)
        yield head
        yield from answers

    def send(
        self,
        method: str,
        path: str,
        body: Any,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        role: Role = "write",
    ) -> Answer:
        """A write; `body` is JSON already when it is bytes. A dry run takes the role that reads."""
        raw = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        lines = {"Content-Type": "application/json", "Content-Length": str(len(raw)), **self._headers, **(headers or {})}
        answer = self._checked(self._request(method, path, query, raw, lines, role))
        made = answer.headers.get("x-revision", "")
        if self._last_write and role == "write" and made.isascii() and made.isdigit():
            self._last_write.wrote(int(made[:15]))
        return answer

    def _request(
        self, method: str, path: str, query: Mapping[str, Any] | None, body: bytes, headers: Mapping[str, str], role: Role
    ) -> Answer:
        """Any answer at all. What broke off is repeated if that is safe: what only reads, or a write with an Idempotency-Key."""
        target = self._target(path, query)
        lines = {"Accept": "application/json", **headers, **self._authorization(role, len(body) > READ_BYTES)}
        repeatable = role == "read" or "Idempotency-Key" in lines
        if not repeatable:
            self._connection.close()  # a kept connection that ends tells nothing about whether the request was taken
        broken: wire.Broken | None = None
        for attempt in range(_RETRIES + 1):
            try:
                return self._exchange(method, target, lines, body)
            except wire.Stale as exc:
                broken = exc  # the server has only closed an idle connection, most likely, so it goes out again at once
            except Unreachable as exc:
                # a server that breaks off is perhaps restarting, and then cannot be reached for a while
                broken = exc if isinstance(exc, wire.Broken) else broken
                if broken is None or not repeatable or attempt == _RETRIES:
                    raise
                time.sleep(min(0.2 * 2**attempt, self._left()))
        raise broken or Unreachable(f"{self.url} does not answer")

    def _target(self, path: str, query: Mapping[str, Any] | None) -> str:
        return path + (f"?{_query(query)}" if query else "")

    def _authorization(self, role: Role, large: bool = False) -> dict[str, str]:
        token = (self._tokens.get("write") if large else None) or self._tokens.get(role)
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _exchange(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        self._show_request(method, target, headers, body)
        answer = Answer(*self._connection.exchange(method, target, headers, body))
        self._show_answer(answer)
        return answer

    def _show_request(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> None:
        if self._trace:
            proxy = self._connection.proxy
            if proxy is not None:
                self._trace(f"* through the proxy {proxy.shown}")
            masked = {**headers, "Authorization": "Bearer ***"} if "Authorization" in headers else headers
            self._trace(_shown("> ", [f"{method} {self.url}{target}", *_lines(masked)], body))

    def _show_answer(self, answer: Answer) -> None:
        if self._trace:
            self._trace(_shown("< ", [str(answer.status), *_lines(answer.headers)], answer.body))

    def close(self) -> None:
        self._connection.close()

    def _checked(self, answer: Answer) -> Answer:
        if self._connection.is_forwarded and answer.status in _OF_PROXIES and not answer.is_json:  # the server's are JSON
            raise Unreachable(f"cannot reach {self._connection.named}: {wire.refusal(answer.status)}")
        return _successful(answer)


def _successful(answer: Answer) -> Answer:
    if 200 <= answer.status < 300 or answer.status == 304:
        return answer
    if answer.status < 400:
        raise Unreachable(f"the server answered {answer.status}; redirects are not followed, check the URL")
    try:
        raise Problem(answer.status, answer.object())
    except Unreachable:
        if answer.status in (401, 403):  # also a proxy that refuses a token means the token
            raise Problem(answer.status, {"detail": f"the server answered {answer.status} without saying why"}) from None
        if answer.status in (502, 503, 504):
            raise Unreachable(f"a proxy answered {answer.status}; the server behind it is down") from None
        raise


# The exchange, for --debug

_SHOWN_BODY = 4096


def _lines(headers: Mapping[str, str]) -> list[str]:
    return [f"{name}: {value}" for name, value in headers.items()]


def _shown(mark: str, lines: list[str], body: bytes) -> str:
    if body:
        cut = f" … {len(body)} bytes" if len(body) > _SHOWN_BODY else ""
        lines = [*lines, "", *body[:_SHOWN_BODY].decode("utf-8", "replace").splitlines()]
        lines[-1] += cut
    return "\n".join(mark + line for line in lines)
