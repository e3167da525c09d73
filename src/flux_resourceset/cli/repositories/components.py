"""`fleet check-components` and `fleet prune-versions`: a repository of components, its releases, and the catalog of them."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flux_resourceset import atomic_files, client
from flux_resourceset.cli import failures, known_kinds
from flux_resourceset.cli.parsing import kind_commands
from flux_resourceset.cli.repositories import linting
from flux_resourceset.cli.repositories.git import Git, NoRepository
from flux_resourceset.cli.repositories.git_trees import WorkTree
from flux_resourceset.repositories import components, trees
from flux_resourceset.repositories.components import Register, Use
from flux_resourceset.repositories.findings import Finding, error

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

_SIDE_BY_SIDE = 4  # builds: kubectl waits for nothing, and takes a tenth of a second
_PATIENCE = 120.0  # seconds for one build
# kubectl runs git for a base in another repository: these protocols, and no question on the terminal.
_REMOTE_BASES = {"GIT_ALLOW_PROTOCOL": "https:ssh", "GIT_TERMINAL_PROMPT": "0"}
_KEPT = 3  # versions of a component, as the book recommends
_PATH, _TAG = "component_path", "oci_tag"  # fields of a catalog whose artifacts are built from such a repository
_BY_ENVIRONMENT = "cluster_env_enabled"
_LOGGED = re.compile(r'[EF][0-9]{4} [^]]*\] (?:"command failed" err=")?')  # when, and by which process
_KUSTOMIZE = "kustomize"  # the type of component that has directories; others are charts


def check(session: Session) -> int:
    folder = _folder(session)
    tree = WorkTree(folder)
    git = _git(session, folder)
    release = _release(session, git)
    with contextlib.ExitStack() as opened:
        try:
            register = components.register(tree)
        except components.Unreadable as exc:
            return linting.report(session, exc.findings, git.prefix if git else "")
        found = [*components.findings(tree, register), *_builds(session, folder, tree, register)]
        if not register.folders:
            session.say(f"no component had to be checked: {components.FILE} lists no version")
        if git is not None and release is not None:
            listed = _listed(opened.enter_context(git.tree(release)))
            found += components.changed_after_release(tree, listed, git.changed(release, None))
        if git is not None and session.values.flag("catalog"):
            found += _missing_from_releases(session, git, opened)
    return linting.report(session, found, git.prefix if git else "")


def prune(session: Session) -> int:
    folder = _folder(session)
    tree = WorkTree(folder)
    try:
        register = components.register(tree)
    except components.Unreadable as exc:
        raise failures.Failure(failures.REFUSED, *(f"{each.path}: {each.message}" for each in exc.findings)) from exc
    keep = int(session.values.text("keep") or _KEPT)
    gone = components.prunable(register, {use.path for use in _uses(session)}, keep)
    rows = [{"path": f"{component.path}/{version}"} for component, version in gone]
    if session.values.flag("apply") and rows:
        _remove(folder, tree, {component.id: [v for c, v in gone if c == component] for component, _ in gone}, rows)
    session.output.rows(rows, ("path",), name=lambda row: str(row["path"]))
    return failures.OK


def _remove(folder: Path, tree: trees.Tree, gone: dict[str, list[str]], rows: list[dict[str, str]]) -> None:
    """First the register, then the directories: what is not listed any more is what check-components tells of."""
    body = tree.read(components.FILE)
    assert body is not None  # it was read before
    try:
        text = components.without_versions(body.decode(), gone)
    except components.Refused as exc:
        raise failures.Failure(failures.REFUSED, str(exc)) from exc
    try:
        atomic_files.replace(folder / components.FILE, text.encode(), durable=False, mode=atomic_files.AS_USUAL)
        for row in rows:
            if tree.children(row["path"]):  # a symlink is none of ours
                shutil.rmtree(folder / row["path"])
    except OSError as exc:
        raise failures.usage(f"{exc.filename or folder} cannot be removed: {exc.strerror or exc}") from exc


def _folder(session: Session) -> Path:
    folder = Path(session.values.text("dir") or ".")
    if not (folder / components.FILE).is_file():
        raise failures.usage(f"{folder} holds no {components.FILE}; name the repository of components")
    return folder


# Builds


def _builds(session: Session, folder: Path, tree: trees.Tree, register: Register) -> list[Finding]:
    """Every environment of every version, each alone."""
    program = shutil.which("kubectl", path=session.environment.get("PATH"))
    if program is None:
        raise failures.usage("kubectl is not on the PATH; it builds every environment")
    targets = [
        f"{version}/{environment}"
        for version in register.folders
        for environment in register.environments
        if components.KUSTOMIZATION in tree.children(f"{version}/{environment}")
    ]
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as threads:
        built = threads.map(lambda target: _build(program, folder, target, session.environment), targets)
        return [found for found in built if found is not None]


def _build(program: str, folder: Path, target: str, environment: Mapping[str, str]) -> Finding | None:
    try:
        done = subprocess.run(  # noqa: S603  # no shell
            [program, "kustomize", str((folder / target).resolve())],
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
            env={**environment, **_REMOTE_BASES},
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise failures.Failure(failures.UNREACHABLE, f"kubectl kustomize {target} does not end: {exc}") from exc
    if done.returncode < 0:
        raise failures.usage(f"kubectl kustomize {target} was ended by signal {-done.returncode}")
    if not done.returncode:
        return None
    lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    return error("build", target, None, _reason(lines[-1], folder) if lines else "does not build")


def _reason(line: str, folder: Path) -> str:
    """What kubectl says, without what differs from run to run and from machine to machine."""
    return _LOGGED.sub("", line).removeprefix("error: ").removesuffix('"').replace(f"{folder.resolve()}/", "")


# Releases


def _git(session: Session, folder: Path) -> Git | None:
    """The repository around a folder; without one, and without Git, releases cannot be asked for, and all else can."""
    needed = "released" in session.values or session.values.flag("catalog")
    if not needed and shutil.which("git", path=session.environment.get("PATH")) is None:
        return None
    try:
        return Git(folder, session.environment)
    except NoRepository as exc:
        if needed:
            raise failures.usage(f"{folder} is in no Git repository: {exc}") from exc
        return None


def _release(session: Session, git: Git | None) -> str | None:
    """The commit of the release that was named."""
    tag = session.values.text("released")
    if tag is None or git is None:
        return None
    if not tag:
        raise failures.usage("--released is empty; an unset variable, perhaps")
    commit = git.tag(tag)
    if commit is None:
        raise failures.Failure(failures.NOT_FOUND, f'tag "{tag}" not found')
    return commit


def _listed(released: trees.Tree) -> Iterable[str]:
    """The versions that a release has; one whose register cannot be read has none that could be compared."""
    try:
        return components.register(released).folders
    except components.Unreadable as exc:
        raise failures.Failure(
            failures.REFUSED, *(f"{each.path} of the release: {each.message}" for each in exc.findings)
        ) from exc


# The catalog


def _uses(session: Session) -> Iterator[Use]:
    """What the catalog and the overrides of clusters name."""
    clusters = session.client.get(client.path(known_kinds.CLUSTERS)).objects()
    for kind in kind_commands.overridable(session.kinds):
        if {_PATH, _TAG} <= set(kind.overrides):
            catalog = {each["id"]: each for each in session.client.get(client.path(kind.name)).objects()}
            built = {id: each for id, each in catalog.items() if each.get("type", _KUSTOMIZE) == _KUSTOMIZE}
            yield from (Use(str(each[_TAG]), str(each[_PATH]), f"{kind.singular} {id}") for id, each in built.items())
            for cluster in clusters:
                for reference in kind.references(cluster):
                    if reference["id"] in built:
                        yield _use(cluster, reference, built[reference["id"]])


def _use(cluster: dict[str, Any], reference: dict[str, Any], definition: dict[str, Any]) -> Use:
    tag, path = (str(reference[field] if reference.get(field) is not None else definition[field]) for field in (_TAG, _PATH))
    below = f"/{cluster['environment']}" if definition.get(_BY_ENVIRONMENT) else ""
    return Use(tag, path.rstrip("/") + below, f"{reference['id']} of cluster {cluster['id']}")


def _missing_from_releases(session: Session, git: Git, opened: contextlib.ExitStack) -> Iterator[Finding]:
    releases: dict[str, trees.Tree | None] = {}
    seen: set[tuple[str, str]] = set()
    for use in _uses(session):
        if (use.tag, use.path) in seen:
            continue
        seen.add((use.tag, use.path))
        if use.tag not in releases:
            commit = git.tag(use.tag)
            releases[use.tag] = None if commit is None else opened.enter_context(git.tree(commit))
        found = components.unavailable(use, releases[use.tag])
        if found is not None:
            yield found
