"""The verdict on approvals is that of somebody who tries every assignment of people to places."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flux_resourceset.repositories import approvals
from flux_resourceset.repositories.approvals import Commit, Review

HEAD, OLD = "a" * 40, "b" * 40
USERS = ["ann", "bob", "cid", "dee", "eve"]
NAMES = ["sre", "leads", "security", "any"]
TIMES = ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.5Z", "2026-01-31T13:00:00+02:00"]
PATHS = ["prod/a", "prod/b/x", "dev/a", "README"]

users = st.sampled_from(USERS).flatmap(lambda user: st.sampled_from([user, user.upper()]))
reviews = st.lists(
    st.builds(
        Review,
        users,
        st.sampled_from(["approved", "approved", "approved", *approvals.STATES]),
        st.sampled_from([HEAD, HEAD, HEAD, OLD]),
        st.sampled_from(TIMES),
    ),
    max_size=8,
)
emails = st.sampled_from(["A@x", "c@x", "7+bob@users.noreply.github.com"])
rules = st.lists(
    st.fixed_dictionaries(
        {
            "paths": st.lists(st.sampled_from(["prod/**", "prod/*", "**/x", "dev/a", "**"]), min_size=1, max_size=2),
            "require": st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3), max_size=4),
        }
    ),
    max_size=3,
)
instances = st.fixed_dictionaries(
    {
        "rules": rules,
        "teams": st.dictionaries(st.sampled_from(NAMES[:3]), st.lists(users, max_size=4)),
        "people": st.dictionaries(users, st.lists(st.sampled_from(["a@x", "b@x"]), max_size=1)),
        "changed": st.lists(st.sampled_from(PATHS), max_size=3),
        "head": st.just(HEAD),
        "author": st.none() | users,
        "commits": st.lists(st.builds(Commit, st.just(OLD), emails, emails, st.just(())), max_size=2),
        "bots": st.lists(st.just("c@x"), max_size=1),
        "reviews": reviews,
    }
)

# How a path is matched is tested elsewhere; here it is read off a table.
MEANT = {
    "prod/**": {"prod/a", "prod/b/x"},
    "prod/*": {"prod/a"},
    "**/x": {"prod/b/x"},
    "dev/a": {"dev/a"},
    "**": set(PATHS),
}
ORDER = {TIMES[2]: 0, TIMES[0]: 1, TIMES[1]: 2}


def standing(given: list[Review]) -> dict[str, Review]:
    last: dict[str, Review] = {}
    for review in given:
        user = review.user.lower()
        if review.state != "commented" and (user not in last or ORDER[review.time] >= ORDER[last[user].time]):
            last[user] = review
    return last


def writers(instance: dict[str, Any]) -> dict[str, set[str]]:
    """The users of each address that wrote; none of an address that the policy does not list."""
    people = {user.lower() for user in instance["people"]}
    found = {}
    for email in {email.lower() for commit in instance["commits"] for email in (commit.author, commit.committer)}:
        users = {user.lower() for user, known in instance["people"].items() if email in known}
        found[email] = users | ({"bob"} & people if "+bob@" in email else set())
    return found


def barred(instance: dict[str, Any]) -> set[str]:
    return {(instance["author"] or "").lower()}.union(*writers(instance).values())


def unknown(instance: dict[str, Any]) -> set[str]:
    if not required(instance):
        return set()
    return {email for email, users in writers(instance).items() if not users and email not in instance["bots"]}


def required(instance: dict[str, Any]) -> dict[str, int]:
    wanted: dict[str, int] = {}
    for rule in instance["rules"]:
        if any(path in MEANT[pattern] for path in instance["changed"] for pattern in rule["paths"]):
            wanted = {team: max(wanted.get(team, 0), rule["require"].get(team, 0)) for team in {*wanted, *rule["require"]}}
    return {team: places for team, places in wanted.items() if places}


def most_places(wanted: dict[str, int], members: dict[str, set[str]], present: list[str]) -> int:
    """By trying for every user every team that they are in, and none."""
    best = 0
    for choice in itertools.product(*([None, *(team for team in wanted if user in members[team])] for user in present)):
        seated = [team for team in choice if team is not None]
        if all(seated.count(team) <= places for team, places in wanted.items()):
            best = max(best, len(seated))
    return best


@pytest.mark.long
@settings(max_examples=300)
@given(instance=instances)
def test_the_verdict_is_that_of_trying_everything(instance: dict[str, Any]) -> None:
    answer = approvals.verdict(**instance)
    wanted, last, wrote = required(instance), standing(instance["reviews"]), barred(instance)
    members = {team: {user.lower() for user in instance["teams"].get(team, [])} for team in wanted} | {"any": set(USERS)}
    fresh = [u for u, r in last.items() if r.state == "approved" and r.commit == HEAD and u not in wrote]
    blockers = {u for u, r in last.items() if r.state == "changes_requested" and u != (instance["author"] or "").lower()}
    covered = {path for rule in instance["rules"] for pattern in rule["paths"] for path in MEANT[pattern]}

    counted = {team: [user.lower() for user in seated] for team, seated in answer["counted"].items()}
    seated = [user for team in counted.values() for user in team]
    assert answer["required"] == wanted
    assert len(seated) == len(set(seated)) == most_places(wanted, members, fresh)
    assert all(set(team) <= members[name] & set(fresh) and len(team) <= wanted[name] for name, team in counted.items())
    assert answer["missing"] == {name: wanted[name] - len(team) for name, team in counted.items() if wanted[name] > len(team)}
    assert {user.lower() for user in answer["blocked_by"]} == blockers
    assert answer["uncovered"] == sorted(set(instance["changed"]) - covered)
    assert answer["ok"] == (
        len(seated) == sum(wanted.values()) and not blockers and not answer["uncovered"] and not answer["unknown"]
    )
    assert {each["email"].lower() for each in answer["unknown"]} == unknown(instance)
    outside = [u for u in fresh if not any(u in members[team] for team in wanted)]
    assert sorted(each["user"].lower() for each in answer["ignored"] if each["why"] == "team") == sorted(outside)


@given(instance=instances, data=st.data())
def test_one_more_approval_never_takes_anything_away(instance: dict[str, Any], data: st.DataObject) -> None:
    silent = sorted({*USERS} - {review.user.lower() for review in instance["reviews"]})
    if not silent:
        return
    more = Review(data.draw(st.sampled_from(silent)), "approved", HEAD, TIMES[0])
    before, after = (
        approvals.verdict(**{**instance, "reviews": reviews}) for reviews in (instance["reviews"], [*instance["reviews"], more])
    )
    assert after["ok"] >= before["ok"]
    assert sum(after["missing"].values()) <= sum(before["missing"].values())


@given(instance=instances, data=st.data())
def test_the_order_of_rules_teams_and_people_makes_no_difference(instance: dict[str, Any], data: st.DataObject) -> None:
    shuffled = {
        **instance,
        "rules": data.draw(st.permutations(instance["rules"])),
        "changed": data.draw(st.permutations(instance["changed"])),
        "teams": {team: [*reversed(members)] for team, members in reversed(instance["teams"].items())},
    }
    assert approvals.verdict(**shuffled) == approvals.verdict(**instance)
