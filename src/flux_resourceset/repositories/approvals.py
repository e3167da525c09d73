"""Whether the approvals of a change suffice: who has to approve, whose approval counts, what is missing."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flux_resourceset.repositories import globs, policy

STATES = ("approved", "changes_requested", "commented", "dismissed")

_TIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)  # SHA-1, or SHA-256 in newer repositories

# E-mail addresses that a forge makes up for who hides their own: they name the user, so nobody need list them.
_OF_GITHUB = re.compile(r"(?:\d+\+)?([^@+]+)@users\.noreply\..+")
_OF_GITLAB = re.compile(r"\d+-([^@]+)@users\.noreply\.(?!github\.com\Z).+")


class Review(NamedTuple):
    user: str
    state: str  # one of STATES
    commit: str  # of which it was made; empty if nobody knows
    time: str  # RFC 3339


class Approvals(NamedTuple):
    """What a forge, or a file, knows of one pull request."""

    head: str
    author: str | None
    reviews: Sequence[Review]


def verdict(
    *,
    rules: Sequence[Mapping[str, Any]],
    teams: Mapping[str, Sequence[str]],
    people: Mapping[str, Sequence[str]],
    changed: Collection[str],
    head: str,
    author: str | None,
    emails: Iterable[str],
    reviews: Sequence[Review],
) -> dict[str, Any]:
    """`emails`: of all who wrote commits of the change. Names and e-mails are compared without case."""
    required, uncovered = requirement(rules, changed)
    standing = _standing(reviews)
    barred = _writers(author, emails, people)
    ignored, places = {}, {}
    for user, review in standing.items():
        open_to = [team for team in required if team == policy.ANY or user in map(_key, teams.get(team, ()))]
        if why := _why_ignored(review, user in barred, head, bool(open_to)):
            ignored[user] = {"user": review.user, "why": why}
        elif review.state == "approved":
            places[user] = sorted(open_to, key=lambda team: (team == policy.ANY, team))  # whoever comes can fill a place of `any`
    assigned = _assignment(required, places)
    counted = {team: [standing[user].user for user in sorted(users)] for team, users in assigned.items()}
    missing = {team: places - len(counted[team]) for team, places in required.items() if places > len(counted[team])}
    blockers = sorted(user for user, review in standing.items() if review.state == "changes_requested" and user != _key(author))
    return {
        "ok": not missing and not blockers and not uncovered,
        "required": required,
        "counted": counted,
        "missing": missing,
        "ignored": [ignored[user] for user in sorted(ignored)],
        "blocked_by": [standing[user].user for user in blockers],
        "uncovered": uncovered,
    }


def requirement(rules: Sequence[Mapping[str, Any]], changed: Collection[str]) -> tuple[dict[str, int], list[str]]:
    """How many of each team all rules of all changed paths want, and the paths that have no rule."""
    required: dict[str, int] = {}
    uncovered = []
    for path in sorted(set(changed)):
        binding = [rule for rule in rules if any(globs.matches(pattern, path) for pattern in rule["paths"])]
        if not binding:
            uncovered.append(path)
        for rule in binding:
            for team, places in rule["require"].items():
                required[team] = max(required.get(team, 0), places)
    return {team: required[team] for team in sorted(required) if required[team] > 0}, uncovered


def _standing(reviews: Sequence[Review]) -> dict[str, Review]:
    """The review of each user that holds: the last that is not a mere comment."""
    opinions = [review for review in reviews if review.state != "commented"]
    return {_key(review.user): review for review in sorted(opinions, key=lambda review: instant(review.time))}


def _why_ignored(review: Review, wrote: bool, head: str, wanted: bool) -> str | None:
    if review.state == "dismissed":
        return "dismissed"
    if review.state != "approved":
        return None
    if wrote:
        return "author"
    if review.commit.lower() != head.lower():
        return "stale"
    return None if wanted else "team"


def _assignment(required: Mapping[str, int], places: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """As many users as possible, each in one place of a team that is open to them: a maximum matching by augmenting paths."""
    filled: dict[str, list[str]] = {team: [] for team in required}

    def seat(user: str, tried: set[str]) -> bool:
        for team in places[user]:
            if len(filled[team]) < required[team]:
                filled[team].append(user)
                return True
        for team in places[user]:
            if team not in tried:
                tried.add(team)
                for other in filled[team]:
                    if seat(other, tried):  # they have a place elsewhere now
                        filled[team].remove(other)
                        filled[team].append(user)
                        return True
        return False

    for user in sorted(places):
        seat(user, set())
    return filled


# Who is who


def _key(user: str | None) -> str:
    """Only ASCII is compared without case: a forge has no other names, and `K` (a kelvin sign) must not become a member `k`."""
    return user.lower() if user is not None and user.isascii() else user or ""


def _writers(author: str | None, emails: Iterable[str], people: Mapping[str, Sequence[str]]) -> set[str]:
    """All who wrote the change: the author, and whoever has one of the e-mails, by `people` or by the address itself."""
    written = {email.strip().casefold() for email in emails}
    users = {_key(user) for user, known in people.items() if any(email.strip().casefold() in written for email in known)}
    named = (form.fullmatch(email) for email in written for form in (_OF_GITHUB, _OF_GITLAB))
    return {_key(author), *users, *(name[1] for name in named if name)}


# Times


def instant(text: str) -> tuple[int, str]:
    """A time of RFC 3339 as seconds and the digits of a fraction, which compare as the instants do, however fine they are."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:50]!r} is no time of RFC 3339; write it as in 2026-01-31T12:00:00Z")
    year, month, day, hour, minute, second = map(int, found.group(1, 2, 3, 4, 5, 6))
    try:
        days = datetime.date(year, month, day).toordinal()
    except ValueError:
        raise ValueError(f"{text[:50]!r} is a day that does not exist; write it as in 2026-01-31T12:00:00Z") from None
    offset = (int(found[9]) * 60 + int(found[10])) * (-1 if found[8] == "-" else 1) if found[8] else 0
    return ((days * 24 + hour) * 60 + minute - offset) * 60 + second, (found[7] or "").rstrip("0")


