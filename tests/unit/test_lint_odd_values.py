"""Whatever stands in the place of a value, lint tells of it, and never fails itself."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from flux_resourceset.repositories import scaffold
from unit.lint_trees import CHARTS, Releases, lint, lint_blueprints

A, B = scaffold.repositories("acme", ("dev",), "github", CHARTS).values()
ODD: list[Any] = [None, [], {}, "", "x", 1, True, ["x"], [None], [{}], {"a": 1}]
FILES = [path for path in B if path.startswith("dev/") and path.endswith(".yaml") and "/admission-" not in path]
OF_BLUEPRINTS = [path for path in A if path.startswith("apps/")]

Steps = tuple[Any, ...]


def places(value: Any, steps: Steps = ()) -> Iterator[Steps]:
    yield steps
    for step in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[step], (*steps, step))


def replaced(value: Any, steps: Steps, by: Any) -> Any:
    if not steps:
        return by
    value = copy.copy(value)
    value[steps[0]] = replaced(value[steps[0]], steps[1:], by)
    return value


def variants(documents: Any) -> Iterator[Any]:
    for steps in places(documents):
        for place, odd in enumerate(ODD):
            if (len(steps) + place) % 2 == 0:  # half of them are many
                yield replaced(documents, steps, odd)


def as_yaml(documents: Any) -> str:
    return str(yaml.safe_dump_all(documents if isinstance(documents, list) else [documents]))


@pytest.mark.thorough
@pytest.mark.parametrize("path", FILES)
def test_odd_values_in_fleet_config_are_findings_or_nothing(path: str) -> None:
    releases = Releases(v1_0_0=A)
    tried = [lint({**B, path: as_yaml(each)}, releases=releases) for each in variants(list(yaml.safe_load_all(B[path])))]
    assert len(tried) > 50
    assert sum(map(bool, tried)) > len(tried) / 50


@pytest.mark.thorough
@pytest.mark.parametrize("path", OF_BLUEPRINTS)
def test_odd_values_in_blueprints_are_findings_or_nothing(path: str) -> None:
    is_json = path.endswith(".json")
    documents = json.loads(A[path]) if is_json else list(yaml.safe_load_all(A[path]))
    files = [{**A, path: json.dumps(each) if is_json else as_yaml(each)} for each in variants(documents)]
    tried = [lint_blueprints(each) for each in files]
    assert sum(map(bool, tried)) > len(tried) / 10
    assert all(lint(B, releases=Releases(v1_0_0=each)) is not None for each in files)
