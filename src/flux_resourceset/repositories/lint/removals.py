"""Rule removals: a change that takes away more tenants than the policy lets pass must say how many."""

from __future__ import annotations

import re
from collections.abc import Collection

from flux_resourceset.repositories import findings
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.layout import Tenant

RULE = "removals"
TRAILER = "Fleet-Removes"
_NUMBER = re.compile(r"[0-9]{1,9}")


def of_change(removed: Collection[Tenant], allowed: int | None, announced: str | None) -> list[Finding]:
    """Tenants are counted per cluster; what is announced is the last trailer of the change."""
    count = len(removed)
    if allowed is None or count <= allowed:
        return []
    if announced is not None and _NUMBER.fullmatch(announced) and int(announced) == count:
        return []
    said = f"the last {TRAILER} says {announced}" if announced is not None else "no commit says so"
    message = (
        f"the change removes {count} tenants, and fleet.yaml lets {allowed} pass: {said}; "
        f"add the trailer {TRAILER}: {count} to a commit if they shall go"
    )
    return [findings.error(RULE, min(tenant.folder for tenant in removed), None, message)]
