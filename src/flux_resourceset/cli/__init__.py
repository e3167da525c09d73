"""The program flux-resourceset-cli."""

from __future__ import annotations

import os
import sys


def main() -> int:
    from flux_resourceset.cli import program

    return program.run(sys.argv[1:], os.environ)
