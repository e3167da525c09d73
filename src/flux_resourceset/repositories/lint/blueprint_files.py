"""All rules for a repository of blueprints; the files of each, and its signature."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from flux_resourceset import errors, names, strict_json
from flux_resourceset.repositories import blueprints, findings, manifests, signatures, trees
from flux_resourceset.repositories.blueprints import APPS, EXAMPLE, KUSTOMIZATION, RESERVED, RESOURCESET
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.lint import blueprint_templates, places, reports
from flux_resourceset.repositories.lint.reports import LAYOUT, YAML, Report
from flux_resourceset.repositories.manifests import Manifest
from flux_resourceset.repositories.trees import Sort

SCHEMA = "schema"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_README = "README.md"
_BELONGS = f"a blueprint has {', '.join(blueprints.FILES)}, and perhaps a {_README}"

# Where a schema holds schemas.
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "not", "if", "then",
    "else", "contentSchema",
)  # fmt: skip

_Step = str | int
_Text = re.compile(r"")  # placeholder


def lint(tree: trees.Tree) -> Iterator[Finding]:
    """Everything that is wrong, in no order."""
