"""The Helm chart of the server: what it renders, with which values, and that the real API server takes it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

import live

from .kube import Kube, Object
from .shipped import (
    CHART,
    DEPLOY,
    ON_POSTGRES,
    POSTGRES,
    PRODUCTION,
    assert_taken,
    built,
    helm_template,
    kustomized,
    objects,
    one,
    pod_specs,
    rendered_with,
)

INSTALL = live.ROOT / "docs" / "install.md"

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


@pytest.mark.parametrize(
    "values",
    [{}, EVERYTHING, LEAST, ON_POSTGRES, {**EVERYTHING, **ON_POSTGRES}],
    ids=["defaults", "everything", "least", "on PostgreSQL", "everything on PostgreSQL"],
)
def test_the_api_server_takes_what_the_chart_renders(values: dict[str, Any], checked: Kube, tmp_path: Path) -> None:
    assert_taken(checked, rendered_with(values, tmp_path))


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ("read.replicas=two", "replicas"),
        ("env.API_MODE=crud", "API_MODE"),
        ("env.SIZE=1", "env"),
        ("tokens.readSecret=", "nobody could read"),
        ("tokens.writeSecret=,tokensFile.existingSecret=t", "set both or leave both empty"),
        ("tokens.readSecret=,tokensFile.existingSecret=t,monitoring.enabled=true", "monitoring.tokenSecret"),
    ],
)
def test_the_chart_refuses_values_of_the_wrong_type_and_settings_that_it_makes_itself(values: str, named: str) -> None:
    with pytest.raises(AssertionError, match=named):
        helm_template("--set", values)


def shared(spec: Object) -> Object:
    """What chart and overlay have in common of a Deployment: all but the settings that only the chart has values for."""
    pod = json.loads(json.dumps(spec["template"]["spec"]))
    (container,) = pod["containers"]
    env = {each["name"]: each for each in container["env"]}
    container["env"] = {name: each for name, each in env.items() if name not in ("RUST_LOG", "ENVIRONMENTS", "WORKERS")}
    container.pop("imagePullPolicy", None)
    container["volumeMounts"] = {each["name"]: {"readOnly": False, **each} for each in container["volumeMounts"]}
    pod["volumes"] = {each["name"]: each for each in pod["volumes"]}
    return {**pod, **{name: spec.get(name) for name in ("replicas", "strategy", "selector")}}


@pytest.mark.parametrize(("values", "directory"), [({}, PRODUCTION), (ON_POSTGRES, POSTGRES)], ids=["sqlite", "postgresql"])
def test_the_chart_is_the_overlay(values: dict[str, Any], directory: str, tmp_path: Path) -> None:
    chart, overlay = rendered_with(values, tmp_path), list(built(directory))
    identity = [sorted((each["kind"], each["metadata"]["name"]) for each in found) for found in (chart, overlay)]
    assert identity[0] == identity[1]
    for name in ("flux-api-read", "flux-api-crud"):
        specs = (
            {each["metadata"]["name"]: each["spec"] for each in of if each["kind"] == "Deployment"} for of in (chart, overlay)
        )
        assert shared(next(specs)[name]) == shared(next(specs)[name])
    for kind in ("HorizontalPodAutoscaler", "PodDisruptionBudget"):
        specs = ({each["metadata"]["name"]: each["spec"] for each in of if each["kind"] == kind} for of in (chart, overlay))
        assert next(specs) == next(specs)


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
    found = objects(kustomized(overlay))
    assert_taken(checked, found)
    images = {pod["spec"]["containers"][0]["image"] for pod in pod_specs(found).values()}
    assert {image.partition(":")[0] for image in images} == {"registry.internal/flux-resourceset"}
    assert "198.51.100.0/24" in json.dumps(found)
    assert "192.0.2.0/24" not in json.dumps([each for each in found if each["kind"] == "NetworkPolicy"])


def test_the_alerts_of_the_chart_are_those_of_the_manifests() -> None:
    rule = one("server/monitoring", "PrometheusRule", "flux-resourceset")
    assert yaml.safe_load((CHART / "prometheus-rules.yaml").read_text()) == rule["spec"]
