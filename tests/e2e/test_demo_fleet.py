"""The demo fleet in a real cluster: what the data says is what the API server holds."""

from __future__ import annotations

import live

from .home import DEMO, Home, cli
from .kube import NAMESPACE, Kube, Object


def values_configmap(kube: Kube, id: str) -> Object:
    return kube.get("configmap", f"values-{id}-{DEMO}", NAMESPACE) or {"data": {}}


def test_the_demo_data_arrives(home: Home, kube: Kube) -> None:
    for id in ("cert-manager", "traefik", "podinfo"):
        kube.wait_ready("helmrelease", f"platform-{id}")
        namespace = kube.get("namespace", id)
        assert namespace is not None
        assert namespace["metadata"]["labels"]["app"] == id
    admins = kube.get("clusterrolebinding", "platform-admins")
    readers = kube.get("clusterrolebinding", "dev-readers")
    assert admins is not None
    assert readers is not None
    assert (admins["roleRef"]["name"], readers["roleRef"]["name"]) == ("cluster-admin", "view")
    assert values_configmap(kube, "traefik")["data"] == {"deployment.replicas": "1", "service.type": "ClusterIP"}
    assert kube.get("configmap", f"values-cert-manager-{DEMO}", NAMESPACE) is None


def test_patch_values_reach_the_deployment(home: Home, kube: Kube) -> None:
    cli(
        "demo", "patch-component", DEMO, "podinfo", "--set", "replicaCount=3", "--set", "ui.message=Hello from CLI patch",
        "--set", "ui.color=#3b82f6", url=home.server.url,
    )  # fmt: skip

    def patched(found: Object) -> bool:
        container = found["spec"]["template"]["spec"]["containers"][0]
        environment = {item["name"]: item.get("value", "") for item in container["env"]}
        wanted = {"PODINFO_UI_COLOR": "#3b82f6", "PODINFO_UI_MESSAGE": "Hello from CLI patch"}
        return bool(found["spec"]["replicas"] == 3 and environment == wanted)

    kube.wait_for_object("deployment", "podinfo", "podinfo", where=patched)
    assert values_configmap(kube, "podinfo")["data"]["ui.color"] == "#3b82f6"


def test_a_namespace_of_the_cli_appears_with_its_labels_and_annotations(home: Home, kube: Kube) -> None:
    cli(
        "namespace", "create", "team-sandbox", "--cluster", DEMO, "--label", "team=sandbox", "--annotation",
        "owner=platform", url=home.server.url,
    )  # fmt: skip
    found = kube.wait_for_object("namespace", "team-sandbox")
    assert found["metadata"]["labels"]["team"] == "sandbox"
    assert found["metadata"]["annotations"]["owner"] == "platform"
    assert found["metadata"]["annotations"]["fluxcd.controlplane.io/prune"] == "disabled"


def test_a_role_can_change_although_role_references_are_immutable(home: Home, kube: Kube) -> None:
    subjects = [
        {"kind": "ServiceAccount", "name": "robot", "namespace": "podinfo"},
        {"kind": "User", "name": "alice@example.com"},
    ]
    home.call("POST", "/rolebindings", {"id": "robots", "role": "view", "subjects": subjects})
    home.call("PUT", f"/clusters/{DEMO}/rolebindings/robots", {})
    found = kube.wait_for_object("clusterrolebinding", "robots")
    assert {(s["kind"], s["name"], s.get("namespace"), s.get("apiGroup", "")) for s in found["subjects"]} == {
        ("ServiceAccount", "robot", "podinfo", ""),
        ("User", "alice@example.com", None, "rbac.authorization.k8s.io"),
    }
    home.call("PATCH", "/rolebindings/robots", {"role": "edit"})
    kube.wait_for_object("clusterrolebinding", "robots", where=lambda found: found["roleRef"]["name"] == "edit")
    home.call("DELETE", f"/clusters/{DEMO}/rolebindings/robots")
    kube.wait_gone("clusterrolebinding", "robots")


def test_digests_of_inputs_stand_on_what_was_made_of_them(home: Home, kube: Kube) -> None:
    with home.server.client(live.READ) as client:
        answer = client.get(f"/api/v2/flux/clusters/{DEMO}.k8s.example.com/platform-components").json()
    for item in answer["inputs"]:
        if item["id"] not in ("cert-manager", "traefik"):
            continue
        found = kube.wait_for_object("helmrelease", f"platform-{item['id']}", NAMESPACE)
        assert found["metadata"]["annotations"]["event.toolkit.fluxcd.io/digest"] == item["digest"]
