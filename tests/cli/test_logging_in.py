"""login and whoami: tokens that are asked for, verified, stored, and named."""

from __future__ import annotations

from pathlib import Path

import live
from cli.command import Cli
from cli.test_errors import Impostor, reply


def answers(*given: str) -> str:
    return "".join(f"{line}\n" for line in given)


def test_a_login_stores_what_the_server_takes_and_makes_it_current(offline: Cli, server: live.Server) -> None:
    offline.ok("config", "set-context", "before", "--url", "http://127.0.0.1:9", "--token", "x", "--no-verify")
    done = offline.ok("login", server.url + "/", stdin=answers(live.READ, live.WRITE))
    assert done.data == {
        "server": server.url,
        "context": "127.0.0.1",
        "tokens": [{"for": "read", "name": "read", "role": "read"}, {"for": "write", "name": "write", "role": "write"}],
    }
    assert offline.ok("config", "current-context", "-o", "name").out == "127.0.0.1\n"
    assert offline.ok("config", "view", "--raw").data["contexts"]["127.0.0.1"] == {
        "url": server.url, "token": live.READ, "write-token": live.WRITE,
    }  # fmt: skip
    offline.ok("namespace", "create", "by-login")


def test_a_login_needs_no_token_for_writing(offline: Cli, server: live.Server) -> None:
    for given in (answers(live.READ, ""), f"{live.READ}\n", live.READ):
        assert len(offline.ok("login", server.url, "--name", "reader", stdin=given).data["tokens"]) == 1
    assert offline.ok("cluster", "list", "-o", "name").out
    assert "write-token" not in offline.ok("config", "view").data["contexts"]["reader"]
    both = offline.ok("login", server.url, "--name", "writer", stdin=answers("", live.WRITE))
    assert [token["role"] for token in both.data["tokens"]] == ["write", "write"]
    assert offline.ok("cluster", "list", "-o", "name").out


def test_nothing_is_stored_when_a_login_fails(offline: Cli, server: live.Server) -> None:
    assert offline.refused(3, "login", server.url, stdin=answers("wrong", "")) == [
        f"the token for reading was refused by {server.url}"
    ]
    assert offline.refused(3, "login", server.url, stdin=answers(live.READ, "wrong"))
    assert "may only read" in offline.refused(3, "login", server.url, stdin=answers(live.READ, live.READ))[0]
    assert offline.refused(5, "login", "http://127.0.0.1:9", stdin=answers(live.READ, live.WRITE))
    assert offline.refused(2, "login", "nowhere", stdin=answers(live.READ))
    assert offline.refused(2, "login", server.url)
    assert offline.refused(2, "login", server.url, stdin=answers("two words"))
    assert not (offline.home / ".config").exists()


def test_on_a_terminal_tokens_are_asked_for_and_not_shown(offline: Cli, server: live.Server) -> None:
    typed: list[str] = []

    def answer(shown: str) -> str | None:
        for text, token in (("token for reading (empty: none): ", live.READ), ("token for writing (empty: none): ", "")):
            if shown.endswith(text) and text not in typed:
                typed.append(text)
                return f"{token}\n"
        return None

    done = offline.on_terminal("login", server.url, watch=answer)
    assert done.code == 0, done.out
    assert len(typed) == 2
    assert live.READ not in done.out
    assert "reading: token read, role read" in done.out
    assert "is now the current one" in done.out


def test_a_login_says_when_the_environment_hides_it(cli: Cli, server: live.Server, tmp_path: Path) -> None:
    done = cli.but(HOME=str(tmp_path)).ok("login", server.url, stdin=answers(live.READ))
    assert "FLUX_API_URL" in done.err
    assert "unless --context" in done.err


def test_whoami_names_server_tokens_and_roles(cli: Cli, server: live.Server) -> None:
    reading = {"for": "read", "name": "read", "role": "read"}
    writing = {"for": "write", "name": "write", "role": "write"}
    assert cli.ok("whoami").data == {"server": server.url, "context": None, "tokens": [reading, writing]}
    assert cli.but(FLUX_API_WRITE_TOKEN=None).ok("whoami", "-o", "json").data["tokens"] == [reading]
    shown = cli.on_terminal("whoami").out
    assert shown.splitlines() == [
        f"server {server.url} (the environment)", "reading: token read, role read", "writing: token write, role write",
    ]  # fmt: skip


def test_whoami_with_a_token_that_is_refused_or_missing(cli: Cli) -> None:
    assert cli.but(FLUX_API_TOKEN="wrong").refused(3, "whoami")[0].startswith("the token for reading was refused")
    assert cli.but(FLUX_API_WRITE_TOKEN="wrong").refused(3, "whoami")[0].startswith("the token for writing was refused")
    assert cli.but(FLUX_API_TOKEN=None).refused(2, "whoami")
    assert cli.but(FLUX_API_URL="http://127.0.0.1:9").refused(5, "whoami")


def test_an_older_server_tells_no_names_but_refuses_wrong_tokens(offline: Cli) -> None:
    missing = reply("404 Not Found", "{}")
    for last, code in (("200 OK", 0), ("401 Unauthorized", 3)):
        found = Impostor(missing, reply(last, "[]" if code == 0 else "{}"))
        try:
            done = offline("login", found.url, stdin=answers(live.READ))
        finally:
            found.close()
        assert done.code == code, done
        if code == 0:
            assert done.data["tokens"] == [{"for": "read", "name": None, "role": None}]


def test_a_token_that_is_bound_to_a_cluster_is_none_for_people(offline: Cli) -> None:
    found = Impostor(reply("200 OK", '{"name": "edge", "role": "read", "clusters": ["a.example.com"]}'))
    try:
        (line,) = offline.refused(3, "login", found.url, stdin=answers(live.READ))
    finally:
        found.close()
    assert "bound to a.example.com" in line
