"""The program flux-resourceset, or one line that says what has to be installed for it."""

from __future__ import annotations

import sys

# What the extra `server` of pyproject.toml brings, as it is imported.
EXTRA = ("uvicorn", "uvloop", "httptools", "starlette", "msgspec", "prometheus_client")


def main() -> int:
    if sys.platform == "win32":  # no uvloop, and no lock on a directory
        return _refused("the server does not run on Windows; use its image, or the Windows Subsystem for Linux")
    try:
        from flux_resourceset import server
    except ModuleNotFoundError as exc:
        if exc.name not in EXTRA:
            raise  # a defect, and not a light installation
        return _refused(f"{exc.name} is not installed; the server needs: pip install 'flux-resourceset[server]'")
    return server.main()


def _refused(why: str) -> int:
    print(f"flux-resourceset: {why}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
