"""A large fleet, requests that are sent and not waited for, and polls that go on meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import live

CLUSTERS = 10_000
EVERYWHERE = "everywhere"
DRY_RUN = "/batch?dry_run=true"


def seed(directory: Path) -> Path:
    path = directory / "seed.json"
    component = {"id": EVERYWHERE, "component_path": "x", "oci_url": "oci://a.example.com/x", "oci_tag": "1.0.0"}
    clusters = [
        {
            "id": f"c{number}",
            "cluster_name": f"c{number}",
            "cluster_dns": dns(number),
            "environment": "dev",
            "labels": {"tier": "edge"},
            "platform_components": [{"id": EVERYWHERE}],
        }
        for number in range(CLUSTERS)
    ]
    path.write_text(json.dumps({"platform_components": [component], "clusters": clusters}))
    return path


@contextlib.contextmanager
def serving(directory: Path) -> Iterator[live.Server]:
    """A server with ten thousand clusters; those are there before it begins."""
    with live.serving(directory, SEED_FILE=str(seed(directory))) as server:
        yield server


def dns(number: int) -> str:
    return f"c{number}.example.com"


def on_every_cluster(times: int = 1, **fields: Any) -> dict[str, Any]:
    """A batch that changes all clusters so many times."""
    return {
        "operations": [
            {"op": "patch-values", "kind": "platform_components", "id": EVERYWHERE, "selector": "tier", "values": {"n": str(n)}}
            | fields
            for n in range(times)
        ]
    }


class Sent:
    """A request that was sent; whether anything came back is seen without waiting."""

    def __init__(self, server: live.Server, method: str, path: str, body: Any = None, token: str = live.READ) -> None:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.connection = socket.create_connection(server.address, timeout=60)
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n"
        if content:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        self.connection.sendall(head.encode() + b"\r\n" + content)

    @property
    def answered(self) -> bool:
        return bool(select.select([self.connection], [], [], 0)[0])

    def status(self) -> int:
        return int(self.answer()[0].split()[1])

    def answer(self) -> tuple[bytes, bytes]:
        """Head and body, to the end of the connection."""
        data = bytearray()
        while more := self.connection.recv(1 << 16):
            data += more
        head, _, body = bytes(data).partition(b"\r\n\r\n")
        return head, body

    def problem(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.answer()[1])
        return found

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class Polls:
    """Polls as a cluster sends them: each on a new connection, and the next when the last was answered."""

    def __init__(self, server: live.Server) -> None:
        self._server = server
        self.count = 0

    def poll(self, times: int = 1) -> None:
        for _ in range(times):
            path = f"/api/v2/flux/clusters/{dns(self.count % CLUSTERS)}/platform-components"
            with socket.create_connection(self._server.address, timeout=60) as connection:
                head = f"GET {path} HTTP/1.1\r\nHost: x\r\nUser-Agent: x\r\nAuthorization: Bearer {live.READ}\r\n"
                connection.sendall(head.encode() + b"Accept-Encoding: gzip\r\n\r\n")
                assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            self.count += 1


def resident(server: live.Server, measure: str = "VmHWM") -> int:
    """Bytes; VmHWM is the most that there ever were."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.partition(measure + ":")[2].split()[0]) * 1024


def descriptors(server: live.Server) -> int:
    """Of sockets; SQLite keeps some of its own for the next connection."""
    found = 0
    for path in Path(f"/proc/{server.process.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed just now
            found += os.readlink(path).startswith("socket:")
    return found
