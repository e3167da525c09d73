"""Contexts: stored, chosen, kept secret, and beaten by the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

import live
from cli.command import Cli


def path(cli: Cli) -> Path:
    return cli.home / ".config" / "flux-resourceset" / "config.yaml"


def test_a_context_stands_for_the_variables(offline: Cli, server: live.Server) -> None:
    made = offline.ok(
        "config", "set-context", "here", "--url", server.url, "--token", "-", "--write-token", "-",
        stdin=f"{live.READ}\n{live.WRITE}\n",
    )  # fmt: skip
    assert made.data == {"name": "here", "current": True, "url": server.url, "token": True, "write_token": True}
    assert path(offline).stat().st_mode & 0o777 == 0o600
    assert offline.ok("cluster", "get", "demo-cluster-01", "-o", "name").out == "clusters/demo-cluster-01\n"
    offline.ok("namespace", "create", "by-context")


def test_contexts_can_be_switched_and_listed_without_their_tokens(offline: Cli, server: live.Server) -> None:
    offline.ok("config", "set-context", "one", "--url", "http://127.0.0.1:9", "--token", "hush-hush", "--no-verify")
    offline.ok("config", "set-context", "two", "--url", server.url, "--token", live.READ)
    listed = offline.ok("config", "get-contexts")
    assert [(row["name"], row["current"]) for row in listed.data] == [("one", True), ("two", False)]
    assert "hush-hush" not in listed.out
    assert offline.refused(5, "cluster", "list")
    assert offline.ok("--context", "two", "cluster", "list", "-o", "name").out
    assert offline.ok("cluster", "list", "--context=two", "-o", "name").out
    assert "the environment is used" in offline.but(FLUX_API_TOKEN="x").ok("config", "use-context", "two").err
    assert "the environment" not in offline.ok("config", "use-context", "two").err
    assert offline.ok("cluster", "list", "-o", "name").out
    offline.ok("config", "set-context", "two", "--write-token", live.WRITE)
    assert offline.ok("config", "get-contexts").data[1] == {
        "name": "two", "current": True, "url": server.url, "token": True, "write_token": True,
    }  # fmt: skip


def test_address_and_tokens_come_from_one_place(offline: Cli, server: live.Server) -> None:
    offline.ok("config", "set-context", "nowhere", "--url", "http://127.0.0.1:9", "--token", live.READ, "--no-verify")
    for given, missing in (
        ({"FLUX_API_URL": server.url}, "FLUX_API_TOKEN"),
        ({"FLUX_API_TOKEN": live.READ}, "FLUX_API_URL"),
        ({"FLUX_API_WRITE_TOKEN": live.WRITE}, "FLUX_API_URL"),
    ):
        (line,) = offline.but(**given).refused(2, "cluster", "list")
        assert line.startswith(f"{missing} is not set")
        assert "--context" in line
    elsewhere = offline.but(FLUX_API_URL=server.url, FLUX_API_TOKEN=live.READ)
    assert elsewhere.ok("cluster", "list", "-o", "name").out
    assert "FLUX_API_WRITE_TOKEN is not set" in elsewhere.refused(2, "namespace", "create", "never-made")[0]


def test_a_context_that_is_named_wins_over_the_environment(offline: Cli, server: live.Server) -> None:
    offline.ok("config", "set-context", "nowhere", "--url", "http://127.0.0.1:9", "--token", live.READ, "--no-verify")
    offline.ok("config", "set-context", "here", "--url", server.url, "--token", live.READ)
    everything = offline.but(FLUX_API_URL=server.url, FLUX_API_TOKEN=live.READ, FLUX_API_WRITE_TOKEN=live.WRITE)
    assert everything.refused(5, "cluster", "list", "--context", "nowhere")
    wrong = offline.but(FLUX_API_URL="http://127.0.0.1:9", FLUX_API_TOKEN="wrong", FLUX_API_WRITE_TOKEN=live.WRITE)
    assert wrong.ok("cluster", "list", "-o", "name", "--context", "here").out
    (line,) = wrong.refused(2, "namespace", "create", "never-made", "--context", "here")
    assert line.startswith("context 'here' has no write-token")


def test_what_the_server_refuses_is_not_stored(offline: Cli, server: live.Server) -> None:
    words = ("config", "set-context", "x", "--url")
    assert offline.refused(5, *words, "http://127.0.0.1:9", "--token", live.READ)
    assert offline.refused(5, *words, "http://127.0.0.1:9")
    assert offline.refused(3, *words, server.url, "--token", "wrong-token")[0].startswith("the token for reading was refused")
    assert "may only read" in offline.refused(3, *words, server.url, "--token", live.READ, "--write-token", live.READ)[0]
    assert offline.ok("config", "get-contexts").data == []
    assert offline.ok(*words, server.url).data["url"] == server.url


@pytest.mark.long
def test_contexts_are_viewed_renamed_and_deleted(offline: Cli) -> None:
    for name in ("one", "two"):
        offline.ok("config", "set-context", name, "--url", "http://127.0.0.1:9", "--token", "hush-hush", "--no-verify")
    shown = {"url": "http://127.0.0.1:9", "token": "REDACTED"}
    assert offline.ok("config", "view").data == {"contexts": {"one": shown, "two": shown}, "current-context": "one"}
    assert offline.ok("config", "view", "--raw").data["contexts"]["one"]["token"] == "hush-hush"
    assert "hush-hush" not in offline.on_terminal("config", "view").out
    assert offline.ok("config", "current-context").data["name"] == "one"
    assert offline.on_terminal("config", "current-context").out == "one\n"
    assert offline.ok("config", "rename-context", "one", "first").data["current"]
    assert "exists already" in offline.refused(2, "config", "rename-context", "first", "two")[0]
    assert "not found" in offline.refused(2, "config", "rename-context", "one", "other")[0]
    assert offline.ok("config", "current-context", "-o", "name").out == "first\n"
    assert "it was the current context" in offline.ok("config", "delete-context", "first").err
    assert "not found" in offline.refused(2, "config", "delete-context", "first")[0]
    assert "no current context" in offline.refused(2, "config", "current-context")[0]
    assert list(offline.ok("config", "view").data["contexts"]) == ["two"]


def test_a_file_that_others_can_read_is_refused_with_the_remedy(offline: Cli) -> None:
    offline.ok("config", "set-context", "here", "--url", "http://127.0.0.1:9", "--token", "x", "--no-verify")
    path(offline).chmod(0o644)
    (line,) = offline.refused(2, "cluster", "list")
    assert line.endswith(f"chmod 600 {path(offline)}")
    assert offline.refused(2, "config", "get-contexts")
    assert offline.ok("--help").out  # help does not need a good configuration


def test_wrong_configurations_are_usage_errors(offline: Cli) -> None:
    assert offline.refused(2, "config", "set-context", "x")
    assert offline.refused(2, "config", "set-context", "x", "--url", "nowhere")
    assert offline.refused(2, "config", "set-context", "x", "--url", "http://h", "--token", "-")
    missing = ['context "x" not found; add one with login or config set-context']
    assert offline.refused(2, "config", "use-context", "x") == missing
    assert offline.refused(2, "cluster", "list", "--context", "x") == missing
    offline.ok("config", "set-context", "here", "--url", "http://127.0.0.1:9", "--token", "x", "--no-verify")
    assert offline.refused(2, "config", "use-context", "x") == ['context "x" not found; there are here']
    path(offline).parent.mkdir(parents=True, exist_ok=True)
    for text in ("a: [", "contexts: 3", "contexts: {a: {url: 3}}", "contexts: {a: {what: x}}"):
        path(offline).write_text(text)
        path(offline).chmod(0o600)
        assert offline.refused(2, "cluster", "list")


def test_a_wrong_field_of_the_file_is_named_with_the_file(offline: Cli) -> None:
    path(offline).parent.mkdir(parents=True)
    for text, field in (
        ("current-context: [5]", "current-context"),
        ("current-context: {a: b}", "current-context"),
        ("contexts: {5: {url: x}}", "the key 5 is not text; put it in quotes"),
        ("current-context: *nothing", "invalid YAML"),
    ):
        path(offline).write_text(text)
        path(offline).chmod(0o600)
        for words in (("cluster", "list"), ("config", "get-contexts")):
            (line,) = offline.refused(2, *words)
            assert str(path(offline)) in line
            assert field in line


def test_a_wrong_url_is_named_after_the_place_where_it_stands(offline: Cli) -> None:
    assert offline.refused(2, "config", "set-context", "x", "--url", "bad")[0].startswith("--url: ")
    path(offline).parent.mkdir(parents=True)
    path(offline).write_text("current-context: a\ncontexts: {a: {url: bad, token: x}}")
    path(offline).chmod(0o600)
    assert offline.refused(2, "cluster", "list")[0].startswith("the url of the context: ")


def test_a_file_that_is_a_link_stays_one(offline: Cli, tmp_path: Path) -> None:
    kept = tmp_path / "kept.yaml"
    path(offline).parent.mkdir(parents=True)
    path(offline).symlink_to(kept)
    offline.ok("config", "set-context", "here", "--url", "http://127.0.0.1:9", "--no-verify", "-o", "name")
    assert path(offline).is_symlink()
    assert "127.0.0.1:9" in kept.read_text()


def test_a_configuration_that_cannot_be_read_or_written_is_named(offline: Cli, tmp_path: Path) -> None:
    (tmp_path / "flux-resourceset" / "config.yaml").mkdir(parents=True)
    (line,) = offline.but(XDG_CONFIG_HOME=str(tmp_path)).refused(2, "cluster", "list")
    assert line == f"{tmp_path}/flux-resourceset/config.yaml cannot be read: Is a directory"
    (tmp_path / "link").symlink_to(tmp_path / "absent")
    words = ("config", "set-context", "x", "--url", "http://127.0.0.1:9", "--token", "hush-hush", "--no-verify")
    (line,) = offline.but(XDG_CONFIG_HOME=str(tmp_path / "link")).refused(2, *words)
    assert line == f"{tmp_path}/link/flux-resourceset/config.yaml cannot be written: No such file or directory"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}\n---\n{}\n", "must hold one document, not 2"),
        ("# " + "x" * 2_000_000, "is too long to be a configuration"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(offline: Cli, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "flux-resourceset").mkdir()
    file = tmp_path / "flux-resourceset" / "config.yaml"
    file.write_text(text)
    file.chmod(0o600)
    (line,) = offline.but(XDG_CONFIG_HOME=str(tmp_path)).refused(2, "cluster", "list")
    assert words in line


def test_kinds_are_asked_for_anew_where_they_cannot_be_kept(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    expected = cli.ok("namespace", "list", "-o", "json").data
    assert cli.but(XDG_CACHE_HOME=str(tmp_path / "file")).ok("namespace", "list", "-o", "json").data == expected
    assert cli.but(HOME=None).ok("namespace", "list", "-o", "json").data == expected
