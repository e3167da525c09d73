"""Pull requests of GitHub and merge requests of GitLab: who reviewed them, of which commit, and what they said."""

from __future__ import annotations

import bisect
import contextlib
import json
import re
import time
import urllib.parse
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.client import replies, wire
from flux_resourceset.repositories import approvals

_PAGE = 100  # the most that either forge gives at once
_MOST_PAGES = 100  # ten thousand reviews: whoever sends more goes round in circles
_MOST_BYTES = 10 * 1024 * 1024  # a hundred reviews with the longest text that a forge takes
_REDIRECTS = 5  # a repository that was renamed takes one

_PULL = re.compile(r"([A-Za-z0-9_.-]+)/([A-Za-z0-9_.-]+)#([1-9][0-9]{0,9})")
_MERGE = re.compile(r"([1-9][0-9]{0,9}|[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+)!([1-9][0-9]{0,9})")
_LINK = re.compile(r"<([^>]*)>([^<]*)")
_IS_NEXT = re.compile(r""";\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next\s*(?:[;,]|\Z))""", re.IGNORECASE)

_STATES = {"APPROVED": "approved", "CHANGES_REQUESTED": "changes_requested", "COMMENTED": "commented", "DISMISSED": "dismissed"}
_UNKNOWN = "1970-01-01T00:00:00Z"  # a time that GitLab does not tell; of a user there is but one review then
_PENDING = "PENDING"  # begun and not submitted: nobody but its author sees it


class _Variables(NamedTuple):
    """Of the environment, that say where a forge is and who asks."""

    url: str
    token: str


_GITHUB = _Variables("GITHUB_API_URL", "GITHUB_TOKEN")
_GITLAB = _Variables("CI_API_V4_URL", "GITLAB_TOKEN")


def read_approvals(
    environment: Mapping[str, str], *, github: str | None = None, gitlab: str | None = None, timeout: float = 60.0
) -> approvals.Approvals:
    """Of the request that is named, at one of the two; `timeout` is for all that is asked together."""
    if github is not None:
        return read_github(environment, github, timeout)
    return read_gitlab(environment, gitlab or "", timeout)


def read_github(environment: Mapping[str, str], reference: str, timeout: float = 60.0) -> approvals.Approvals:
    found = _PULL.fullmatch(reference)
    if found is None or {found[1], found[2]} & {".", ".."}:
        raise failures.usage(f"--github is {reference!r}; write it as in acme/acme-fleet-config#12")
    headers = {
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
        "Authorization": f"Bearer {_token(environment, _GITHUB.token)}",
    }
    url = environment.get(_GITHUB.url) or "https://api.github.com"
    forge = _Forge(_GITHUB, url, f"pull request {reference}", headers, environment, timeout)
    with _understood(_GITHUB.url):
        path = client.path("repos", found[1], found[2], "pulls", found[3])
        pull = forge.read(path)
        reviews = [review for data in forge.read_all(path + "/reviews") for review in _review(data)]
        return approvals.Approvals(approvals.commit(pull["head"]["sha"], "head.sha"), _login(pull["user"], "login"), reviews)


def _review(data: Any) -> Iterator[approvals.Review]:
    if data["state"] == _PENDING:
        return
    state, user = _STATES[data["state"]], _login(data["user"], "login")
    if user is None and state == "changes_requested":
        user = "ghost"  # as GitHub shows an account that is gone: its request still stands, its approval counts for nobody
    if user is not None:
        yield approvals.Review(user, state, _commit(data["commit_id"]), _time(data["submitted_at"]))


