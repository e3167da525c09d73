"""What deploy/ ships: everything builds, the real API server takes it, and it says what the documentation says."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import live

from . import flux_operator, foreign
from .home import DEMO, VIEWS
from .kube import NAMESPACE, Kube, KubectlFailed, Object
from .tools import build

DEPLOY = live.ROOT / "deploy"
CHART = DEPLOY / "chart" / "flux-resourceset"
INSTALL = live.ROOT / "docs" / "install.md"
KUSTOMIZATIONS = sorted(path.parent.relative_to(DEPLOY).as_posix() for path in DEPLOY.rglob("kustomization.yaml"))
PRODUCTION, LOCAL = "server/overlays/production", "server/overlays/demo"

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
CLUSTER_SCOPED = {"Namespace", "ClusterRoleBinding"}
PLACE = "manifests"  # where dry runs look, so that what other tests made is not in the way


@functools.cache
def built(directory: str) -> tuple[Object, ...]:
    return tuple(objects(_kustomize(DEPLOY / directory)))


def _kustomize(directory: Path) -> str:
    command = [str(flux_operator.binary("kubectl")), "kustomize", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(text: str) -> list[Object]:
    return [found for found in yaml.safe_load_all(text) if found]


def one(directory: str, kind: str, name: str) -> Object:
    (found,) = (each for each in built(directory) if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def substituted(value: Any, variables: dict[str, str]) -> Any:
    """As the Flux Kustomization of delivery.yaml does, for what is not exempt from it."""
    text = json.dumps(value)
    for name, replacement in variables.items():
        text = text.replace(f"${{{name}}}", replacement)
    return json.loads(text)


def elsewhere(found: Object) -> Object:
    """The same object in a namespace of its own."""
    if found["kind"] in CLUSTER_SCOPED:
        return found
    return {**found, "metadata": {**found["metadata"], "namespace": PLACE}}


@pytest.fixture(scope="module")
def checked(kube: Kube) -> Kube:
    """A cluster that knows the custom resources of others too."""
    foreign.establish(kube, *foreign.ALL)
    kube.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}}])
    return kube


def assert_taken(kube: Kube, found: list[Object]) -> None:
    assert found
    kube.apply([elsewhere(each) for each in found], dry_run=True)


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


# The chart


def helm_template(*options: str, release: str = "flux-resourceset") -> list[Object]:
    command = [
        str(build.home(os.environ) / "bin" / "helm"),
        "template",
        release,
        str(CHART),
        "--namespace",
        NAMESPACE,
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return objects(done.stdout)


EVERYTHING = {
    "image": {"digest": f"sha256:{'0' * 64}", "pullSecrets": ["registry"]},
    "storage": {"storageClass": "fast"},
    "kinds": {"network_policies.yaml": (live.ROOT / "examples/kinds/network_policies.yaml").read_text()},
    "seed": json.loads((live.ROOT / "data/seed.json").read_text()),
    "env": {"GUARD": "1"},
    "networkPolicy": {"operatorNetworks": ["192.0.2.0/24"]},
    "ingress": {"read": {"enabled": True}, "crud": {"enabled": True, "annotations": {"a": "b"}}},
    "monitoring": {"enabled": True},
    "tokensFile": {"existingSecret": "flux-api-tokens"},
    "extraEnv": [{"name": "HTTPS_PROXY", "valueFrom": {"configMapKeyRef": {"name": "proxy", "key": "url"}}}],
    "extraVolumes": [{"name": "authorities", "configMap": {"name": "authorities"}}],
    "extraVolumeMounts": [{"name": "authorities", "mountPath": "/authorities", "readOnly": True}],
    "nodeSelector": {"pool": "platform"},
    "tolerations": [{"key": "platform", "operator": "Exists"}],
    "affinity": {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}]},
        ]}},
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "flux-operator"}}},
        ]},
    },
    "priorityClassName": "system-cluster-critical",
    "podLabels": {"team": "platform"},
    "podAnnotations": {"sidecar.istio.io/inject": "false"},
    "dashboard": {"enabled": True, "annotations": {"grafana_folder": "Flux"}},
    "backup": {"enabled": True, "storageClass": "slow"},
}  # fmt: skip
LEAST = {
    "tokens": {"writeSecret": ""},
    "storage": {"existingClaim": "mine"},
    "podDisruptionBudget": False,
    "networkPolicy": {"enabled": False},
}


@pytest.mark.parametrize("values", [{}, EVERYTHING, LEAST], ids=["defaults", "everything", "least"])
def test_the_api_server_takes_what_the_chart_renders(values: dict[str, Any], checked: Kube, tmp_path: Path) -> None:
    (tmp_path / "values.json").write_text(json.dumps(values))
    assert_taken(checked, helm_template("--values", str(tmp_path / "values.json")))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ("read.replicas=two", "replicas"),
        ("env.API_MODE=crud", "API_MODE"),
        ("env.SIZE=1", "env"),
        ("tokens.readSecret=", "nobody could read"),
        ("tokens.readSecret=,tokensFile.existingSecret=t,monitoring.enabled=true", "monitoring.tokenSecret"),
    ],
)
def test_the_chart_refuses_values_of_the_wrong_type_and_settings_that_it_makes_itself(values: str, named: str) -> None:
    with pytest.raises(AssertionError, match=named):
        helm_template("--set", values)


def test_the_chart_is_the_production_overlay() -> None:
    def pods(found: list[Object]) -> dict[str, Object]:
        return {each["metadata"]["name"]: each["spec"] for each in found if each["kind"] == "Deployment"}

    def shared(spec: Object) -> Object:
        """Without the settings that only the chart has values for."""
        pod = json.loads(json.dumps(spec["template"]["spec"]))
        (container,) = pod["containers"]
        env = {each["name"]: each for each in container["env"]}
        container["env"] = {name: each for name, each in env.items() if name not in ("RUST_LOG", "ENVIRONMENTS")}
        container.pop("imagePullPolicy", None)
        for mount in container["volumeMounts"]:
            mount.setdefault("readOnly", False)
        return {**pod, "replicas": spec["replicas"], "strategy": spec["strategy"], "selector": spec["selector"]}

    chart, overlay = helm_template(), list(built(PRODUCTION))
    identity = [sorted((each["kind"], each["metadata"]["name"]) for each in found) for found in (chart, overlay)]
    assert identity[0] == identity[1]
    for name, spec in pods(overlay).items():
        assert shared(pods(chart)[name]) == shared(spec)


def rendered_with(values: dict[str, Any], directory: Path, release: str = "flux-resourceset") -> list[Object]:
    (directory / "values.json").write_text(json.dumps(values))
    return helm_template("--values", str(directory / "values.json"), release=release)


def pod_specs(found: list[Object]) -> dict[str, Object]:
    """The pods of the chart, by the names of what makes them."""
    templates = {each["metadata"]["name"]: each["spec"]["template"] for each in found if each["kind"] == "Deployment"}
    jobs = (each for each in found if each["kind"] == "CronJob")
    return templates | {each["metadata"]["name"]: each["spec"]["jobTemplate"]["spec"]["template"] for each in jobs}


def test_two_releases_share_a_namespace_and_nothing_else(tmp_path: Path) -> None:
    values = {**EVERYTHING, "ingress": {}}
    first, second = (rendered_with(values, tmp_path, release) for release in ("flux-resourceset", "second"))
    names = [{(each["kind"], each["metadata"]["name"]) for each in found} for found in (first, second)]
    assert len(names[0]) == len(names[1]) == len(first)
    assert not names[0] & names[1]
    assert {name for _, name in names[1] if not name.startswith("second-flux-api")} == set()
    labels = [{json.dumps(each["metadata"]["labels"]) for each in pod_specs(found).values()} for found in (first, second)]
    assert not labels[0] & labels[1]
    text = json.dumps([each for each in second if each["kind"] != "ConfigMap"])
    for mine in ("flux-api-read", "flux-api-crud", "flux-api-data", "flux-api-kinds", "flux-api-seed-data", "flux-api-backup"):
        assert f'"{mine}' not in text
    assert '"app.kubernetes.io/part-of": "flux-resourceset"' not in text
    (alerts,) = (each for each in second if each["kind"] == "PrometheusRule")
    for rule in alerts["spec"]["groups"][0]["rules"]:
        assert "second-flux-api-" in rule["expr"]
    (dashboard,) = (each for each in second if each["metadata"]["name"].endswith("-dashboard"))
    (shown,) = (json.loads(each) for each in dashboard["data"].values())
    assert all("second-flux-api-" in target["expr"] for panel in shown["panels"] for target in panel["targets"])
    assert dashboard["metadata"]["labels"] == {"grafana_dashboard": "1"}


@pytest.mark.parametrize(
    ("release", "values", "name"),
    [
        ("second", {"nameOverride": "fleet"}, "second-fleet"),
        ("flux-resourceset", {"nameOverride": "fleet"}, "fleet"),
        ("second", {"fullnameOverride": "flux-api"}, "flux-api"),
        ("my-flux-api", {}, "my-flux-api"),
        ("x" * 53, {}, "x" * 45),
    ],
)
def test_the_names_of_a_release_can_be_chosen(release: str, values: dict[str, str], name: str, tmp_path: Path) -> None:
    found = rendered_with({**values, "backup": {"enabled": True}}, tmp_path, release)
    assert {f"{name}-read", f"{name}-crud", f"{name}-backup"} == pod_specs(found).keys()


def test_what_concerns_pods_concerns_all_of_them_and_they_stay_together(tmp_path: Path) -> None:
    for name, pod in pod_specs(rendered_with(EVERYTHING, tmp_path)).items():
        spec = pod["spec"]
        assert pod["metadata"]["labels"] == {"app": name, "app.kubernetes.io/part-of": "flux-resourceset", "team": "platform"}
        assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
        assert (spec["nodeSelector"], spec["priorityClassName"]) == ({"pool": "platform"}, "system-cluster-critical")
        assert spec["tolerations"] == EVERYTHING["tolerations"]
        assert spec["affinity"]["nodeAffinity"] == EVERYTHING["affinity"]["nodeAffinity"]
        together = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        assert [each["topologyKey"] for each in together] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
        assert together[0]["labelSelector"] == {"matchLabels": {"app.kubernetes.io/part-of": "flux-resourceset"}}


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "with tokens of its own"])
def test_a_tokens_file_is_mounted_for_the_group_and_named(alone: bool, tmp_path: Path) -> None:
    tokens = {"readSecret": "", "writeSecret": ""} if alone else {}
    for name, pod in pod_specs(rendered_with({"tokensFile": {"existingSecret": "mine"}, "tokens": tokens}, tmp_path)).items():
        (server,) = pod["spec"]["containers"]
        env = {each["name"]: each.get("value") for each in server["env"]}
        assert env["TOKENS_FILE"] == "/tokens/tokens"
        assert ("AUTH_TOKEN" in env, "CRUD_AUTH_TOKEN" in env) == (not alone, not alone and name.endswith("-crud"))
        assert env.get("PRODUCTION") == ("true" if name.endswith("-crud") else None)
        assert {"name": "tokens", "mountPath": "/tokens", "readOnly": True} in server["volumeMounts"]
        assert {"name": "tokens", "secret": {"secretName": "mine", "defaultMode": 0o440}} in pod["spec"]["volumes"]


def test_the_backup_is_off_unless_asked_for_and_reads_the_database_only(tmp_path: Path) -> None:
    assert "CronJob" not in {each["kind"] for each in helm_template()}
    found = rendered_with(EVERYTHING, tmp_path)
    (job,) = (each["spec"] for each in found if each["kind"] == "CronJob")
    assert (job["concurrencyPolicy"], job["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"]) == ("Forbid", "Never")
    (export,) = job["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert export["args"][0].strip() == (CHART / "backup.sh").read_text().strip()
    assert {each["name"]: each.get("readOnly", False) for each in export["volumeMounts"]} == {
        "data": True, "backup": False, "kinds": True,
    }  # fmt: skip
    assert not any("TOKEN" in each["name"] for each in export["env"])
    (claim,) = (each for each in found if each["metadata"]["name"] == "flux-api-backup" and "Claim" in each["kind"])
    assert claim["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def shown(first_line: str) -> str:
    """A YAML block of the page about installing."""
    (found,) = re.findall(rf"^```yaml\n({first_line}\n.*?)^```$", INSTALL.read_text(), re.DOTALL | re.MULTILINE)
    return str(found)


def test_the_values_of_the_install_page_are_taken(checked: Kube, tmp_path: Path) -> None:
    found = rendered_with(yaml.safe_load(shown("# values.yaml")), tmp_path)
    assert_taken(checked, found)
    assert {"Ingress", "CronJob"} <= {each["kind"] for each in found}
    assert {"flux-api-read", "flux-api-crud", "flux-api-backup"} == pod_specs(found).keys()


def test_the_overlay_of_the_install_page_builds_and_is_taken(checked: Kube, tmp_path: Path) -> None:
    deploy = Path(shutil.copytree(DEPLOY, tmp_path / "deploy"))
    overlay = tmp_path / "mine"
    overlay.mkdir()
    (overlay / "ingress.yaml").write_text((deploy / "server/samples/ingress.yaml").read_text())
    remote = r"https://\S+//deploy/server/overlays/production\?ref=\S+"
    (overlay / "kustomization.yaml").write_text(
        re.sub(remote, "../deploy/server/overlays/production", shown("# kustomization.yaml"))
    )
    found = objects(_kustomize(overlay))
    assert_taken(checked, found)
    images = {pod["spec"]["containers"][0]["image"] for pod in pod_specs(found).values()}
    assert {image.partition(":")[0] for image in images} == {"registry.internal/flux-resourceset"}
    assert "198.51.100.0/24" in json.dumps(found)
    assert "192.0.2.0/24" not in json.dumps([each for each in found if each["kind"] == "NetworkPolicy"])


def test_the_alerts_of_the_chart_are_those_of_the_manifests() -> None:
    rule = one("server/monitoring", "PrometheusRule", "flux-resourceset")
    assert yaml.safe_load((CHART / "prometheus-rules.yaml").read_text()) == rule["spec"]


# What the server's manifests say


def container(directory: str, deployment: str) -> Object:
    (found,) = one(directory, "Deployment", deployment)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def environment(directory: str, deployment: str) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container(directory, deployment)["env"]}


SERVERS = [(directory, name) for directory in (PRODUCTION, LOCAL) for name in ("flux-api-read", "flux-api-crud")]


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


@pytest.mark.parametrize(("directory", "name"), SERVERS)
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
    if (directory, name) == (PRODUCTION, "flux-api-crud"):
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
