"""Kinds become the OpenAPI document. Pure."""

from __future__ import annotations

from flux_resourceset.kinds import Kinds


class Lazy:
    def __init__(self, kinds: Kinds, writable: bool) -> None:
        pass

    def __call__(self) -> bytes:
        return b"openapi: 3.0.3\n"
