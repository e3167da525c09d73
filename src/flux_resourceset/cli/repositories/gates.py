"""The gates of a change: whether its images are tested and signed, and whether the right people approve of it.

A change is what head has and the place where it left base has not. Policy and keys are those of base: who changes them is judged
by those before.
"""

from __future__ import annotations

import functools
import posixpath
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories import checkouts
from flux_resourceset.cli.repositories.checkouts import Checkout
from flux_resourceset.repositories import images, layout, policy, tenants, trees
from flux_resourceset.repositories.images import Subject
from flux_resourceset.repositories.policy import Policy

if TYPE_CHECKING:
    from flux_resourceset.cli.repositories.git import Git
    from flux_resourceset.cli.repositories.git_trees import Tree
    from flux_resourceset.cli.session import Session
    from flux_resourceset.repositories.approvals import Approvals

_MOST_TOLD = 20  # lines on stderr; the answer on stdout holds all
_MOST_BYTES = 10 * 1024 * 1024  # of an approvals file: thousands of reviews take one


class Change(NamedTuple):
    base: str
    head: str
    starts: Sequence[str]  # where head left base: one commit, or several after merges crosswise
    policy: Policy  # of base


def _change(session: Session, checkout: Checkout) -> Change:
    given = session.values.text("base")
    if given is None:
        raise failures.usage("--base is missing: the revision whose policy the change is judged by, such as origin/main")
    head_given = session.values.text("head")
    base = checkout.git.commit(given)
    head = checkout.git.commit("HEAD" if head_given is None else head_given)
    starts = checkout.git.merge_bases(base, head)
    if checkout.git.is_cut_between(base, head):
        line = f"the clone is shallow, and ends between {base[:12]} and {head[:12]}; fetch more of the history"
        raise failures.Failure(failures.NOT_FOUND, line)
    return Change(base, head, starts, checkout.policy(checkout.tree(base)))


# Images


def check_image(session: Session) -> int:
    with Checkout(session) as checkout, checkouts.telling():
        change = _change(session, checkout)
        try:
            found = list(_subjects(checkout, change, everything=session.values.flag("all")))
        except tenants.Unread as exc:
            raise failures.usage(str(exc)) from exc
        rows, silent = _judged(session, checkout, change, found)
    keys = ("environment", "cluster", "tenant", *(["object"] if any(row["object"] for row in rows) else []))
    session.output.rows(rows, (*keys, *images.CHECKS, "message", "image"), name=images.name, keys=keys)
    if not rows:
        session.say(f"nothing had to be checked: {_no_image(change)}")
    lines = [f"{images.name(row)}: {row['message']}" for row in rows if images.refused(row)]
    if lines:
        raise failures.Failure(failures.UNREACHABLE if silent else failures.REFUSED, *_first(lines))
    if rows:
        session.say(f"checked {len(rows)} image{'' if len(rows) == 1 else 's'}: all passed")
    return failures.OK


def _no_image(change: Change) -> str:
    if not change.policy.images:
        return f"{policy.FILE} of the base has no rule in images"
    return "the change brings no image to an environment with a rule in images"


def _subjects(checkout: Checkout, change: Change, *, everything: bool) -> Iterator[Subject]:
    changed = {path for start in change.starts for path in checkout.git.changed(start, change.head)}
    before = [checkout.tree(start) for start in change.starts]
    return images.subjects(change.policy, checkout.tree(change.head), before, None if everything else changed)


def _judged(session: Session, checkout: Checkout, change: Change, found: Sequence[Subject]) -> tuple[list[dict[str, Any]], bool]:
    """A row for each, and whether cosign was silent about one."""
    if not found:
        return [], False
    from flux_resourceset.cli.repositories import cosign  # not before: most changes bring no image

    asked = [images.question(each, check) for each in found for check in images.BY_COSIGN]
    with checkout.git.tree(change.base) as base:
        answers = cosign.ask(filter(None, asked), lambda name: _key(base, name), session.environment)
        origins, now = _Origins(checkout.git, base, change, found), time.time()
        rows = [images.row(each, _checks(each, origins, answers, now)) for each in found]
    return rows, any(answer.silent for answer in answers.values())


def _checks(
    subject: Subject, origins: _Origins, answers: Mapping[images.Question, images.Answer], now: float
) -> dict[str, images.Check]:
    same = images.same(subject, origins.sources(subject))
    return {
        "pinned": images.pinned(subject),
        "same": same,
        "soak": images.soak(subject.rule, origins.since(subject) if same.state == images.OK else {}, now),
        **{check: images.answered(images.question(subject, check), answers) for check in images.BY_COSIGN},
    }


class _Origins:
    """Where the images of a change have been before: in the clusters of `same_as`, as base has them."""

    def __init__(self, git: Git, base: Tree, change: Change, found: Sequence[Subject]) -> None:
        self._base = base
        self._places = functools.cache(functools.partial(images.by_name, base, change.policy))
        self._policy = change.policy
        soaking = [source.place for each in found if each.rule.soak for source in self.sources(each)]
        self._commits = git.first_parents(change.base, {_file(place) for place in soaking})

    def sources(self, subject: Subject) -> list[images.Source]:
        if subject.rule.same_as is None:
            return []
        if isinstance(subject.place, images.Part):
            return images.sources_of_part(self._base, self._policy, subject.rule.same_as, subject.place)
        places = self._places(subject.rule.same_as).get(subject.place.name, ())
        return [images.source(self._base, tenant, subject.rule.field) for tenant in places]

    def since(self, subject: Subject) -> dict[images.Place, int | None]:
        """Since when it has been in each of them; empty where nobody asks."""
        if not subject.rule.soak:
            return {}
        sources = self.sources(subject)
        return {each.place: images.brought(each.image, self._history(each.place, subject.rule.field)) for each in sources}

    def _history(self, place: images.Place, field: str) -> Iterator[tuple[Any, int]]:
        for commit, moment in self._commits[_file(place)]:
            tree = self._base.at(commit)
            if isinstance(place, images.Part):
                yield images.image_of_part(tree, place), moment
            else:
                yield images.source(tree, place, field).image, moment