def read_gitlab(environment: Mapping[str, str], reference: str, timeout: float = 60.0) -> approvals.Approvals:
    found = _MERGE.fullmatch(re.sub("%2f", "/", reference, flags=re.IGNORECASE))
    if found is None or {*found[1].split("/")} & {".", ".."}:
        raise failures.usage(f"--gitlab is {reference!r}; write it as in acme/acme-fleet-config!12")
    headers = {"Accept": "application/json", "PRIVATE-TOKEN": _token(environment, _GITLAB.token)}
    url = environment.get(_GITLAB.url)
    if not url:  # gitlab.com is not assumed: most tokens are those of another server, and would be given away
        raise failures.usage(f"{_GITLAB.url} is not set; say where GitLab is, as in https://gitlab.example.com/api/v4")
    forge = _Forge(_GITLAB, url, f"merge request {reference}", headers, environment, timeout)
    with _understood(_GITLAB.url):
        path = client.path("projects", found[1], "merge_requests", found[2])
        merge = forge.read(path)
        versions = _Versions(forge.read_all(path + "/versions"))
        requests = _read_requests(forge, path + "/reviewers")
        against = {review.user for review in requests}
        approved = [_approval(data, versions) for data in forge.read(path + "/approvals")["approved_by"]]
        # GitLab takes back the approval of who requests changes, and the request of who approves: only one of them stands
        reviews = [*requests, *(review for review in approved if review.user not in against)]
        return approvals.Approvals(approvals.commit(merge["sha"], "sha"), _login(merge["author"], "username"), reviews)


class _Versions:
    """The heads that a merge request has had. GitLab says when somebody approved, not of which commit."""

    def __init__(self, data: Sequence[Any]) -> None:
        versions = [*reversed(data)]  # the newest comes first, also of two in one instant
        versions.sort(key=lambda version: approvals.instant(version["created_at"]))
        self._starts = [approvals.instant(version["created_at"]) for version in versions]
        self._heads = [_commit(version["head_commit_sha"]) for version in versions]

    def head_at(self, moment: str) -> str:
        """The head that was there then; empty before the first one. A head that came back counts while it was there."""
        place = bisect.bisect_right(self._starts, approvals.instant(moment))
        return self._heads[place - 1] if place else ""


def _approval(data: Any, versions: _Versions) -> approvals.Review:
    moment = data.get("approved_at")  # a GitLab that does not tell cannot show that it was the head that was approved
    of = versions.head_at(moment) if moment else ""
    return approvals.Review(_name(data["user"]["username"]), "approved", of, moment or _UNKNOWN)


def _read_requests(forge: _Forge, path: str) -> list[approvals.Review]:
    try:
        reviewers = forge.read_all(path)
    except failures.Failure as exc:
        if exc.code != failures.NOT_FOUND:
            raise
        return []  # the merge request was found, so this GitLab is older than requests for changes
    wanting = [data for data in reviewers if data["state"] == "requested_changes"]
    return [approvals.Review(_name(data["user"]["username"]), "changes_requested", "", _UNKNOWN) for data in wanting]


# What an answer has to hold


@contextlib.contextmanager
def _understood(variable: str) -> Iterator[None]:
    try:
        yield
    except client.Unreachable as exc:
        raise failures.Failure(failures.UNREACHABLE, str(exc)) from exc
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as exc:
        line = f"the answer of the forge is not understood; check that {variable} is the URL of its API"
        raise failures.Failure(failures.UNREACHABLE, line) from exc


def _login(data: Any, member: str) -> str | None:
    """None for an account that is gone."""
    return None if data is None else _name(data[member])


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("it must be the name of a user")
    return value


def _commit(value: Any) -> str:
    """Empty for a commit that is gone."""
    return "" if value is None else approvals.commit(value, "the commit")


def _time(value: Any) -> str:
    approvals.instant(value)
    return str(value)


def _token(environment: Mapping[str, str], variable: str) -> str:
    token = environment.get(variable)
    if not token:
        raise failures.usage(f"{variable} is not set; it must hold a token that may read the reviews")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise failures.usage(f"{variable} holds something that cannot be a token: blanks or characters beyond ASCII")
    return token


# Asking


