"""What clusters say about a definition: assigned or not, on or off, pinned, patched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures
from flux_resourceset.cli.commands import chosen_clusters
from flux_resourceset.cli.parsing import field_options, kind_commands

if TYPE_CHECKING:
    from flux_resourceset.cli.parsing.values import Values
    from flux_resourceset.cli.session import Session


def assign(session: Session) -> int:
    kind, id = session.referenced_kind, session.id
    wanted = field_options.document(kind_commands.reference_fields(kind), session.values, f'{kind.name} "{id}"', update=True)
    clusters = chosen_clusters.chosen(session)
    session.client.get(client.path(kind.name, id))  # 404 says best what is unknown, and has the right exit code
    results = chosen_clusters.change(
        session,
        clusters,
        f'assigning {kind.singular} "{id}"',
        lambda ids: [{"op": "assign", "kind": kind.name, "id": id, "document": wanted, "clusters": ids}] if ids else [],
    )
    chosen_clusters.show(session, clusters, results, [])
    return failures.OK


def unassign(session: Session) -> int:
    kind, id = session.referenced_kind, session.id
    clusters = chosen_clusters.chosen(session)
    results = chosen_clusters.change(
        session,
        clusters,
        f'unassigning {kind.singular} "{id}"',
        lambda ids: [{"op": "unassign", "kind": kind.name, "id": id, "clusters": ids}] if ids else [],
    )
    taken = sum(len(result["before"].get("patches", {}).get(id, ())) for result in results if kind.patches)
    verb = "would be" if session.values.flag("dry-run") else "were"
    chosen_clusters.show(
        session, clusters, results, [f'{taken} patch value(s) for "{id}" {verb} removed with it'] if taken else []
    )
    return failures.OK


def enable(session: Session) -> int:
    return _refer(session, "enabling", {"enabled": True})


def disable(session: Session) -> int:
    return _refer(session, "disabling", {"enabled": False})


def pin(session: Session) -> int:
    pins = kind_commands.pin_fields(session.referenced_kind)
    wanted = field_options.document(pins, session.values, f"{session.referenced_kind.singular}", update=True)
    if not wanted:
        raise failures.usage(f"say what to pin: at least one of {', '.join(field.option.name for field in pins)}")
    return _refer(session, "pinning", wanted)


def unpin(session: Session) -> int:
    return _refer(session, "unpinning", dict.fromkeys(session.referenced_kind.overrides))


def _refer(session: Session, doing: str, wanted: dict[str, Any]) -> int:
    """Change fields of a reference where there is one."""
    kind, id = session.referenced_kind, session.values.required("id")

    def operations(ids: list[str]) -> list[dict[str, Any]]:
        operation = {"op": "assign", "kind": kind.name, "id": id, "document": wanted, "clusters": ids}
        return [{**operation, "only_assigned": True}]  # somebody may have unassigned it since we looked

    return _change(session, doing, operations)


def patch(session: Session) -> int:
    kind, id = session.referenced_kind, session.values.required("id")
    values = patched(session.values)

    def operations(ids: list[str]) -> list[dict[str, Any]]:
        return [{"op": "patch-values", "kind": kind.name, "id": id, "values": values, "clusters": ids}]

    return _change(session, "patching", operations)


def _change(session: Session, doing: str, operations: Any) -> int:
    kind, id = session.referenced_kind, session.values.required("id")
    session.client.get(client.path(kind.name, id))  # an unknown definition is a mistake even when nothing is selected
    clusters = chosen_clusters.chosen(session, (kind, id))
    results = chosen_clusters.change(
        session, clusters, f'{doing} {kind.singular} "{id}"', lambda ids: operations(ids) if ids else []
    )
    chosen_clusters.show(session, clusters, results, [])
    return failures.OK


def patched(values: Values) -> dict[str, Any]:
    """The Helm values that --set and its sisters give; None takes one back."""
    patch_values: dict[str, Any] = {}
    _put(patch_values, field_options.pairs(values.many("set"), "--set"))
    for key, text in field_options.pairs(values.many("set-json"), "--set-json").items():
        value = field_options.json_value(text or "", f"--set-json {key}=")
        if value is None or isinstance(value, dict) or _nests(value):
            allowed = "a number, true, false, a string or a list of these"
            raise failures.usage(
                f"--set-json {key}={text}: must be {allowed}; use --unset to remove, and {key}.NAME or {key}[0] below it"
            )
        _put(patch_values, {key: value})
    for key, path in field_options.pairs(values.many("set-file"), "--set-file").items():
        _put(patch_values, {key: _content(path or "")})
    _put(patch_values, dict.fromkeys(values.many("unset")))
    if not patch_values:
        raise failures.usage("say what to set: --set, --set-json, --set-file or --unset")
    return patch_values


def _nests(value: Any) -> bool:
    return isinstance(value, list) and any(item is None or isinstance(item, dict | list) for item in value)


def _put(patch_values: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if key in patch_values:
            raise field_options.duplicate_key(key)
        patch_values[key] = value


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return stream.read().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as exc:
        raise failures.usage(f"--set-file {path}: cannot be read: {getattr(exc, 'strerror', None) or exc}") from exc