def _file(place: images.Place) -> str:
    return place.file if isinstance(place, images.Part) else place.path(layout.INPUT)


def _key(base: trees.Tree, name: str) -> bytes:
    path = images.key_path(name)
    if path is None:
        raise failures.usage(f"cosign.key is {name!r} in fleet.yaml; it must be the path of a file in the repository")
    try:
        body = base.read(path)
    except trees.TooLarge:
        body = None
    if body is None:
        raise failures.usage(f"{path} is not in the base, or is no file of a key; commit the key that cosign.key names first")
    return body


# Approvals


def check_approvals(session: Session) -> int:
    given = [name for name in ("approvals", "github", "gitlab") if name in session.values]
    if len(given) != 1:
        raise failures.usage("where are the approvals? Give one of --approvals, --github and --gitlab")
    with Checkout(session) as checkout:
        change = _change(session, checkout)
        found = _read_approvals(session)
        if found.head != change.head:
            line = f"the approvals are of {found.head}, and {change.head} is judged; judge the commit that is to be merged"
            raise failures.Failure(failures.CONFLICT, line)
        verdict = _verdict(checkout, change, found)
    session.output.value(verdict, lambda: _told(verdict), ["ok" if verdict["ok"] else "refused"])
    if verdict["ok"] and not verdict["required"]:
        session.say("nothing had to be checked: the change has no path that requires an approval")
    elif verdict["ok"] and not session.output.human:
        session.say("all required approvals are there")
    if not verdict["ok"]:
        raise failures.Failure(failures.REFUSED, *_refusals(verdict))
    return failures.OK


def _read_approvals(session: Session) -> Approvals:
    from flux_resourceset.cli.repositories import forges  # not before: images need no forge

    file = session.values.text("approvals")
    if file is not None:
        return _read_file(session, file)
    return forges.read_approvals(session.environment, github=session.values.text("github"), gitlab=session.values.text("gitlab"))


def _read_file(session: Session, file: str) -> Approvals:
    from flux_resourceset import errors, strict_json
    from flux_resourceset.repositories import approvals

    name = "stdin" if file == "-" else file
    try:
        if file == "-":
            body = session.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with open(file, "rb") as stream:
                body = stream.read(_MOST_BYTES + 1)
        if len(body) > _MOST_BYTES:
            raise failures.usage(f"{name}: has more than {_MOST_BYTES} bytes")
        return approvals.reviews_of(strict_json.decoded(body.removeprefix(b"\xef\xbb\xbf")))
    except OSError as exc:
        raise failures.usage(f"{name}: cannot be read: {exc.strerror}") from exc
    except (errors.MalformedBody, ValueError) as exc:
        raise failures.usage(f"{name}: {exc}") from exc


def _verdict(checkout: Checkout, change: Change, found: Approvals) -> dict[str, Any]:
    from flux_resourceset.repositories import approvals

    git, policy = checkout.git, change.policy
    changed = {path for start in change.starts for path in git.changed_anywhere(start, change.head)}
    within = {path.removeprefix(git.prefix) for path in changed if path.startswith(git.prefix)}
    beyond = [posixpath.relpath(f"/{path}", f"/{git.prefix}") for path in changed if not path.startswith(git.prefix)]
    commits = [
        approvals.Commit(each.id, author, committer, tuple(others))
        for each in git.commits(change.base, change.head)
        for author, committer, *others in [each.emails]
    ]
    verdict = approvals.verdict(
        rules=policy.approvals,
        teams=policy.teams,
        people=policy.people,
        changed=within,
        head=change.head,
        author=found.author,
        commits=commits,
        reviews=found.reviews,
        bots=policy.bots,
    )
    # The patterns of a policy begin where it is: no rule is for what is outside of its directory.
    return {**verdict, "ok": verdict["ok"] and not beyond, "uncovered": sorted([*verdict["uncovered"], *beyond])}


def _told(verdict: dict[str, Any]) -> Iterator[str]:
    for team, places in verdict["required"].items():
        users = verdict["counted"].get(team, [])
        yield f"{team}: {len(users)} of {places}" + (f" ({', '.join(users)})" if users else "")
    for each in verdict["ignored"]:
        yield f"{each['user']} does not count: {each['why']}"


def _refusals(verdict: dict[str, Any]) -> list[str]:
    from flux_resourceset.repositories import approvals

    lines = [f"{places} more of {team} must approve" for team, places in verdict["missing"].items()]
    lines += [f"{user} asks for changes" for user in verdict["blocked_by"]]
    lines += _first([f"{path} has no rule in approvals of fleet.yaml" for path in verdict["uncovered"]])
    lines += _first([approvals.remedy(each) for each in verdict["unknown"]])
    return lines


def _first(lines: list[str]) -> list[str]:
    rest = len(lines) - _MOST_TOLD
    return lines if rest <= 0 else [*lines[:_MOST_TOLD], f"and {rest} more"]
