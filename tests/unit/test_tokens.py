"""Tokens: the rules of their file, roles, and rotation without a restart."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

import live
from flux_resourceset import errors
from flux_resourceset.tokens import Principal, Right, Token, Tokens


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "tokens", "jane write t-jane\nflux read t-flux\n")


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    """Replaced whole, as a rotation does it."""
    partial = path.with_suffix(".new")
    partial.write_text(text)
    partial.chmod(mode)
    partial.replace(path)
    return path


def name(tokens: Tokens, secret: str) -> str | None:
    found = tokens.find(secret.encode())
    return found.name if found else None


def test_a_token_is_found_by_its_secret_alone(path: Path) -> None:
    tokens = Tokens([Token.of("read", "read", "r")], path)
    assert [name(tokens, secret) for secret in ("r", "t-jane", "t-flux")] == ["read", "jane", "flux"]
    for unknown in ("", "jane", "t-jane ", "T-JANE", "t-jan"):
        assert name(tokens, unknown) is None
    assert len(tokens) == 3


def test_the_secret_is_not_kept(path: Path) -> None:
    tokens = Tokens([Token.of("read", "read", "plain-secret")], path)
    assert "plain-secret" not in repr(vars(tokens))
    assert "t-jane" not in repr(vars(tokens))


def test_a_secret_with_two_names_has_the_stronger_role() -> None:
    one = Token.of("read", "read", "same"), Token.of("write", "write", "same")
    for order in (one, one[::-1]):
        found = Tokens(order).find(b"same")
        assert found is not None
        assert (found.name, found.may_write) == ("write", True)


def test_a_read_only_server_knows_no_write_token(path: Path) -> None:
    tokens = Tokens([Token.of("write", "write", "w")], path, writable=False)
    assert [name(tokens, secret) for secret in ("w", "t-jane", "t-flux")] == [None, None, "flux"]
    written(path, "joe write t-joe\nflux read t-flux\n")
    tokens.reload()
    assert name(tokens, "t-joe") is None


def test_comments_and_empty_lines_are_passed_over(path: Path) -> None:
    written(path, "# who\n\n   \n  a   read\tx   # the first\n#b write y\n")
    tokens = Tokens([], path)
    assert len(tokens) == 1
    assert name(tokens, "x") == "a"


@pytest.mark.parametrize(
    ("text", "line"),
    [("a read\n", 1), ("ok read x\na admin x\n", 2), ("a read x y z\n", 1), ("\n\nread x\n", 3), ("a READ x\n", 1)],
)
def test_a_broken_line_is_named_and_never_shown(path: Path, text: str, line: int) -> None:
    written(path, text.replace("x", "s3cr3t"))
    with pytest.raises(errors.StartupError, match=rf"tokens:{line}: a line is `name role token`") as caught:
        Tokens([], path)
    assert "s3cr3t" not in str(caught.value)


# Tokens that are bound to a cluster


def principal(tokens: Tokens, secret: str) -> Principal:
    known = tokens.find(secret.encode())
    assert known is not None
    return known


def test_a_fourth_word_binds_a_token_to_the_views_of_a_cluster(path: Path) -> None:
    written(path, "a read x a.example.com\nb read y b # the second\nc read z # c.example.com\nd read w d.example.com #x y z\n")
    tokens = Tokens([], path)
    bound = principal(tokens, "x")
    assert (bound.name, bound.rights, bound.clusters) == ("a", frozenset({Right.VIEWS}), frozenset({"a.example.com"}))
    assert [bound.may_view(dns) for dns in ("a.example.com", "b", "", "A.EXAMPLE.COM", "a.example.com.")] == [True, *[False] * 4]
    assert [principal(tokens, secret).clusters for secret in ("y", "z", "w")] == [{"b"}, None, {"d.example.com"}]
    assert principal(tokens, "z").may_view("anything.example.com")


@pytest.mark.parametrize(
    "word", ["A.example.com", "a..b", "-a", "a_b", ".a", "a.", "a/b", "a:80", "*", "*.example.com", "x" * 64]
)
def test_a_fourth_word_that_is_no_dns_name_is_refused_and_not_shown(path: Path, word: str) -> None:
    written(path, f"ok read x\na read y {word}\n")
    with pytest.raises(errors.StartupError, match=r"tokens:2: the fourth word is the DNS name") as caught:
        Tokens([], path)
    assert f" {word} " not in f"{caught.value} "


@pytest.mark.parametrize("word", ["a.example.com", "A.example.com"])
def test_a_token_for_writing_cannot_be_bound(path: Path, word: str) -> None:
    written(path, f"ok read x\na write s3cr3t {word} # c\n")
    with pytest.raises(errors.StartupError, match=r"tokens:2: a token with .* only reads; make its role read") as caught:
        Tokens([], path)
    assert "s3cr3t" not in str(caught.value)


def test_a_bound_line_that_is_wrong_leaves_the_last_good_file_in_force(path: Path) -> None:
    tokens = Tokens([], path)
    for text in ("jane write t-jane a.example.com\n", "flux read t-new NO\n"):
        written(path, text)
        tokens.reload()
        assert [name(tokens, secret) for secret in ("t-jane", "t-flux", "t-new")] == ["jane", "flux", None]


ONE_SECRET = {  # lines of one secret → who it is, whether it may write, and the clusters that it is bound to
    "a read s\nb read s\n": ("a", False, None),
    "a read s\nb write s\n": ("b", True, None),
    "a write s\nb write s\n": ("a", True, None),
    "a read s one\nb read s\n": ("b", False, None),
    "a read s\nb read s one\n": ("a", False, None),
    "a read s one\nb write s\n": ("b", True, None),
    "a write s\nb read s one\n": ("a", True, None),
    "a read s one\nb read s two\n": ("a", False, {"one", "two"}),
    "a read s one\na read s one\n": ("a", False, {"one"}),
}


@pytest.mark.parametrize("text", ONE_SECRET)
def test_the_strongest_line_of_a_secret_counts(path: Path, text: str) -> None:
    known = principal(Tokens([], written(path, text)), "s")
    assert (known.name, known.may_write, known.clusters) == ONE_SECRET[text]


def test_a_secret_of_the_environment_is_not_bound_by_the_file(path: Path) -> None:
    tokens = Tokens([Token.of("read", "read", "s")], written(path, "a read s one\n"))
    assert principal(tokens, "s") == Principal("read", frozenset({Right.VIEWS, Right.READ}))


def test_on_a_read_only_server_a_write_line_does_not_unbind_a_secret(path: Path) -> None:
    tokens = Tokens([], written(path, "a write s\nb read s one\n"), writable=False)
    assert (principal(tokens, "s").name, principal(tokens, "s").clusters) == ("b", frozenset({"one"}))


def test_a_token_that_is_bound_anew_is_a_change(path: Path) -> None:
    tokens = Tokens([], written(path, "a read s one\n"))
    before = tokens.generation
    written(path, "a read s two\n")
    tokens.reload()
    assert tokens.generation > before
    assert principal(tokens, "s").clusters == frozenset({"two"})


def test_the_shipped_sample_is_a_good_file(path: Path) -> None:
    manifests = yaml.safe_load_all((live.ROOT / "deploy" / "server" / "samples" / "tokens.yaml").read_text())
    (text,) = [manifest["stringData"]["tokens"] for manifest in manifests if manifest["kind"] == "Secret"]
    tokens = Tokens([], written(path, text, 0o440))
    assert principal(tokens, "REPLACE-ME-EDGE-07").clusters == frozenset({"edge-07.k8s.example.com"})
    assert principal(tokens, "REPLACE-ME-PIPELINE").may_write


@pytest.mark.long
def test_ten_thousand_tokens_are_found_among_each_other(path: Path) -> None:
    """By digest: neither a look-up nor the warnings go through all of them for each."""
    secrets = [f"{number:032x}" for number in range(10_000)]
    written(path, "".join(f"c{number} read {secret} c{number}.example.com\n" for number, secret in enumerate(secrets)))
    tokens = Tokens([], path)
    assert len(tokens) == 10_000
    assert [principal(tokens, secret).name for secret in secrets] == [f"c{number}" for number in range(10_000)]


# The file


def test_an_empty_file_is_refused(path: Path) -> None:
    written(path, "")
    with pytest.raises(errors.StartupError, match="is empty"):
        Tokens([], path)


@pytest.mark.parametrize("text", ["jane write t-ja", "jane write t-jane\nflux read t-f", "# nobody", "jane write t-jane\r"])
def test_a_file_whose_last_line_has_no_end_is_refused(path: Path, text: str) -> None:
    written(path, text)
    with pytest.raises(errors.StartupError, match="its last line has no end; finish it with a newline") as caught:
        Tokens([], path)
    assert "t-j" not in str(caught.value)


def test_a_directory_and_a_pipe_are_refused_without_waiting(tmp_path: Path) -> None:
    with pytest.raises(errors.StartupError, match="cannot be read"):
        Tokens([], tmp_path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(errors.StartupError, match="is no regular file"):
        Tokens([], tmp_path / "pipe")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.StartupError, match=r"TOKENS_FILE .*none: cannot be read"):
        Tokens([], tmp_path / "none")


def test_a_file_of_bytes_is_refused(path: Path) -> None:
    path.write_bytes(b"a read \xff\n")
    with pytest.raises(errors.StartupError, match="cannot be read"):
        Tokens([], path)


@pytest.mark.parametrize("mode", [0o604, 0o602, 0o601, 0o644, 0o666])
def test_a_file_that_others_can_read_is_refused(path: Path, mode: int) -> None:
    path.chmod(mode)
    with pytest.raises(errors.StartupError, match="others can read it; run chmod"):
        Tokens([], path)


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o640, 0o440])
def test_a_file_for_owner_and_group_is_taken(path: Path, mode: int) -> None:
    path.chmod(mode)
    assert len(Tokens([], path)) == 2


# Doubtful tokens


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [" ".join([r.getMessage(), getattr(r, "tokens", "")]) for r in caplog.records if r.levelname == "WARNING"]


def test_a_short_token_is_warned_about_by_its_name_at_the_start_and_when_it_comes(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(path, f"ada read {'a' * 15}\nbob read {'b' * 16}\n")
    tokens = Tokens([Token.of("write", "write", "w" * 32)], path)
    assert ["'ada'" in text for text in warnings(caplog)] == [True]
    caplog.clear()
    written(path, f"bob read {'b' * 16}\nzoe read {'z' * 8}\n")
    for _ in range(3):
        tokens.reload()
    (told,) = warnings(caplog)
    assert "token 'zoe' of TOKENS_FILE has fewer than 16 characters" in told
    assert "zzz" not in caplog.text


def test_only_a_writer_whom_nobody_can_write_to_is_warned_about(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(path, f"ada read {'a' * 16}\n")
    Tokens([], path, writable=False)
    Tokens([Token.of("write", "write", "w" * 32)], path)
    assert warnings(caplog) == []
    tokens = Tokens([Token.of("read", "read", "r" * 32)], path)
    (told,) = warnings(caplog)
    assert told.startswith("no token can write: set CRUD_AUTH_TOKEN, or add a line with the role write to TOKENS_FILE")
    caplog.clear()
    written(path, f"ada read {'a' * 16}\nbob write {'b' * 16}\n")
    tokens.reload()
    assert warnings(caplog) == []


def test_a_secret_with_several_names_is_warned_about(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one, other = "1" * 32, "2" * 32
    written(path, f"ada read {one}\nada read {one}\nbob read {one}\nzoe read {other}\n")
    Tokens([Token.of("read", "read", other)], path, writable=False)
    assert [text.rpartition("revoke it ")[2] for text in warnings(caplog)] == ["ada, bob", "read, zoe"]
    assert one not in caplog.text


# Rotation


def test_tokens_rotate_with_an_overlap(path: Path) -> None:
    tokens = Tokens([], path)
    written(path, "jane write t-jane\njane write t-jane-2\n")
    tokens.reload()
    assert [name(tokens, secret) for secret in ("t-jane", "t-jane-2", "t-flux")] == ["jane", "jane", None]
    written(path, "jane write t-jane-2\n")
    tokens.reload()
    assert [name(tokens, secret) for secret in ("t-jane", "t-jane-2")] == [None, "jane"]


def test_the_generation_grows_only_when_tokens_changed(path: Path) -> None:
    tokens = Tokens([], path)
    before = tokens.generation
    tokens.reload()
    assert tokens.generation == before
    written(path, "joe read t-joe\n")
    tokens.reload()
    assert tokens.generation > before


@pytest.mark.parametrize("breakage", ["nonsense\n", "", None, "open", "jane write t-ja"])
def test_a_broken_file_keeps_the_last_good_one_and_says_so_once(
    path: Path, breakage: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    tokens = Tokens([Token.of("read", "read", "r")], path)
    caplog.clear()
    if breakage is None:
        path.unlink()
    elif breakage == "open":
        path.chmod(0o644)
    else:
        written(path, breakage)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            tokens.reload()
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "last good one stays in force" in caplog.records[0].getMessage()
    assert [name(tokens, secret) for secret in ("r", "t-jane", "t-flux")] == ["read", "jane", "flux"]
    written(path, "joe read t-joe\n")
    tokens.reload()
    assert [name(tokens, secret) for secret in ("t-joe", "t-jane")] == ["joe", None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that have passed."""
    passed = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: passed[0])
    return passed


