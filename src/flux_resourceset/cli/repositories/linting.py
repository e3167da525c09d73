"""`fleet lint`, `lint-blueprints` and `codeowners`: what is wrong in a repository, and the file that asks its owners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from flux_resourceset import atomic_files
from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories.checkouts import Blueprints, Checkout
from flux_resourceset.cli.repositories.git import Git, NoRepository
from flux_resourceset.cli.repositories.git_trees import WorkTree
from flux_resourceset.repositories import blueprints, ci_reports, findings, layout, trees
from flux_resourceset.repositories import codeowners as owners
from flux_resourceset.repositories.blueprints import Blueprint
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.layout import Tenant
from flux_resourceset.repositories.lint import blueprint_files, fleet, removals
from flux_resourceset.repositories.lint.owners import FILE
from flux_resourceset.repositories.policy import Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flux_resourceset.cli.session import Session

_COLUMNS = ("severity", "path", "line", "rule", "message")


def lint(session: Session) -> int:
    with Checkout(session) as checkout:
        at = session.values.text("at")
        commit = None if at is None else checkout.git.commit(at)
        git = _repository(checkout.root, session.environment)
        tree = _work_tree(checkout.root, git) if commit is None else checkout.tree(commit)
        found = list(_removals(session, checkout, tree, commit))
        policy = checkout.policy(tree)
        try:
            found += fleet.lint(tree, policy, _Releases(checkout, policy))
        except trees.Unread as exc:
            raise failures.usage(str(exc)) from exc
        if not found and next(layout.clusters(tree, policy), None) is None:
            session.say("nothing had to be checked: there is no cluster")  # on stderr, so that stdout keeps its form
        return report(session, found, git.prefix if git else "")


def lint_blueprints(session: Session) -> int:
    root = Path(session.values.text("dir") or ".")
    git = _repository(root, session.environment)
    tree = _work_tree(root, git)
    if tree.children("").get(blueprints.APPS) is not trees.Sort.FOLDER:
        raise failures.usage(f"{str(root)!r} holds no {blueprints.APPS}/; give the repository of blueprints")
    if not blueprints.names(tree):
        session.say(f"no blueprint had to be checked: {blueprints.APPS}/ has none")
    return report(session, blueprint_files.lint(tree), git.prefix if git else "")


def codeowners(session: Session) -> int:
    with Checkout(session) as checkout:
        policy = checkout.policy(checkout.tree(None))
        text = owners.text(policy.approvals, policy.teams).encode()
        if not session.values.flag("dry-run"):
            _write(checkout.root / FILE, text)
    session.output.raw(text)
    return failures.OK


def _write(file: Path, text: bytes) -> None:
    if file.is_symlink():
        raise failures.Failure(failures.REFUSED, f"{FILE} is a symlink, which is never followed; remove it")
    try:
        atomic_files.replace(file, text, durable=False, mode=atomic_files.AS_USUAL)
    except OSError as exc:
        raise failures.usage(f"{FILE} cannot be written: {exc.strerror or exc}") from exc


def report(session: Session, found: Iterable[Finding], folder: str = "") -> int:
    """Print findings in the form that was asked for; `folder` leads from the top of the repository to the root."""
    ordered = findings.ordered(found)
    output, form = session.output, session.values.text("output")
    if form == "github":
        for line in ci_reports.github(ordered, folder):
            output.line(line)
    elif form == "gitlab":
        output.json(ci_reports.gitlab(ordered, folder))
    else:
        rows = [finding.told() for finding in ordered]
        output.rows(rows, _COLUMNS, lambda row: f"{row['path']}:{row['line'] or 1}: {row['rule']}", keys=("path", "line", "rule"))
    strict = session.values.flag("strict")
    return failures.REFUSED if findings.is_failure(ordered, strict=strict) else failures.OK


class _Releases:
    """The blueprints, looked for when the first cluster asks for them: a fleet may have none yet."""

    def __init__(self, checkout: Checkout, policy: Policy) -> None:
        self._checkout, self._policy = checkout, policy
        self._found: Blueprints | None = None

    def _repository(self) -> Blueprints:
        if self._found is None:
            self._found = self._checkout.blueprints(self._policy)
        return self._found

    def release(self, tag: str) -> trees.Tree | None:
        return self._repository().release(tag)

    def blueprint(self, name: str, tag: str) -> Blueprint | None:
        return self._repository().blueprint(name, tag)


# What a change removes


def _removals(session: Session, checkout: Checkout, tree: trees.Tree, commit: str | None) -> Iterator[Finding]:
    """By the policy of the base, never by that of the change."""
    given = session.values.text("base")
    if given is None:
        return
    git = checkout.git
    base = git.commit(given)
    head = commit or git.commit("HEAD")
    policy = checkout.policy(checkout.tree(base))
    starts = git.merge_bases(base, head)
    if git.is_cut_between(base, head):
        line = f"the clone is shallow, and ends between {base[:12]} and {head[:12]}; fetch more of the history"
        raise failures.Failure(failures.NOT_FOUND, line)
    present = set(layout.tenants(tree, policy))
    removed: set[Tenant] = set()
    for start in starts:
        removed |= set(layout.tenants(checkout.tree(start), policy)) - present
    announced = _announced(git, base, head) if removed else None
    yield from removals.of_change(removed, policy.removed_tenants, announced)


def _announced(git: Git, base: str, head: str) -> str | None:
    for commit in git.commits(base, head):  # the newest first
        if removals.TRAILER.lower() in commit.message.lower():
            announced = git.trailer(commit.message, removals.TRAILER)
            if announced is not None:
                return announced
    return None


# Work trees


def _repository(root: Path, environment: Mapping[str, str]) -> Git | None:
    try:
        return Git(root, environment)
    except NoRepository:
        return None


def _work_tree(root: Path, git: Git | None) -> trees.Tree:
    """What is there but for what Git ignores; where there is no Git, all."""
    return WorkTree(root, git.ignored() if git else frozenset())
