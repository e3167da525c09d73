"""Which cluster phones, with which credentials, over which transport: rotation, Basic, TLS, decommission, two clusters."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

import live

from . import control_plane as control_planes
from . import faults, workloads
from .charts import Charts
from .control_plane import ControlPlane
from .home import DEMO, VIEWS, Home
from .kube import NAMESPACE, Kube, Object

SECRET = "internal-api-token"


def secret(**data: str) -> Object:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NAMESPACE},
        "type": "Opaque", "data": encoded,
    }  # fmt: skip


def replace_secret(kube: Kube, **data: str) -> None:
    kube.delete("secret", SECRET, NAMESPACE)
    kube.apply([secret(**data)])


def holds_only(home: Home, view: str, id: str) -> bool:
    """Whether all that the ResourceSet of a view holds has the id in its name."""
    held = home.inventory(view)
    return bool(held) and all(id in entry for entry in held)


def last_authorization(home: Home) -> str:
    return home.proxy.requests[-1][1].get("authorization", "")


def test_flux_asks_as_we_expect_it_to(home: Home, kube: Kube) -> None:
    kube.wait_for(lambda: bool(home.proxy.requests), "a poll")
    path, headers = home.proxy.requests[-1]
    assert path.startswith(f"/api/v2/flux/clusters/{DEMO}.k8s.example.com/")
    assert headers["user-agent"].startswith("flux-operator/")
    assert headers["accept"] == "application/json"
    assert "gzip" in headers["accept-encoding"]
    assert headers["authorization"] == f"Bearer {live.READ}"


def test_unchanged_data_keeps_the_revision_and_changed_data_makes_a_new_one(home: Home, kube: Kube) -> None:
    def revision() -> str:
        found = kube.get("resourcesetinputprovider", "rolebindings", NAMESPACE) or {}
        return str(found["status"]["lastExportedRevision"])

    before = revision()
    asked = home.proxy.asked_for("/rolebindings")
    kube.wait_for(lambda: home.proxy.asked_for("/rolebindings") >= asked + 3, "three more polls")
    assert revision() == before
    home.call("PATCH", "/rolebindings/dev-readers", {"role": "edit"})
    kube.wait_for(lambda: revision() != before, "a new revision")
    home.call("PATCH", "/rolebindings/dev-readers", {"role": "view"})
    kube.wait_for(lambda: revision() == before, "the first revision again")


def test_basic_authentication_works(home: Home, kube: Kube) -> None:
    replace_secret(kube, username="flux", password=live.READ)
    try:
        kube.wait_for(lambda: last_authorization(home).startswith("Basic "), "a poll with Basic")
        home.providers_ready()
    finally:
        replace_secret(kube, token=live.READ)


def test_a_token_is_rotated_with_an_overlap_and_no_poll_fails(home: Home, kube: Kube) -> None:
    tokens = home.directory / "tokens"
    assert tokens.read_text().count("\n") == 1
    tokens.write_text("fleet read first-token\nfleet read second-token\n")
    replace_secret(kube, token="second-token")
    kube.wait_for(lambda: last_authorization(home) == "Bearer second-token", "a poll with the new token")
    tokens.write_text("fleet read second-token\n")
    home.providers_ready()
    with home.server.client("first-token") as client:
        assert client.get("/api/v2/flux/clusters").status_code == 401
    replace_secret(kube, token=live.READ)
    kube.wait_for(lambda: last_authorization(home) == f"Bearer {live.READ}", "a poll with the old token")


def test_tls_with_a_private_authority(home: Home, kube: Kube, control_plane: ControlPlane) -> None:
    pair = control_plane.authority.server("phone-home", ["IP:127.0.0.1"])
    authority = Path(control_plane.authority.own.certificate).read_text()
    with faults.proxying(home.server.address, tls=(Path(pair.certificate), Path(pair.key))) as proxy:
        kube.apply(
            [
                {
                    "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "phone-home-ca", "namespace": NAMESPACE},
                    "stringData": {"ca.crt": authority},
                }
            ]
        )  # fmt: skip
        found = kube.get("resourcesetinputprovider", "namespaces", NAMESPACE) or {}
        before = {"url": found["spec"]["url"], "insecure": True, "certSecretRef": None}
        url = f"{proxy.url}/api/v2/flux/clusters/{DEMO}.k8s.example.com/namespaces"
        secure = {"url": url, "insecure": None, "certSecretRef": {"name": "phone-home-ca"}}
        kube.patch("resourcesetinputprovider", "namespaces", {"spec": secure}, NAMESPACE)
        try:
            kube.wait_for(lambda: proxy.asked_for("/namespaces") > 0, "a poll over TLS")
            kube.wait_ready("resourcesetinputprovider", "namespaces")
        finally:
            kube.patch("resourcesetinputprovider", "namespaces", {"spec": before}, NAMESPACE)


def test_two_clusters_get_different_states_from_one_server(
    home: Home, charts: Charts, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster = {"id": "second", "cluster_name": "second", "cluster_dns": "second.example.com", "environment": "prod"}
    home.call("POST", "/namespaces", {"id": "only-second"})
    home.call("POST", "/clusters", {**cluster, "namespaces": [{"id": "only-second"}, {"id": "podinfo"}]})
    with (
        control_planes.running(tmp_path_factory.mktemp("second")) as plane,
        workloads.reported_available(plane.api_url, plane.authority.own, plane.admin),
    ):
        second = Home(home.server, home.proxy, plane.kube, charts, home.directory, home.environment)
        second.join("second")
        plane.kube.wait_for_object("namespace", "only-second")
        plane.kube.wait_for_object("namespace", "podinfo")
        assert plane.kube.get("clusterrolebinding", "platform-admins") is None
    assert home.kube.get("namespace", "only-second") is None


def test_a_decommissioned_cluster_is_emptied(home: Home, kube: Kube) -> None:
    """Last in this file: the control plane becomes another cluster, loses everything, and comes back."""
    home.call("POST", "/namespaces", {"id": "doomed", "allow_prune": True})
    home.call("POST", "/rolebindings", {"id": "doomed", "role": "view", "subjects": []})
    home.call("POST", "/platform_components", {
        "id": "doomed", "component_path": "shown-values", "oci_url": home.charts.http_url, "oci_tag": "1.0.0",
    })  # fmt: skip
    cluster = {"id": "doomed", "cluster_name": "doomed", "cluster_dns": "doomed.example.com", "environment": "dev"}
    references = {field: [{"id": "doomed"}] for field in ("namespaces", "rolebindings", "platform_components")}
    home.call("POST", "/clusters", {**cluster, **references})
    home.join("doomed")
    try:
        kube.wait_ready("helmrelease", "platform-doomed")
        kube.wait_for_object("clusterrolebinding", "doomed")
        # Flux Operator forgets what it made in a run that is still deleting other things when the next answer
        # comes (docs/bootstrap.md, "Decommission"): let the run that made this cluster end first.
        for view in VIEWS:
            kube.wait_for(lambda view=view: holds_only(home, view, "doomed"), f"{view} of doomed and no others")  # type: ignore[misc]  # mypy cannot type a default of a lambda
        home.call("DELETE", "/clusters/doomed")
        kube.wait_for(lambda: not any(home.everything().values()), "all three inventories are empty")
        kube.wait_gone("helmrelease", "platform-doomed", NAMESPACE)
        kube.wait_gone("clusterrolebinding", "doomed")
        kube.wait_gone("namespace", "doomed")
    finally:
        home.join(DEMO)
    for view in VIEWS:
        kube.wait_for(lambda view=view: bool(home.inventory(view)), f"{view} are back")  # type: ignore[misc]  # mypy cannot type a default of a lambda
    kube.wait_ready("helmrelease", "platform-podinfo")