# The file


def reviews_of(data: Any) -> Approvals:
    """What an approvals file says, or ValueError with one line: who reads it loosely may count what is not there."""
    head, author, reviews = _members(data, "the file", ("head", "author", "reviews"))
    if not isinstance(reviews, list):
        raise ValueError("reviews must be a list")
    return Approvals(
        _name_of_commit(head, "head"),
        None if author is None else _user(author, "author"),
        [_review(review, f"reviews[{position}]") for position, review in enumerate(reviews)],
    )


def _review(data: Any, where: str) -> Review:
    user, state, made_of, time = _members(data, where, Review._fields)
    if state not in STATES:
        raise ValueError(f"{where}.state is {_shown(state)}; it must be one of {', '.join(STATES)}")
    if not isinstance(time, str):
        raise ValueError(f"{where}.time is {_shown(time)}; it must be a time of RFC 3339, as in 2026-01-31T12:00:00Z")
    try:
        instant(time)
    except ValueError as exc:
        raise ValueError(f"{where}.time: {exc}") from None
    return Review(_user(user, f"{where}.user"), state, _name_of_commit(made_of, f"{where}.commit"), time)


def _members(data: Any, where: str, names: Sequence[str]) -> list[Any]:
    if not isinstance(data, dict):
        raise ValueError(f"{where} must be an object with {', '.join(names)}")
    if unknown := [name for name in data if name not in names]:
        raise ValueError(f"{where} has an unknown key {_shown(unknown[0])}; it has {', '.join(names)}")
    if missing := [name for name in names if name not in data]:
        raise ValueError(f"{where} lacks {missing[0]}; it has {', '.join(names)}")
    return [data[name] for name in names]


def commit(value: Any, where: str) -> str:
    """A commit by its whole name, in lower case."""
    if not isinstance(value, str) or not _COMMIT.fullmatch(value.lower()):
        raise ValueError(f"{where} is {_shown(value)}; it must be the full name of a commit, 40 hexadecimal digits")
    return value.lower()


def _name_of_commit(value: Any, where: str) -> str:
    """Whatever a file calls a commit: what is not the whole name of the head is that of another one."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise ValueError(f"{where} is {_shown(value)}; it must be the full name of a commit")
    return value.lower()


def _user(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value or not value.isprintable() or " " in value:
        raise ValueError(f"{where} is {_shown(value)}; it must be the name of a user")
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
