"""Documents that the API accepts, made from the kinds' own schemas with hostile text in every free field."""

from __future__ import annotations

import random
import re
from typing import Any

from flux_resourceset import documents
from flux_resourceset.kinds import helm_paths
from flux_resourceset.kinds.model import Kind, Kinds, Referenced
from unit import samples

Schema = dict[str, Any]

HOSTILE = (
    "plain", "", " leading", "trailing ", "a: b", "a #b", "- item", "? key", "---", "...", "'", "\"", "\"quoted\"", "it's",
    "\\", "\\n", "{a: b}", "[a, b]", "{{ .Values.x }}", "<< inputs.id >>", ">>", "<<", "${CLUSTER_DNS}", "$1", "%s", "%",
    "*anchor", "&anchor", "!tag", "@at", "`raw`", "|", ">", "yes", "No", "on", "y", "n", "true", "FALSE", "null", "~", "1",
    "-1", "007", "0x1F", "0o17", "1_000", "1e3", "1.10", ".5", ".inf", ".nan", "1:30", "2024-01-01", "2024-01-01T00:00:00Z",
    "=", "<<: *x", "a,b", "a=b,c={d}", "Zürich", "日本語", "😀", "é", "\u00a0", "\u2028", "\u200b", "\ufeff",
    "<a href='x'>&amp;</a>", "x" * 300, "latest", "oci://x",
)  # fmt: skip
# of what slugify makes names
CLUSTER_NAMES = (
    "us-east-prod-01",
    "Zürich #1",
    "a_b_",
    "--",
    "Łódź & Ślask",
    "x" * 100,
    "yes",
    '"<< inputs.id >>"',
    "Київ 2",
    "東京",
    "\u200b😀",
    "1.5",
)
_FORMATS: dict[str, tuple[str, ...]] = {
    "dns-name": ("a", "example.com", "x-1.y-2.z", "1.5", "true"),
    "label-key": ("app", "example.com/team", "y", "1", "a.b_c-d"),
    "free-label-key": ("app", "example.com/team", "y", "1", "null"),
    "label-value": ("", "true", "1", "1.10", "y", "a_b.c-d", "null"),
    "helm-path": ("replicaCount", "ui.color", "a.b.c", "y", "1", "on.off", "a-b_c", r"grafana\.ini.x", "hosts[0].on", r"\.a/b"),
    "path-segment": ("view", "cluster-admin", "system:node", "yes", "a b", "1", "#x"),
    "source-url": ("https://charts.example.com/x", "oci://registry.example.com/charts", "http://h:5000/#y", "oci://é/'\"<<>>"),
}


class Maker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0

    def inputs(self, kinds: Kinds, kind: Referenced, count: int) -> list[dict[str, Any]]:
        """So many inputs, as several clusters would get them."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            name = self._random.choice(CLUSTER_NAMES)
            definitions = {document["id"]: document for document in (self.document(kinds, kind) for _ in range(25))}
            references = [{"id": id, **self._reference(kind)} for id in definitions]
            patches = {id: self._patches(kinds, definition) for id, definition in definitions.items()}
            cluster = {"cluster_name": name, "cluster_dns": "c.example.com", "environment": "prod", "patches": patches}
            found += samples.inputs(kind, {**cluster, kind.cluster_field: references}, definitions)
        return found[:count]

    def _patches(self, kinds: Kinds, definition: dict[str, Any]) -> dict[str, Any]:
        """As the API takes them; directories have variables, and dotted keys from before that was a rule."""
        made = self._value(kinds.clusters.properties["patches"]["additionalProperties"])
        plain = definition.get("type") == "kustomize"
        return {
            key: value
            for key, value in made.items()
            if helm_paths.mistake(key, value) is None
            and not ("[" in key and value == 1e21)  # which is no whole number to the API
            and not (plain and (isinstance(value, list) or not re.fullmatch(r"[-._a-zA-Z0-9]+", key)))
        }

    def document(self, kinds: Kinds, kind: Kind) -> dict[str, Any]:
        """A document without violations; a hostile value in the wrong place is thrown away."""
        for _ in range(1000):
            self._count += 1
            draft = {**self._value(kind.schema), "id": f"{self._random.choice('abyn')}-{self._count}"}
            whole = documents.completed(kind, draft)
            if not documents.violations(kinds, kind, whole):
                return whole
        raise AssertionError(f"no document of {kind.name} could be made")

    def _reference(self, kind: Referenced) -> dict[str, Any]:
        given = {name: self._value(schema) for name, schema in kind.reference.items() if self._random.random() < 0.4}
        return {**{name: schema["default"] for name, schema in kind.reference.items() if "default" in schema}, **given}

    def _value(self, schema: Schema) -> Any:
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        types = schema.get("type", "string")
        match types if isinstance(types, str) else self._random.choice(types):
            case "object":
                return self._object(schema)
            case "array":
                number = self._random.randint(schema.get("minItems", 0), 3)
                return [self._value(schema["items"]) for _ in range(number)]
            case "integer":
                low, high = schema.get("minimum", -(2**53) + 1), schema.get("maximum", 2**53 - 1)
                return self._random.choice([low, high, max(low, min(7, high)), self._random.randint(low, high)])
            case "number":
                return self._random.choice([0, 1, -1, 3, 0.5, 1.10, -2.25, 1e-7, 1e21, 123456789, 12345678.5, 2**53 - 1])
            case "boolean":
                return self._random.random() < 0.7
            case "null":
                return None
        return self._text(schema)

    def _object(self, schema: Schema) -> dict[str, Any]:
        if "pattern" in schema.get("propertyNames", {}):
            return dict(schema["example"])
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        found = {name: self._value(sub) for name, sub in properties.items() if name in required or self._random.random() < 0.7}
        if isinstance(schema.get("additionalProperties"), dict):
            for _ in range(self._random.randint(0, 4)):
                found[self._text(schema.get("propertyNames", {}))] = self._value(schema["additionalProperties"])
        return found

    def _text(self, schema: Schema) -> str:
        if schema.get("format") == "dns-label":
            return self._random.choice(["y", "1", "team-sandbox", "x" * 63, "null"])
        if schema.get("format") in _FORMATS:
            return self._random.choice(_FORMATS[schema["format"]])
        if "pattern" in schema and self._random.random() < 0.8:
            return str(schema.get("example", schema.get("default", "x")))
        return self._random.choice(HOSTILE)[: schema.get("maxLength", 1000)] + self._random.choice(["", "", "x"])
