"""Our real server with the demo fleet, and the bundle that `bootstrap` prints, applied to the control plane."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

import live

from . import charts as chart_sources
from .charts import Charts
from .faults import Proxy
from .kube import NAMESPACE, Kube, Object

VIEWS = ("platform-components", "namespaces", "rolebindings")
DEMO = "demo-cluster-01"
INTERVAL = "1s"


def demo_seed(charts: Charts, path: Path) -> None:
    """The demo data, with charts that can be fetched here: same names, made by us."""
    seed = json.loads((live.ROOT / "data" / "seed.json").read_text())
    for component in seed["platform_components"]:
        component["oci_url"] = charts.http_url
        if component["component_path"] != chart_sources.PODINFO:
            charts.publish(chart_sources.shown_values("1.0.0", component["component_path"]))
    path.write_text(json.dumps(seed))


def cli(*arguments: str, url: str, check: bool = True) -> str:
    """The real command line against a server."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/nonexistent"), "FLUX_API_URL": url,
        "FLUX_API_TOKEN": live.READ, "FLUX_API_WRITE_TOKEN": live.WRITE,
    }  # fmt: skip
    command = [str(Path(sys.executable).with_name("flux-resourceset-cli")), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr}")
    return done.stdout


@dataclass
class Home:
    """What the clusters phone."""

    server: live.Server
    proxy: Proxy  # the address that Flux knows
    kube: Kube
    charts: Charts
    directory: Path
    environment: dict[str, str]

    @property
    def api(self) -> httpx.Client:
        return self.server.client()

    def call(self, method: str, path: str, document: Any = None, status: int | None = None) -> Any:
        """One request with the write token; fails unless it is answered as expected."""
        with self.api as client:
            response = client.request(method, path, json=document) if document is not None else client.request(method, path)
        expected = response.is_success if status is None else response.status_code == status
        assert expected, f"{method} {path}: {response.status_code} {response.text}"
        return response.json()

    def restart(self, while_down: Callable[[], None]) -> None:
        """Kill the server, do something without it, and start it again on the same file and port."""
        self.server.kill()
        try:
            while_down()
        finally:
            self.server = live.Server(self.directory, self.environment)
            self.server.wait("/ready")

    # The fleet

    def component(self, id: str, cluster: str = DEMO, reference: Object | None = None, **fields: Any) -> None:
        """A component of the catalog, assigned to a cluster; a chart that shows its values unless told otherwise."""
        defaults = {"component_path": chart_sources.SHOWN, "oci_url": self.charts.http_url, "oci_tag": "1.0.0"}
        self.call("POST", "/platform_components", {"id": id, **defaults, **fields})
        self.call("PUT", f"/clusters/{cluster}/platform_components/{id}", reference or {})

    def patch(self, id: str, values: Object, cluster: str = DEMO) -> None:
        self.call("PATCH", f"/clusters/{cluster}/patches/{id}", values)

    def answer(self, dns: str, view: str) -> bytes:
        with self.server.client(live.READ) as client:
            return client.get(f"/api/v2/flux/clusters/{dns}/{view}").content

    # The cluster

    def bundle(self, cluster: str, *options: str) -> str:
        """What bootstrap prints for a cluster."""
        token = self.directory / "token"
        token.write_text(live.READ)
        token.chmod(0o600)
        return cli(
            "bootstrap", cluster, "--api-url", self.proxy.url, "--interval", INTERVAL, "--token-file", str(token), *options,
            url=self.server.url,
        )  # fmt: skip

    def join(self, cluster: str, *options: str) -> None:
        """Make the control plane that cluster: apply what bootstrap prints for it."""
        bundle = self.bundle(cluster, *options)
        # the identity is immutable, and this test cluster is many clusters in its life
        self.kube.delete("configmap", "cluster-identity", NAMESPACE)
        self.kube.apply(bundle)

    def providers_ready(self) -> None:
        for view in VIEWS:
            self.kube.wait_ready("resourcesetinputprovider", view)
            self.kube.wait_ready("resourceset", view)

    def released(self, id: str, *, version: str, values: Object) -> Object:
        """Wait until the release of a chart that shows its values was made with exactly these."""

        def as_expected(found: Object) -> bool:
            data = found["data"]
            return bool(data["version"].partition("+")[0] == version and json.loads(data["values"]) == values)

        return self.kube.wait_for_object("configmap", f"{id}-values", id, where=as_expected)

    def inventory(self, view: str) -> set[str]:
        """What the ResourceSet of a view holds."""
        found = self.kube.get("resourceset", view, NAMESPACE) or {}
        return {entry["id"] for entry in found.get("status", {}).get("inventory", {}).get("entries", [])}

    def everything(self) -> dict[str, set[str]]:
        return {view: self.inventory(view) for view in VIEWS}
