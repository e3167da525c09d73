"""Whether the approvals of a change suffice: who has to approve, whose approval counts, what is missing."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flux_resourceset.repositories import globs, policy

_AUTHOR, _COMMITTER, _CO_AUTHOR = "author", "committer", "co-author"
STATES = ("approved", "changes_requested", "commented", "dismissed")

_TIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)  # SHA-1, or SHA-256 in newer repositories

# Addresses that a forge gives to users who hide their own; each contains the name of its user. Only these two hosts are trusted:
# the owner of any other domain can create such an address, and sign commits with it.
_OF_GITHUB = re.compile(r"(?:\d+\+)?([^@+]+)@users\.noreply\.github\.com", re.ASCII)
_OF_GITLAB = re.compile(r"\d+-([^@]+)@users\.noreply\.gitlab\.com", re.ASCII)
_BOT = re.compile(r".*\[bot\]|(?:project|group)_\d+_bot(?:_[0-9a-z]+|\d*)", re.ASCII)  # as GitHub and GitLab name them

# The committer of what is merged or edited on GitHub's pages; the author is the user who did it, and never this address.
WEB_FLOW = "noreply@github.com"


class Review(NamedTuple):
    user: str
    state: str  # one of STATES
    commit: str  # of which it was made; empty if nobody knows
    time: str  # RFC 3339


class Commit(NamedTuple):
    """A commit of a change, with the addresses of its writers."""

    id: str
    author: str
    committer: str
    co_authors: tuple[str, ...] = ()


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
    commits: Iterable[Commit],
    reviews: Sequence[Review],
    bots: Iterable[str] = (),
) -> dict[str, Any]:
    """Judge the reviews of a change by the policy of its base. Names and addresses are compared without (ASCII) case.

    A writer whose address the policy does not list could be any user, also one who approves. So such a change is refused, unless
    its paths require no approval.
    """
    required, uncovered = requirement(rules, changed)
    standing = _standing(reviews)
    known = Addresses(people, bots)
    users, unknown = known.writers(commits)
    barred = {_key(author), *users}
    if not required:
        unknown = []
    ignored, places = {}, {}
    for user, review in standing.items():
        open_to = [team for team in required if team == policy.ANY or user in map(_key, teams.get(team, ()))]
        if why := _why_ignored(review, user in barred, known.is_bot(user), head, bool(open_to)):
            ignored[user] = {"user": review.user, "why": why}
        elif review.state == "approved":
            places[user] = sorted(open_to, key=lambda team: (team == policy.ANY, team))  # whoever comes can fill a place of `any`
    assigned = _assignment(required, places)
    counted = {team: [standing[user].user for user in sorted(users)] for team, users in assigned.items()}
    missing = {team: places - len(counted[team]) for team, places in required.items() if places > len(counted[team])}
    blockers = sorted(user for user, review in standing.items() if review.state == "changes_requested" and user != _key(author))
    return {
        "ok": not missing and not blockers and not uncovered and not unknown,
        "required": required,
        "counted": counted,
        "missing": missing,
        "ignored": [ignored[user] for user in sorted(ignored)],
        "blocked_by": [standing[user].user for user in blockers],
        "uncovered": uncovered,
        "unknown": unknown,
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


def _why_ignored(review: Review, wrote: bool, is_bot: bool, head: str, wanted: bool) -> str | None:
    if review.state == "dismissed":
        return "dismissed"
    if review.state != "approved":
        return None
    if wrote:
        return "author"
    if is_bot:
        return "bot"
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


class Addresses:
    """The addresses that a policy lists: those of people by user, and those of bots."""

    def __init__(self, people: Mapping[str, Sequence[str]], bots: Iterable[str]) -> None:
        self._people = {_key(user) for user in people}
        self._users: dict[str, set[str]] = {}
        for user, emails in people.items():
            for email in emails:
                self._users.setdefault(_address(email), set()).add(_key(user))
        self._bots = {_address(email) for email in bots}
        self._bot_names = {name for email in self._bots for name in _named(email)} - self._people

    def is_bot(self, user: str) -> bool:
        """Whether a user is a program, whose approval is not that of a second pair of eyes."""
        return user in self._bot_names or _BOT.fullmatch(user) is not None

    def writers(self, commits: Iterable[Commit]) -> tuple[set[str], list[dict[str, str]]]:
        """The users who wrote these commits; and each address that the policy does not list, with one of its commits."""
        users: set[str] = set()
        unknown: dict[str, dict[str, str]] = {}
        for commit in commits:
            for role, email in _roles(commit):
                found = self._users_of(email)
                users |= found
                if not found and not self._is_of_a_bot(email, role):
                    unknown.setdefault(_address(email), {"email": email.strip(), "role": role, "commit": commit.id})
        return users, [unknown[address] for address in sorted(unknown)]

    def _users_of(self, email: str) -> set[str]:
        address = _address(email)
        return self._users.get(address, set()) | (set(_named(address)) & self._people)

    def _is_of_a_bot(self, email: str, role: str) -> bool:
        address = _address(email)
        return address in self._bots and (role == _COMMITTER or address != WEB_FLOW)


def _roles(commit: Commit) -> Iterator[tuple[str, str]]:
    yield _AUTHOR, commit.author
    yield _COMMITTER, commit.committer
    yield from ((_CO_AUTHOR, email) for email in commit.co_authors)


def remedy(unknown: Mapping[str, str]) -> str:
    """What to do about a writer whom the policy does not list."""
    email, role, commit = unknown["email"], unknown["role"], unknown["commit"][:12]
    if not email:
        return f"the {role} of {commit} has no address; make the commit again with an address that people of fleet.yaml has"
    if _address(email) == WEB_FLOW and role == _COMMITTER:
        return f"{email} is the committer of {commit}; add it to bots of fleet.yaml to allow changes on GitHub's pages"
    if _address(email) == WEB_FLOW:
        return (
            f"{email} is the {role} of {commit}, which GitHub never writes; make the commit again with the address of its author"
        )
    return (
        f"{email}, the {role} of {commit}, is not in fleet.yaml; add it to people under its user, or to bots if it is a program"
    )


def _address(email: str) -> str:
    """An address as it is compared; one that only looks like another one is another one."""
    return _key(email.strip())


def _named(address: str) -> list[str]:
    """The user that an address of a forge contains, if it is one of those."""
    return [_key(found[1]) for form in (_OF_GITHUB, _OF_GITLAB) if (found := form.fullmatch(address))]


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
