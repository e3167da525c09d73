"""Writes the export file of a made-up fleet: python bench/generated.py CLUSTERS FILE, then flux-resourceset import FILE."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from flux_resourceset import transfer

EVERYWHERE = "component-00"  # the one component that every cluster has
COMPONENTS, NAMESPACES, ROLEBINDINGS = 40, 30, 12  # definitions in the catalog
COMPONENTS_EACH, NAMESPACES_EACH, ROLEBINDINGS_EACH = 8, 5, 3  # references of a cluster


def cluster_id(number: int) -> str:
    return f"cluster-{number:05}"


def dns(number: int) -> str:
    return f"{cluster_id(number)}.k8s.example.com"


def rolebinding(number: int) -> str:
    """The first that a cluster has."""
    return f"rolebinding-{number % ROLEBINDINGS:02}"


def _component(number: int) -> dict[str, Any]:
    return {
        "id": f"component-{number:02}",
        "component_path": f"charts/component-{number:02}",
        "component_version": f"1.{number}.0",
        "cluster_env_enabled": number % 2 == 0,
        "oci_url": "oci://artifacts.example.com/platform/components",
        "oci_tag": f"v1.{number}.0",
        "depends_on": [EVERYWHERE] if number else [],
    }


def _namespace(number: int) -> dict[str, Any]:
    labels = {"team": f"team-{number:02}", "pod-security.kubernetes.io/enforce": "baseline"}
    return {"id": f"namespace-{number:02}", "labels": labels, "annotations": {"owner": f"team-{number:02}@example.com"}}


def _rolebinding(number: int) -> dict[str, Any]:
    subjects = [
        {"kind": "Group", "name": f"team-{number:02}"},
        {"kind": "ServiceAccount", "name": "deployer", "namespace": f"namespace-{number:02}"},
    ]
    return {"id": f"rolebinding-{number:02}", "role": "view", "subjects": subjects}


def _cluster(number: int) -> dict[str, Any]:
    components = [0, *(1 + (number + 5 * step) % (COMPONENTS - 1) for step in range(COMPONENTS_EACH - 1))]
    references: list[dict[str, Any]] = [{"id": f"component-{component:02}"} for component in components]
    references[1]["oci_tag"] = f"v1.{components[1]}.1-rc.1"
    return {
        "id": cluster_id(number),
        "cluster_name": cluster_id(number),
        "cluster_dns": dns(number),
        "environment": ("dev", "qa", "prod")[number % 3],
        "labels": {"region": f"region-{number % 7}", "tier": "edge"},
        "platform_components": references,
        "namespaces": [{"id": f"namespace-{(number + 5 * step) % NAMESPACES:02}"} for step in range(NAMESPACES_EACH)],
        "rolebindings": [{"id": f"rolebinding-{(number + 5 * step) % ROLEBINDINGS:02}"} for step in range(ROLEBINDINGS_EACH)],
        "patches": {
            references[0]["id"]: {"replicaCount": str(number % 5 + 1), "ingress.host": f"app.{dns(number)}"},
            references[2]["id"]: {"resources.limits.memory": "512Mi"},
        },
    }


def export(clusters: int) -> bytes:
    documents = {
        "clusters": [_cluster(number) for number in range(clusters)],
        "platform_components": [_component(number) for number in range(COMPONENTS)],
        "namespaces": [_namespace(number) for number in range(NAMESPACES)],
        "rolebindings": [_rolebinding(number) for number in range(ROLEBINDINGS)],
    }
    data: dict[str, Any] = {"format": transfer.FORMAT, "revision": 1, "documents": documents, "tombstones": []}
    data["checksum"] = transfer.checksum(data)
    return msgspec.json.encode(data)


if __name__ == "__main__":
    Path(sys.argv[2]).write_bytes(export(int(sys.argv[1])))
