"""Bodies that are too large, of the wrong kind, malformed, or documents that break their rules."""

from __future__ import annotations

import http.client
import json
from typing import Any

import httpx
import pytest

import live
from api import fleets
from api.fleets import assert_problem, fresh, make, pointers

JSON = {"Content-Type": "application/json"}


def nested(levels: int) -> bytes:
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"{'id': 1}",
        b'{"id": "a",}',
        b"{} {}",
        b'{"id": NaN}',
        b'{"id": Infinity}',
        b'{"id": -Infinity}',
        b'{"id": 1e999}',
        b'{"id": ' + b"9" * 5000 + b"}",
        b'{"id": 01}',
        b'{"id": "a", "id": "b"}',
        b'{"id": "a", "labels": {"x": "1", "x": "1"}}',
        b'{"\\ud800": 1, "\\ud800": 2}',
        b'{"id": "\xff"}',
        b'{"id": "\xed\xa0\x80"}',
        b'{"id": "\\ud800"}',
        b'{"\\udc00": 1}',
        b'\xef\xbb\xbf{"id": "a"}',
        b'{"id": "a\x00"}',
        b'{"id": "a\nb"}',
        nested(65),
        nested(100_000),
    ],
    ids=lambda content: repr(content[:24]),
)
def test_a_body_that_is_not_strict_json_is_malformed(api: httpx.Client, content: bytes) -> None:
    for method, path in (("POST", "/namespaces"), ("PUT", "/namespaces/podinfo"), ("PATCH", f"/clusters/{fleets.DEMO}")):
        assert_problem(api.request(method, path, content=content, headers=JSON), 400, "malformed-body")


def test_sixty_four_levels_are_still_json(api: httpx.Client) -> None:
    assert_problem(api.post("/namespaces", content=nested(64), headers=JSON), 422, "invalid-document")


@pytest.mark.parametrize("value", [None, True, 1, 1.5, "text", [], [{}]])
def test_a_body_that_is_not_an_object_is_an_invalid_document(api: httpx.Client, value: Any) -> None:
    content = json.dumps(value)
    patches = f"/clusters/{fleets.DEMO}/patches/podinfo"
    for method, path in (
        ("POST", "/namespaces"),
        ("PUT", "/namespaces/podinfo"),
        ("PATCH", "/namespaces/podinfo"),
        ("PUT", f"/clusters/{fleets.DEMO}/namespaces/podinfo"),
        ("PATCH", f"/clusters/{fleets.DEMO}/platform_components/podinfo"),
        ("PUT", patches),
        ("PATCH", patches),
    ):
        assert pointers(api.request(method, path, content=content, headers=JSON)) == {""}, (method, path)


@pytest.mark.parametrize("media_type", ["text/plain", "application/yaml", "application/jsonp", "multipart/form-data", ""])
def test_another_media_type_is_refused(api: httpx.Client, media_type: str) -> None:
    for method, path in (("POST", "/namespaces"), ("PUT", "/namespaces/podinfo"), ("PATCH", "/namespaces/podinfo")):
        response = api.request(method, path, content=b"{}", headers={"Content-Type": media_type})
        assert_problem(response, 415, "unsupported-media-type")


def test_a_merge_patch_is_taken_by_patch_alone(api: httpx.Client) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    assert_problem(api.post("/namespaces", content=b"{}", headers=headers), 415)
    assert_problem(api.put("/namespaces/podinfo", content=b"{}", headers=headers), 415)
    assert api.patch("/namespaces/podinfo", content=b"{}", headers=headers).status_code == 200


def test_a_body_of_more_than_a_mebibyte_is_too_large(api: httpx.Client) -> None:
    exact = b'{"id": "x", "a": "' + b"x" * (1024 * 1024 - 20) + b'"}'
    assert len(exact) == 1024 * 1024
    assert_problem(api.post("/namespaces", content=exact, headers=JSON), 422)
    assert_problem(api.post("/namespaces", content=exact + b" ", headers=JSON), 413, "body-too-large")
    chunks = (b" " * 65536 for _ in range(20))
    assert_problem(api.post("/namespaces", content=chunks, headers=JSON), 413, "body-too-large")


def test_a_client_that_sends_everything_before_it_reads_still_gets_its_413(server: live.Server) -> None:
    """An early close would reset the connection under such a client, and it would never see the answer."""
    connection = http.client.HTTPConnection(*server.address, timeout=20)
    headers = {"Authorization": f"Bearer {live.WRITE}", **JSON}
    for _ in range(3):
        connection.request("POST", "/namespaces", b" " * 5_000_000, headers)
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["code"]) == (413, "body-too-large")
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()


# Documents that break their rules: where each is wrong


