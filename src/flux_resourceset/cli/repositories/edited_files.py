"""Edits of files: shown, written, committed, or committed on a branch; all of them or none."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flux_resourceset import atomic_files
from flux_resourceset.cli import failures
from flux_resourceset.repositories import trees

if TYPE_CHECKING:
    from flux_resourceset.cli.repositories.checkouts import Checkout
    from flux_resourceset.cli.session import Session

COLUMNS = ("path", "field", "before", "after")


def source(session: Session, checkout: Checkout) -> trees.Tree:
    """Where edits are read from: the work tree, or HEAD if they are for a branch and the work tree stays as it is."""
    return checkout.tree(checkout.git.commit("HEAD") if "branch" in session.values else None)


def deliver(
    session: Session,
    checkout: Checkout,
    files: Mapping[str, bytes],
    read_from: Sequence[str],
    message: str,
    rows: Sequence[Mapping[str, Any]],
    elsewhere: Callable[[], None] | None = None,
) -> int:
    """Do with edited files what was asked, and print the rows; no rows, nothing to do.

    `read_from` are the paths of what the edits were taken from, which must be committed, too, if the edits are to be.
    `elsewhere` writes what is not in files; it is called once nothing speaks against the rest.
    """
    branch = session.values.text("branch")
    if branch is not None and not checkout.git.is_branch_name(branch):
        raise failures.usage(f"--branch is {branch!r}, which is no name of a branch")
    if not session.values.flag("dry-run"):
        commits = bool(files) and (branch is not None or session.values.flag("commit"))
        if commits:
            _check(checkout, [*files, *read_from], branch)
        elif branch is not None:
            _check_committed(checkout, read_from)  # HEAD was read, where what was changed since is not seen
        if elsewhere is not None:
            elsewhere()
        if commits:
            _commit(checkout, files, message, branch)
        else:
            _write(checkout, files)
    session.output.rows(rows, COLUMNS, name=lambda row: f"{row['path']}:{row['field']}", keys=("path", "field"))
    if not rows and session.output.human:
        session.say("nothing to do")
    return failures.OK


def _check(checkout: Checkout, paths: Sequence[str], branch: str | None) -> None:
    if branch is not None and checkout.git.branch_exists(branch):
        raise failures.Failure(failures.CONFLICT, f"branch {branch} exists; choose another name")
    _check_committed(checkout, paths)


def _check_committed(checkout: Checkout, paths: Sequence[str]) -> None:
    git = checkout.git
    head = checkout.tree(git.commit("HEAD"))  # before the first commit there is nothing to be compared with
    ordered = sorted(set(paths))
    dirty = {*git.staged(ordered), *(path for path in ordered if not _is_committed(checkout, head, path))}
    if dirty:
        raise failures.Failure(failures.CONFLICT, *(f"{path} has changes that are not committed" for path in sorted(dirty)))


def _is_committed(checkout: Checkout, head: trees.Tree, path: str) -> bool:
    """Whether a file of the work tree has the bytes of a commit, but for ends of lines. Git would run filters to compare them."""
    present, committed = checkout.tree(None).read(path), head.read(path)
    if present is None or committed is None:
        return present is committed
    return committed in (present, _with_unix_ends(present))


def _commit(checkout: Checkout, files: Mapping[str, bytes], message: str, branch: str | None) -> None:
    git = checkout.git
    head = git.commit("HEAD")
    if branch is not None:
        git.create_branch(branch, git.written(head, files, message))
        return
    tree = checkout.tree(head)
    stored = {path: _as_committed(checkout, tree, path, body) for path, body in files.items()}
    before = _write(checkout, files)
    try:
        git.advance(head, git.written(head, stored, message), sorted(files), message)
    except failures.Failure:
        _restore(checkout, before)
        raise


def _as_committed(checkout: Checkout, head: trees.Tree, path: str, body: bytes) -> bytes:
    """Edited bytes with the ends of lines that the commit has, where the work tree has others."""
    return body if checkout.tree(None).read(path) == head.read(path) else _with_unix_ends(body)


def _with_unix_ends(body: bytes) -> bytes:
    return body.replace(b"\r\n", b"\n")


def _write(checkout: Checkout, files: Mapping[str, bytes]) -> dict[str, bytes | None]:
    """Each file as a whole; if one cannot be written, those before it get back what they had. Returns what was there."""
    before = {path: checkout.tree(None).read(path) for path in files}
    for path, body in files.items():
        try:
            _replace(checkout, path, body)
        except OSError as exc:
            _restore(checkout, before)
            raise failures.usage(f"{path} cannot be written: {exc.strerror or exc}; nothing was changed") from exc
    return before


def _restore(checkout: Checkout, before: Mapping[str, bytes | None]) -> None:
    for path, body in before.items():
        if body is not None and checkout.tree(None).read(path) != body:
            _replace(checkout, path, body)


def _replace(checkout: Checkout, path: str, body: bytes) -> None:
    place = checkout.root / path
    mode = os.stat(place).st_mode & 0o777
    atomic_files.replace(place, body, durable=False, mode=mode)
    os.chmod(place, mode)  # whatever the umask is
