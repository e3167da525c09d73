"""`usage`: which clusters have a definition, and the values in use there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import whereabouts

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


def usage(session: Session) -> int:
    kind, values = session.referenced_kind, session.values
    query = {name: values.required(name) for name in ("selector", "environment") if name in values}
    rows = whereabouts.usage(session, kind, values.text("id"), query)
    columns = whereabouts.columns(kind)
    if values.flag("summary"):
        rows, columns = whereabouts.summary(kind, rows), whereabouts.summary_columns(kind)
    total = len(rows)
    rows = rows[: int(values.text("limit") or total)]
    keys = ("id", *(name for name in ("cluster", "clusters", *kind.overrides[:1]) if name in columns))
    then = [name for name in columns if name not in kind.overrides]
    session.output.rows(rows, columns, name=lambda row: f"{kind.name}/{row['id']}", keys=keys, then=then)
    if not rows and session.output.human:
        session.say(f"no cluster has {values.text('id') or f'any {kind.singular}'}")
    elif len(rows) < total:
        session.say(f"{len(rows)} of {total}; --limit shows more")
    return failures.OK
