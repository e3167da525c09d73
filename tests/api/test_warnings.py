"""What is allowed, but can hardly be meant, is told in a header, in batches, and in the log."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from api.fleets import cluster, component, make


def warnings(response: httpx.Response) -> list[str]:
    assert response.is_success, response.text
    return response.headers.get_list("x-warning")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"component_version": "6.7.1", "oci_tag": "6.7.0"},
            ["oci_tag 6.7.0 and component_version 6.7.1 disagree; oci_tag counts"],
        ),
        ({"component_version": "6.7.1", "oci_tag": "6.7.1"}, []),
        ({"component_version": "6.7.1", "oci_tag": "v6.7.1"}, []),
        ({"component_version": "6.7.1", "oci_tag": "latest"}, []),
        ({"component_version": "latest", "oci_tag": "v1.0.0-1"}, []),
        ({"component_version": "1", "oci_tag": "2.0.0", "type": "kustomize"}, []),
        ({"oci_tag": ">=1.0.0"}, ["leaves Helm a choice"]),
        ({"oci_tag": "6.x"}, ["leaves Helm a choice"]),
        ({"oci_tag": "1.2"}, ["leaves Helm a choice"]),
    ],
    ids=str,
)
def test_versions_should_agree_and_be_exact(api: httpx.Client, fields: dict[str, Any], told: list[str]) -> None:
    document = component("doubtful", **fields)
    try:
        found = warnings(api.post("/platform_components", json=document))
        assert len(found) == len(told)
        assert all(part in text for part, text in zip(told, found, strict=True))
        assert warnings(api.patch("/platform_components/doubtful", json={"depends_on": []})) == []  # told once
    finally:
        api.delete("/platform_components/doubtful")


def test_a_pin_should_be_exact_and_a_patch_not_hide_another(api: httpx.Client) -> None:
    make(api, "platform_components", **component("loose-pins"))
    make(api, "clusters", **cluster("loose-pins"))
    path = "/clusters/loose-pins"
    (told,) = warnings(api.put(f"{path}/platform_components/loose-pins", json={"oci_tag": "^2"}))
    assert told == 'clusters "loose-pins": "loose-pins": oci_tag ^2 leaves Helm a choice; pin an exact version'
    (told,) = warnings(api.put(f"{path}/patches/loose-pins", json={"ui": "x", "ui.color": "y"}))
    assert "ui.color cannot be set below ui" in told
    operation = {"op": "patch", "kind": "clusters", "id": "loose-pins", "document": {"patches": {"loose-pins": {"ui.a.b": "z"}}}}
    answer = api.post("/batch?dry_run=true", json={"operations": [operation]}).json()
    assert len(answer["warnings"]) == 1
    assert "ui.a.b" in answer["warnings"][0]
