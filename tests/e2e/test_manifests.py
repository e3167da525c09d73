"""What deploy/ ships: everything builds, the real API server takes it, and it says what the documentation says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import live

from . import flux_operator
from .home import DEMO, VIEWS
from .kube import NAMESPACE, Kube, KubectlFailed, Object
from .shipped import CHART, DEPLOY, LOCAL, POSTGRES, PRODUCTION, assert_taken, built, objects, one

KUSTOMIZATIONS = sorted(path.parent.relative_to(DEPLOY).as_posix() for path in DEPLOY.rglob("kustomization.yaml"))

# Files that are no manifest of Kubernetes, and why
OTHER_FILES = {
    "cluster/samples/token-by-cloud-init.yaml": "cloud-init reads it; the manifests within are checked",
    "kind/cluster.yaml": "kind reads it",
}
# Manifests that the API server of this suite does not take as they stand, and why
NOT_TAKEN = {
    "cluster/samples/provider-alerts.yaml": "names kinds that Flux Operator adds to the Alert's schema when it installs Flux",
}
VARIABLES = {"INTERNAL_API_URL": "https://internal-api.example.com", "CLUSTER_DNS": "one.example.com"}


def substituted(value: Any, variables: dict[str, str]) -> Any:
    """As the Flux Kustomization of delivery.yaml does, for what is not exempt from it."""
    text = json.dumps(value)
    for name, replacement in variables.items():
        text = text.replace(f"${{{name}}}", replacement)
    return json.loads(text)


# Everything builds and is valid


@pytest.mark.parametrize("directory", KUSTOMIZATIONS)
def test_a_kustomization_builds_and_the_api_server_takes_it(directory: str, checked: Kube) -> None:
    assert_taken(checked, substituted(list(built(directory)), VARIABLES))


def test_providers_without_their_identity_are_refused_by_the_api_server(checked: Kube) -> None:
    with pytest.raises(KubectlFailed, match=r"spec\.url"):
        assert_taken(checked, [one("cluster/views", "ResourceSetInputProvider", "namespaces")])


def samples() -> list[str]:
    return sorted(path.relative_to(DEPLOY).as_posix() for path in DEPLOY.glob("*/samples/*.yaml"))


@pytest.mark.parametrize("file", [file for file in samples() if file not in {**OTHER_FILES, **NOT_TAKEN}])
def test_the_api_server_takes_a_sample(file: str, checked: Kube) -> None:
    assert_taken(checked, objects((DEPLOY / file).read_text()))


@pytest.mark.parametrize("file", NOT_TAKEN)
def test_an_excluded_manifest_is_still_not_taken(file: str, checked: Kube) -> None:
    with pytest.raises(KubectlFailed):
        assert_taken(checked, objects((DEPLOY / file).read_text()))


def test_the_manifests_that_cloud_init_writes_are_valid(checked: Kube) -> None:
    text = (DEPLOY / "cluster/samples/token-by-cloud-init.yaml").read_text()
    assert text.startswith("#cloud-config\n")
    (written,) = yaml.safe_load(text)["write_files"]
    found = objects(written["content"])
    assert_taken(checked, found)
    assert [(each["kind"], each["metadata"]["name"]) for each in found] == [
        ("Namespace", NAMESPACE), ("ConfigMap", "cluster-identity"), ("Secret", "internal-api-token"),
    ]  # fmt: skip


def test_every_file_is_built_or_sampled_or_excluded_for_a_reason() -> None:
    seen = {f"{directory}/kustomization.yaml" for directory in KUSTOMIZATIONS} | set(samples())
    for directory in KUSTOMIZATIONS:
        listed = yaml.safe_load((DEPLOY / directory / "kustomization.yaml").read_text())
        named = [*listed["resources"], *(patch["path"] for patch in listed.get("patches", []) if "path" in patch)]
        seen |= {f"{directory}/{name}" for name in named if name.endswith(".yaml")}
    shipped = {path.relative_to(DEPLOY).as_posix() for path in DEPLOY.rglob("*.y*ml") if CHART not in path.parents}
    assert shipped - seen | set(samples()) & set(OTHER_FILES) == set(OTHER_FILES)


# What the server's manifests say


def container(directory: str, deployment: str) -> Object:
    (found,) = one(directory, "Deployment", deployment)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def environment(directory: str, deployment: str) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container(directory, deployment)["env"]}


SERVERS = [(directory, name) for directory in (PRODUCTION, LOCAL, POSTGRES) for name in ("flux-api-read", "flux-api-crud")]
ON_SQLITE = [each for each in SERVERS if each[0] != POSTGRES]


def test_production_has_two_readers_and_one_writer_that_is_never_two() -> None:
    read, crud = (one(PRODUCTION, "Deployment", name) for name in ("flux-api-read", "flux-api-crud"))
    assert (read["spec"]["replicas"], crud["spec"]["replicas"], crud["spec"]["strategy"]) == (2, 1, {"type": "Recreate"})
    assert one(PRODUCTION, "PodDisruptionBudget", "flux-api-read")["spec"]["selector"] == read["spec"]["selector"]
    for name in ("flux-api-read", "flux-api-crud"):
        assert one(PRODUCTION, "NetworkPolicy", name)["spec"]["podSelector"] == {"matchLabels": {"app": name}}


@pytest.mark.parametrize(("directory", "name"), SERVERS)
def test_a_deployment_is_found_by_its_name(directory: str, name: str) -> None:
    found = one(directory, "Deployment", name)
    assert found["metadata"]["namespace"] == NAMESPACE
    assert found["metadata"]["labels"]["app"] == found["spec"]["template"]["metadata"]["labels"]["app"] == name
    assert found["spec"]["selector"] == {"matchLabels": {"app": name}}
    service = one(directory, "Service", name)["spec"]
    assert (service["selector"], service["ports"]) == ({"app": name}, [{"name": "http", "port": 8080, "targetPort": "http"}])


@pytest.mark.parametrize(("directory", "name"), SERVERS)
def test_a_container_is_probed_limited_and_locked_up(directory: str, name: str) -> None:
    found = container(directory, name)
    assert (found["name"], [port["containerPort"] for port in found["ports"]]) == ("flux-api", [8080])
    probes = {
        kind: (probe["httpGet"]["path"], probe["httpGet"]["port"], probe["initialDelaySeconds"], probe["periodSeconds"])
        for kind, probe in ((kind, found[f"{kind}Probe"]) for kind in ("liveness", "readiness"))
    }
    assert probes == {"liveness": ("/health", 8080, 2, 10), "readiness": ("/ready", 8080, 2, 5)}
    assert {limit: set(found["resources"][limit]) for limit in ("requests", "limits")} == {
        "requests": {"cpu", "memory"}, "limits": {"cpu", "memory"},
    }  # fmt: skip
    assert found["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    pod = one(directory, "Deployment", name)["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["automountServiceAccountToken"] is False


@pytest.mark.parametrize(("directory", "name"), ON_SQLITE)
def test_the_settings_of_a_container_fit_its_mounts(directory: str, name: str) -> None:
    found = environment(directory, name)
    mode, access = ("read-only", "ro") if name == "flux-api-read" else ("crud", "rwc")
    assert (found["API_MODE"], found["STORE_BACKEND"], found["RUST_LOG"]) == (mode, "sqlite", "info")
    assert found["DATABASE_URL"] == f"sqlite:///var/lib/flux-resourceset/flux-resourceset.db?mode={access}"
    assert found["SEED_FILE"] == "/seed/seed.json"
    mounts = {each["mountPath"]: each.get("readOnly", False) for each in container(directory, name)["volumeMounts"]}
    assert mounts == {"/var/lib/flux-resourceset": mode == "read-only", "/seed": True}


@pytest.mark.parametrize(("directory", "name"), SERVERS)
def test_tokens_come_from_secrets(directory: str, name: str) -> None:
    found = environment(directory, name)
    assert found["AUTH_TOKEN"] == {"secretKeyRef": {"name": "internal-api-token", "key": "token"}}
    if (directory, name) in ((PRODUCTION, "flux-api-crud"), (POSTGRES, "flux-api-crud")):
        assert found["CRUD_AUTH_TOKEN"] == {"secretKeyRef": {"name": "flux-api-write-token", "key": "token"}}
        assert found["PRODUCTION"] == "true"
    else:
        assert "CRUD_AUTH_TOKEN" not in found


def test_production_pins_the_image_and_the_demo_never_pulls() -> None:
    for name in ("flux-api-read", "flux-api-crud"):
        image = container(PRODUCTION, name)["image"]
        assert re.fullmatch(r"\S+/flux-resourceset(:\d+\.\d+\.\d+|@sha256:[0-9a-f]{64})", image), image
        local = container(LOCAL, name)
        assert (local["image"], local["imagePullPolicy"]) == ("flux-resourceset:local", "Never")


# What the clusters' manifests say


def providers(directory: str) -> Iterator[tuple[str, Object]]:
    for view in VIEWS:
        yield view, one(directory, "ResourceSetInputProvider", view)


def test_every_view_has_its_provider_and_its_resourceset_and_can_be_applied_alone() -> None:
    for view in VIEWS:
        alone = [
            (each["kind"], each["metadata"]["name"], each["metadata"]["namespace"]) for each in built(f"cluster/views/{view}")
        ]
        assert sorted(alone) == [("ResourceSet", view, NAMESPACE), ("ResourceSetInputProvider", view, NAMESPACE)]
    assert len(built("cluster/views")) == 2 * len(VIEWS)


def test_providers_ask_the_api_of_their_identity_every_five_minutes() -> None:
    for view, found in providers("cluster/views"):
        assert found["apiVersion"] == "fluxcd.controlplane.io/v1"
        assert found["metadata"]["annotations"] == {
            "fluxcd.controlplane.io/reconcileEvery": "5m",
            "reconcile.fluxcd.io/requestedAt": "for ${CLUSTER_DNS}",
        }
        assert found["spec"] == {
            "type": "ExternalService",
            "url": f"${{INTERNAL_API_URL}}/api/v2/flux/clusters/${{CLUSTER_DNS}}/{view}",
            "secretRef": {"name": "internal-api-token"},
            "filter": {"limit": 10000},
        }


def test_the_demo_asks_within_the_cluster_every_thirty_seconds() -> None:
    for view, found in providers("cluster/overlays/demo"):
        assert found["metadata"]["annotations"] == {
            "fluxcd.controlplane.io/reconcileEvery": "30s",
            "reconcile.fluxcd.io/requestedAt": f"for {DEMO}.k8s.example.com",
        }
        assert found["spec"]["insecure"] is True
        api = "http://flux-api-read.flux-system.svc.cluster.local:8080"
        assert found["spec"]["url"] == f"{api}/api/v2/flux/clusters/{DEMO}.k8s.example.com/{view}"


def test_resourcesets_take_their_inputs_from_their_own_provider_once_it_has_some() -> None:
    for view in VIEWS:
        spec = one("cluster/views", "ResourceSet", view)["spec"]
        assert spec["inputsFrom"] == [{"kind": "ResourceSetInputProvider", "name": view}]
        identity, provider = spec["dependsOn"]
        assert (identity["kind"], identity["name"], identity["ready"]) == ("ConfigMap", "cluster-identity", True)
        assert identity["readyExpr"] == 'data.CLUSTER_DNS == "${CLUSTER_DNS}"'
        assert (provider["kind"], provider["name"], provider["ready"]) == ("ResourceSetInputProvider", view, True)
        assert provider["readyExpr"].startswith('has(status.lastExportedRevision) && status.lastExportedRevision != "" && ')


def test_the_demo_waits_for_the_identity_that_it_brings() -> None:
    dns = f"{DEMO}.k8s.example.com"
    identity = one("cluster/overlays/demo", "ConfigMap", "cluster-identity")
    assert set(identity["data"]) == {"CLUSTER_NAME", "CLUSTER_DNS", "ENVIRONMENT", "INTERNAL_API_URL"}
    assert (identity["data"]["CLUSTER_DNS"], identity["immutable"]) == (dns, True)
    for view in VIEWS:
        shared = one("cluster/views", "ResourceSet", view)["spec"]["dependsOn"]
        assert one("cluster/overlays/demo", "ResourceSet", view)["spec"]["dependsOn"] == substituted(shared, {"CLUSTER_DNS": dns})


def test_flux_substitutes_nothing_in_a_resourceset_but_the_name_of_the_cluster() -> None:
    shared = [*(DEPLOY / "cluster/views").rglob("resourceset.yaml"), *(live.ROOT / "examples/kinds").glob("*.resourceset.yaml")]
    assert len(shared) == 7
    for path in shared:
        text = path.read_text()
        assert "$$" not in text, path
        assert "${" not in text.replace("${CLUSTER_DNS}", ""), path
        assert "${CLUSTER_DNS}" not in text.partition("resourcesTemplate")[2], path


def test_no_cluster_and_no_environment_is_named_in_what_all_clusters_share() -> None:
    seed = json.loads((live.ROOT / "data/seed.json").read_text())
    environments = {"dev", "qa", "uat", "prod"}
    known = environments | {document["id"] for documents in seed.values() for document in documents}
    for path in (DEPLOY / "cluster/views").rglob("*.yaml"):
        text = "\n".join(line.partition("#")[0] for line in path.read_text().splitlines())
        assert not set(re.findall(r"[a-z0-9][a-z0-9-]*", text)) & known, path
        assert "example.com" not in text, path


def test_another_identity_changes_the_address_and_the_name_and_nothing_else() -> None:
    other = {"INTERNAL_API_URL": "https://elsewhere.example.net", "CLUSTER_DNS": "two.example.com"}
    views = list(built("cluster/views"))
    first, second = (json.dumps(substituted(views, variables)) for variables in (VARIABLES, other))
    assert "${INTERNAL_API_URL}" not in first
    assert first != second
    for name, value in VARIABLES.items():
        second = second.replace(other[name], value)
    assert first == second


def test_the_identity_has_four_keys_and_cannot_be_changed() -> None:
    found = one("cluster", "ConfigMap", "cluster-identity")
    assert found["metadata"]["namespace"] == NAMESPACE
    assert set(found["data"]) == {"CLUSTER_NAME", "CLUSTER_DNS", "ENVIRONMENT", "INTERNAL_API_URL"}
    assert found["immutable"] is True
    token = one("cluster", "Secret", "internal-api-token")
    assert (token["metadata"]["namespace"], token["type"], set(token["stringData"])) == (NAMESPACE, "Opaque", {"token"})
    delivery = one("cluster", "Kustomization", "flux-resourceset")["spec"]
    assert delivery["postBuild"] == {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-identity"}]}
    assert (delivery["path"], delivery["prune"]) == ("./views", False)


COMPONENT = {
    "id": "podinfo", "type": "helm", "component_path": "podinfo", "component_version": "latest", "cluster_env_enabled": False,
    "source": {"oci_url": "https://charts.example.com", "oci_tag": "1.0.0"}, "depends_on": [], "wait_for": [], "enabled": True,
    "patches": {"replicaCount": "3"}, "digest": "x", "cluster": {"name": "one", "dns": "one.example.com", "environment": "prod"},
}  # fmt: skip


@pytest.mark.parametrize(("directory", "interval"), [("cluster/views", "10m"), ("cluster/overlays/demo", "1m")])
def test_releases_are_looked_at_more_often_in_the_demo_and_patches_are_watched(
    directory: str, interval: str, tmp_path: Path
) -> None:
    template = yaml.safe_dump(one(directory, "ResourceSet", "platform-components"))
    kustomize = {**COMPONENT, "id": "plain", "type": "kustomize", "source": {"oci_url": "oci://r.example.com/x", "oci_tag": "v1"}}
    found = flux_operator.rendered(tmp_path, template, [COMPONENT, kustomize])
    intervals = {each["kind"]: each["spec"]["interval"] for each in found if each["metadata"]["name"].startswith("platform-")}
    assert intervals == {"HelmRelease": interval, "Kustomization": interval}
    values = [each for each in found if each["kind"] == "ConfigMap"]
    assert [each["metadata"]["labels"]["reconcile.fluxcd.io/watch"] for each in values] == ["Enabled", "Enabled"]
