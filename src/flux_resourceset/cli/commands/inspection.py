"""Looking closely: what Flux gets, and which versions are at work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flux_resourceset import __version__, client
from flux_resourceset.cli import failures, known_kinds

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Document = dict[str, Any]

_PATIENCE = 1.0  # seconds that `version` waits for a server


def inputs(session: Session) -> int:
    dns, view = session.values.required("dns"), session.values.required("view")
    if "at" in session.values:
        path = client.path(known_kinds.CLUSTERS, _id_then(session, dns), "inputs", view)
    else:
        path = client.path("api", "v2", "flux", known_kinds.CLUSTERS, dns, view)
    answer = session.client.get(path, session.at)
    answer.object(inputs=list)  # a proxy's page is nothing that Flux gets
    session.say_revision(answer)
    session.output.raw(answer.body)
    return failures.OK


def _id_then(session: Session, name: str) -> str:
    """The id of the cluster that had a DNS name; where none had it, the name may be an id itself."""
    found = session.client.get("/" + known_kinds.CLUSTERS, {"cluster_dns": name, **session.at}).objects()
    return str(found[0]["id"]) if found else name


def version(session: Session) -> int:
    server = _server_version(session.target.url, session.environment) if session.target.url else None
    known = {"client": __version__, "server": server}
    session.data(known, f"client {__version__}", f"server {server or 'unknown: it did not answer'}", name=__version__)
    return failures.OK


def _server_version(url: str, environment: Mapping[str, str]) -> str | None:
    """Asked where every server tells it, whatever its mode and without a token."""
    try:
        asked = client.Client(url, {}, timeout=_PATIENCE, deadline=True, environment=environment)
        return asked.get("/health").headers.get("x-server-version")
    except (client.Unreachable, client.Problem, ValueError):
        return None
