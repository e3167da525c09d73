"""The machine on which something was measured, and the programs that took part."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))


def _said(*command: str) -> str:
    """What a program says of itself; nothing, if it is not there."""
    program = shutil.which(command[0]) or shutil.which(command[0], path="/usr/sbin:/usr/local/sbin")
    if program is None:
        return ""
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True)
    return (done.stdout + done.stderr).strip().partition("\n")[0]


def _field(file: str, name: str) -> str:
    for line in Path(file).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def processor() -> str:
    return _field("/proc/cpuinfo", "model name") or platform.machine()


def cores() -> int:
    return len(os.sched_getaffinity(0))


def short() -> str:
    return f"{cores()} × {processor()}"


def others_use(seconds: float = 2.0) -> float:
    """The share of all cores that others use now, neighbours of a virtual machine among them; this process does nothing
    meanwhile. A load average would tell of what ran before."""

    def counted() -> tuple[int, int]:
        times = [int(each) for each in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(times), times[3] + times[4]  # idle, and waiting for a disk

    whole, idle = counted()
    time.sleep(seconds)
    whole_later, idle_later = counted()
    return 1 - (idle_later - idle) / max(whole_later - whole, 1)


def postgres() -> str:
    try:
        import postgres_server
    except ImportError as exc:
        return f"not found ({exc})"
    return _said(str(postgres_server.binaries() / "postgres"), "--version") or "not found"


def described() -> str:
    """A list for the page."""
    memory = int(_field("/proc/meminfo", "MemTotal").split()[0]) / 2**20
    lines = {
        "Processor": f"{processor()}; {cores()} cores",
        "Memory": f"{memory:.0f} GiB",
        "Kernel": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_version()} with uvloop {importlib.metadata.version('uvloop')}",
        "nginx": _said("nginx", "-v").rpartition("/")[2] or "not found: no ratios to it",
        "wrk": " ".join(_said("wrk", "-v").split()[1:2]) or "not found: load.py in its place",
        "PostgreSQL": postgres(),
        "This program": importlib.metadata.version("flux-resourceset"),
    }
    return "".join(f"- {name}: {value}\n" for name, value in lines.items())


if __name__ == "__main__":
    sys.stdout.write(described())
