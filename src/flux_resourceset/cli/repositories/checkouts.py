"""The checkouts that a command works on: the repository of fleet config around it, and the blueprints beside that."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories.git import Git, NoRepository
from flux_resourceset.cli.repositories.git_trees import WorkTree
from flux_resourceset.repositories import blueprints, layout, policy, tenants, trees
from flux_resourceset.repositories.blueprints import Blueprint
from flux_resourceset.repositories.policy import Policy

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


class Checkout:
    """A repository of fleet config, from the folder that holds its fleet.yaml."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.root = _root(_folder_given(session, "repo"))
        self._open = contextlib.ExitStack()
        self._trees: dict[str | None, trees.Tree] = {}

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *raised: Any) -> None:
        self._open.__exit__(*raised)

    @functools.cached_property
    def git(self) -> Git:
        try:
            return Git(self.root, self._session.environment)
        except NoRepository as exc:
            raise failures.usage(f"{self.root} is in no Git repository: {exc}") from exc

    def tree(self, commit: str | None) -> trees.Tree:
        """The files of a commit, or of the work tree."""
        if commit not in self._trees:
            self._trees[commit] = self._work_tree() if commit is None else self._open.enter_context(self.git.tree(commit))
        return self._trees[commit]

    def _work_tree(self) -> trees.Tree:
        return WorkTree(self.root)

    def policy(self, tree: trees.Tree) -> Policy:
        """The policy that a tree has; whoever judges a change takes that of its base."""
        try:
            body = tree.read(policy.FILE)
            if body is None:
                raise failures.usage(f"{policy.FILE} is missing, or is no file")
            return policy.read(body)
        except trees.TooLarge as exc:
            raise failures.usage(f"{policy.FILE} has more than {trees.LARGEST} bytes") from exc
        except policy.Wrong as exc:
            raise failures.Failure(failures.USAGE, *exc.lines) from exc

    def blueprints(self, by: Policy) -> Blueprints:
        """The repository of blueprints: where --blueprints-dir says, or else the policy."""
        given = _folder_given(self._session, "blueprints-dir")
        if given is None and by.checkout is None:
            raise failures.usage(f"where are the blueprints? Give --blueprints-dir, or blueprints.checkout in {policy.FILE}")
        folder = Path(given) if given is not None else self.root / str(by.checkout)
        if not folder.is_dir():
            raise failures.usage(f"the blueprints are not at {folder}; clone them there, or give --blueprints-dir")
        self._check_outside(folder)
        return Blueprints(folder, self._session, self._open)

    def _check_outside(self, folder: Path) -> None:
        """Refuse blueprints inside the tree of the repository, where a branch could bring them with configuration of its own."""
        try:
            top = Git(self.root, self._session.environment).top
        except NoRepository:
            top = self.root.resolve()
        place = folder.resolve()
        if any(os.path.samefile(each, top) for each in (place, *place.parents)):
            line = f"the blueprints are at {folder}, inside the repository of fleet config; clone them beside it"
            raise failures.usage(line)


class Blueprints:
    """A repository of blueprints: its releases, which are tags; its work tree does not matter."""

    def __init__(self, folder: Path, session: Session, open: contextlib.ExitStack) -> None:
        try:
            self.git = Git(folder, session.environment)
        except NoRepository as exc:
            raise failures.usage(f"{folder} is in no Git repository: {exc}") from exc
        self._open = open
        self._trees: dict[str, trees.Tree | None] = {}
        self._known: dict[tuple[str, str], Blueprint | None] = {}

    def release(self, tag: str) -> trees.Tree | None:
        """The files of a tag; None if there is no such tag."""
        if tag not in self._trees:
            commit = self.git.tag(tag)
            self._trees[tag] = None if commit is None else self._open.enter_context(self.git.tree(commit))
        return self._trees[tag]

    def blueprint(self, name: str, tag: str) -> Blueprint | None:
        """One of a release; None if it has none of that name, or if there is no such tag. Raises tenants.Broken."""
        if (name, tag) not in self._known:
            tree = self.release(tag)
            self._known[name, tag] = None if tree is None else blueprints.of_tree(tree, name)
        return self._known[name, tag]

    def newest(self) -> str:
        tags = self.git.tags()
        if not tags:
            raise failures.Failure(failures.NOT_FOUND, f"{self.git.folder} has no tag; blueprints are released by tags")
        return tags[0]


def _folder_given(session: Session, option: str) -> str | None:
    given = session.values.text(option)
    if given == "":  # which would be the current directory
        raise failures.usage(f"--{option} is empty; an unset variable, perhaps")
    return given


def _root(given: str | None) -> Path:
    if given is not None:
        root = Path(given)
        if not (root / policy.FILE).exists():
            raise failures.usage(f"--repo is {given!r}, which holds no {policy.FILE}")
        return root
    try:
        here = Path.cwd()
    except OSError as exc:
        raise failures.usage(f"the current directory is gone: {exc.strerror}; go into the repository, or give --repo") from exc
    for folder in (here, *here.parents):
        if (folder / policy.FILE).is_file():
            return folder
    raise failures.usage(f"there is no {policy.FILE} here or above; go into the repository of fleet config, or give --repo")


# What was named


def check_environment(by: Policy, name: str | None) -> None:
    if name is not None and name not in by.names:
        raise failures.Failure(failures.NOT_FOUND, f'environment "{name}" not found; there are {", ".join(by.names)}')


def chosen(session: Session, tree: trees.Tree, by: Policy, tenant: str | None) -> list[layout.Tenant]:
    """The tenants that a command line selects, in the order of promotion; what it names must be there."""
    environment, cluster = session.values.text("environment"), session.values.text("cluster")
    check_environment(by, environment)
    if cluster is not None and cluster not in {each.name for each in layout.clusters(tree, by, environment)}:
        raise failures.Failure(failures.NOT_FOUND, f'cluster "{cluster}" not found{f" in {environment}" if environment else ""}')
    found = list(layout.tenants(tree, by, tenant, environment=environment, cluster=cluster))
    if tenant is not None and not found:
        raise failures.Failure(failures.NOT_FOUND, f'tenant "{tenant}" not found{_within(environment, cluster)}')
    return found


def _within(environment: str | None, cluster: str | None) -> str:
    return f" in {'/'.join(part for part in (environment, cluster) if part)}" if environment or cluster else ""


@contextlib.contextmanager
def telling() -> Iterator[None]:
    """What is broken in a file ends a command with the line that says so."""
    try:
        yield
    except tenants.Broken as exc:
        raise failures.Failure(failures.REFUSED, str(exc)) from exc
