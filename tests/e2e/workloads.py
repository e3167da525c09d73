"""Stands in for the nodes: reports every Deployment as available as soon as it is applied.

Flux waits for the workloads of a release: without this, none with a Deployment would ever become ready.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from . import certificates

_DEPLOYMENTS = "/apis/apps/v1/deployments"
_PATCH = {"Content-Type": "application/merge-patch+json"}
_RETRY_SECONDS = 0.5
_WATCH_SECONDS = 60


def available_status(deployment: dict[str, Any]) -> dict[str, Any]:
    """What a deployment controller reports when all replicas run."""
    count = deployment["spec"].get("replicas", 1)
    replicas = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {
        "observedGeneration": deployment["metadata"]["generation"],
        **dict.fromkeys(replicas, count),
        "conditions": [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
        ],
    }


class _Reporter:
    def __init__(self, api_url: str, authority: certificates.Pair, client: certificates.Pair) -> None:
        self.host = urllib.parse.urlsplit(api_url).netloc
        self.tls = ssl.create_default_context(cafile=str(authority.certificate))
        self.tls.load_cert_chain(client.certificate, client.key)
        self.stopping = threading.Event()
        self.watched = self._connection(_WATCH_SECONDS + 5)

    def run(self) -> None:
        while not self.stopping.is_set():
            # The API server may be away for a while, or end a watch at any time: then look again.
            with suppress(OSError, http.client.HTTPException, ValueError):
                self._watch()
            self.stopping.wait(_RETRY_SECONDS)

    def stop(self) -> None:
        self.stopping.set()
        with suppress(OSError):  # it may have ended by itself
            if self.watched.sock:
                self.watched.sock.shutdown(socket.SHUT_RDWR)

    def _connection(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, context=self.tls, timeout=timeout)

    def _watch(self) -> None:
        try:
            self.watched.request("GET", f"{_DEPLOYMENTS}?watch=1&timeoutSeconds={_WATCH_SECONDS}")
            answer = self.watched.getresponse()
            while line := answer.readline():
                event = json.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    self._report(event["object"])
        finally:
            self.watched.close()

    def _report(self, deployment: dict[str, Any]) -> None:
        metadata, status = deployment["metadata"], deployment.get("status", {})
        if status.get("observedGeneration") == metadata["generation"]:
            return
        path = f"/apis/apps/v1/namespaces/{metadata['namespace']}/deployments/{metadata['name']}/status"
        connection = self._connection(5)
        try:
            connection.request("PATCH", path, json.dumps({"status": available_status(deployment)}), _PATCH)
            connection.getresponse().read()
        finally:
            connection.close()


@contextmanager
def reported_available(
    api_url: str,
    authority: certificates.Pair,
    client: certificates.Pair,
) -> Iterator[None]:
    reporter = _Reporter(api_url, authority, client)
    thread = threading.Thread(target=reporter.run, name="workloads", daemon=True)
    thread.start()
    try:
        yield
    finally:
        reporter.stop()
        thread.join()
