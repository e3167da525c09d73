"""Makes small Helm charts and serves them, over HTTP as a Helm repository and from the OCI registry."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from . import oci

SHOWN = "shown-values"
PODINFO = "podinfo"
VERSIONS = ("1.0.0", "1.1.0", "2.0.0")

# Everything a release was given, in one ConfigMap named after the release: for exact comparisons.
_SHOW_VALUES = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-values
data:
  values: {{ .Values | toJson | quote }}
  version: {{ .Chart.Version | quote }}
"""

# The values of the demo, under the names that the real podinfo chart gives them.
_PODINFO_VALUES = """\
replicaCount: 1
ui:
  color: "#34577c"
  message: ""
"""
_PODINFO_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {app.kubernetes.io/version: {{ .Chart.Version | quote }}}
spec:
  replicas: {{ .Values.replicaCount }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
        - name: podinfo
          image: podinfo:{{ .Chart.Version }}
          env:
            - {name: PODINFO_UI_COLOR, value: {{ .Values.ui.color | quote }}}
            - {name: PODINFO_UI_MESSAGE, value: {{ .Values.ui.message | quote }}}
"""


@dataclass(frozen=True)
class Chart:
    name: str
    version: str
    files: Mapping[str, str]  # relative to the chart's directory

    @property
    def metadata(self) -> dict[str, str]:
        return {"apiVersion": "v2", "name": self.name, "version": self.version}

    @property
    def archive(self) -> bytes:
        files = {"Chart.yaml": json.dumps(self.metadata), **self.files}
        return oci.archive({f"{self.name}/{path}": text for path, text in files.items()})


def shown_values(version: str, name: str = SHOWN) -> Chart:
    return Chart(name, version, {"values.yaml": "{}\n", "templates/values.yaml": _SHOW_VALUES})


def podinfo(version: str) -> Chart:
    files = {"values.yaml": _PODINFO_VALUES, "templates/deployment.yaml": _PODINFO_DEPLOYMENT}
    return Chart(PODINFO, version, files)


@dataclass
class Charts:
    """The places that charts and artifacts come from; what is published is there at once."""

    http_url: str
    registry: oci.Registry
    published: dict[str, Chart] = field(default_factory=dict)  # by file name

    @property
    def oci_url(self) -> str:
        """The OCI Helm repository that holds the same charts."""
        return f"oci://{self.registry.address}/charts"

    def publish(self, chart: Chart) -> None:
        self.published[f"{chart.name}-{chart.version}.tgz"] = chart
        self.registry.push_chart(f"charts/{chart.name}", chart.version, chart.metadata, chart.archive)

    def push_kustomization(
        self,
        repository: str,
        tag: str,
        directories: Mapping[str, Mapping[str, str]],
    ) -> str:
        """An artifact of kustomize directories of manifests; answers the URL for an OCIRepository."""
        files: dict[str, str] = {}
        for directory, manifests in directories.items():
            listed = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
            files[f"{directory}/kustomization.yaml"] = json.dumps({**listed, "resources": sorted(manifests)})
            files.update({f"{directory}/{name}": text for name, text in manifests.items()})
        self.registry.push_files(repository, tag, files)
        return f"oci://{self.registry.address}/{repository}"

    def index(self) -> str:
        entries: dict[str, list[dict[str, object]]] = {}
        for file, chart in sorted(self.published.items()):
            digest = hashlib.sha256(chart.archive).hexdigest()
            entry: dict[str, object] = {
                **chart.metadata,
                "urls": [file],
                "digest": digest,
                "created": "2026-01-01T00:00:00Z",
            }
            entries.setdefault(chart.name, []).append(entry)
        return json.dumps({"apiVersion": "v1", "entries": entries, "generated": "2026-01-01T00:00:00Z"})

    def file(self, name: str) -> bytes | None:
        if name == "index.yaml":
            return self.index().encode()
        chart = self.published.get(name)
        return chart.archive if chart else None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    charts: Charts


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:  # the name that http.server calls
        content = self.server.charts.file(self.path.lstrip("/"))
        self.send_response(200 if content is not None else 404)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: the controllers' logs tell what they could not fetch."""


@contextmanager
def serving(registry_address: str) -> Iterator[Charts]:
    """Serves both kinds of charts, in several versions, until the context ends."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        charts = Charts(f"http://127.0.0.1:{server.server_port}/", oci.Registry(registry_address))
        server.charts = charts
        for version in VERSIONS:
            charts.publish(shown_values(version))
            charts.publish(podinfo(version))
        thread = threading.Thread(target=server.serve_forever, name="helm-repository", daemon=True)
        thread.start()
        try:
            yield charts
        finally:
            server.shutdown()
            thread.join()
