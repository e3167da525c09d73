"""What clusters say about a definition they have: on or off, pinned, patched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flux_resourceset import client
from flux_resourceset.cli import failures, fields, kind_table, targets

if TYPE_CHECKING:
    from flux_resourceset.cli.grammar import Values
    from flux_resourceset.cli.session import Session


def enable(session: Session) -> int:
    return _refer(session, "enabling", {"enabled": True})


def disable(session: Session) -> int:
    return _refer(session, "disabling", {"enabled": False})


def pin(session: Session) -> int:
    pins = kind_table.pin_fields(session.kind)
    wanted = fields.document(pins, session.values, f"{session.kind.singular}", update=True)
    if not wanted:
        raise failures.usage(f"say what to pin: at least one of {', '.join(field.option.name for field in pins)}")
    return _refer(session, "pinning", wanted)


def unpin(session: Session) -> int:
    return _refer(session, "unpinning", dict.fromkeys(session.kind.overrides))


def _refer(session: Session, doing: str, wanted: dict[str, Any]) -> int:
    """Change fields of a reference where there is one."""
    kind, id = session.kind, session.values.required("id")

    def operations(ids: list[str]) -> list[dict[str, Any]]:
        operation = {"op": "assign", "kind": kind.name, "id": id, "document": wanted, "clusters": ids}
        return [{**operation, "only_assigned": True}]  # somebody may have unassigned it since we looked

    return _change(session, doing, operations)


def patch(session: Session) -> int:
    kind, id = session.kind, session.values.required("id")
    values = patched(session.values)

    def operations(ids: list[str]) -> list[dict[str, Any]]:
        return [{"op": "patch-values", "kind": kind.name, "id": id, "values": values, "clusters": ids}]

    return _change(session, "patching", operations)


def _change(session: Session, doing: str, operations: Any) -> int:
    kind, id = session.kind, session.values.required("id")
    session.client.get(client.path(kind.name, id))  # an unknown definition is a mistake even when nothing is selected
    clusters = targets.chosen(session, (kind, id))
    results = targets.change(session, clusters, f'{doing} {kind.singular} "{id}"', lambda ids: operations(ids) if ids else [])
    targets.show(session, clusters, results, [])
    return failures.OK


def patched(values: Values) -> dict[str, Any]:
    """The Helm values that --set and its sisters give; None takes one back."""
    found: dict[str, Any] = {}
    _put(found, fields.pairs(values.many("set"), "--set"))
    for key, text in fields.pairs(values.many("set-json"), "--set-json").items():
        value = fields.json_value(text or "", f"--set-json {key}=")
        if value is None or isinstance(value, dict | list):
            raise failures.usage(f"--set-json {key}={text}: must be a number, true, false or a string; use --unset to remove")
        _put(found, {key: value})
    for key, path in fields.pairs(values.many("set-file"), "--set-file").items():
        _put(found, {key: _content(path or "")})
    _put(found, dict.fromkeys(values.many("unset")))
    if not found:
        raise failures.usage("say what to set: --set, --set-json, --set-file or --unset")
    return found


def _put(found: dict[str, Any], more: dict[str, Any]) -> None:
    for key, value in more.items():
        if key in found:
            raise failures.usage(f"{key!r} is given twice")
        found[key] = value


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            return stream.read().removesuffix("\n")
    except (OSError, UnicodeDecodeError) as exc:
        raise failures.usage(f"--set-file {path}: cannot be read: {getattr(exc, 'strerror', None) or exc}") from exc
