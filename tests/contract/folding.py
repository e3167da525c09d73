"""Logs whose beginning was folded away."""

from __future__ import annotations

from flux_resourceset.store import Store


def fold(store: Store, base: int) -> None:
    """Take the entries up to a revision out of the log, and leave what they add up to."""
    with store.begin() as transaction:
        transaction.fold(base + 1)
