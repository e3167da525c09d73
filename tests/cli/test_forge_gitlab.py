"""Approvals of merge requests come from GitLab for the commit that was the head when they were given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from cli.forge_server import HEAD, OLD, OTHER, TOKEN, Forge, Told, paged, refusal, running
from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories import forges
from flux_resourceset.repositories.approvals import Approvals

MERGE = "/api/v4/projects/acme%2Ffleet-config/merge_requests/12"


@pytest.fixture
def forge() -> Iterator[Forge]:
    with running() as started:
        yield started


def version(commit: str, time: str) -> dict[str, Any]:
    return {"id": 1, "head_commit_sha": commit, "base_commit_sha": OTHER, "created_at": time, "state": "collected"}


def approval(user: str, time: str | None) -> dict[str, Any]:
    return {"user": {"id": 1, "username": user}, **({} if time is None else {"approved_at": time})}


VERSIONS = [version(HEAD, "2026-01-31T12:00:00.500Z"), version(OLD, "2026-01-31T10:00:00.000Z")]  # the newest first


def gitlab(
    forge: Forge,
    *approvals: Any,
    versions: list[Any] = VERSIONS,
    reviewers: tuple[Any, ...] = (),
    reference: str = "acme/fleet-config!12",
    size: int = 100,
    **merge: Any,
) -> Approvals:
    numbers = size % 2 == 1
    forge.pages.setdefault(MERGE, Told({"iid": 12, "sha": HEAD, "author": {"username": "dev-1"}, **merge}))
    forge.pages.setdefault(f"{MERGE}/approvals", Told({"approved": False, "approved_by": [*approvals]}))
    forge.pages.setdefault(f"{MERGE}/versions", paged(versions, size, links=not numbers, numbers=numbers))
    forge.pages.setdefault(f"{MERGE}/reviewers", paged([*reviewers], size, links=not numbers, numbers=numbers))
    return forges.read_approvals(forge.gitlab, gitlab=reference)


def test_approvals_of_gitlab_are_of_the_head_that_was_there_then(forge: Forge) -> None:
    told = gitlab(
        forge,
        approval("sre-1", "2026-01-31T12:00:00.500Z"),
        approval("sre-2", "2026-01-31T13:00:00.4999+01:00"),
        approval("sre-3", "2026-01-31T09:00:00Z"),
        approval("lead-1", "2026-01-31T15:00:00+02:00"),
        approval("lead-2", None),
    )
    assert (told.head, told.author) == (HEAD, "dev-1")
    assert [(each.user, each.state, each.commit) for each in told.reviews] == [
        ("sre-1", "approved", HEAD),
        ("sre-2", "approved", OLD),
        ("sre-3", "approved", ""),
        ("lead-1", "approved", HEAD),
        ("lead-2", "approved", ""),
    ]


def test_a_head_that_came_back_was_not_approved_while_another_was_there(forge: Forge) -> None:
    versions = [
        version(HEAD, "2026-01-31T14:00:00Z"),
        version(OLD, "2026-01-31T13:00:00Z"),
        version(HEAD, "2026-01-31T12:00:00Z"),
    ]
    times = ("2026-01-31T12:30:00Z", "2026-01-31T13:30:00Z", "2026-01-31T14:30:00Z")
    told = gitlab(forge, *(approval(f"u{number}", time) for number, time in enumerate(times)), versions=versions)
    assert [each.commit for each in told.reviews] == [HEAD, OLD, HEAD]


def test_a_merge_request_without_a_version_of_its_head_has_only_stale_approvals(forge: Forge) -> None:
    told = gitlab(forge, approval("sre-1", "2026-01-31T18:00:00Z"), versions=VERSIONS[1:])
    assert [each.commit for each in told.reviews] == [OLD]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_all_pages_of_versions_and_reviewers_are_read_by_link_or_by_number(forge: Forge, size: int) -> None:
    later = [version(OTHER, f"2026-02-0{day}T00:00:00Z") for day in range(5, 1, -1)]
    reviewers = tuple(
        {"user": {"username": f"u{number}"}, "state": "requested_changes" if number == 4 else "reviewed"} for number in range(5)
    )
    told = gitlab(forge, approval("sre-1", "2026-02-01T00:00:00Z"), versions=later + VERSIONS, reviewers=reviewers, size=size)
    assert [(each.user, each.state, each.commit) for each in told.reviews] == [
        ("u4", "changes_requested", ""),
        ("sre-1", "approved", HEAD),
    ]


def test_a_reviewer_who_requests_changes_does_not_approve_as_well(forge: Forge) -> None:
    reviewers = (
        {"user": {"username": "sre-1"}, "state": "requested_changes", "created_at": "2026-01-31T08:00:00Z"},
        {"user": {"username": "sre-2"}, "state": "approved", "created_at": "2026-01-31T08:00:00Z"},
    )
    time = "2026-01-31T18:00:00Z"
    told = gitlab(forge, approval("sre-1", time), approval("sre-2", time), reviewers=reviewers)
    assert [(each.user, each.state) for each in told.reviews] == [("sre-1", "changes_requested"), ("sre-2", "approved")]


def test_a_gitlab_that_knows_no_requests_for_changes_has_none(forge: Forge) -> None:
    forge.pages[f"{MERGE}/reviewers"] = Told({}, 404)
    assert [each.user for each in gitlab(forge, approval("sre-1", "2026-01-31T18:00:00Z")).reviews] == ["sre-1"]


def test_gitlab_is_asked_with_its_own_token(forge: Forge) -> None:
    gitlab(forge)
    assert {asked.path for asked in forge.asked} == {MERGE, f"{MERGE}/approvals", f"{MERGE}/versions", f"{MERGE}/reviewers"}
    assert {asked.headers["private-token"] for asked in forge.asked} == {TOKEN}


@pytest.mark.parametrize("reference", ["acme/fleet-config!12", "acme%2Ffleet-config!12", "acme%2ffleet-config!12"])
def test_a_project_is_named_by_its_path(forge: Forge, reference: str) -> None:
    assert gitlab(forge, reference=reference).head == HEAD


def test_a_project_is_named_by_its_number(forge: Forge) -> None:
    for part in ("", "/approvals", "/versions", "/reviewers"):
        forge.pages[f"/api/v4/projects/42/merge_requests/7{part}"] = Told(
            {"": {"sha": OLD, "author": None}, "/approvals": {"approved_by": []}}.get(part, [])
        )
    assert forges.read_approvals(forge.gitlab, gitlab="42!7") == Approvals(OLD, None, [])


@pytest.mark.parametrize(
    "reference", ["", "fleet-config!12", "acme/fleet!", "acme/fleet!0", "acme/fleet#1", "0!1", "a/../b!1", "a//b!1", "/a/b!1"]
)
def test_a_merge_request_that_nobody_can_mean_is_told_before_anything_is_asked(forge: Forge, reference: str) -> None:
    code, line = refusal(lambda: gitlab(forge, reference=reference))
    assert (code, "--gitlab" in line, forge.asked) == (failures.USAGE, True, [])


def test_gitlab_com_gets_no_token_that_is_perhaps_for_another_server() -> None:
    code, line = refusal(lambda: forges.read_approvals({"GITLAB_TOKEN": TOKEN}, gitlab="a/b!1"))
    assert (code, "CI_API_V4_URL" in line) == (failures.USAGE, True)


@pytest.mark.parametrize(
    ("part", "status", "code"), [("", 404, 4), ("/approvals", 403, 3), ("/versions", 404, 4), ("/reviewers", 500, 5)]
)
def test_a_refusal_of_gitlab_is_told_by_its_exit_code(forge: Forge, part: str, status: int, code: int) -> None:
    forge.pages[MERGE + part] = Told({"message": TOKEN}, status)
    assert refusal(lambda: gitlab(forge))[0] == code


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("", {"sha": None, "author": None}),
        ("/approvals", []),
        ("/approvals", {"approved_by": [{"user": {}}]}),
        ("/approvals", {"approved_by": [approval("a", "yesterday")]}),
        ("/approvals", {"approved_by": [[]]}),
        ("/versions", [version("short", "2026-01-31T12:00:00Z")]),
        ("/versions", [version(HEAD, "")]),
        ("/versions", {}),
        ("/reviewers", [{}]),
        ("/reviewers", [{"state": "requested_changes", "user": None}]),
    ],
)
def test_an_answer_of_gitlab_that_is_not_understood_is_no_approval(forge: Forge, part: str, value: Any) -> None:
    forge.pages[MERGE + part] = Told(value)
    code, line = refusal(lambda: gitlab(forge))
    assert (code, "CI_API_V4_URL" in line) == (failures.UNREACHABLE, True)
