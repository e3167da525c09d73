"""`fleet check-approvals` on real repositories of Git: whose approval counts, of which paths, by whose policy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli import forge_server
from cli.forge_server import Forge, Told
from cli.gated import Gated

pytestmark = pytest.mark.long

POLICY: dict[str, Any] = {
    "teams": {"sre": ["sre-1", "sre-2", "sre-3"], "tech-leads": ["lead-1"]},
    "people": {"sre-1": ["sre-1@acme.example"], "lead-1": ["lead-1@acme.example"], "dev-1": ["dev-1@acme.example"]},
    "bots": ["noreply@github.com"],
    "approvals": [
        {"paths": ["dev/**"], "require": {}},
        {"paths": ["staging/**"], "require": {"sre": 1}},
        {"paths": ["prod/**", "fleet.yaml"], "require": {"sre": 2, "tech-leads": 1}},
        {"paths": ["any.txt"], "require": {"any": 1}},
    ],
}
FINE = {"ok": True, "required": {}, "counted": {}, "missing": {}, "ignored": [], "blocked_by": [], "uncovered": [], "unknown": []}


@pytest.fixture
def fleet(tmp_path: Path) -> Gated:
    return prepared(Gated(tmp_path))


def prepared(fleet: Gated) -> Gated:
    fleet.policy(**POLICY)
    fleet.write("prod/notes.txt", "prod\n")
    fleet.commit("base")
    fleet.branch("change")
    return fleet


def changed(fleet: Gated, *paths: str, **who: Any) -> str:
    for path in paths:
        fleet.write(path, f"{path} of {who}\n")
    return fleet.commit(**who)


def approvals(fleet: Gated, *users: str, head: str | None = None, author: str | None = "dev-1", state: str = "approved") -> str:
    commit = head or fleet.git("rev-parse", "change")
    reviews = [{"user": user, "state": state, "commit": commit, "time": "2026-01-31T12:00:00Z"} for user in users]
    return json.dumps({"head": commit, "author": author, "reviews": reviews})


def verdict(fleet: Gated, code: int, given: str, *words: str) -> Any:
    """What the change is judged to be, against main; the reviews come from stdin."""
    done = fleet("check-approvals", "--base", "main", "--head", "change", "--approvals", "-", *words, stdin=given)
    assert done.code == code, done
    assert bool(done.lines) is bool(code), done
    return done.data


# The verdict


def test_a_change_with_the_approvals_of_all_its_paths_is_fine(fleet: Gated, tmp_path: Path) -> None:
    changed(fleet, "dev/x", "staging/x", "prod/x")
    file = tmp_path / "approvals.json"
    file.write_text("\ufeff" + approvals(fleet, "sre-1", "sre-2", "lead-1"))
    done = fleet("check-approvals", "--base", "main", "--approvals", str(file))
    counted = {"sre": ["sre-1", "sre-2"], "tech-leads": ["lead-1"]}
    assert (done.code, done.data) == (0, {**FINE, "required": {"sre": 2, "tech-leads": 1}, "counted": counted})


def test_a_change_that_lacks_approvals_is_refused(fleet: Gated) -> None:
    changed(fleet, "prod/x", "other.txt")
    done = fleet("check-approvals", "--base", "main", "--approvals", "-", stdin=approvals(fleet, "sre-3", "dev-1", "guest"))
    assert done.code == 3
    assert done.data == {
        "ok": False, "required": {"sre": 2, "tech-leads": 1}, "counted": {"sre": ["sre-3"], "tech-leads": []},
        "missing": {"sre": 1, "tech-leads": 1}, "blocked_by": [], "uncovered": ["other.txt"], "unknown": [],
        "ignored": [{"user": "dev-1", "why": "author"}, {"user": "guest", "why": "team"}],
    }  # fmt: skip
    assert done.lines == [
        "1 more of sre must approve",
        "1 more of tech-leads must approve",
        "other.txt has no rule in approvals of fleet.yaml",
    ]


def test_a_request_for_changes_blocks(fleet: Gated) -> None:
    changed(fleet, "dev/x")
    assert verdict(fleet, 3, approvals(fleet, "guest", state="changes_requested"))["blocked_by"] == ["guest"]


def test_no_change_needs_no_approval(fleet: Gated) -> None:
    fleet.commit("nothing in it")
    assert verdict(fleet, 0, approvals(fleet)) == FINE


def test_a_policy_without_rules_covers_nothing(fleet: Gated) -> None:
    fleet.on("main")
    fleet.policy()
    fleet.commit()
    fleet.branch("change")
    changed(fleet, "dev/x")
    assert verdict(fleet, 3, approvals(fleet, "sre-1"))["uncovered"] == ["dev/x"]


def test_a_change_cannot_loosen_the_policy_that_judges_it(fleet: Gated) -> None:
    fleet.policy(approvals=[{"paths": ["**"], "require": {}}], teams={"sre": ["dev-1", "dev-2"]})
    changed(fleet, "prod/x")
    found = verdict(fleet, 3, approvals(fleet, "dev-2"))
    assert (found["missing"], found["ignored"]) == ({"sre": 2, "tech-leads": 1}, [{"user": "dev-2", "why": "team"}])


# Paths


def test_a_renamed_file_is_changed_where_it_was_and_where_it_is(fleet: Gated) -> None:
    (fleet.root / "dev").mkdir()
    (fleet.root / "prod/notes.txt").rename(fleet.root / "dev/notes.txt")
    fleet.commit("moved")
    assert verdict(fleet, 3, approvals(fleet))["required"] == {"sre": 2, "tech-leads": 1}


def test_a_path_that_only_changed_its_mode_or_went_is_changed(fleet: Gated) -> None:
    (fleet.root / "prod/notes.txt").chmod(0o755)
    fleet.commit()
    assert verdict(fleet, 3, approvals(fleet))["required"] == {"sre": 2, "tech-leads": 1}
    (fleet.root / "prod/notes.txt").unlink()
    fleet.commit()
    assert verdict(fleet, 3, approvals(fleet))["required"] == {"sre": 2, "tech-leads": 1}


def test_paths_with_any_bytes_are_told(fleet: Gated) -> None:
    names = ["täxt", "with space", 'quo"te', "new\nline", "\x1b[2J"]
    for name in names:
        fleet.write(name, "x")
    (fleet.root / b"\xff".decode(errors="surrogateescape")).write_text("x")
    fleet.commit()
    done = fleet("check-approvals", "--base", "main", "--approvals", "-", stdin=approvals(fleet))
    assert (done.code, done.data["uncovered"]) == (3, sorted([*names, "\udcff"]))
    assert "\x1b" not in done.out + done.err
    assert len(done.err.splitlines()) == len(names) + 1


def test_many_uncovered_paths_are_counted_on_stderr_and_listed_on_stdout(fleet: Gated) -> None:
    changed(fleet, *(f"other/{number}" for number in range(25)))
    done = fleet("check-approvals", "--base", "main", "--approvals", "-", stdin=approvals(fleet))
    assert (len(done.data["uncovered"]), len(done.lines), done.lines[-1]) == (25, 21, "and 5 more")


def test_what_is_outside_of_the_fleet_has_no_rule_whatever_its_name(tmp_path: Path) -> None:
    fleet = prepared(Gated(tmp_path, "platform/fleet"))
    changed(fleet, "dev/x")
    assert verdict(fleet, 0, approvals(fleet)) == FINE
    for path in ("dev/y", "platform/dev/z", "platform/fleet2/dev/x"):
        file = fleet.repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    fleet.commit()
    found = verdict(fleet, 3, approvals(fleet))
    assert (found["ok"], found["uncovered"]) == (False, ["../../dev/y", "../dev/z", "../fleet2/dev/x"])


def test_what_base_changed_meanwhile_needs_no_approval(fleet: Gated) -> None:
    changed(fleet, "dev/x")
    fleet.on("main")
    changed(fleet, "prod/y", email="lead-1@acme.example")
    assert verdict(fleet, 0, approvals(fleet)) == FINE
    fleet.on("change")
    fleet.merge("main")
    assert verdict(fleet, 0, approvals(fleet)) == FINE


def test_a_change_and_its_revert_are_no_change(fleet: Gated) -> None:
    changed(fleet, "prod/notes.txt")
    fleet.git("revert", "--no-edit", "HEAD")
    assert verdict(fleet, 0, approvals(fleet)) == FINE


def test_crossed_merges_hide_no_path(fleet: Gated) -> None:
    """Head equals one of the places where the histories met, and would nevertheless change base."""
    fleet.branch("side", "main")
    side = changed(fleet, "dev/side")
    fleet.on("main")
    middle = changed(fleet, "prod/notes.txt")
    fleet.merge("side")
    fleet.branch("change", side)
    for first, second in ((side, middle), (middle, side)):
        fleet.joined(first, second, message="takes base in, and leaves prod as it was")
        assert verdict(fleet, 3, approvals(fleet))["required"] == {"sre": 2, "tech-leads": 1}


# Writers


@pytest.mark.parametrize(
    "who",
    [
        {"email": "sre-1@acme.example"},
        {"email": "SRE-1@Acme.example"},
        {"committer": "sre-1@acme.example"},
        {"message": "change\n\nCo-authored-by: Some One <sre-1@acme.example>"},
        {"message": "change\n\nco-authored-by: A <dev-1@acme.example>\nCo-Authored-By: B <SRE-1@acme.example>"},
        {"email": "12345+sre-1@users.noreply.github.com"},
        {"email": "98765-sre-1@users.noreply.gitlab.com"},
    ],
)
def test_nobody_who_wrote_a_commit_counts(fleet: Gated, who: dict[str, str]) -> None:
    changed(fleet, "staging/x", **who)
    changed(fleet, "staging/y")
    found = verdict(fleet, 3, approvals(fleet, "sre-1"))
    assert found["ignored"] == [{"user": "sre-1", "why": "author"}]
    assert verdict(fleet, 0, approvals(fleet, "sre-1", "sre-2"))["counted"] == {"sre": ["sre-2"]}


def test_who_merged_base_into_the_change_is_a_writer(fleet: Gated) -> None:
    changed(fleet, "staging/x")
    fleet.on("main")
    changed(fleet, "staging/y")
    fleet.on("change")
    fleet.merge("main", email="sre-1@acme.example")
    assert verdict(fleet, 3, approvals(fleet, "sre-1"))["ignored"] == [{"user": "sre-1", "why": "author"}]


def test_who_wrote_what_another_reverted_is_a_writer(fleet: Gated) -> None:
    changed(fleet, "staging/x", email="sre-1@acme.example")
    fleet.git("revert", "--no-edit", "HEAD")
    changed(fleet, "staging/y")
    assert verdict(fleet, 3, approvals(fleet, "sre-1"))["ignored"] == [{"user": "sre-1", "why": "author"}]


def test_writers_of_every_branch_that_a_change_took_in_count(fleet: Gated) -> None:
    for name in ("sre-1", "lead-1"):
        fleet.branch(name, "main")
        changed(fleet, f"prod/{name}", email=f"{name}@acme.example")
    fleet.on("change")
    changed(fleet, "prod/x")
    fleet.merge("sre-1", "lead-1")
    found = verdict(fleet, 3, approvals(fleet, "sre-1", "sre-2", "lead-1"))
    assert (found["missing"], [each["why"] for each in found["ignored"]]) == ({"sre": 1, "tech-leads": 1}, ["author"] * 2)


def test_who_wrote_what_base_has_already_is_no_writer(fleet: Gated) -> None:
    fleet.on("main")
    changed(fleet, "staging/x", email="sre-1@acme.example")
    fleet.on("change")
    changed(fleet, "staging/y")
    fleet.merge("main")
    assert verdict(fleet, 0, approvals(fleet, "sre-1"))["counted"] == {"sre": ["sre-1"]}


def test_the_committer_of_the_pages_of_github_is_listed_as_a_bot(fleet: Gated) -> None:
    changed(fleet, "any.txt", committer="noreply@github.com")
    assert verdict(fleet, 0, approvals(fleet, "guest"))["counted"] == {"any": ["guest"]}
    changed(fleet, "any.txt", email="noreply@github.com")
    done = fleet("check-approvals", "--base", "main", "--approvals", "-", stdin=approvals(fleet, "guest"))
    assert done.code == 3
    assert "which GitHub never writes" in done.lines[0]


@pytest.mark.parametrize(
    "who",
    [
        {"email": "hidden@home.example"},
        {"committer": "hidden@home.example"},
        {"message": "change\n\nCo-authored-by: Some One <hidden@home.example>"},
        {"email": "sre-1@\u212aacme.example"},
        {"email": "12345+sre-2@users.noreply.github.com"},  # of a team, but not of people
        {"email": "sre-1@users.noreply.evil.example"},
    ],
)
def test_a_change_by_a_writer_whom_the_policy_does_not_list_is_refused(fleet: Gated, who: dict[str, str]) -> None:
    head = changed(fleet, "staging/x", **who)
    changed(fleet, "staging/y")
    done = fleet("check-approvals", "--base", "main", "--approvals", "-", stdin=approvals(fleet, "sre-2"))
    assert (done.code, done.data["ok"], done.data["missing"]) == (3, False, {})
    (unknown,) = done.data["unknown"]
    assert unknown["commit"] == head
    assert done.lines == [
        f"{unknown['email']}, the {unknown['role']} of {head[:12]}, is not in fleet.yaml; "
        "add it to people under its user, or to bots if it is a program"
    ]


def test_an_empty_address_is_that_of_an_unknown_writer(fleet: Gated) -> None:
    fleet.write("staging/x", "x")
    fleet.git("add", "-A")
    body = (
        f"tree {fleet.git('write-tree')}\nparent {fleet.git('rev-parse', 'HEAD')}\n"
        "author A <> 1 +0000\ncommitter B <dev-1@acme.example> 1 +0000\n\nchange\n"
    )
    made = fleet.git("hash-object", "-t", "commit", "-w", "--stdin", input=body)
    fleet.git("update-ref", "refs/heads/change", made)
    assert verdict(fleet, 3, approvals(fleet, "sre-1"))["unknown"] == [{"email": "", "role": "author", "commit": made}]


@pytest.mark.parametrize("field", ["people", "bots"])
def test_a_change_cannot_list_its_own_writer(fleet: Gated, field: str) -> None:
    listed = {"dev-1": ["hidden@home.example"]} if field == "people" else ["hidden@home.example"]
    fleet.policy(**{**POLICY, field: listed, "approvals": [{"paths": ["**"], "require": {"any": 1}}]})
    changed(fleet, "any.txt", email="hidden@home.example")
    found = verdict(fleet, 3, approvals(fleet, "sre-1", "sre-2", "lead-1", "guest"))
    assert [each["email"] for each in found["unknown"]] == ["hidden@home.example"]


def test_a_mailmap_in_the_change_does_not_replace_the_address_of_a_writer(fleet: Gated) -> None:
    fleet.write(".mailmap", "Dev <dev-1@acme.example> <hidden@home.example>\n")
    changed(fleet, "staging/x", email="hidden@home.example")
    found = verdict(fleet, 3, approvals(fleet, "sre-1"))
    assert [each["email"] for each in found["unknown"]] == ["hidden@home.example"]


def test_a_merge_by_an_unknown_address_is_refused(fleet: Gated) -> None:
    changed(fleet, "staging/x")
    fleet.on("main")
    changed(fleet, "staging/y", email="other@home.example")
    fleet.on("change")
    assert verdict(fleet, 0, approvals(fleet, "sre-1"))["unknown"] == [], "base has what others wrote"
    fleet.merge("main", email="hidden@home.example")
    assert [each["email"] for each in verdict(fleet, 3, approvals(fleet, "sre-1"))["unknown"]] == ["hidden@home.example"]


def test_unknown_writers_may_change_what_needs_no_approval(fleet: Gated) -> None:
    changed(fleet, "dev/x", email="hidden@home.example")
    assert verdict(fleet, 0, approvals(fleet)) == FINE


# Where approvals come from


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "Give one of"),
        (["--approvals", "x.json", "--github", "a/b#1"], "Give one of"),
        (["--approvals", "-", "--gitlab", "a/b!1"], "Give one of"),
        (["--github", "a/b#1", "--gitlab", "a/b!1"], "Give one of"),
        (["--approvals", ""], "cannot be read"),
        (["--approvals", "no-such-file.json"], "cannot be read"),
        (["--approvals", "."], "cannot be read"),
        (["--github", ""], "--github is ''"),
        (["--gitlab", ""], "--gitlab is ''"),
    ],
)
def test_approvals_come_from_one_place(fleet: Gated, words: list[str], why: str) -> None:
    assert why in fleet.refused(2, "check-approvals", "--base", "main", *words)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "invalid JSON"),
        (b"\xff\xfe\x00\x00" * 100, "not UTF-8"),
        (b"\x89PNG\r\n\x1a\n\x00", "not UTF-8"),
        (b"[" * 100_000, "nested"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested"),
        (b"{} {}", "invalid JSON"),
        (b"NaN", "invalid JSON"),
        (b"[]", "must be an object"),
        (b"{}", "lacks head"),
        (b'{"head": "x", "head": "y", "author": null, "reviews": []}', "duplicate key"),
        (b'{"head": " ", "author": null, "reviews": []}', "head is ' '"),
        (b'{"head": "\\ud800", "author": null, "reviews": []}', "surrogate"),
        (b" " * (10 * 1024 * 1024 + 1), "more than"),
    ],
)
def test_a_file_that_is_no_list_of_reviews_is_refused(fleet: Gated, body: bytes, why: str) -> None:
    line = fleet.refused(2, "check-approvals", "--base", "main", "--approvals", "-", stdin=body)
    assert line.startswith("stdin: ")
    assert why in line


def test_a_file_that_is_too_large_is_refused_by_name(fleet: Gated, tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    file.write_bytes(b" " * (10 * 1024 * 1024 + 1))
    line = fleet.refused(2, "check-approvals", "--base", "main", "--approvals", str(file))
    assert line == f"{file}: has more than {10 * 1024 * 1024} bytes"


def test_the_verdict_has_a_name(fleet: Gated) -> None:
    words = ("check-approvals", "--base", "main", "--approvals", "-", "-o", "name")
    assert fleet(*words, stdin=approvals(fleet)).out == "ok\n"
    changed(fleet, "prod/x")
    assert fleet(*words, stdin=approvals(fleet)).out == "refused\n"


def test_approvals_of_another_head_are_refused(fleet: Gated) -> None:
    before = changed(fleet, "dev/x")
    changed(fleet, "dev/y")
    words = ("check-approvals", "--base", "main", "--approvals", "-")
    assert before in fleet.refused(6, *words, stdin=approvals(fleet, head=before))
    assert "the approvals are of head" in fleet.refused(6, *words, stdin=approvals(fleet, head="HEAD"))
    assert fleet(*words, "--head", before, stdin=approvals(fleet, head=before)).code == 0
    assert (
        fleet(
            *words,
            stdin=approvals(fleet).upper().replace("HEAD", "head").replace("AUTHOR", "author").replace("REVIEWS", "reviews"),
        ).code
        == 0
    )


def test_an_approval_of_another_commit_is_stale(fleet: Gated) -> None:
    before = changed(fleet, "staging/x")
    given = json.loads(approvals(fleet, "sre-1"))
    given["head"] = changed(fleet, "staging/y")
    found = verdict(fleet, 3, json.dumps(given))
    assert (given["reviews"][0]["commit"], found["ignored"]) == (before, [{"user": "sre-1", "why": "stale"}])


# Forges


@pytest.fixture
def forge() -> Iterator[Forge]:
    with forge_server.running() as server:
        yield server


def test_a_pull_request_of_github_is_judged_by_its_reviews(fleet: Gated, forge: Forge) -> None:
    head = changed(fleet, "staging/x")
    review = {"user": {"login": "sre-2"}, "state": "APPROVED", "commit_id": head, "submitted_at": "2026-01-31T12:00:00Z"}
    path = "/api/v3/repos/acme/fleet/pulls/7"
    forge.pages[path] = Told({"head": {"sha": head}, "user": {"login": "dev-1"}})
    forge.pages[f"{path}/reviews"] = Told([review])
    fleet.cli = fleet.cli.but(**forge.github)
    words = ("check-approvals", "--base", "main", "--github", "acme/fleet#7")
    done = fleet(*words)
    assert (done.code, done.data["counted"]) == (0, {"sre": ["sre-2"]})
    changed(fleet, "staging/y")
    assert head in fleet.refused(6, *words)
    assert fleet.refused(4, "check-approvals", "--base", "main", "--github", "acme/fleet#8")


def test_a_merge_request_of_gitlab_is_judged_by_its_approvals(fleet: Gated, forge: Forge) -> None:
    head = changed(fleet, "staging/x")
    path = "/api/v4/projects/acme%2Ffleet/merge_requests/7"
    forge.pages[path] = Told({"sha": head, "author": {"username": "dev-1"}})
    forge.pages[f"{path}/versions"] = Told([{"id": 1, "head_commit_sha": head, "created_at": "2026-01-31T11:00:00Z"}])
    forge.pages[f"{path}/reviewers"] = Told([])
    approved = {"user": {"username": "sre-2"}, "approved_at": "2026-01-31T12:00:00Z"}
    forge.pages[f"{path}/approvals"] = Told({"approved_by": [approved]})
    fleet.cli = fleet.cli.but(**forge.gitlab)
    words = ("check-approvals", "--base", "main", "--gitlab", "acme/fleet!7")
    done = fleet(*words)
    assert (done.code, done.data["counted"]) == (0, {"sre": ["sre-2"]})
    changed(fleet, "staging/y")
    assert head in fleet.refused(6, *words)


@pytest.mark.long
def test_a_terminal_shows_who_counts_and_what_is_missing(fleet: Gated, tmp_path: Path) -> None:
    changed(fleet, "prod/x")
    file = tmp_path / "approvals.json"
    file.write_text(approvals(fleet, "sre-3", "dev-1"))
    words = ("fleet", "check-approvals", "--base", "main", "--approvals", str(file), "--repo", str(fleet.root))
    shown = fleet.cli.but(NO_COLOR="1").on_terminal(*words)
    assert (shown.code, shown.out.splitlines()) == (
        3,
        [
            "sre: 1 of 2 (sre-3)",
            "tech-leads: 0 of 1",
            "dev-1 does not count: author",
            "error: 1 more of sre must approve",
            "error: 1 more of tech-leads must approve",
        ],
    )
    fleet.on("main")
    file.write_text(approvals(fleet, head=fleet.git("rev-parse", "main")))
    assert fleet.cli.on_terminal(*words).out == "nothing had to be checked: the change has no path that requires an approval\n"


def test_a_submodule_is_a_changed_path_whatever_the_repository_says_of_it(fleet: Gated) -> None:
    fleet.on("main")
    fleet.write(".gitmodules", '[submodule "s"]\n path = prod/s\n url = https://acme.example/s\n ignore = all\n')
    fleet.commit()
    fleet.branch("change")
    fleet.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},prod/s")
    fleet.git("commit", "-q", "--allow-empty", "-m", "submodule")  # to Git, nothing has changed
    fleet.git("config", "diff.ignoreSubmodules", "all")
    assert verdict(fleet, 3, approvals(fleet))["required"] == {"sre": 2, "tech-leads": 1}


@pytest.mark.parametrize("message", ["\n\nleading lines", "", "\n", "subject\n\n\n\n", "a\0b"])
def test_a_commit_with_any_message_has_its_writers(fleet: Gated, message: str) -> None:
    fleet.write("staging/x", "x")
    fleet.git("add", "-A")
    body = (
        f"tree {fleet.git('write-tree')}\nparent {fleet.git('rev-parse', 'HEAD')}\n"
        f"author A <sre-1@acme.example> 1 +0000\ncommitter B <dev-1@acme.example> 1 +0000\n\n{message}"
    )
    made = fleet.git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", input=body)
    fleet.git("update-ref", "refs/heads/change", made)
    changed(fleet, "staging/y")
    assert verdict(fleet, 3, approvals(fleet, "sre-1"))["ignored"] == [{"user": "sre-1", "why": "author"}]
