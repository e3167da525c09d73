"""What Kubernetes or Flux would refuse is refused at the write, with the field and the remedy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import live
from api.fleets import cluster, component, fresh, make, namespace

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with live.serving(tmp_path_factory.mktemp("api")) as server, server.client() as client:
        yield client


def violations(response: httpx.Response) -> dict[str, str]:
    assert response.status_code == 422, response.text
    return {each["pointer"]: each["message"] for each in response.json()["errors"]}


# Keys of patches

DOTTED = {"ui.color": "red"}


@pytest.fixture
def directory(api: httpx.Client) -> str:
    """A component of type kustomize."""
    return str(make(api, "platform_components", type="kustomize")["id"])


@pytest.mark.parametrize("key", ["ui.color", "a-b", "1st", "1", r"a\.b", "a[0]"])
def test_a_key_that_is_no_variable_is_refused_for_a_kustomize_component(key: str, directory: str, api: httpx.Client) -> None:
    document = cluster(fresh("c"), platform_components=[{"id": directory}], patches={directory: {key: "x"}})
    message = violations(api.post("/clusters", json=document))[f"/patches/{directory}/{key}"]
    assert "variable" in message
    assert "type of the component is kustomize" in message


def test_the_same_key_is_refused_on_every_way(directory: str, api: httpx.Client) -> None:
    id = make(api, "clusters", platform_components=[{"id": directory}], patches={directory: {"color": "red"}})["id"]
    pointer = f"/patches/{directory}/ui.color"
    assert "/ui.color" in violations(api.patch(f"/clusters/{id}/patches/{directory}", json=DOTTED))
    assert "/ui.color" in violations(api.put(f"/clusters/{id}/patches/{directory}", json=DOTTED))
    assert pointer in violations(api.patch(f"/clusters/{id}", json={"patches": {directory: DOTTED}}))
    operation = {"op": "patch-values", "kind": "platform_components", "id": directory, "clusters": [id], "values": DOTTED}
    assert "/ui.color" in "".join(violations(api.post("/batch", json={"operations": [operation]})))
    assert api.get(f"/clusters/{id}").json()["patches"] == {directory: {"color": "red"}}


def test_paths_and_values_that_helm_cannot_be_given_are_refused_with_the_remedy(api: httpx.Client) -> None:
    chart = make(api, "platform_components")["id"]
    id = make(api, "clusters", platform_components=[{"id": chart}])["id"]
    wrong = {
        "hosts[": "a", "hosts[]": "a", "a\\": "a", "hosts[0].paths": ["/"], "hosts[1].weight": 0.5, "hosts[2].name": "",
        "deep": [["a"]], "map": [{"a": 1}],
    }  # fmt: skip
    found = violations(api.put(f"/clusters/{id}/patches/{chart}", json=wrong))
    assert found.keys() == {*(f"/{key}" for key in wrong if key not in ("deep", "map")), "/deep/0", "/map/0"}
    assert "escaped by a backslash" in found["/a\\"]
    assert "one by one" in found["/hosts[0].paths"]
    right = {r"grafana\.ini.server": "a", "hosts[0].name": "a", "list": ["a", 1, 0.5, True]}
    operation = {"op": "patch-values", "kind": "platform_components", "id": chart, "clusters": [id], "values": right}
    assert api.post("/batch", json={"operations": [operation]}).status_code == 200
    assert api.get(f"/clusters/{id}/patches/{chart}").json() == right


def test_a_helm_component_takes_dotted_keys_and_cannot_become_a_directory_under_them(api: httpx.Client) -> None:
    chart = make(api, "platform_components")["id"]
    id = make(api, "clusters", platform_components=[{"id": chart}], patches={chart: DOTTED})["id"]
    message = violations(api.patch(f"/platform_components/{chart}", json={"type": "kustomize"}))["/type"]
    assert f'cluster "{id}"' in message
    assert "/ui.color" in message
    assert "take the patch back" in message
    assert api.patch(f"/platform_components/{chart}", json={"oci_tag": "2.0.0"}).status_code == 200
    assert api.delete(f"/clusters/{id}/patches/{chart}").is_success
    assert api.patch(f"/platform_components/{chart}", json={"type": "kustomize"}).status_code == 200


def test_a_definition_that_comes_back_as_another_type_does_not_fit_either(api: httpx.Client) -> None:
    chart = make(api, "platform_components")["id"]
    make(api, "clusters", platform_components=[{"id": chart}], patches={chart: DOTTED})
    assert api.delete(f"/platform_components/{chart}?force=true").is_success
    assert "/type" in violations(api.post("/platform_components", json=component(chart, type="kustomize")))
    assert api.post("/platform_components", json=component(chart)).status_code == 201


def test_type_and_patches_may_change_together(api: httpx.Client) -> None:
    chart = make(api, "platform_components")["id"]
    id = make(api, "clusters", platform_components=[{"id": chart}], patches={chart: DOTTED})["id"]
    patched = {"op": "patch", "kind": "clusters", "id": id, "document": {"patches": {chart: {"ui.color": None, "color": "red"}}}}
    changed = {"op": "patch", "kind": "platform_components", "id": chart, "document": {"type": "kustomize"}}
    response = api.post("/batch", json={"operations": [changed, patched]})
    assert response.status_code == 200, response.text
    assert api.get(f"/clusters/{id}").json()["patches"] == {chart: {"color": "red"}}


@pytest.mark.parametrize(("length", "status"), [(250, 201), (251, 422), (253, 422)])
def test_a_patch_key_ends_where_the_target_path_of_a_release_does(length: int, status: int, api: httpx.Client) -> None:
    chart = make(api, "platform_components")["id"]
    key = "k" * length
    response = api.post("/clusters", json=cluster(fresh("c"), platform_components=[{"id": chart}], patches={chart: {key: "x"}}))
    assert response.status_code == status
    if status == 422:
        assert "at most 250 characters" in violations(response)[f"/patches/{chart}/{key}"]


# Annotations

LIMIT = 255 * 1024  # of the 256 KiB that Kubernetes takes; the rest is for what the template and Flux add


def sized(size: int, filler: str = "x") -> dict[str, str]:
    """Two annotations with that many bytes of names and values in all."""
    rest = size - len("a") - len("b") - 100
    count, odd = divmod(rest, len(filler.encode()))
    return {"a": "y" * (100 + odd), "b": filler * count}


@pytest.mark.parametrize("filler", ["x", "ü", "世"])
def test_annotations_are_counted_in_bytes_as_kubernetes_does(filler: str, api: httpx.Client) -> None:
    assert api.post("/namespaces", json=namespace(fresh("n"), annotations=sized(LIMIT, filler))).status_code == 201
    message = violations(api.post("/namespaces", json=namespace(fresh("n"), annotations=sized(LIMIT + 1, filler))))
    assert "261121 bytes" in message["/annotations"]
    assert "261120" in message["/annotations"]


def test_annotations_that_are_no_texts_are_told_as_such(api: httpx.Client) -> None:
    wrong: Any = {"a": 1, "b": "x" * LIMIT}
    assert set(violations(api.post("/namespaces", json=namespace(fresh("n"), annotations=wrong)))) >= {"/annotations/a"}
