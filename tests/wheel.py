"""Serves from an installed package and talks to it: `wheel.py BIN DIRECTORY`. What is missing in a wheel shows here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import live


def main(bin: Path, directory: Path) -> None:
    environment = live.environment(directory, SEED_FILE=str(live.ROOT / "data" / "seed.json"))
    server = live.Server(directory, environment, program=(str(bin / "flux-resourceset"),))
    try:
        server.wait("/ready")
        told = {"FLUX_API_URL": server.url, "FLUX_API_TOKEN": live.READ, "HOME": str(directory), "PATH": os.environ["PATH"]}
        for command in (["cluster", "list"], ["bootstrap", "demo-cluster-01", "--api-url", server.url, "--existing-secret", "x"]):
            done = subprocess.run([bin / "flux-resourceset-cli", *command], env=told, capture_output=True, text=True, check=True)
            assert "demo-cluster-01" in done.stdout, done
    finally:
        server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