class _Forge:
    """The API of one forge, asked about one request; nothing but its own server gets the token."""

    def __init__(
        self,
        variables: _Variables,
        url: str,
        subject: str,
        headers: Mapping[str, str],
        environment: Mapping[str, str],
        timeout: float,
    ) -> None:
        self._variables = variables
        self._subject = subject
        self._headers = {"User-Agent": "flux-resourceset-cli", "Connection": "close", **headers}
        self._ends = time.monotonic() + timeout
        try:
            address = wire.Address.of(url)
        except ValueError as exc:
            raise failures.usage(f"{variables.url}: {exc}") from exc
        self._path = address.path
        self._origin = f"{'https' if address.secure else 'http'}://{address.authority}"
        try:
            self._connection = wire.Connection(self._origin, self._left, None, environment)
        except ValueError as exc:  # the URL is good, so it is that of a proxy
            raise failures.usage(str(exc)) from exc

    def _left(self) -> float:
        return max(self._ends - time.monotonic(), 0.001)  # a socket takes 0 for "do not wait"

    def read(self, path: str) -> Any:
        return self._ask(self._path + path)[0]

    def read_all(self, path: str) -> list[Any]:
        """The items of all pages of a list."""
        target: str | None = f"{self._path}{path}?per_page={_PAGE}"
        items: list[Any] = []
        asked: set[str] = set()
        while target is not None:
            if target in asked or len(asked) == _MOST_PAGES:
                raise client.Unreachable(f"{self._connection.named} gives more than {_MOST_PAGES} pages, or one of them twice")
            asked.add(target)
            page, headers = self._ask(target)
            if not isinstance(page, list):
                raise TypeError("it must be a list")
            items += page
            target = self._next(target, headers)
        return items

    def _next(self, target: str, headers: Mapping[str, str]) -> str | None:
        number = headers.get("x-next-page", "")  # GitLab's; its links are wrong where it does not know its own URL
        if number.isascii() and number.isdigit():
            return f"{target.partition('?')[0]}?per_page={_PAGE}&page={number}"
        for url, parameters in _LINK.findall(headers.get("link", "")):
            if _IS_NEXT.search(parameters):
                return self._own(target, url)
        return None

    def _own(self, target: str, url: str) -> str:
        """What a URL asks of this server; that of another is refused, since the token is not for it."""
        parts = urllib.parse.urlsplit(urllib.parse.urljoin(self._origin + target, url))
        if _origin(parts) != _origin(urllib.parse.urlsplit(self._origin)):
            named, variable = self._connection.named, self._variables.url
            raise client.Unreachable(f"{named} refers to another server, which is not asked; check {variable}")
        further = parts.path + (f"?{parts.query}" if parts.query else "")
        if not further.isascii() or not further.isprintable() or " " in further:
            raise ValueError("it is no URL")
        return further

    def _ask(self, target: str) -> tuple[Any, Mapping[str, str]]:
        for _ in range(_REDIRECTS):
            status, headers, body = self._exchange(target)
            if status not in (301, 302, 307, 308):
                self._check(status)
                return json.loads(body), headers
            target = self._own(target, headers.get("location", ""))
        raise client.Unreachable(f"{self._connection.named} redirects again and again")

    def _check(self, status: int) -> None:
        """What it says besides is not repeated: it might hold the token."""
        named = self._connection.named
        if status == 404:
            line = f"{named} does not know {self._subject} (404), or {self._variables.token} may not see it"
            raise failures.Failure(failures.NOT_FOUND, line)
        if status == 407:  # only a proxy wants that
            raise client.Unreachable(f"cannot reach {named}: {wire.refusal(status)}")
        if 400 <= status < 500:
            remedy = "try again later" if status == 429 else f"check {self._variables.token}"
            raise failures.Failure(failures.REFUSED, f"{named} does not tell of {self._subject} ({status}); {remedy}")
        if status != 200:
            raise client.Unreachable(f"{named} answered {status}")

    def _exchange(self, target: str) -> tuple[int, Mapping[str, str], bytes]:
        """An answer, read piece by piece, so that one which grows too large is left; any but 200 says enough by its head."""
        stream = cast("Generator[replies.Reply]", self._connection.stream(target, self._headers, self._left()))
        with contextlib.closing(stream) as answer:  # and with it the connection, also of an answer that is left
            status, headers, _ = next(answer)
            length = headers.get("content-length", "")
            self._check_size(int(length) if length.isascii() and length.isdigit() else 0)
            body = bytearray()
            if status == 200:
                for piece in answer:
                    body += piece.body
                    self._check_size(len(body))
            return status, headers, bytes(body)

    def _check_size(self, size: int) -> None:
        if size > _MOST_BYTES:
            raise client.Unreachable(f"{self._connection.named} answers with more than {_MOST_BYTES} bytes")
        if time.monotonic() > self._ends:
            raise client.Unreachable(f"{self._connection.named} did not answer in time")


def _origin(parts: urllib.parse.SplitResult) -> tuple[str, str | None, int]:
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
