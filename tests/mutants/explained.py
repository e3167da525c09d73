"""Faults that no test can notice, and why: they are named as the run names them."""

from __future__ import annotations

EXPLAINED: dict[str, str] = {}
