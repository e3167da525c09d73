"""The demo: a server with a small fleet, and beside it a simulated cluster, until Ctrl-C; `make demo` runs it."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from flux_resourceset.client import proxies

ROOT = Path(__file__).resolve().parent
START_SECONDS = 30.0  # a cold disk on a small machine
STOP_SECONDS = 15.0  # the server itself gives requests in flight eight

CLUSTER = "demo-cluster-01"
DNS = f"{CLUSTER}.k8s.example.com"
SERVER = [sys.executable, "-m", "flux_resourceset.server"]


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
    server = _start(_settings(listen, directory))
    running.append(server)
    url = f"http://{listen}"
    if not _ready(server, url):
        return server.returncode or 1  # it has said why
    access = {"FLUX_API_URL": url, "FLUX_API_TOKEN": tokens["read"]}
    _fill(directory / "cluster", access)
    print(_welcome(url, directory, tokens, server.pid), flush=True)
    cluster = _follow(directory / "cluster", access, running)
    server.wait()
    print(_alone(listen, directory), flush=True)
    cluster.wait()
    raise Trouble("server and simulated cluster have stopped; their last lines above say why")


def _tokens(path: Path) -> dict[str, str]:
    """The secrets by role, made once; the file is the server's TOKENS_FILE."""
    if not path.exists():
        lines = [f"demo-{name} {role} {secrets.token_urlsafe(24)}\n" for name, role in (("reader", "read"), ("writer", "write"))]
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.writelines(["# name role token\n", *lines])
    path.chmod(0o600)
    words = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    by_role = {line[1]: line[2] for line in words if len(line) == 3}
    if not by_role.keys() >= {"read", "write"}:
        raise Trouble(f"{path} lacks a token; remove it, and the next start makes new ones")
    return by_role


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


def _kept() -> dict[str, str]:
    """Nothing of the user's settings but these, so that the demo is always the same."""
    return {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "LOG_LEVEL") if name in os.environ}


def _settings(listen: str, directory: Path) -> dict[str, str]:
    return {
        "API_MODE": "crud",
        "DATABASE_URL": f"sqlite://{urllib.parse.quote(str(directory / 'fleet.db'))}?mode=rwc",
        "SEED_FILE": str(ROOT / "data" / "seed.json"),
        "TOKENS_FILE": str(directory / "tokens"),
        "LISTEN_ADDR": listen,
    }


def _start(settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # a process group of its own: Ctrl-C reaches this program alone, which then stops the others in order
    return subprocess.Popen(SERVER, cwd=ROOT, env={**_kept(), **settings}, process_group=0)  # noqa: S603  # our own module


def _ready(server: subprocess.Popen[bytes], url: str) -> bool:
    deadline = time.monotonic() + START_SECONDS
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy leads to a server on this machine
    while server.poll() is None:
        try:
            with direct.open(f"{url}/ready", timeout=5):
                return True
        except OSError:  # refused, reset, or 503
            if time.monotonic() > deadline:
                raise Trouble(f"the server did not become ready within {START_SECONDS:.0f} seconds") from None
            time.sleep(0.05)
    return False


# The simulated cluster


def _simulate(directory: Path, *options: str) -> list[str]:
    # by its DNS name, which also a decommissioned cluster has; by our own engine, which is quick enough for every second
    command = [sys.executable, "-m", "flux_resourceset.cli", "simulate", DNS, "--engine", "builtin"]
    return [*command, "--directory", str(directory), *options]


def _fill(directory: Path, access: Mapping[str, str]) -> None:
    """Bring the cluster up to date before anything is explained."""
    command = _simulate(directory, "--once")
    done = subprocess.run(command, env={**_kept(), **access}, capture_output=True, text=True, check=False)  # noqa: S603  # ours
    _show(done.stdout.splitlines() + (done.stderr.splitlines() if done.returncode else []))


def _follow(directory: Path, access: Mapping[str, str], running: list[subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Poll on, and show what changes as it changes."""
    command = _simulate(directory, "--interval", "1s")
    cluster = subprocess.Popen(  # noqa: S603  # ours
        command, env={**_kept(), **access}, process_group=0, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    running.append(cluster)
    assert cluster.stdout
    lines = (line.decode(errors="replace").rstrip("\n") for line in cluster.stdout)
    threading.Thread(target=_show, args=(lines,), daemon=True).start()
    return cluster


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"{CLUSTER} | {line}", flush=True)


def _welcome(url: str, directory: Path, tokens: Mapping[str, str], server: int) -> str:
    reading = 'curl -s -H "Authorization: Bearer $FLUX_API_TOKEN"'
    writing = 'curl -s -H "Authorization: Bearer $FLUX_API_WRITE_TOKEN" -H "Content-Type: application/json"'
    return f"""
The demo fleet is served at {url}, and {CLUSTER} follows it as Flux would: its objects are files in
{directory / "cluster"}, and changes are shown here.

For another terminal:

  export PATH="{Path(sys.executable).parent}:$PATH"
  export FLUX_API_URL={url}
  export FLUX_API_TOKEN={tokens["read"]}
  export FLUX_API_WRITE_TOKEN={tokens["write"]}{_exemption(url)}

Give podinfo another replica there, and watch it arrive here:

  flux-resourceset-cli component patch podinfo --cluster {CLUSTER} --set replicaCount=3

The same without the command line: what Flux gets when it polls, the patch, and who changed what:

  {reading} $FLUX_API_URL/api/v2/flux/clusters/{DNS}/platform-components
  {writing} -X PATCH -d '{{"replicaCount": "4"}}' $FLUX_API_URL/clusters/{CLUSTER}/patches/podinfo
  {reading} $FLUX_API_URL/changes

Stop the server alone, and see that the cluster keeps what it has:

  kill {server}

Data and tokens lie in {directory} and stay there; remove it to begin anew.
Ctrl-C stops everything.
"""


def _exemption(url: str) -> str:
    """The line that keeps curl and the command line from asking a proxy for the demo, where they would."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    try:
        if proxies.proxy(False, host, int(port), os.environ) is None:
            return ""
    except ValueError:
        pass  # what is no URL of a proxy stands in the way as well
    name = "no_proxy" if os.environ.get("no_proxy") else "NO_PROXY"  # in lower case it wins
    return f"\n  export {name}=" + (f'"${name},{host}"' if os.environ.get(name) else host)


def _alone(listen: str, directory: Path) -> str:
    settings = [f"{name}={value}" for name, value in _settings(listen, directory).items()]
    return f"""
The server has stopped; {CLUSTER} goes on with what it has. To start the server again, in another terminal:

  {shlex.join(["env", *settings, *SERVER])}

Ctrl-C stops the rest.
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
