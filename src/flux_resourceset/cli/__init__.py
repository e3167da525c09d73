"""The program flux-resourceset-cli."""

from __future__ import annotations


def main() -> int:
    return 2
