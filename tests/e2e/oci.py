"""Pushes Helm charts and Flux artifacts to an OCI registry, with nothing but HTTP."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPMessage

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_HELM_CONFIG = "application/vnd.cncf.helm.config.v1+json"
_HELM_CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_FLUX_CONFIG = "application/vnd.cncf.flux.config.v1+json"
_FLUX_CONTENT = "application/vnd.cncf.flux.content.v1.tar+gzip"


def archive(files: Mapping[str, str]) -> bytes:
    """A .tar.gz whose bytes depend on the files only, so that the same content has the same digest."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, text in sorted(files.items()):
            content = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=0)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass(frozen=True)
class Registry:
    address: str  # host:port

    def push_files(self, repository: str, tag: str, files: Mapping[str, str]) -> str:
        """A Flux artifact, as `flux push artifact` makes it; pushing again moves the tag."""
        annotations = {
            "org.opencontainers.image.created": "2026-01-01T00:00:00Z",
            "org.opencontainers.image.source": "e2e",
            "org.opencontainers.image.revision": f"{tag}@sha1:0000000000000000000000000000000000000000",
        }
        layer = (_FLUX_CONTENT, archive(files))
        return self._push(repository, tag, (_FLUX_CONFIG, b"{}"), layer, annotations)

    def push_chart(self, repository: str, version: str, metadata: Mapping[str, str], content: bytes) -> str:
        """A chart, as `helm push` makes it."""
        config = (_HELM_CONFIG, json.dumps(metadata).encode())
        return self._push(repository, version, config, (_HELM_CHART, content), {})

    def _push(
        self,
        repository: str,
        tag: str,
        config: tuple[str, bytes],
        layer: tuple[str, bytes],
        annotations: Mapping[str, str],
    ) -> str:
        """Answers the digest."""
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": self._blob(repository, *config),
            "layers": [self._blob(repository, *layer)],
            "annotations": dict(annotations),
        }
        content = json.dumps(manifest).encode()
        self._request("PUT", f"/v2/{repository}/manifests/{tag}", content, _MANIFEST)
        return _digest(content)

    def _blob(self, repository: str, media_type: str, content: bytes) -> dict[str, str | int]:
        digest = _digest(content)
        begun = self._request("POST", f"/v2/{repository}/blobs/uploads/", b"", "application/octet-stream")
        location = begun["Location"]
        joint = "&" if "?" in location else "?"
        self._request("PUT", f"{location}{joint}digest={digest}", content, "application/octet-stream")
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def _request(self, method: str, path: str, content: bytes, content_type: str) -> HTTPMessage:
        url = urllib.parse.urljoin(f"http://{self.address}", path)
        request = urllib.request.Request(url, content, {"Content-Type": content_type}, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            headers: HTTPMessage = answer.headers
            return headers
