"""Schemas that stand under names of their own, from which generators of clients name their models."""

from __future__ import annotations

from collections.abc import Sequence

from flux_resourceset.kinds.model import Kinds, Schema
from flux_resourceset.openapi.conversion import Form, converted
from flux_resourceset.openapi.words import ref


def operations(variants: Sequence[Schema]) -> dict[str, Schema]:
    """What a line of a batch can be: each by its name, and the choice of them."""
    by_name = {_operation_name(variant): variant for variant in variants}
    assert len(by_name) == len(variants)  # each `op` is in one of them
    return {"Operation": {"oneOf": [ref(name) for name in by_name]}, **by_name}


def _operation_name(operation: Schema) -> str:
    words = operation["properties"]["op"]["enum"]
    return ("Document" if len(words) > 1 else words[0].title().replace("-", "")) + "Operation"


def values(kinds: Kinds) -> dict[str, Schema]:
    """The Helm values that a cluster adds to one component, in each form."""
    schema = kinds.clusters.properties["patches"]["additionalProperties"]
    forms = {"Values": Form.STORED, "NewValues": Form.NEW, "ValuesPatch": Form.PATCH}
    return {name: converted(schema, form) for name, form in forms.items()}
