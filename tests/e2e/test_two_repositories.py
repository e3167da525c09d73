"""Two repositories and two clusters: what is committed arrives by the real Flux, and what is not or is broken changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from flux_resourceset import differences
from flux_resourceset.repositories import object_policy

from . import flux_operator, forbidden_objects, two_repositories
from .kube import NAMESPACE, Object, condition, ready
from .two_repositories import (
    DATABASE,
    GIT_REPOSITORY,
    HELM_RELEASE,
    HELM_REPOSITORY,
    KUSTOMIZATION,
    RESOURCE_SET,
    RESOURCESET,
    SERVICE,
    TENANT,
    Cluster,
    Estate,
)

PINNED = "apps/standard-service/resourceset.yaml"
# The values of the database, and those of another release of the blueprints.
BEFORE = "      values:\n        environment: << inputs.environment | quote >>\n        existingSecret"
AFTER = BEFORE.replace("values:\n", "values:\n        size: 2Gi\n")

_OWNER = "kustomize.toolkit.fluxcd.io/name"


@pytest.fixture(scope="module")
def _estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """Control planes of their own, for the base of a cluster lets no other test make a namespace without labels."""
    with two_repositories.running(tmp_path_factory.mktemp("fleet"), "dev", "staging") as running:
        yield running


@pytest.fixture
def estate(_estate: Estate) -> Estate:
    _estate.check_alive()
    return _estate


def image(estate: Estate, environment: str) -> str:
    text = estate.repositories.read(f"{environment}/{environment}-use1-01/tenants/{TENANT}/input.yaml")
    return str(yaml.safe_load(text)["spec"]["defaultValues"]["image"])


def changed(before: dict[str, Object], after: dict[str, Object]) -> dict[str, list[str]]:
    """The fields that differ, by object; values of a chart are fields, too."""
    assert before.keys() == after.keys()
    found = {name: differences.of_manifests(_unfolded(before[name]), _unfolded(after[name])) for name in before}
    return {name: [each.pointer for each in places] for name, places in found.items() if places}


def _unfolded(found: Object) -> Object:
    if found["kind"] == "ConfigMap" and "values" in found.get("data", {}):
        return {**found, "data": {**found["data"], "values": json.loads(found["data"]["values"])}}
    return found


def without_history(found: dict[str, Object]) -> dict[str, Object]:
    """Helm writes down every revision; what they are is told by `revisions`."""
    return {name: each for name, each in found.items() if not name.startswith("Secret/sh.helm.release.v1.")}


def test_the_sample_arrives_with_the_values_of_its_environment(estate: Estate) -> None:
    for cluster, level in ((estate.dev, "DEBUG"), (estate.staging, "INFO")):
        name = cluster.environment
        secret = {"environment": name, "existingSecret": "payment-app-secrets"}
        assert cluster.values(DATABASE) == secret
        assert cluster.values(SERVICE) == {**secret, "image": image(estate, name), "replicas": 2, "logLevel": level}
        assert cluster.revisions() == {DATABASE: 1, SERVICE: 1}
        labels = (cluster.kube.get("namespace", cluster.namespace) or {})["metadata"]["labels"]
        assert {"tenant": TENANT, "environment": name}.items() <= labels.items()
    assert image(estate, "dev") != image(estate, "staging")


def test_the_api_is_not_installed_before_the_database_is_ready(estate: Estate) -> None:
    dev, kube, place = estate.dev, estate.dev.kube, "orders-dev"
    chart = estate.charts.published.pop("standard-db-1.0.0.tgz")
    estate.repositories.new_tenant("orders", dev.name)
    dev.follow(estate.repositories.deliver("Orders"))

    def waits(found: Object) -> bool:
        return condition(found, "Ready").get("reason") == "DependencyNotReady"

    said = kube.wait_for_object(HELM_RELEASE, "orders-api", place, where=waits)
    assert "orders-db" in condition(said, "Ready")["message"]
    dev.looked(HELM_RELEASE, "orders-api", place)
    assert (dev.revisions(place), dev.values("orders-api", place)) == ({}, {})

    estate.charts.publish(chart)
    dev.looked(HELM_REPOSITORY, "orders-charts", place)
    service = kube.wait_ready(HELM_RELEASE, "orders-api", place)
    database = kube.wait_ready(HELM_RELEASE, "orders-db", place)
    first, second = (each["status"]["history"][0]["firstDeployed"] for each in (database, service))
    assert first <= second
    assert dev.values("orders-api", place)["image"] == "registry.acme.com/orders:v1.0.0"


def test_a_promotion_changes_the_image_of_the_next_cluster_and_nothing_else(estate: Estate) -> None:
    dev, staging, repositories = estate.dev, estate.staging, estate.repositories
    before, elsewhere = staging.contents(), dev.identities()
    wanted = image(estate, "dev")
    rows = repositories.ok("promote", TENANT, "--to", "staging", "--commit")
    assert [(row["field"], row["after"]) for row in rows] == [("image", wanted)]
    commit = repositories.push()
    estate.everywhere(lambda cluster: cluster.follow(commit))
    staging.released(SERVICE, "image", wanted)
    estate.everywhere(Cluster.looked_at_everything)

    assert changed(without_history(before), without_history(staging.contents())) == {
        "ResourceSetInputProvider/payment-app-inputs": ["/spec/defaultValues/image"],
        f"HelmRelease/{SERVICE}": ["/spec/values/image"],
        f"ConfigMap/{SERVICE}-values": ["/data/values/image"],
    }
    assert staging.revisions() == {DATABASE: 1, SERVICE: 2}
    assert dev.identities() == elsewhere
    shown = repositories("diff", "--from", "HEAD~1", "--to", "HEAD").data
    (tenant,) = shown["tenants"]
    (only,) = tenant["changed"]
    assert (tenant["environment"], tenant["added"], tenant["removed"]) == ("staging", [], [])
    assert [field["path"] for field in only["fields"]] == ["/spec/values/image"]


def test_blueprints_arrive_when_the_pin_moves_and_not_before(estate: Estate) -> None:
    dev, staging, repositories = estate.dev, estate.staging, estate.repositories
    before = {cluster.name: cluster.identities() for cluster in (dev, staging)}
    repositories.release("v1.1.0", PINNED, BEFORE, AFTER)
    repositories.push_blueprints()
    estate.everywhere(Cluster.looked_at_everything)
    for cluster in (dev, staging):
        source = cluster.kube.get(GIT_REPOSITORY, "platform-blueprints", NAMESPACE) or {}
        assert source["status"]["artifact"]["revision"].startswith("v1.0.0@")
        assert cluster.identities() == before[cluster.name]

    repositories.pin("dev", "v1.1.0")
    commit = repositories.deliver("Blueprints v1.1.0 in dev")
    estate.everywhere(lambda cluster: cluster.follow(commit))
    dev.runs_blueprints("v1.1.0")
    dev.released(DATABASE, "size", "2Gi")
    staging.looked_at_everything()
    assert staging.identities() == before[staging.name]

    (row,) = repositories.ok("promote", "--blueprints", "--to", "staging", "--commit")
    assert (row["field"], row["before"], row["after"]) == ("tag", "v1.0.0", "v1.1.0")
    staging.follow(repositories.push())
    staging.runs_blueprints("v1.1.0")
    staging.released(DATABASE, "size", "2Gi")


def test_of_a_removed_tenant_only_its_namespace_account_and_binding_stay(estate: Estate) -> None:
    dev, kube, place = estate.dev, estate.dev.kube, "billing-dev"
    estate.repositories.new_tenant("billing", dev.name)
    dev.follow(estate.repositories.deliver("Billing"))
    kube.wait_ready(HELM_RELEASE, "billing-api", place)
    others, made = dev.identities(), set(dev.objects(place))
    assert made > {f"ResourceSet/{RESOURCESET}", "HelmRelease/billing-api", "ExternalSecret/billing-secrets"}

    estate.repositories.git("rm", "-qr", f"{dev.folder}/tenants/billing")
    dev.follow(estate.repositories.deliver("No billing"))
    kube.wait_gone(KUSTOMIZATION, "billing-sync", NAMESPACE)
    kept = {"ServiceAccount/tenant", "RoleBinding/tenant", "ServiceAccount/default"}  # Kubernetes makes the last one itself
    kube.wait_for(lambda: set(dev.objects(place)) == kept, "everything gone but what namespace.yaml says")
    assert "deletionTimestamp" not in (kube.get("namespace", place) or {})["metadata"]
    assert dev.identities() == others


def test_a_broken_commit_takes_nothing_away_and_the_next_good_one_arrives(estate: Estate) -> None:
    dev, repositories = estate.dev, estate.repositories
    before, path = dev.identities(), f"{dev.folder}/tenants/{TENANT}/input.yaml"
    good = repositories.read(path)
    repositories.write(path, good.replace("defaultValues:", "defaultValues: {"))
    broken = repositories.deliver("Broken")
    dev.kube.reconcile(GIT_REPOSITORY, NAMESPACE)

    def is_refused(found: Object) -> bool:
        return broken in found["status"].get("lastAttemptedRevision", "") and condition(found, "Ready").get("status") == "False"

    said = dev.kube.wait_for_object(KUSTOMIZATION, "tenants", NAMESPACE, where=is_refused)
    assert condition(said, "Ready")["reason"] == "BuildFailed"
    dev.looked_at_everything()
    assert dev.identities() == before

    repositories.write(path, good)
    repositories.ok("set", TENANT, "--environment", "dev", "--set", "logLevel=WARN")
    dev.follow(repositories.deliver("Repaired"))
    dev.released(SERVICE, "logLevel", "WARN")


def test_while_git_is_down_nothing_is_lost_and_what_was_committed_arrives_after(estate: Estate) -> None:
    dev, repositories = estate.dev, estate.repositories
    before = dev.identities()
    repositories.ok("set", TENANT, "--environment", "dev", "--set-json", "replicas=4", "--commit")
    with repositories.forge.down():
        for name in (NAMESPACE, "platform-blueprints"):
            said = dev.looked(GIT_REPOSITORY, name)
            assert condition(said, "Ready")["status"] == "False"
            assert "artifact" in said["status"]
        dev.looked_at_everything()
        assert dev.identities() == before
    dev.follow(repositories.push())
    dev.released(SERVICE, "replicas", 4)
    assert ready(dev.looked(GIT_REPOSITORY, "platform-blueprints"))


def test_kubernetes_refuses_a_blueprint_what_is_not_in_its_namespace(estate: Estate) -> None:
    dev, kube, repositories = estate.dev, estate.dev.kube, estate.repositories
    for intruder in forbidden_objects.INTRUDERS:
        forbidden_objects.write_blueprint(repositories.blueprints / "apps", intruder)
    repositories.git("add", "-A", at=repositories.blueprints)
    repositories.git("commit", "-qm", "Intruders", at=repositories.blueprints)
    repositories.git("tag", "v6.6.6", at=repositories.blueprints)
    repositories.push_blueprints()
    repositories.pin("dev", "v6.6.6")
    dev.follow(repositories.deliver("Intruders in dev"))
    dev.runs_blueprints("v6.6.6")
    with repositories.passing():
        for intruder in forbidden_objects.INTRUDERS:
            repositories.new_tenant(intruder.name, dev.name, intruder.name)
            kube.apply(tenant_without_patience(repositories.root / dev.folder / "tenants" / intruder.name))

    said: dict[str, str] = {}

    def is_refused_each() -> bool:
        for found in (*kube.find(RESOURCE_SET), *kube.find(KUSTOMIZATION, NAMESPACE)):
            if _is_refused(found):  # until it is tried again
                said[_whose(found)] = condition(found, "Ready")["message"]
        return names <= said.keys()

    names = {intruder.name for intruder in forbidden_objects.INTRUDERS}
    kube.wait_for(is_refused_each, "a refusal for each")
    assert {each.name: each.refusal in said[each.name] for each in forbidden_objects.INTRUDERS} == dict.fromkeys(names, True)
    assert kube.get("configmap", "elsewhere", "default") is None
    assert kube.get("clusterrole", "grasping") is kube.get("namespace", "grasping") is None
    for intruder in forbidden_objects.INTRUDERS:
        made = set(dev.objects(f"{intruder.name}-dev"))
        assert not made & {"RoleBinding/grasping", "ResourceSet/shop", "HelmRelease/shop", "ConfigMap/as-nobody"}


def tenant_without_patience(folder: Path) -> str:
    """The files of a tenant, whose sync does not wait for minutes for what never comes."""
    sync = (folder / "sync.yaml").read_text()
    assert "timeout: 5m" in sync
    others = [(folder / name).read_text() for name in ("namespace.yaml", "input.yaml")]
    return "\n---\n".join([*others, sync.replace("timeout: 5m", "timeout: 5s").replace("retryInterval: 1m", "retryInterval: 5s")])


def _whose(found: Object) -> str:
    """The tenant of a ResourceSet, which its sync has labelled, or of a sync."""
    metadata = found["metadata"]
    sync: str = metadata["labels"][_OWNER] if found["kind"] == "ResourceSet" else metadata["name"]
    return sync.removesuffix("-sync")


def _is_refused(found: Object) -> bool:
    said = condition(found, "Ready")
    return said.get("status") == "False" and ("forbidden" in said["message"] or "denied" in said["message"])


_CASES = list(forbidden_objects.cases("payment-dev"))


def test_admission_and_lint_judge_alike(estate: Estate) -> None:
    dev, repositories = estate.dev, estate.repositories
    with repositories.passing():
        for number, case in enumerate(_CASES):
            repositories.write(f"{dev.folder}/base/case-{number:02}.yaml", json.dumps(case.manifest))
        found = repositories("lint", "-o", "json").data
    named = {Path(each["path"]).stem for each in found if each["rule"] == "object-policy"}
    for number, case in enumerate(_CASES):
        said = dev.refusal(case.manifest)
        assert said is None or "ValidatingAdmissionPolicy" in said, (case.name, said)
        judged = any(object_policy.faults_of_tenant(case.manifest, dev.namespace))
        assert (case.name, said is not None, judged) == (case.name, case.refused, case.refused)
        if any(object_policy.faults(case.manifest)) or not case.refused:  # the rest is of accounts, for what tenants make
            assert (case.name, f"case-{number:02}" in named) == (case.name, case.refused)


def test_the_objects_are_those_that_flux_operator_makes(estate: Estate, tmp_path: Path) -> None:
    (tmp_path / "flux-operator").symlink_to(flux_operator.binary("flux-operator-cli"))
    repositories = estate.repositories
    program = repositories.cli.but(PATH=f"{tmp_path}:{repositories.cli.environment['PATH']}")
    render = ("fleet", "render", "--repo", str(repositories.root), "--at", "HEAD", "-o", "json", "--engine")
    own, theirs = (program.ok(*render, engine).data for engine in ("builtin", "flux-operator"))
    assert own == theirs
    assert [each["environment"] for each in own if each["tenant"] == TENANT] == ["dev", "staging", "prod"]
    for cluster in estate.clusters.values():
        (made,) = (each["objects"] for each in own if (each["cluster"], each["tenant"]) == (cluster.name, TENANT))
        assert_live(cluster, made)


def assert_live(cluster: Cluster, rendered: list[Object]) -> None:
    """The cluster has each object; Kubernetes fills in defaults, and takes nothing away."""
    held = (cluster.kube.get(RESOURCE_SET, RESOURCESET, cluster.namespace) or {})["status"]["inventory"]["entries"]
    assert len(held) == len(rendered)
    live = cluster.objects()
    for each in rendered:
        found = live[f"{each['kind']}/{each['metadata']['name']}"]
        lost = [
            place for place in differences.of_manifests(each["spec"], found["spec"]) if place.before is not differences.ABSENT
        ]
        assert not lost
