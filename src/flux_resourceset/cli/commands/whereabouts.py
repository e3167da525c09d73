"""What the server tells of what runs where: definitions by cluster, and clusters that are no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import log_lines
from flux_resourceset.cli.known_kinds import CLUSTERS, ReferencedKind
from flux_resourceset.cli.output.printing import cell

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Row = dict[str, Any]


def usage(session: Session, kind: ReferencedKind, id: str | None, query: Mapping[str, str]) -> list[Row]:
    """A row per definition and cluster that has it."""
    segments = ("usage", kind.name) if id is None else ("usage", kind.name, id)
    return session.client.get(client.path(*segments), query).objects()


def columns(kind: ReferencedKind) -> list[str]:
    """Of a row, what people want to know of such a kind."""
    enabled = ["enabled"] if kind.switched else []
    overridden = ["overridden"] if kind.overrides else []
    patches = ["patches"] if kind.patches else []
    return ["id", "cluster", "environment", *kind.overrides, *enabled, *overridden, *patches]


def summary(kind: ReferencedKind, rows: Iterable[Row]) -> list[Row]:
    """How many clusters have which values, by environment; and on how many of them it is switched off."""
    names = ("id", *kind.overrides, "environment")
    counted: Counter[str] = Counter()
    disabled: Counter[str] = Counter()
    shown: dict[str, Row] = {}
    for row in rows:
        group = {name: row.get(name) for name in names}
        key = log_lines.text(group)
        shown[key] = group
        counted[key] += 1
        disabled[key] += row.get("enabled") is False
    switched = kind.switched
    groups = sorted(shown.items(), key=lambda item: [cell(value) for value in item[1].values()])
    return [{**group, "clusters": counted[key], **({"disabled": disabled[key]} if switched else {})} for key, group in groups]


def summary_columns(kind: ReferencedKind) -> list[str]:
    return ["id", *kind.overrides, "environment", "clusters", *(["disabled"] if kind.switched else [])]


def environments(rows: Sequence[Row]) -> dict[str, int]:
    return dict(sorted(Counter(str(row.get("environment")) for row in rows).items()))


# Clusters that are no more

_COLUMNS = ("id", "cluster_dns", "time", "by", "reason")


def tombstones(session: Session, query: Mapping[str, str]) -> client.Answer:
    return session.client.get("/tombstones", query)


def show_decommissioned(session: Session) -> int:
    """The list of clusters that were decommissioned; of them, nothing but their names is known."""
    for name in _NARROWING:
        if name in session.values:
            raise failures.usage(f"--{name} does not go with --decommissioned: their labels and fields are gone")
    if session.values.flag("watch"):
        raise failures.usage("--watch does not go with --decommissioned; see changes --follow")
    query = {name: session.values.required(name) for name in ("limit", "offset") if name in session.values}
    answer = tombstones(session, query)
    rows = answer.objects()
    if session.output.human:
        session.output.table(_COLUMNS, [_row(row) for row in session.output.in_order(rows)], then=("id", "time", "by", "reason"))
    else:
        session.output.rows(rows, (), name=lambda row: f"{CLUSTERS}/{row['id']}")
    total = int(answer.headers.get("x-total-count", len(rows)))
    if not rows and session.output.human:
        session.say("no cluster was decommissioned")
    elif total > len(rows):
        session.say(f"{len(rows)} of {total}; --limit and --offset show the others")
    return failures.OK


_NARROWING = ("environment", "selector", "cluster-dns", "at")


def _row(row: Mapping[str, Any]) -> list[str]:
    return [
        cell(row.get("id")),
        cell(row.get("cluster_dns")),
        log_lines.moment(row),
        log_lines.author(row),
        cell(row.get("reason")),
    ]
