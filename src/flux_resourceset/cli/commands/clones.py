"""`create --from`: a document that begins as a copy of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.known_kinds import CLUSTERS

if TYPE_CHECKING:
    from flux_resourceset.cli.known_kinds import Kind
    from flux_resourceset.cli.session import Session


def clone(session: Session, kind: Kind, id: str, source: str) -> dict[str, Any]:
    """The document that `source` names as KIND/ID, under another id."""
    word, slash, original = source.partition("/")
    if not slash or not original:
        raise failures.usage(f"--from is {source!r}; it must be KIND/ID, as in {kind.group}/ID")
    named = session.kinds.find(word)
    if named is None:
        raise failures.usage(f'--from: kind "{word}" not found; there are {", ".join(each.group for each in session.kinds)}')
    if named.name != kind.name:
        raise failures.usage(f"--from is {source!r}; a {kind.singular} can be cloned only from another: {kind.group}/ID")
    if kind.name == CLUSTERS and "cluster-dns" not in session.values:
        raise failures.usage("--from needs --cluster-dns: no two clusters may have one DNS name")
    document = session.client.get(client.path(kind.name, original)).object()
    if document.get("cluster_name") == original and kind.name == CLUSTERS and "cluster-name" not in session.values:
        session.say(f"note: cluster_name is {original!r} as in the original; --cluster-name gives it another")
    return {**document, "id": id}