def test_a_failed_look_is_repeated_after_a_while_and_not_at_every_call(
    path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    tokens = Tokens([], path)
    caplog.clear()
    opened, original = [], os.open

    def failing(*arguments: Any) -> int:
        opened.append(arguments)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("os.open", failing)
    path.write_text("joe read t-joe\n")
    for seconds in range(5):
        clock[0] = float(seconds)
        for _ in range(100):
            tokens.reload()
    assert len(opened) == 5
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert [name(tokens, secret) for secret in ("t-jane", "t-joe")] == ["jane", None]
    monkeypatch.setattr("os.open", original)
    clock[0] += 1
    tokens.reload()
    assert [name(tokens, secret) for secret in ("t-jane", "t-joe")] == [None, "joe"]


def test_the_fingerprint_is_that_of_what_was_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is replaced between the look at it and its being opened, and once more after that."""
    tokens = Tokens([], path)
    original = os.open

    def overtaken(*arguments: Any) -> int:
        written(path, "second read t-second\n")
        opened = original(*arguments)
        monkeypatch.setattr("os.open", original)
        written(path, "third read t-third\n")
        return opened

    written(path, "first read t-first\n")
    monkeypatch.setattr("os.open", overtaken)
    tokens.reload()
    assert name(tokens, "t-second") == "second"
    tokens.reload()
    assert [name(tokens, secret) for secret in ("t-second", "t-third")] == [None, "third"]


def test_a_change_that_leaves_no_trace_is_found_all_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    """Written in place, as long as before, within one tick of a file system's coarse clock."""
    path.write_text("ada read 1111\n")
    stamped = path.stat()
    for look in ("os.stat", "os.fstat"):
        monkeypatch.setattr(look, lambda _: stamped)
    tokens = Tokens([], path)
    path.write_text("ada read 2222\n")
    clock[0] += 60
    tokens.reload()
    monkeypatch.undo()
    assert [name(tokens, secret) for secret in ("1111", "2222")] == [None, "ada"]


def test_without_a_file_there_is_nothing_to_reload() -> None:
    tokens = Tokens([Token.of("read", "read", "r")])
    tokens.reload()
    assert name(tokens, "r") == "read"
