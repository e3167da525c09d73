"""Reviews of pull requests come from GitHub completely, and the token goes nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cli.forge_server import HEAD, OLD, OTHER, TOKEN, Forge, Told, paged, refusal, running
from client import servers
from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories import forges
from flux_resourceset.repositories.approvals import Approvals, Review

PULL = "/api/v3/repos/acme/fleet-config/pulls/12"


@pytest.fixture
def forge() -> Iterator[Forge]:
    with running() as started:
        yield started


def review(login: str | None, state: str, commit: str | None = HEAD, time: str | None = "2026-01-31T12:00:00Z") -> dict[str, Any]:
    user = None if login is None else {"login": login, "type": "User"}
    return {"id": 1, "user": user, "state": state, "commit_id": commit, "submitted_at": time, "body": "…"}


def github(forge: Forge, *reviews: Any, reference: str = "acme/fleet-config#12", size: int = 100, **pull: Any) -> Approvals:
    forge.pages.setdefault(PULL, Told({"head": {"sha": HEAD}, "user": {"login": "dev-1"}, "title": "x", **pull}))
    forge.pages.setdefault(f"{PULL}/reviews", paged([*reviews], size))
    return forges.read_approvals(forge.github, github=reference)


def test_the_reviews_of_a_pull_request_are_those_of_a_file(forge: Forge) -> None:
    told = github(
        forge,
        review("sre-1", "APPROVED"),
        review("sre-2", "CHANGES_REQUESTED", OLD.upper()),
        review("sre-3", "COMMENTED", None),
        review("lead-1", "DISMISSED", time="2026-01-31T12:00:00.123+01:00"),
        review("dev-2", "PENDING", time=None),
    )
    assert told == Approvals(
        HEAD,
        "dev-1",
        [
            Review("sre-1", "approved", HEAD, "2026-01-31T12:00:00Z"),
            Review("sre-2", "changes_requested", OLD, "2026-01-31T12:00:00Z"),
            Review("sre-3", "commented", "", "2026-01-31T12:00:00Z"),
            Review("lead-1", "dismissed", HEAD, "2026-01-31T12:00:00.123+01:00"),
        ],
    )


def test_github_is_asked_as_it_wants_to_be(forge: Forge) -> None:
    github(forge)
    assert [asked.path for asked in forge.asked] == [PULL, f"{PULL}/reviews"]
    for asked in forge.asked:
        assert asked.headers["authorization"] == f"Bearer {TOKEN}"
        assert asked.headers["accept"] == "application/vnd.github+json"
        assert asked.headers["user-agent"]  # without one GitHub answers nobody
    assert forge.asked[1].query == {"per_page": "100"}


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_all_pages_of_reviews_are_read(forge: Forge, size: int) -> None:
    told = github(forge, *(review(f"u{number}", "APPROVED") for number in range(7)), size=size)
    assert [each.user for each in told.reviews] == [f"u{number}" for number in range(7)]


@pytest.mark.parametrize(
    "link",
    [
        '</api/v3/more>; rel="next"',
        "</api/v3/more>; title=x; REL=next",
        '<{url}/a,b;c>; rel="prev", <{url}/api/v3/more>; rel="last next"',
    ],
)
def test_a_link_to_the_next_page_is_understood_however_it_is_written(forge: Forge, link: str) -> None:
    forge.pages[f"{PULL}/reviews"] = Told([review("a", "APPROVED")], 200, {"Link": link.replace("{url}", forge.url)})
    forge.pages["/api/v3/more"] = Told([review("b", "APPROVED")], 200, {"Link": '<https://elsewhere.example>; rel="nextish"'})
    assert [each.user for each in github(forge).reviews] == ["a", "b"]


def test_an_account_that_is_gone_still_stands_in_the_way_but_counts_for_nobody(forge: Forge) -> None:
    told = github(forge, review(None, "CHANGES_REQUESTED"), review(None, "APPROVED"), user=None)
    assert (told.author, [(each.user, each.state) for each in told.reviews]) == (None, [("ghost", "changes_requested")])


def test_a_repository_that_was_renamed_is_found_where_it_is_now(forge: Forge) -> None:
    forge.pages[PULL] = Told({}, 301, {"Location": f"{forge.url}/api/v3/repositories/7/pulls/12"})
    forge.pages["/api/v3/repositories/7/pulls/12"] = Told({"head": {"sha": OTHER}, "user": {"login": "dev-1"}})
    assert github(forge).head == OTHER


@pytest.mark.parametrize("how", ["redirect", "page"])
def test_the_token_goes_to_no_other_server(forge: Forge, how: str) -> None:
    with running() as elsewhere:
        if how == "redirect":
            forge.pages[PULL] = Told({}, 302, {"Location": f"{elsewhere.url}/x"})
        else:
            forge.pages[f"{PULL}/reviews"] = Told([], 200, {"Link": f'<{elsewhere.url}/x>; rel="next"'})
        code, line = refusal(lambda: github(forge))
        assert (code, elsewhere.asked) == (failures.UNREACHABLE, [])
        assert "GITHUB_API_URL" in line


@pytest.mark.parametrize("where", [PULL, f"{PULL}/reviews"])
def test_what_goes_round_in_circles_ends(forge: Forge, where: str) -> None:
    headers = {"Location": where, "Link": f'<{where}?per_page=100>; rel="next"'}
    forge.pages[where] = Told([], 302 if where == PULL else 200, headers)
    assert refusal(lambda: github(forge))[0] == failures.UNREACHABLE


def test_a_list_without_an_end_ends(forge: Forge) -> None:
    forge.pages[f"{PULL}/reviews"] = lambda asked: Told(
        [], 200, {"Link": f'<{PULL}/reviews?page={int(asked.query.get("page", "1")) + 1}>; rel="next"'}
    )
    assert refusal(lambda: github(forge))[0] == failures.UNREACHABLE


@pytest.mark.parametrize(
    ("status", "code"),
    [(404, 4), (401, 3), (403, 3), (410, 3), (422, 3), (429, 3), (407, 5), (500, 5), (502, 5), (503, 5), (204, 5), (304, 5)],
)
@pytest.mark.parametrize("where", [PULL, f"{PULL}/reviews"])
def test_a_refusal_is_told_by_its_exit_code_whatever_else_is_in_it(forge: Forge, where: str, status: int, code: int) -> None:
    body = b"" if status in (204, 304) else f"<html>{TOKEN}</html>".encode()
    forge.pages[where] = Told(body, status)
    assert refusal(lambda: github(forge))[0] == code


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[" * 100_000,
        b"null",
        b"[]",
        b"7",
        b"\xff",
        {},
        {"head": {"sha": "main"}, "user": None},
        {"head": HEAD, "user": 1},
    ],
)
def test_an_answer_that_is_not_understood_is_no_approval(forge: Forge, body: Any) -> None:
    forge.pages[PULL] = Told(body)
    code, line = refusal(lambda: github(forge))
    assert (code, "GITHUB_API_URL" in line) == (failures.UNREACHABLE, True)


@pytest.mark.parametrize(
    "reviews",
    [
        {},
        [7],
        [review("a", "ENDORSED")],
        [review("", "APPROVED")],
        [review("a", "APPROVED", "short")],
        [review("a", "APPROVED", time="yesterday")],
        [review("a", "APPROVED", time=None)],
        [{"state": "APPROVED"}],
        [{**review("a", "APPROVED"), "commit_id": 7}],
    ],
)
def test_a_review_that_is_not_understood_is_no_approval(forge: Forge, reviews: Any) -> None:
    forge.pages[f"{PULL}/reviews"] = Told(reviews)
    assert refusal(lambda: github(forge))[0] == failures.UNREACHABLE


def test_an_answer_that_is_too_large_is_not_read(forge: Forge) -> None:
    forge.pages[PULL] = Told(b"{}", 200, {"Content-Length": str(11 * 1024 * 1024)})
    code, line = refusal(lambda: github(forge))
    assert (code, "bytes" in line) == (failures.UNREACHABLE, True)


def test_an_answer_that_grows_too_large_is_left() -> None:
    def drip(connection: Any) -> None:
        servers.head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            connection.sendall(b"40000\r\n" + b" " * 0x40000 + b"\r\n")

    with servers.listening(drip) as port:
        environment = {"GITHUB_API_URL": f"http://127.0.0.1:{port}", "GITHUB_TOKEN": TOKEN}
        code, line = refusal(lambda: forges.read_approvals(environment, github="a/b#1"))
    assert (code, "bytes" in line) == (failures.UNREACHABLE, True)


def test_a_forge_that_is_silent_or_away_is_unreachable() -> None:
    def stay_silent(connection: Any) -> None:
        servers.head(connection)
        connection.recv(1)

    with servers.listening(stay_silent) as port:
        environment = {"GITHUB_API_URL": f"http://127.0.0.1:{port}", "GITHUB_TOKEN": TOKEN}
        code, line = refusal(lambda: forges.read_approvals(environment, github="a/b#1", timeout=0.05))
    assert (code, f"127.0.0.1:{port}" in line) == (failures.UNREACHABLE, True)
    assert refusal(lambda: forges.read_approvals(environment, github="a/b#1"))[0] == failures.UNREACHABLE


def test_an_answer_that_breaks_off_is_none(forge: Forge) -> None:
    forge.pages[PULL] = Told(b'{"head": 1}', 200, {"Content-Length": "1000", "Connection": "close"})
    assert refusal(lambda: github(forge))[0] == failures.UNREACHABLE


def test_the_way_leads_through_the_proxy_of_the_environment(forge: Forge) -> None:
    forge.pages[PULL] = Told({"head": {"sha": HEAD}, "user": {"login": "dev-1"}})
    forge.pages[f"{PULL}/reviews"] = Told([])
    proxy = servers.Proxy(int(forge.url.rpartition(":")[2]))
    with servers.listening(proxy) as port:
        environment = {
            **forge.github,
            "GITHUB_API_URL": "http://ghe.example.com/api/v3",
            "http_proxy": f"http://127.0.0.1:{port}",
        }
        told = forges.read_approvals(environment, github="acme/fleet-config#12")
    assert told.head == HEAD
    assert proxy.heads[0][0] == f"GET http://ghe.example.com{PULL} HTTP/1.1"


@pytest.mark.parametrize(
    "reference",
    [
        "", "acme", "acme/fleet", "acme/fleet#", "acme/fleet#0", "acme/fleet#x", "acme/fleet!1", "a/b/c#1", "../b#1", "a/..#1",
        " a/b#1", "a/b#1\n", "a/b#1/../../x", "a/b?#1", "a%2Fb#1", "a/b#１", "a/b#99999999999",
    ],
)  # fmt: skip
def test_a_pull_request_that_nobody_can_mean_is_told_before_anything_is_asked(forge: Forge, reference: str) -> None:
    code, line = refusal(lambda: github(forge, reference=reference))
    assert (code, "--github" in line, forge.asked) == (failures.USAGE, True, [])


@pytest.mark.parametrize("token", [None, "", "a b", "a\nX-Evil: 1", "tök"])
def test_a_token_that_is_missing_or_none_is_told_by_its_variable(forge: Forge, token: str | None) -> None:
    given = {} if token is None else {"GITHUB_TOKEN": token, "GITLAB_TOKEN": token}
    environment = {"GITHUB_API_URL": forge.url, "CI_API_V4_URL": forge.url, **given}
    hub = refusal(lambda: forges.read_approvals(environment, github="a/b#1"))
    lab = refusal(lambda: forges.read_approvals(environment, gitlab="a/b!1"))
    assert (hub[0], "GITHUB_TOKEN" in hub[1]) == (lab[0], "GITLAB_TOKEN" in lab[1]) == (failures.USAGE, True)
    assert forge.asked == []


@pytest.mark.parametrize("url", ["example.com", "ftp://example.com", "https://user@example.com", "https://example.com/?x"])
def test_a_url_that_is_none_is_told_by_its_variable(url: str) -> None:
    environment = {"GITHUB_API_URL": url, "CI_API_V4_URL": url, "GITHUB_TOKEN": TOKEN, "GITLAB_TOKEN": TOKEN}
    hub = refusal(lambda: forges.read_approvals(environment, github="a/b#1"))
    lab = refusal(lambda: forges.read_approvals(environment, gitlab="a/b!1"))
    assert (hub[0], "GITHUB_API_URL" in hub[1]) == (lab[0], "CI_API_V4_URL" in lab[1]) == (failures.USAGE, True)


def test_a_proxy_that_is_none_is_told_by_its_variable(forge: Forge) -> None:
    environment = {**forge.github, "http_proxy": "socks5://127.0.0.1"}
    code, line = refusal(lambda: forges.read_approvals(environment, github="a/b#1"))
    assert (code, "http_proxy" in line) == (failures.USAGE, True)
