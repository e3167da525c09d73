"""Why an input is as it is."""

from __future__ import annotations

from typing import Any

import httpx

from api.fleets import assert_problem, make


def revision(api: httpx.Client) -> int:
    return int(api.get("/clusters?limit=1").headers["x-revision"])


def provenance(api: httpx.Client, cluster: str, view: str, input: str, query: str = "") -> dict[str, Any]:
    response = api.get(f"/clusters/{cluster}/inputs/{view}/{input}/provenance{query}")
    assert response.status_code == 200, response.text
    return {leaf["path"]: leaf for leaf in response.json()}


def sources(told: dict[str, Any]) -> dict[str, tuple[str, str | None, int | None]]:
    return {path: (leaf["source"], leaf.get("field"), leaf.get("revision")) for path, leaf in told.items()}


def test_every_value_names_the_change_that_last_set_it(api: httpx.Client) -> None:
    component = make(api, "platform_components", component_version="1.2.3")["id"]
    defined = revision(api)
    id = make(api, "clusters", platform_components=[{"id": component}])["id"]
    assigned = revision(api)
    said = {"X-Reason": "ticket 42", "X-Actor": "alice"}
    api.patch(f"/clusters/{id}/patches/{component}", json={"ui.color": "red", "ui.size": "1"})
    api.patch(f"/clusters/{id}/patches/{component}", json={"ui.color": "blue"}, headers=said)
    patched = revision(api)
    api.patch(f"/clusters/{id}/platform_components/{component}", json={"oci_tag": "2.0.0"})
    pinned = revision(api)
    api.patch(f"/clusters/{id}", json={"labels": {"zone": "edge"}})  # sets nothing of it
    field = f"/platform_components/{component}"
    told = provenance(api, id, "platform-components", component)
    assert sources(told) == {
        "/id": ("reference", f"{field}/id", assigned),
        "/type": ("default", None, None),
        "/component_path": ("definition", "/component_path", defined),
        "/component_version": ("definition", "/component_version", defined),
        "/cluster_env_enabled": ("default", None, None),
        "/depends_on": ("default", None, None),
        "/enabled": ("default", None, None),
        "/patches/ui.color": ("patch", f"/patches/{component}/ui.color", patched),
        "/patches/ui.size": ("patch", f"/patches/{component}/ui.size", patched - 1),
        "/wait_for": ("computed", None, None),
        "/source/oci_url": ("definition", "/oci_url", defined),
        "/source/oci_tag": ("reference", f"{field}/oci_tag", pinned),
        "/cluster/name": ("cluster", "/cluster_name", assigned),
        "/cluster/dns": ("cluster", "/cluster_dns", assigned),
        "/cluster/environment": ("cluster", "/environment", assigned),
        "/digest": ("computed", None, None),
    }
    answer = next(iter(api.get(f"/clusters/{id}/inputs/platform-components").json()["inputs"]))
    assert told["/source/oci_tag"]["value"] == answer["source"]["oci_tag"] == "2.0.0"
    color = told["/patches/ui.color"]
    assert (color["kind"], color["id"], color["value"]) == ("clusters", id, "blue")
    assert (color["actor"], color["on_behalf_of"], color["reason"]) == ("write", "alice", "ticket 42")
    assert (told["/component_path"]["kind"], told["/component_path"]["id"]) == ("platform_components", component)
    then = provenance(api, id, "platform-components", component, f"?at={patched - 1}")
    assert then["/patches/ui.color"]["revision"] == patched - 1
    assert then["/source/oci_tag"]["source"] == "definition"


def test_a_default_that_somebody_came_back_to_was_set(api: httpx.Client) -> None:
    component = make(api, "platform_components")["id"]
    id = make(api, "clusters", platform_components=[{"id": component}])["id"]
    told = provenance(api, id, "platform-components", component)
    assert (told["/enabled"]["source"], told["/patches"]["source"]) == ("default", "default")
    api.patch(f"/clusters/{id}/platform_components/{component}", json={"enabled": False})
    api.patch(f"/clusters/{id}/platform_components/{component}", json={"enabled": True})
    api.patch(f"/platform_components/{component}", json={"component_version": "7"})
    api.patch(f"/platform_components/{component}", json={"component_version": "latest"})
    told = provenance(api, id, "platform-components", component)
    assert (told["/enabled"]["source"], told["/enabled"]["revision"]) == ("reference", revision(api) - 2)
    assert (told["/component_version"]["source"], told["/component_version"]["revision"]) == ("definition", revision(api))


def test_a_reference_that_was_moved_was_not_set(api: httpx.Client) -> None:
    one, other = (make(api, "namespaces")["id"] for _ in range(2))
    id = make(api, "clusters", namespaces=[{"id": one}, {"id": other}])["id"]
    assigned = revision(api)
    api.patch(f"/clusters/{id}", json={"namespaces": [{"id": other}, {"id": one}]})
    assert provenance(api, id, "namespaces", one)["/id"]["revision"] == assigned


def test_what_is_not_there_has_no_provenance(api: httpx.Client) -> None:
    space = make(api, "namespaces")["id"]
    id = make(api, "clusters", namespaces=[{"id": space}])["id"]
    path = f"/clusters/{id}/inputs/namespaces"
    assert_problem(api.get(f"{path}/nobody/provenance"), 404, "not-found")
    assert_problem(api.get(f"/clusters/{id}/inputs/nothing/{space}/provenance"), 404, "not-found")
    assert_problem(api.get(f"/clusters/nobody/inputs/namespaces/{space}/provenance"), 404, "not-found")
    assert_problem(api.get(f"{path}/{space}/provenance?at={revision(api) - 1}"), 404, "not-found")
    assert_problem(api.get(f"{path}/{space}/provenance?at=x"), 400, "bad-query")
    assert_problem(api.get(f"{path}/{space}/provenance?at=99999"), 422, "bad-query")
