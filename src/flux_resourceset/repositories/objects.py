"""What a change does to the objects of tenants: added, removed, changed field by field; and tenants to which the same happens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flux_resourceset import differences
from flux_resourceset.repositories.layout import Tenant

Manifest = Mapping[str, Any]


class Change(NamedTuple):
    tenant: Tenant
    added: list[str]
    removed: list[str]
    changed: list[dict[str, Any]]

    def told(self) -> dict[str, Any]:
        return {**self.tenant.told(), **self.what()}

    def what(self) -> dict[str, Any]:
        return {"added": self.added, "removed": self.removed, "changed": self.changed}


def identity(manifest: Manifest) -> str:
    """An object by name: apiVersion/kind/namespace/name."""
    metadata = manifest["metadata"]
    return "/".join(map(str, (manifest["apiVersion"], manifest["kind"], metadata.get("namespace") or "", metadata["name"])))


def change(tenant: Tenant, before: Sequence[Manifest], after: Sequence[Manifest]) -> Change | None:
    """What becomes of a tenant's objects; None if they stay as they are."""
    old, new = ({identity(manifest): manifest for manifest in side} for side in (before, after))
    changed = [{"object": name, "fields": fields} for name in old if name in new and (fields := _fields(old[name], new[name]))]
    added, removed = [name for name in new if name not in old], [name for name in old if name not in new]
    return Change(tenant, added, removed, changed) if added or removed or changed else None


def _fields(before: Manifest, after: Manifest) -> list[dict[str, Any]]:
    return [
        {"path": each.pointer, "before": _present(each.before), "after": _present(each.after)}
        for each in differences.of_manifests(before, after)
    ]


def _present(value: Any) -> Any:
    return None if value is differences.ABSENT else value


def summary(changes: Iterable[Change]) -> dict[str, Any]:
    """All of them, those that are the same together, and how many objects that makes."""
    every = list(changes)
    groups: dict[str, list[Change]] = {}
    for each in every:
        groups.setdefault(json.dumps(_anywhere(each), sort_keys=True), []).append(each)
    return {
        "tenants": [each.told() for each in every],
        "groups": [
            {"count": len(same), "tenants": [each.tenant.told() for each in same], **_anywhere(same[0])}
            for same in groups.values()
        ],
        "totals": {
            "tenants": len(every),
            **{name: sum(len(each.what()[name]) for each in every) for name in ("added", "removed", "changed")},
        },
    }


def _anywhere(change: Change) -> dict[str, Any]:
    """A change without the namespaces of its objects, which tenants of different clusters need not share."""
    return {
        "added": sorted(map(_without_namespace, change.added)),
        "removed": sorted(map(_without_namespace, change.removed)),
        "changed": [{**each, "object": _without_namespace(each["object"])} for each in change.changed],
    }


def _without_namespace(name: str) -> str:
    version_and_kind, _, own = name.rpartition("/")
    return f"{version_and_kind.rpartition('/')[0]}//{own}"
