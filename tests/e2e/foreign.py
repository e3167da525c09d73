"""Custom resources of other projects that our manifests use, with the fields that we use and no others."""

from __future__ import annotations

from typing import Any

from .kube import Kube, Object

Schema = dict[str, Any]

TEXT: Schema = {"type": "string", "minLength": 1}
TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}


def fields(required: dict[str, Schema], **optional: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": {**required, **optional}}


def items(of: Schema) -> Schema:
    return {"type": "array", "minItems": 1, "items": of}


def definition(group: str, kind: str, plural: str, version: str, spec: Schema) -> Object:
    versions = [
        {
            "name": version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {"spec": spec}}},
        }
    ]
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


SERVICE_MONITOR = definition(
    "monitoring.coreos.com",
    "ServiceMonitor",
    "servicemonitors",
    "v1",
    fields(
        {
            "selector": fields({}, matchLabels=TEXTS),
            "endpoints": items(
                fields(
                    {"port": TEXT},
                    path=TEXT,
                    interval={"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
                    authorization=fields({}, type=TEXT, credentials=fields({"key": TEXT}, name=TEXT)),
                )
            ),
        }
    ),
)
PROMETHEUS_RULE = definition(
    "monitoring.coreos.com",
    "PrometheusRule",
    "prometheusrules",
    "v1",
    fields(
        {
            "groups": items(
                fields(
                    {
                        "name": TEXT,
                        "rules": items(
                            fields(
                                {"expr": TEXT, "alert": TEXT},
                                **{"for": {"type": "string", "pattern": "^[0-9]+(s|m|h)$"}},
                                labels=TEXTS,
                                annotations=TEXTS,
                            )
                        ),
                    }
                )
            )
        }
    ),
)
ALL = (SERVICE_MONITOR, PROMETHEUS_RULE)


def establish(kube: Kube, *definitions: Object) -> None:
    """Makes the API server know them."""
    kube.apply(definitions)
    names = [f"crd/{each['metadata']['name']}" for each in definitions]
    kube.run("wait", "--for=condition=Established", *names, "--timeout=30s")
