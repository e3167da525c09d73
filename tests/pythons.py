"""Runs the fast suite on every Python that is supported and found here: `pythons.py MAKE`. One that is not found is named.

They are looked for on the PATH, as python3.11 and so on, and among the versions of pyenv. With nothing but the standard
library, because it runs before anything is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14")  # as pyproject.toml and the workflow have them
_TELL = "import sys; print('%d.%d' % sys.version_info[:2])"


def candidates(version: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Programs that may be this Python. A shim of pyenv is there also for a version that is not active, and fails."""
    if found := shutil.which(f"python{version}", path=environment.get("PATH")):
        yield found
    root = Path(environment.get("PYENV_ROOT") or Path(environment.get("HOME", "/nonexistent")) / ".pyenv")
    folders = root.glob(f"versions/{version}.*")
    yield from (str(folder / "bin" / "python") for folder in sorted(folders, key=_patch, reverse=True))


def _patch(folder: Path) -> int:
    number = folder.name.rpartition(".")[2]
    return int(number) if number.isdigit() else -1  # such as a 3.14.0rc1


def interpreter(version: str, environment: Mapping[str, str]) -> str | None:
    for program in candidates(version, environment):
        try:
            done = subprocess.run([program, "-c", _TELL], capture_output=True, text=True, timeout=60, env=dict(environment))
        except OSError:
            continue
        if done.stdout.strip() == version:
            return program
    return None


def main(make: str) -> int:
    found = {version: interpreter(version, os.environ) for version in VERSIONS}
    for version, program in found.items():
        print(f"Python {version}: {program or 'not found, and so not tested'}", flush=True)
    failed = []
    for version, program in found.items():
        if program and subprocess.run([make, "test", f"VENV=.venv-{version}", f"PYTHON={program}"]).returncode:
            failed.append(version)
    tested = [version for version, program in found.items() if program and version not in failed]
    print(f"passed: {', '.join(tested) or 'none'}; failed: {', '.join(failed) or 'none'}")
    return 1 if failed or not tested else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "make"))
