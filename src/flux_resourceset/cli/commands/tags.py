"""Which tags a fleet uses, in the order of releases: hotfixes after their release, candidates before it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures, known_kinds
from flux_resourceset.cli.parsing import kind_commands
from flux_resourceset.repositories.release_order import base, order

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


def tags(session: Session) -> int:
    """What the catalog and the clusters' overrides name, by tag; `common` is what most of the catalog has, and more than one."""
    field = session.values.text("field") or "oci_tag"
    concerned = [kind for kind in kind_commands.overridable(session.kinds) if field in kind.overrides]
    if not concerned:
        raise failures.usage(f"no kind lets clusters override {field!r}")
    clusters = session.client.get(client.path(known_kinds.CLUSTERS)).objects()
    rows = [row for kind in concerned for row in _rows(session, kind, field, clusters)]
    columns = ["kind", "tag", "base", "common", "catalog", "clusters", "ids"]
    session.output.rows(rows, columns, name=lambda row: str(row["tag"]), keys=("tag", "catalog", "clusters", "common"))
    return failures.OK


def _rows(session: Session, kind: known_kinds.ReferencedKind, field: str, clusters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    catalog = {
        document["id"]: _text(document[field])
        for document in session.client.get(client.path(kind.name)).objects()
        if document.get(field) is not None
    }
    pinned = [
        (cluster["id"], reference["id"], _text(reference[field]))
        for cluster in clusters
        for reference in kind.references(cluster)
        if reference.get(field) is not None
    ]
    named_tags = sorted({*catalog.values(), *(tag for _, _, tag in pinned)}, key=order)
    named = [*catalog.items(), *((id, tag) for _, id, tag in pinned)]
    most = Counter(catalog.values()).most_common(1)
    return [
        {
            "kind": kind.name,
            "tag": tag,
            "base": base(tag),
            "common": bool(most) and most[0][1] > 1 and tag == most[0][0],
            "catalog": sum(value == tag for value in catalog.values()),
            "clusters": len({cluster for cluster, _, value in pinned if value == tag}),
            "ids": sorted({id for id, value in named if value == tag}),
        }
        for tag in named_tags
    ]


def _text(value: Any) -> str:
    """A tag, or the value of some other field that clusters override."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
