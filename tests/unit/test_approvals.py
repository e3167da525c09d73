"""Whether approvals suffice: rules combine, one person fills one place, and writers, stale and dismissed ones do not count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flux_resourceset.repositories import approvals, policy
from flux_resourceset.repositories.approvals import Commit, Review

HEAD = "a" * 40
OLD = "b" * 40
NOON = "2026-01-31T12:00:00Z"
TEAMS = {"sre": ["sre-1", "sre-2", "sre-3"], "tech-leads": ["lead-1", "both"], "security": ["both"]}
PEOPLE = {"sre-1": ["sre-1@acme.example"], "lead-1": ["Lead@acme.example", "lead@home.example"], "sre-2": [], "dev-1": ["a@b"]}
BOTS = ["renovate@acme.example", "noreply@github.com", "7+updates@users.noreply.github.com"]
RULES = [
    {"paths": ["dev/**"], "require": {}},
    {"paths": ["staging/**"], "require": {"sre": 1}},
    {"paths": ["prod/**", "fleet.yaml", "keys/**", ".github/**"], "require": {"sre": 2, "tech-leads": 1}},
    {"paths": ["**/secrets.yaml"], "require": {"security": 1}},
    {"paths": ["docs/**"], "require": {"any": 2}},
]


def review(user: str, state: str = "approved", commit: str = HEAD, time: str = NOON) -> Review:
    return Review(user, state, commit, time)


def judged(*reviews: Review, changed: tuple[str, ...] = ("prod/c/x",), **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"author": "dev-1", "rules": RULES, "teams": TEAMS, "people": PEOPLE, "bots": BOTS, "head": HEAD}
    commits = [Commit(OLD, email, email) for email in more.pop("emails", [])]
    return approvals.verdict(changed=changed, reviews=reviews, **{**given, "commits": commits, **more})


def ignored(answer: dict[str, Any]) -> dict[str, str]:
    return {each["user"]: each["why"] for each in answer["ignored"]}


# Rules


def test_enough_approvals_of_every_team_are_an_answer_with_nothing_missing() -> None:
    assert judged(review("sre-2"), review("lead-1"), review("sre-1")) == {
        "ok": True,
        "required": {"sre": 2, "tech-leads": 1},
        "counted": {"sre": ["sre-1", "sre-2"], "tech-leads": ["lead-1"]},
        "missing": {},
        "ignored": [],
        "blocked_by": [],
        "uncovered": [],
        "unknown": [],
    }


def test_no_approval_at_all_misses_everything() -> None:
    answer = judged()
    assert (answer["ok"], answer["missing"]) == (False, {"sre": 2, "tech-leads": 1})
    assert answer["counted"] == {"sre": [], "tech-leads": []}


def test_rules_of_all_changed_paths_combine_and_the_strictest_of_a_team_holds() -> None:
    answer = judged(changed=("staging/c/x", "prod/c/x", "dev/c/x", "docs/a"))
    assert answer["required"] == {"any": 2, "sre": 2, "tech-leads": 1}


def test_a_path_under_several_rules_needs_all_of_them() -> None:
    assert judged(changed=("staging/c/tenants/t/secrets.yaml",))["required"] == {"security": 1, "sre": 1}


def test_a_path_without_a_rule_is_refused_whoever_approves() -> None:
    answer = judged(review("sre-1"), changed=("terraform/x", "staging/c/x", "README.md"))
    assert (answer["ok"], answer["missing"], answer["uncovered"]) == (False, {}, ["README.md", "terraform/x"])


def test_a_rule_that_requires_nothing_is_a_rule() -> None:
    answer = judged(changed=("dev/c/x",))
    assert (answer["ok"], answer["required"], answer["counted"], answer["uncovered"]) == (True, {}, {}, [])


def test_a_change_of_nothing_needs_nothing() -> None:
    assert judged(changed=())["ok"]


def test_a_required_team_that_nobody_is_in_stays_missing() -> None:
    answer = judged(review("sre-1"), rules=[{"paths": ["**"], "require": {"ghosts": 1, "sre": 0}}])
    assert (answer["ok"], answer["required"], answer["missing"]) == (False, {"ghosts": 1}, {"ghosts": 1})


# Places


def test_one_person_fills_one_place() -> None:
    answer = judged(review("both"), changed=("x",), rules=[{"paths": ["x"], "require": {"tech-leads": 1, "security": 1}}])
    assert not answer["ok"]
    assert sum(answer["missing"].values()) == 1
    assert sum(map(len, answer["counted"].values())) == 1


def test_whoever_could_fill_two_places_takes_the_one_that_others_cannot() -> None:
    rules = [{"paths": ["x"], "require": {"tech-leads": 1, "security": 1}}]
    answer = judged(review("both"), review("lead-1"), changed=("x",), rules=rules)
    assert (answer["ok"], answer["counted"]) == (True, {"security": ["both"], "tech-leads": ["lead-1"]})


def test_a_long_chain_of_people_is_moved_to_make_room() -> None:
    chain = {f"t{number}": [f"u{number}", f"u{number + 1}"] for number in range(9)}
    rules = [{"paths": ["x"], "require": dict.fromkeys(chain, 1)}]
    reviews = [review(f"u{number}") for number in range(1, 10)]
    answer = judged(*reviews, changed=("x",), rules=rules, teams=chain)
    assert (answer["ok"], answer["counted"]["t0"], answer["counted"]["t8"]) == (True, ["u1"], ["u9"])


def test_who_is_not_needed_is_neither_counted_nor_ignored() -> None:
    answer = judged(review("sre-2"), review("sre-1"), changed=("staging/c/x",))
    assert (answer["ok"], answer["counted"], answer["ignored"]) == (True, {"sre": ["sre-1"]}, [])


def test_who_is_in_no_required_team_is_ignored() -> None:
    answer = judged(review("lead-1"), review("stranger"), changed=("staging/c/x",))
    assert (answer["ok"], ignored(answer)) == (False, {"lead-1": "team", "stranger": "team"})


def test_team_any_is_everybody_but_the_writers() -> None:
    answer = judged(review("stranger"), review("dev-1"), review("sre-1"), changed=("docs/a",), emails=["SRE-1@acme.example"])
    assert (answer["ok"], answer["missing"], answer["counted"]) == (False, {"any": 1}, {"any": ["stranger"]})
    assert ignored(answer) == {"dev-1": "author", "sre-1": "author"}


def test_a_place_of_any_is_filled_last() -> None:
    rules = [{"paths": ["x"], "require": {"any": 1, "sre": 1}}]
    assert judged(review("sre-1"), changed=("x",), rules=rules)["missing"] == {"any": 1}
    assert judged(review("sre-1"), review("sre-2"), changed=("x",), rules=rules)["ok"]
    assert judged(review("a"), review("sre-2"), changed=("x",), rules=rules)["counted"] == {"any": ["a"], "sre": ["sre-2"]}


# Writers


def test_the_author_does_not_count() -> None:
    answer = judged(review("SRE-1"), author="sre-1", changed=("staging/c/x",))
    assert (answer["ok"], ignored(answer)) == (False, {"SRE-1": "author"})


@pytest.mark.parametrize(
    ("email", "user"),
    [
        ("sre-1@acme.example", "sre-1"),
        ("SRE-1@ACME.example", "sre-1"),
        ("lead@ACME.example", "lead-1"),
        ("lead@home.example", "lead-1"),
        ("sre-2@users.noreply.github.com", "sre-2"),
        ("123456+SRE-2@users.noreply.github.com", "sre-2"),
        ("123456-sre-2@users.noreply.gitlab.com", "sre-2"),
    ],
)
def test_whoever_wrote_a_commit_does_not_count(email: str, user: str) -> None:
    answer = judged(review(user), changed=("x",), rules=[{"paths": ["x"], "require": {"any": 1}}], emails=["a@b", email])
    assert (answer["ok"], ignored(answer)) == (False, {user: "author"})


@pytest.mark.parametrize(
    "email",
    [
        "stranger@acme.example",
        "sre-1@evil.example",
        "sre-\u017f1@acme.example",
        "\u017fre-1@acme.example",  # a long s, which folds to s
        "sre-1@acme.example.",
        "123-sre-1@users.noreply.github.com",
        "sre-3@users.noreply.github.com",  # of a team, but not of people
        "5+sre-3@users.noreply.github.com",
        "123456-sre-3@users.noreply.gitlab.com",
        "sre-2@users.noreply.gitlab.com",
        "123456-sre-2@users.noreply.gitlab.evil.example",
        "sre-2@users.noreply.github.evil.example",
        "sre-2@users.noreply.githubxcom",
        "noreply@users.noreply.github.com",
        "noreply@anthropic.com",
        "sre-1",
        "",
        " ",
    ],
)
def test_a_writer_whom_the_policy_does_not_list_is_refused(email: str) -> None:
    answer = judged(review("sre-1"), changed=("staging/c/x",), emails=["a@b", email])
    assert (answer["ok"], answer["missing"]) == (False, {})
    assert answer["unknown"] == [{"email": email.strip(), "role": "author", "commit": OLD}]


def test_every_writer_of_a_commit_must_be_listed() -> None:
    known = "sre-2@users.noreply.github.com"
    for role, commit in {
        "author": Commit(OLD, "x@y", known),
        "committer": Commit(OLD, known, "x@y"),
        "co-author": Commit(OLD, known, known, (known, "x@y")),
    }.items():
        answer = judged(review("sre-1"), changed=("staging/c/x",), commits=[commit])
        assert (answer["ok"], answer["unknown"]) == (False, [{"email": "x@y", "role": role, "commit": OLD}])


def test_an_unknown_writer_is_named_once() -> None:
    commits = [Commit(HEAD, "X@y", "x@y", ("x@Y",)), Commit(OLD, "x@y", "x@y")]
    answer = judged(review("sre-1"), changed=("staging/c/x",), commits=commits)
    assert answer["unknown"] == [{"email": "X@y", "role": "author", "commit": HEAD}]


def test_unknown_writers_are_allowed_where_no_approval_is_required() -> None:
    answer = judged(changed=("dev/c/x",), emails=["stranger@acme.example", ""])
    assert (answer["ok"], answer["unknown"]) == (True, [])


@pytest.mark.parametrize("email", ["renovate@acme.example", "RENOVATE@Acme.example", "7+updates@users.noreply.github.com"])
def test_a_bot_of_the_policy_may_write_and_excludes_no_approval(email: str) -> None:
    answer = judged(review("sre-1"), changed=("staging/c/x",), emails=[email])
    assert (answer["ok"], answer["unknown"], answer["counted"]) == (True, [], {"sre": ["sre-1"]})


@pytest.mark.parametrize("user", ["updates", "Updates", "github-actions[bot]", "project_17_bot_0a1b2c", "group_3_bot1"])
def test_a_bot_approves_nothing(user: str) -> None:
    answer = judged(
        review(user), changed=("x",), rules=[{"paths": ["x"], "require": {"any": 1, "robots": 1}}], teams={"robots": [user]}
    )
    assert (answer["ok"], ignored(answer)) == (False, {user: "bot"})


def test_an_address_that_names_a_person_is_theirs_even_if_bots_lists_it() -> None:
    bots = ["5+sre-1@users.noreply.github.com"]
    answer = judged(review("sre-1"), changed=("staging/c/x",), emails=bots, bots=bots)
    assert (answer["ok"], ignored(answer)) == (False, {"sre-1": "author"})
    assert judged(review("sre-1"), changed=("staging/c/x",), bots=bots)["ok"]


def test_the_pages_of_github_commit_and_never_write() -> None:
    edited = Commit(OLD, "a@b", "noreply@github.com")
    assert judged(review("sre-1"), changed=("staging/c/x",), commits=[edited])["ok"]
    assert not judged(review("sre-1"), changed=("staging/c/x",), commits=[edited], bots=[])["ok"]
    for forged in (Commit(OLD, "NoReply@GitHub.com", "noreply@github.com"), Commit(OLD, "a@b", "a@b", ("noreply@github.com",))):
        assert judged(review("sre-1"), changed=("staging/c/x",), commits=[forged])["unknown"]


@pytest.mark.parametrize(
    ("email", "role", "words"),
    [
        ("x@y", "author", "x@y, the author of bbbbbbbbbbbb, is not in fleet.yaml; add it to people under its user, or to bots"),
        ("", "committer", "the committer of bbbbbbbbbbbb has no address"),
        ("noreply@github.com", "committer", "add it to bots of fleet.yaml"),
        ("noreply@github.com", "author", "which GitHub never writes"),
    ],
)
def test_an_unknown_writer_comes_with_its_remedy(email: str, role: str, words: str) -> None:
    assert words in approvals.remedy({"email": email, "role": role, "commit": OLD})


def test_a_change_without_a_known_author_is_judged_by_its_commits() -> None:
    assert judged(review("sre-1"), changed=("staging/c/x",), author=None)["ok"]
    assert not judged(review("sre-1"), changed=("staging/c/x",), author=None, emails=["sre-1@acme.example"])["ok"]


def test_users_are_compared_without_case_and_shown_as_the_forge_has_them() -> None:
    answer = judged(review("SRE-1"), changed=("staging/c/x",))
    assert (answer["ok"], answer["counted"]) == (True, {"sre": ["SRE-1"]})


def test_a_name_that_only_looks_alike_is_no_member() -> None:
    answer = judged(review("\u212aarl"), changed=("x",), rules=[{"paths": ["x"], "require": {"k": 1}}], teams={"k": ["karl"]})
    assert not answer["ok"]


# Reviews


def test_an_approval_of_another_commit_is_stale() -> None:
    answer = judged(review("sre-1", commit=OLD), review("sre-2", commit=""), changed=("staging/c/x",))
    assert (answer["ok"], ignored(answer)) == (False, {"sre-1": "stale", "sre-2": "stale"})


def test_commits_are_compared_without_case() -> None:
    assert judged(review("sre-1", commit=HEAD.upper()), changed=("staging/c/x",))["ok"]


def test_the_last_review_of_a_user_holds_and_comments_change_nothing() -> None:
    first, second, third = "2026-01-31T12:00:00Z", "2026-01-31T12:00:01Z", "2026-01-31T12:00:02Z"
    taken_back = judged(review("sre-1", time=first), review("SRE-1", "changes_requested", time=second), changed=("staging/c/x",))
    assert (taken_back["ok"], taken_back["blocked_by"]) == (False, ["SRE-1"])
    granted = [review("sre-1", time=second), review("sre-1", "changes_requested", time=first)]
    assert judged(*granted, review("sre-1", "commented", time=third), changed=("staging/c/x",))["ok"]
    assert not judged(review("sre-1", "commented"), changed=("staging/c/x",))["ok"]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("2026-01-31T12:00:00+02:00", "2026-01-31T11:00:00Z"),
        ("2026-01-31T23:30:00-00:30", "2026-02-01T00:00:00.1Z"),
        ("2026-01-31T12:00:00.49Z", "2026-01-31T12:00:00.5Z"),
        ("2026-01-31T12:00:00.0000000001Z", "2026-01-31T12:00:00.0000000002z"),
        ("2026-01-31T12:00:00.000Z", "2026-01-31t12:00:00.0001z"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),  # one instant: the later in the list
        ("2026-01-31T12:00:00.500Z", "2026-01-31T14:00:00.5+02:00"),
        ("2016-12-31T23:59:59.9Z", "2016-12-31T23:59:60Z"),
        ("0001-01-01T00:00:00+12:00", "0001-01-01T00:00:00Z"),
    ],
)
def test_last_is_by_instant_then_by_position(earlier: str, later: str) -> None:
    reviews = [review("sre-1", "changes_requested", time=earlier), review("sre-1", time=later)]
    assert judged(*reviews, changed=("staging/c/x",))["ok"]
    same = approvals.instant(earlier) == approvals.instant(later)
    assert judged(*reversed(reviews), changed=("staging/c/x",))["ok"] is not same


def test_a_dismissed_review_is_ignored() -> None:
    answer = judged(review("sre-1", "dismissed"), review("lead-1", "dismissed"), changed=("staging/c/x",))
    assert (answer["ok"], ignored(answer)) == (False, {"sre-1": "dismissed", "lead-1": "dismissed"})


def test_an_approval_after_a_dismissed_one_counts() -> None:
    reviews = [review("sre-1", "dismissed"), review("sre-1", time="2026-01-31T12:00:01Z")]
    assert judged(*reviews, changed=("staging/c/x",))["ok"]


def test_the_first_reason_that_holds_is_told() -> None:
    answer = judged(
        review("sre-1", "dismissed", commit=OLD),
        review("nobody", commit=OLD),
        review("lead-1", commit=OLD),
        changed=("staging/c/x",),
        author="sre-1",
        emails=["lead@home.example"],
    )
    assert answer["ignored"] == [
        {"user": "lead-1", "why": "author"},
        {"user": "nobody", "why": "stale"},
        {"user": "sre-1", "why": "dismissed"},
    ]


@pytest.mark.parametrize("commit", [HEAD, OLD])
@pytest.mark.parametrize("user", ["sre-3", "stranger", "lead-1"])
def test_a_standing_request_for_changes_blocks_whoever_made_it_stale_or_not(user: str, commit: str) -> None:
    against = review(user, "changes_requested", commit)
    answer = judged(review("sre-1"), against, changed=("staging/c/x",), emails=["lead@home.example"])
    assert (answer["ok"], answer["missing"], answer["blocked_by"]) == (False, {}, [user])


def test_the_author_cannot_block_the_own_change() -> None:
    answer = judged(review("sre-1"), review("DEV-1", "changes_requested"), changed=("staging/c/x",))
    assert (answer["ok"], answer["blocked_by"]) == (True, [])


# The file

FILE: dict[str, Any] = {
    "head": HEAD,
    "author": "dev-1",
    "reviews": [{"user": "sre-1", "state": "approved", "commit": HEAD.upper(), "time": "2026-01-31T12:00:00.5+01:00"}],
}


def test_a_file_is_read() -> None:
    reviews = [Review("sre-1", "approved", HEAD, "2026-01-31T12:00:00.5+01:00")]
    assert approvals.reviews_of(FILE) == (HEAD, "dev-1", reviews)
    assert approvals.reviews_of({**FILE, "author": None, "head": "C" * 64}) == ("c" * 64, None, reviews)


def of_review(**members: Any) -> dict[str, Any]:
    remark = {"user": "u", "state": "commented", "commit": OLD, "time": NOON}
    return {**FILE, "reviews": [remark, {**FILE["reviews"][0], **members}]}


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ([], "the file"),
        (None, "the file"),
        ({**FILE, "base": HEAD}, "'base'"),
        ({"author": "a", "reviews": []}, "head"),
        ({"head": HEAD, "reviews": []}, "author"),
        ({"head": HEAD, "author": "a"}, "reviews"),
        ({**FILE, "head": HEAD + "\n"}, "head"),
        ({**FILE, "head": None}, "head"),
        ({**FILE, "author": ""}, "author"),
        ({**FILE, "author": 7}, "author"),
        ({**FILE, "author": "a b"}, "author"),
        ({**FILE, "reviews": {}}, "reviews"),
        ({**FILE, "reviews": [3]}, "reviews[0]"),
        (of_review(body="x"), "reviews[1] has an unknown key 'body'"),
        (of_review(user=""), "reviews[1].user"),
        (of_review(user="a\nb"), "reviews[1].user"),
        (of_review(state="APPROVED"), "reviews[1].state"),
        (of_review(state="pending"), "reviews[1].state"),
        (of_review(state=["approved"]), "reviews[1].state"),
        (of_review(commit=None), "reviews[1].commit"),
        (of_review(commit=" "), "reviews[1].commit"),
        (of_review(commit="a\nb"), "reviews[1].commit"),
        (of_review(time="yesterday"), "reviews[1].time"),
        (of_review(time=1769860800), "reviews[1].time"),
        (of_review(time="2026-01-31 12:00:00Z"), "reviews[1].time"),
        (of_review(time="2026-01-31T12:00:00"), "reviews[1].time"),
        (of_review(time="2026-02-30T12:00:00Z"), "reviews[1].time"),
        (of_review(time="2026-01-31T24:00:00Z"), "reviews[1].time"),
        (of_review(time="2026-01-31T12:00:00+25:00"), "reviews[1].time"),
        (of_review(time="2026-01-31T12:00:00.Z"), "reviews[1].time"),
        (of_review(time="2026-01-31T12:00:00Z\n"), "reviews[1].time"),
        (of_review(time="٢٠٢٦-01-31T12:00:00Z"), "reviews[1].time"),
        ({**FILE, "x" * 5000: 1}, "xxx"),
    ],
)
def test_a_file_that_says_anything_else_is_refused_in_one_line(data: Any, named: str) -> None:
    with pytest.raises(ValueError, match=r"\A[^\n]{1,200}\Z") as refusal:
        approvals.reviews_of(data)
    assert named in str(refusal.value)


def test_a_file_without_one_member_of_a_review_is_refused() -> None:
    for name in Review._fields:
        (whole,) = FILE["reviews"]
        partial = {key: value for key, value in whole.items() if key != name}
        with pytest.raises(ValueError, match=rf"reviews\[0\] lacks {name}"):
            approvals.reviews_of({**FILE, "reviews": [partial]})


@pytest.mark.parametrize("other", [HEAD[:12], HEAD[:-1], f"{HEAD}0", "main", "deadbeef"])
def test_what_is_not_the_whole_name_of_the_head_is_another_commit(other: str) -> None:
    read = approvals.reviews_of(of_review(commit=other))
    assert judged(*read.reviews, changed=("staging/c/x",))["ignored"] == [{"user": "sre-1", "why": "stale"}]
    assert approvals.reviews_of({**FILE, "head": other}).head == other.lower()


def test_an_address_is_that_of_a_person_or_of_a_bot() -> None:
    data = {"environments": [{"name": "dev"}], "people": {"ann": ["ann@acme.example"]}, "bots": ["x@y", "Ann@acme.example"]}
    with pytest.raises(policy.Wrong, match="is an address of ann in people"):
        policy.read(json.dumps(data).encode())
