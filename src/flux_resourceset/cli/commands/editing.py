"""Editing a document in an editor, without losing what others change meanwhile."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any, NamedTuple

from flux_resourceset import client, differences, json_pointers
from flux_resourceset.cli import document_files, failures, windows
from flux_resourceset.cli.commands import batches, plans
from flux_resourceset.cli.output import yaml_text
from flux_resourceset.cli.output.terminal_text import printable
from flux_resourceset.cli.parsing.grammar import PROGRAM
from flux_resourceset.cli.session import explained

if TYPE_CHECKING:
    from flux_resourceset.cli.known_kinds import Kind
    from flux_resourceset.cli.session import Session

Document = dict[str, Any]

_ATTEMPTS = 10
_OPENED = 10  # times without a terminal: a script that makes the same mistake anew would never end
_MENDABLE = (400, 409, 422)  # refusals that another text may pass

_INVITATION = "# {} Save and close to store it; close unchanged to leave it.\n"


def edit(session: Session) -> int:
    kind, id = session.kind, session.values.required("id")
    session.require_write_token()
    given = session.values.text("from-file")
    editor = "" if given else _editor(session)
    path = client.path(kind.name, id)
    answer = session.client.get(path)
    base, tag = answer.object(), answer.headers.get("etag", "")
    file = given or _write_draft(kind, id, base)
    draft = _Draft(file, editor, kind, id)
    keep = True
    try:
        stored = (_stored if given else _edited)(session, draft, path, base, tag)
        keep = given is not None
    except client.Problem as problem:
        raise failures.Failure(*_kept(explained(problem), draft)) from problem
    except client.Unreachable as exc:
        raise failures.Failure(*_kept(failures.Failure(failures.UNREACHABLE, str(exc)), draft)) from exc
    except failures.Failure as failure:
        raise failures.Failure(*_kept(failure, draft)) from failure
    finally:
        if not keep:
            os.unlink(file)
    if stored is None:
        session.say(f'{kind.name} "{id}" was not changed')
        session.output.documents(kind, [base], single=True)
        return failures.OK
    results = [{"kind": kind.name, "id": id, "change": "update", "revision": stored[1], "before": base, "after": stored[0]}]
    batches.show(session, results, [(kind.name, stored[0])], single=True)
    return failures.OK


class _Mistake(failures.Failure):
    """A text that is no such document, and may become one."""


class _Draft(NamedTuple):
    """A document in the hands of its editor."""

    file: str
    editor: str
    kind: Kind
    id: str

    @property
    def command(self) -> list[str]:
        """The words that store the file as it is."""
        return [self.kind.group, "edit", self.id, "--from-file", self.file]

    def read(self, session: Session) -> Document:
        try:
            body = document_files.read_one(self.file, self.kind, self.id, session.stdin)
        except failures.Failure as failure:
            raise _Mistake(failure.code, *failure.lines) from failure
        if body["id"] != self.id:
            raise _Mistake(failures.REFUSED, f'{self.kind.name} "{self.id}": /id must stay {self.id}; create makes another')
        return body

    def text(self) -> str:
        """What stands below the comments at the top."""
        try:
            with open(self.file, encoding="utf-8", errors="replace") as stream:
                lines = stream.readlines()
        except OSError as exc:
            raise failures.usage(f"{self.file}: cannot be read: {exc.strerror}") from exc
        while lines and lines[0].startswith("#"):
            del lines[0]
        return "".join(lines)

    def complain(self, text: str, wrong: failures.Failure) -> None:
        """Put the errors on top, as comments, in the place of those that were there."""
        comments = [
            _INVITATION.format(printable(self.kind.description)),
            *(f"# error: {printable(line)}\n" for line in wrong.lines),
        ]
        with open(self.file, "w", encoding="utf-8") as stream:
            stream.write("".join(comments) + text)


def _edited(session: Session, draft: _Draft, path: str, base: Document, tag: str) -> tuple[Document, int] | None:
    """What was stored; None if nothing was changed. What is wrong opens again, with the errors on top, until it is right."""
    wrong: failures.Failure | None = None
    before = draft.text()
    for _ in range(sys.maxsize if session.interactive else _OPENED):
        _open(draft.editor, draft.file)
        text = draft.text()
        if wrong is not None and text == before:
            break  # saved unchanged after an error: whoever edits gives up
        try:
            return _stored(session, draft, path, base, tag)
        except _Mistake as mistake:
            wrong = mistake
        except client.Problem as problem:
            if problem.status not in _MENDABLE:
                raise
            wrong = explained(problem)
        before = text
        draft.complain(text, wrong)
    raise wrong or failures.usage("nothing was stored")


def _stored(session: Session, draft: _Draft, path: str, base: Document, tag: str) -> tuple[Document, int] | None:
    """What the file says, in the place of what is there; None if that is the same."""
    mine = draft.read(session)
    return None if differences.same(mine, base) else _store(session, path, base, mine, tag, draft.command)


def _kept(failure: failures.Failure, draft: _Draft) -> tuple[Any, ...]:
    """After a conflict storing the file would undo what somebody else did."""
    if isinstance(failure, plans.Guarded):  # which says what to do
        return failure.code, *failure.lines, f"what you wrote is kept in {draft.file}"
    remedy = f"store it with: {shlex.join([PROGRAM, *draft.command])}"
    if failure.code == failures.CONFLICT:
        remedy = f"see what differs with: {PROGRAM} diff -f {draft.file}, then edit again"
    return failure.code, *failure.lines, f"what you wrote is kept in {draft.file}; {remedy}"


def _write_draft(kind: Kind, id: str, document: Document) -> str:
    named = "".join(letter if letter.isalnum() else "-" for letter in f"{kind.group}-{id}"[:100])  # a server says what a group is
    handle, file = tempfile.mkstemp(prefix=f"{named}-", suffix=".yaml")
    with open(handle, "w", encoding="utf-8") as stream:
        stream.write(_INVITATION.format(printable(kind.description)))
        stream.write(yaml_text.dumped([{"kind": kind.name, **document}]))
    return file


def _editor(session: Session) -> str:
    given = (session.environment.get(name, "").strip() for name in ("EDITOR", "VISUAL"))
    editor = next(filter(None, given), "")
    if not editor and not (session.stdin.isatty() and sys.stdout.isatty()):
        raise failures.usage("EDITOR is not set, and without a terminal there is no other; set it, or use update or apply")
    return editor or windows.DEFAULT_EDITOR


def _open(editor: str, file: str) -> None:
    try:
        code = subprocess.run(windows.editor_command(editor, file), check=False).returncode  # noqa: S603  # the user's own editor
    except (OSError, ValueError) as exc:
        raise failures.usage(f"the editor {editor!r} cannot be started: {exc}; set EDITOR") from exc
    if code != 0:
        raise failures.usage(f"the editor {editor!r} ended with {code}, so nothing was stored")


def _put(session: Session, path: str, document: Document, tag: str, remedy: list[str]) -> client.Answer:
    matching = {"If-Match": tag}
    return plans.carry_out(
        session,
        None,
        lambda: plans.asked(session, "PUT", path, document, headers=matching),
        lambda consent: session.client.send("PUT", path, document, headers={**matching, **consent}),
        remedy,
    )


def _store(session: Session, path: str, base: Document, mine: Document, tag: str, remedy: list[str]) -> tuple[Document, int]:
    """Store an edit; when somebody was faster, on top of theirs, if both can hold. `remedy` is what passes a guard."""
    for _ in range(_ATTEMPTS):
        try:
            answer = _put(session, path, mine, tag, remedy)
            for text in answer.headers.get("x-warning", "").splitlines():
                session.warn(text)
            return answer.object(), int(answer.headers.get("etag", '"0"').strip('"'))
        except client.Problem as problem:
            if problem.status != 412:
                raise
        answer = session.client.get(path)
        theirs, tag = answer.object(), answer.headers.get("etag", "")
        conflicts: list[str] = []
        mine, base = merged(base, mine, theirs, (), conflicts), theirs
        if conflicts:
            raise failures.Failure(
                failures.CONFLICT, *(f"{place} was changed by somebody else meanwhile, and by you" for place in conflicts)
            )
        session.say("somebody changed other fields meanwhile; both changes are kept")
    raise failures.Failure(failures.CONFLICT, "the document changes faster than it can be stored; try again")


def merged(base: Any, mine: Any, theirs: Any, steps: tuple[str, ...], conflicts: list[str]) -> Any:
    """Three-way merge by field; what both changed differently is a conflict, and its place is told as a pointer."""
    if differences.same(mine, theirs) or differences.same(base, theirs):
        return mine
    if differences.same(base, mine):
        return theirs
    if not all(isinstance(value, dict) for value in (base, mine, theirs)):
        conflicts.append(json_pointers.pointer(steps))
        return mine
    result = {}
    for name in dict.fromkeys([*theirs, *mine, *base]):
        old, own, other = (side.get(name, differences.ABSENT) for side in (base, mine, theirs))
        value = merged(old, own, other, (*steps, name), conflicts)
        if value is not differences.ABSENT:
            result[name] = value
    return result