def test_every_violation_is_reported_at_once(api: httpx.Client) -> None:
    document = {
        "id": "Bad_Id",
        "cluster_dns": "UPPER.example.com",
        "environment": "prd",
        "labels": {"-bad": "ok", "ok": "bad value"},
        "node_count": 2**53,
        "surprise": 1,
        "namespaces": [{"id": "podinfo"}, {"id": "podinfo"}, {"id": "ghost", "labels": {}}],
        "patches": {"absent": {"a": "1"}},
    }
    assert pointers(api.post("/clusters", json=document)) == {
        "/id",
        "/cluster_name",
        "/cluster_dns",
        "/environment",
        "/labels/-bad",
        "/labels/ok",
        "/node_count",
        "/surprise",
        "/namespaces/1/id",
        "/namespaces/2/id",
        "/namespaces/2/labels",
        "/patches/absent",
    }


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"cluster_name": "line\nbreak"}, "/cluster_name"),
        ({"cluster_name": "del\x7f"}, "/cluster_name"),
        ({"cluster_name": "c1\x85"}, "/cluster_name"),
        ({"cluster_name": ""}, "/cluster_name"),
        ({"cluster_name": None}, "/cluster_name"),
        ({"cluster_dns": "a..b"}, "/cluster_dns"),
        ({"cluster_dns": "a.b."}, "/cluster_dns"),
        ({"cluster_dns": "x" * 64}, "/cluster_dns"),
        ({"node_count": -(2**53)}, "/node_count"),
        ({"node_count": 1.5}, "/node_count"),
        ({"node_count": "3"}, "/node_count"),
        ({"labels": {"a": 1}}, "/labels/a"),
        ({"labels": []}, "/labels"),
        ({"platform_components": {"id": "podinfo"}}, "/platform_components"),
        ({"platform_components": ["podinfo"]}, "/platform_components/0"),
        ({"platform_components": [{"id": "podinfo", "oci_url": "https://x"}]}, "/platform_components/0/oci_url"),
        ({"platform_components": [{"id": "podinfo", "enabled": "yes"}]}, "/platform_components/0/enabled"),
    ],
)
def test_a_wrong_cluster_is_refused_where_it_is_wrong(api: httpx.Client, fields: dict[str, Any], pointer: str) -> None:
    assert pointer in pointers(api.post("/clusters", json=fleets.cluster(fresh("bad"), **fields)))


@pytest.mark.parametrize(
    ("key", "value", "accepted"),
    [
        ("ui.color", "#fff", True),
        ("a-b_c.D9", 1, True),
        ("a" * 250, "x", True),
        ("a" * 251, "x", False),
        ("a..b", "x", False),
        (".a", "x", False),
        ("a[0]", "x", True),
        ("a[x]", "x", False),
        (r"a\.b", "x", True),
        ("a,b", "x", False),
        ("", "x", False),
        ("a", None, False),
        ("a", {"b": 1}, False),
        ("a", [1, "x"], True),
        ("a", 2**53 - 1, True),
        ("a", 2**53, False),
        ("a", "tab\t", False),
        ("adminPassword", "x", False),
        ("db.API_KEY", "x", False),
        ("auth.token", "x", False),
        ("tokenizer", "x", True),
        ("auth.token.enabled", True, True),
        ("existing-secret-name", "x", True),
    ],
)
def test_patches_are_scalars_or_lists_of_them_under_legal_keys_that_look_like_no_secret(
    api: httpx.Client, key: str, value: Any, accepted: bool
) -> None:
    document = fleets.cluster(fresh("patch"), platform_components=[{"id": "podinfo"}], patches={"podinfo": {key: value}})
    response = api.post("/clusters", json=document)
    assert response.status_code == (201 if accepted else 422), response.text
    if not accepted:
        assert pointers(response) == {f"/patches/podinfo/{key}"}


@pytest.mark.parametrize("id", ["default", "kube-system", "kube-public", "kube-node-lease", "flux-system"])
def test_a_system_namespace_is_refused(api: httpx.Client, id: str) -> None:
    assert pointers(api.post("/namespaces", json={"id": id})) == {"/id"}


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize(
    ("key", "free"),
    [
        ("kubernetes.io/metadata.name", False),
        ("fluxcd.controlplane.io/prune", False),
        ("kustomize.toolkit.fluxcd.io/prune", False),
        ("fluxcd.io/x", False),
        ("event.fluxcd.io/x", False),
        ("myfluxcd.io/x", True),
        ("kubernetes.io/other", True),
    ],
)
def test_reserved_keys_on_namespaces_are_refused(api: httpx.Client, field: str, key: str, free: bool) -> None:
    response = api.post("/namespaces", json=fleets.namespace(fresh("key"), **{field: {key: "x"}}))
    assert response.status_code == (201 if free else 422), response.text


def test_components_depend_on_known_components_of_their_type_without_cycles(api: httpx.Client) -> None:
    def component(**fields: Any) -> Any:
        return fleets.component(fresh("dep"), oci_url="oci://registry.example.com/x", **fields)

    first = make(api, "platform_components", oci_url="oci://registry.example.com/x")["id"]
    second = make(api, "platform_components", depends_on=[first])["id"]
    path = f"/platform_components/{first}"
    assert pointers(api.post("/platform_components", json=component(depends_on=["ghost"]))) == {"/depends_on/0"}
    assert pointers(api.patch(path, json={"depends_on": [second]})) == {"/depends_on/0"}
    assert pointers(api.patch(path, json={"depends_on": [first]})) == {"/depends_on/0"}
    other = component(type="kustomize", depends_on=[first])
    assert pointers(api.post("/platform_components", json=other)) == {"/depends_on/0"}
    assert pointers(api.patch(path, json={"type": "kustomize"})) == {"/type"}


def test_component_ids_end_at_44_characters(api: httpx.Client) -> None:
    assert api.post("/platform_components", json=fleets.component("c" * 44)).status_code == 201
    assert pointers(api.post("/platform_components", json=fleets.component("c" * 45))) == {"/id"}


@pytest.mark.parametrize(
    ("subject", "pointer"),
    [
        ({"kind": "ServiceAccount", "name": "x"}, "/subjects/0/namespace"),
        ({"kind": "Robot", "name": "x"}, "/subjects/0/kind"),
        ({"kind": "User"}, "/subjects/0/name"),
        ({"kind": "User", "name": "x", "apiGroup": ""}, "/subjects/0/apiGroup"),
        ({"kind": "User", "name": "x", "uid": 0}, "/subjects/0/uid"),
    ],
)
def test_a_wrong_subject_is_refused_where_it_is_wrong(api: httpx.Client, subject: dict[str, Any], pointer: str) -> None:
    assert pointer in pointers(api.post("/rolebindings", json=fleets.rolebinding(fresh("rb"), subjects=[subject])))
