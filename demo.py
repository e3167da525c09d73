"""The demo: a server with a small fleet on this machine, until Ctrl-C; `make demo` runs it."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
START_SECONDS = 30.0  # a cold disk on a small machine
STOP_SECONDS = 15.0  # the server itself gives requests in flight eight

DNS = "demo-cluster-01.k8s.example.com"


class Trouble(Exception):
    """Why there is no demo, in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Serve the demo fleet until Ctrl-C.")
    parser.add_argument("--listen", default="127.0.0.1:8080", metavar="HOST:PORT", help="where to listen (%(default)s)")
    parser.add_argument("--directory", type=Path, default=ROOT / "var" / "demo", help="where the data is kept (%(default)s)")
    arguments = parser.parse_args(argv)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    running: list[subprocess.Popen[bytes]] = []
    try:
        return _demo(arguments.listen, arguments.directory.resolve(), running)
    except KeyboardInterrupt:
        return 0
    except (Trouble, OSError) as exc:
        print(f"demo: {exc}", file=sys.stderr)
        return 2
    finally:
        _stop(running)


def _demo(listen: str, directory: Path, running: list[subprocess.Popen[bytes]]) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    tokens = _tokens(directory / "tokens")
    _check_free(listen)
    server = _start("flux_resourceset.server", _environment(listen, directory))
    running.append(server)
    url = f"http://{listen}"
    if not _ready(server, url):
        return server.returncode or 1  # it has said why
    print(_welcome(url, directory, tokens), flush=True)
    code = server.wait()
    raise Trouble(f"the server stopped with exit code {code}; its last lines above say why")


def _tokens(path: Path) -> dict[str, str]:
    """The secrets by role, made once; the file is the server's TOKENS_FILE."""
    if not path.exists():
        lines = [f"demo-{name} {role} {secrets.token_urlsafe(24)}\n" for name, role in (("reader", "read"), ("writer", "write"))]
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.writelines(["# name role token\n", *lines])
    path.chmod(0o600)
    words = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    found = {line[1]: line[2] for line in words if len(line) == 3}
    if not found.keys() >= {"read", "write"}:
        raise Trouble(f"{path} lacks a token; remove it, and the next start makes new ones")
    return found


def _check_free(listen: str) -> None:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit():
        raise Trouble(f"--listen {listen} is not host:port, as in 127.0.0.1:8080")
    try:
        socket.create_server((host, int(port))).close()
    except (OSError, OverflowError) as exc:
        number = exc.errno if isinstance(exc, OSError) else None
        reason = os.strerror(number) if number and number > 0 else exc
        elsewhere = ".venv/bin/python demo.py --listen 127.0.0.1:8081"
        raise Trouble(f"{listen} cannot be used ({reason}); stop what is there, or run {elsewhere}") from None


def _environment(listen: str, directory: Path) -> dict[str, str]:
    """What the server gets: nothing of the user's settings, so that the demo is always the same."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "LOG_LEVEL") if name in os.environ}
    return {
        **kept,
        "API_MODE": "crud",
        "DATABASE_URL": f"sqlite://{urllib.parse.quote(str(directory / 'fleet.db'))}?mode=rwc",
        "SEED_FILE": str(ROOT / "data" / "seed.json"),
        "TOKENS_FILE": str(directory / "tokens"),
        "LISTEN_ADDR": listen,
    }


def _start(module: str, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # a process group of its own: Ctrl-C reaches this program alone, which then stops the others in order
    command = [sys.executable, "-m", module]
    return subprocess.Popen(command, cwd=ROOT, env=dict(environment), process_group=0)  # noqa: S603  # our own module


def _ready(server: subprocess.Popen[bytes], url: str) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/ready", timeout=5):  # noqa: S310  # always http://
                return True
        except OSError:  # refused, reset, or 503
            if time.monotonic() > deadline:
                raise Trouble(f"the server did not become ready within {START_SECONDS:.0f} seconds") from None
            time.sleep(0.05)
    return False


def _welcome(url: str, directory: Path, tokens: Mapping[str, str]) -> str:
    reading = 'curl -s -H "Authorization: Bearer $FLUX_API_TOKEN"'
    writing = 'curl -s -H "Authorization: Bearer $FLUX_API_WRITE_TOKEN" -H "Content-Type: application/json"'
    return f"""
The demo fleet is served at {url}

The tokens, for another terminal (flux-resourceset-cli takes the same names):

  export FLUX_API_URL={url}
  export FLUX_API_TOKEN={tokens["read"]}
  export FLUX_API_WRITE_TOKEN={tokens["write"]}

What Flux gets when it polls for a cluster, a change of podinfo's replicas, and who changed what:

  {reading} $FLUX_API_URL/api/v2/flux/clusters/{DNS}/platform-components
  {writing} -X PATCH -d '{{"replicaCount": "3"}}' $FLUX_API_URL/clusters/demo-cluster-01/patches/podinfo
  {reading} $FLUX_API_URL/changes

Data and tokens lie in {directory} and stay there; remove it to begin anew.
Ctrl-C stops the server.
"""


def _stop(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # once is enough
    for process in reversed(running):
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
