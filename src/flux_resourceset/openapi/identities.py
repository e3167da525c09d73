"""Who a token is, as the document describes it."""

from __future__ import annotations

from flux_resourceset import errors
from flux_resourceset.kinds.model import Schema
from flux_resourceset.openapi import building
from flux_resourceset.openapi.building import Item
from flux_resourceset.openapi.words import members, ref, text


def schemas() -> dict[str, Schema]:
    clusters = {
        "type": "array",
        "minItems": 1,
        "description": "DNS names of the clusters that it is bound to; absent if it is bound to none.",
        "items": {"type": "string"},
    }
    identity = {
        "name": text("Name of the token; the log calls it actor.", example="alice"),
        "role": text("What it may do.", enum=["read", "write"], example="write"),
        "clusters": clusters,
    }
    return {"Identity": members(identity, ["name", "role"])}


def paths(tag: str) -> dict[str, Item]:
    known = building.answer("The token that was sent.", ref("Identity"), {"name": "alice", "role": "write"})
    get = building.operation(
        "whoami.get",
        tag,
        "Who the token is",
        {200: known},
        (errors.BadRequest, errors.Unauthorized),
        [building.parameter("XRequestId")],
        description="Also for a token that is bound to a cluster.",
    )
    return {"/whoami": {"get": get}}
