"""What base/ and flux/ of a cluster bring: sources that the policy lists, images as those of tenants, and nothing unseen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flux_resourceset.repositories import findings, trees
from unit.lint_trees import (
    AWS,
    DEV,
    DIGEST,
    FLUX,
    INPUT,
    INSTANCE,
    NAMESPACE,
    PIN,
    PROD,
    SECRETS,
    STAGING,
    SYNC,
    B,
    Files,
    lint,
    rules,
    tree,
    with_edit,
)

BASE = f"{DEV}/base/more.yaml"
BLUEPRINTS = "https://github.com/acme/acme-platform-blueprints.git"
CONFIG = "https://github.com/acme/acme-fleet-config.git"
ELSEWHERE = "https://github.com/evil/acme-platform-blueprints.git"
IMAGE = f"registry.acme.com/agent:v1@{DIGEST}"


def source(kind: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": kind,
        "metadata": {"name": "more", "namespace": "x"},
        "spec": spec,
    }


def release(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "x"}, "spec": spec}


def kustomization(**spec: Any) -> dict[str, Any]:
    reference = {"kind": "OCIRepository", "name": "more"}
    metadata = {"name": "more", "namespace": "flux-system"}
    data = {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "metadata": metadata}
    return {**data, "spec": {"sourceRef": reference, **spec}}


def pod(image: Any, namespace: str = "y") -> dict[str, Any]:
    spec = {"containers": [{"name": "app", "image": image}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": namespace}, "spec": spec}


def resource_set(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "fluxcd.controlplane.io/v1",
        "kind": "ResourceSet",
        "metadata": {"name": "x", "namespace": "y"},
        "spec": spec,
    }


def with_base(*documents: Any, path: str = BASE, files: Files = B) -> Files:
    return {**files, path: "\n---\n".join(map(json.dumps, documents))}


def allowed(*urls: str) -> Files:
    return with_edit(B, "fleet.yaml", "sources:", "sources:\n" + "\n".join(f"  - {json.dumps(url)}" for url in urls) + "\n  #")


# Sources


@pytest.mark.parametrize(
    ("document", "url"),
    [
        (source("GitRepository", url=ELSEWHERE, ref={"tag": "v1"}), ELSEWHERE),
        (source("OCIRepository", url="oci://evil.example/x", ref={"digest": DIGEST}), "oci://evil.example/x"),
        (source("HelmRepository", url="https://evil.example/charts"), "https://evil.example/charts"),
        (source("Bucket", endpoint="s3.evil.example:9000", bucketName="apps"), "https://s3.evil.example:9000/apps"),
        (source("Bucket", endpoint="s3.evil.example", bucketName="apps", insecure=True), "http://s3.evil.example/apps"),
    ],
)
def test_a_source_must_be_exactly_in_the_list_of_the_policy(document: dict[str, Any], url: str) -> None:
    (finding,) = lint(with_base(document))
    assert (finding.rule, finding.severity, finding.path) == ("source", findings.ERROR, BASE)
    assert f"{url} is not in sources of fleet.yaml" in finding.message
    assert rules(with_base(document, files=allowed(url))) == []
    for other in (url.upper(), f"{url}/", url[:-1], url.replace("evil", "*"), f" {url}"):
        assert rules(with_base(document, files=allowed(other))) == [("source", BASE)], other


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda each: {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "List", "items": [each]}]},
        lambda each: {"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepositoryList", "items": [each]},
        lambda each: {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "items": [each]},
        lambda each: resource_set(resources=[each]),
        lambda each: resource_set(steps=[{"name": "a", "resources": [each]}]),
        lambda each: resource_set(resourcesTemplate=json.dumps(each)),
        lambda each: resource_set(resourcesTemplate=json.dumps({"apiVersion": "v1", "kind": "Any", "items": [each]})),
        lambda each: resource_set(resourcesTemplate="<< inputs.text >>", inputs=[{"id": "a", "text": json.dumps(each)}]),
    ],
    ids=["list", "kind-list", "items", "resources", "steps", "template", "template-items", "inputs"],
)
def test_a_source_is_found_inside_of_other_objects(wrapped: Any) -> None:
    document = source("GitRepository", url=ELSEWHERE, ref={"tag": "v1"})
    assert rules(with_base({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, wrapped(document))) == [
        ("source", BASE)
    ]


def test_a_source_behind_anchors_is_found() -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &d\n  url: " + ELSEWHERE + "\n"
        "other: {<<: *d}\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: b}\n"
        "spec:\n  ref: {tag: v1}\n  <<: &s {url: " + ELSEWHERE + "}\n"
    )
    assert ("source", BASE) in rules({**B, BASE: text})


@pytest.mark.parametrize(
    "url", [ELSEWHERE, BLUEPRINTS.replace("https", "ssh"), BLUEPRINTS.removesuffix(".git"), BLUEPRINTS + "/"]
)
def test_the_blueprints_come_from_a_source_of_the_policy(url: str) -> None:
    assert rules(with_edit(B, PIN, BLUEPRINTS, url)) == [("source", PIN)]


def test_the_repository_that_flux_follows_is_a_source_of_the_policy() -> None:
    assert ("source", INSTANCE) in rules(with_edit(B, INSTANCE, CONFIG, ELSEWHERE))
    artifact = "registry: ghcr.io/fluxcd\n    artifact: oci://evil.example/manifests"
    assert rules(with_edit(B, INSTANCE, "registry: ghcr.io/fluxcd", artifact)) == [("source", INSTANCE)]


def test_a_source_without_an_address_is_a_finding() -> None:
    for document in (
        source("GitRepository", ref={"tag": "v1"}),
        source("Bucket", endpoint="a"),
        source("HelmRepository", url=["a"]),
    ):
        assert rules(with_base(document)) == [("source", BASE)]


def test_a_policy_without_sources_allows_none_and_the_finding_says_what_to_add() -> None:
    policy = B["fleet.yaml"]
    start, end = policy.index("sources:"), policy.index("approvals:")
    found = lint({**B, "fleet.yaml": policy[:start] + policy[end:]})
    assert {(finding.rule, finding.path.rpartition("/")[2]) for finding in found} == {
        ("source", "blueprints.yaml"), ("source", "flux-instance.yaml"),
    }  # fmt: skip
    assert f'add to it: sources: ["{BLUEPRINTS}"]' in found[1].message


def test_the_fleets_own_repository_is_not_a_source_of_base() -> None:
    assert rules(with_base(source("GitRepository", url=CONFIG, ref={"commit": "1" * 40}))) == [("source", BASE)]


@pytest.mark.parametrize(
    ("kind", "reference"),
    [
        ("GitRepository", None), ("GitRepository", {"branch": "main"}), ("GitRepository", {"semver": ">=1"}),
        ("GitRepository", {"name": "refs/heads/main"}), ("GitRepository", {"tag": "v1", "branch": "main"}),
        ("GitRepository", {"tag": ""}), ("GitRepository", {"tag": None}), ("GitRepository", {"commit": ""}),
        ("GitRepository", {"tag": ["v1"]}),
        ("OCIRepository", None), ("OCIRepository", {"tag": "latest"}), ("OCIRepository", {"semver": "1.x"}),
        ("OCIRepository", {"digest": ""}), ("OCIRepository", {"tag": "latest", "digest": ""}),
    ],
)  # fmt: skip
def test_a_source_that_moves_under_the_cluster_is_a_finding(kind: str, reference: Any) -> None:
    document = source(kind, url="oci://a", **({"ref": reference} if reference else {}))
    assert rules(with_base(document, files=allowed("oci://a"))) == [("pin", BASE)]


@pytest.mark.parametrize("field", [{"recurseSubmodules": True}, {"include": [{"repository": {"name": "x"}}]}])
def test_a_source_that_adds_files_of_others_is_a_finding(field: dict[str, Any]) -> None:
    document = source("GitRepository", url="https://a", ref={"tag": "v1"}, **field)
    assert rules(with_base(document, files=allowed("https://a"))) == [("unjudged", BASE)]
    name = next(iter(field))
    assert rules(with_edit(B, PIN, "  ref:", f"  {name}: {json.dumps(field[name])}\n  ref:")) == [("unjudged", PIN)]


def test_inputs_come_from_the_api_of_the_policy_or_from_a_listed_source() -> None:
    spec = {"type": "ExternalService", "url": "https://fleet.acme.example/api/v2/flux/x"}
    document = {**resource_set(), "kind": "ResourceSetInputProvider", "spec": spec}
    assert rules(with_base(document)) == []
    spec["url"] = "https://fleet.acme.example.evil.example/api"
    assert rules(with_base(document)) == [("source", BASE)]


# What changes objects after they were judged


@pytest.mark.parametrize(
    "field",
    [
        {"patches": [{"patch": "x"}]}, {"images": [{"name": "a", "newName": "b"}]}, {"components": ["../x"]},
        {"postBuild": {"substitute": {"tag": "latest"}}}, {"postBuild": {"substituteFrom": [{"kind": "Secret", "name": "x"}]}},
        {"namePrefix": "a"}, {"decryption": {"provider": "sops"}}, {"kubeConfig": {"secretRef": {"name": "x"}}},
        {"commonMetadata": {"labels": {"tenant": "x"}}}, {"ofALaterFlux": True},
    ],
)  # fmt: skip
def test_a_field_that_changes_objects_is_a_finding(field: dict[str, Any]) -> None:
    name = next(iter(field))
    for end in ("path: ./" + DEV + "/base", "path: ./" + DEV + "/tenants"):
        assert rules(with_edit(B, FLUX, end, f"{end}\n  {name}: {json.dumps(field[name])}")) == [("unjudged", FLUX)]
    assert rules(with_base(kustomization(path="./x", **field))) == [("unjudged", BASE)]
    assert rules(with_base(kustomization(path="./x", interval="5m", prune=True))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    name: flux-system\n  path: ./{0}/base", "    name: platform-blueprints\n  path: ./{0}/base"),
        ("    name: flux-system\n  path: ./{0}/base", "    name: flux-system\n    namespace: other\n  path: ./{0}/base"),
        ("  path: ./{0}/base", "  path: ./docs/{0}/base"),
        ("  path: ./{0}/tenants", "  path: ./.github/{0}/tenants"),
        ("  path: ./{0}/tenants", "  path: ./{0}/tenants\n  targetNamespace: kube-system"),
    ],
)
def test_flux_follows_the_judged_folders_of_its_own_repository(old: str, new: str) -> None:
    files = B if ".github" not in new else {**B, ".github/x": ""}
    files = files if "docs" not in new else {**B, "docs/x": ""}
    assert rules(with_edit(files, FLUX, old.format(DEV), new.format(DEV))) == [("manifest", FLUX)]


def test_the_instance_names_the_source_of_the_syncs() -> None:
    named = with_edit(B, INSTANCE, "    kind: GitRepository\n", "    kind: GitRepository\n    name: fleet\n")
    assert ("manifest", FLUX) in rules(named)
    named[FLUX] = named[FLUX].replace("    name: flux-system\n  path", "    name: fleet\n  path")
    assert rules(named) == []
    own = kustomization(path="./docs", sourceRef={"kind": "GitRepository", "name": "fleet"})
    assert rules(with_base(own, files=named)) == [("unjudged", BASE)]


@pytest.mark.parametrize("namespace", [None, "flux-system"])
def test_base_applies_no_other_files_of_the_repository(namespace: str | None) -> None:
    reference = {"kind": "GitRepository", "name": "flux-system", **({"namespace": namespace} if namespace else {})}
    assert rules(with_base(kustomization(path="./docs", sourceRef=reference))) == [("unjudged", BASE)]


OWN = {"kind": "GitRepository", "name": "flux-system", "namespace": "flux-system"}


@pytest.mark.parametrize(
    "document",
    [
        release(chart={"spec": {"chart": "./docs/chart", "sourceRef": OWN}}),
        source("HelmChart", chart="./docs/chart", sourceRef=OWN),
        {**source("ArtifactGenerator", sources=[{"alias": "a", **OWN}]), "apiVersion": "source.extensions.fluxcd.io/v1beta1"},
        {**source("Terraform", sourceRef=OWN, path="./docs"), "apiVersion": "infra.contrib.fluxcd.io/v1alpha2"},
        {**kustomization(sourceRef=OWN), "metadata": {"name": "more", "namespace": "other"}},
        resource_set(resources=[release(chart={"spec": {"chart": "./docs/chart", "sourceRef": OWN}})]),
    ],
    ids=["release", "chart", "generator", "terraform", "other-namespace", "resourceset"],
)
def test_objects_of_base_take_no_files_of_the_repository(document: dict[str, Any]) -> None:
    assert rules(with_base(document)) == [("unjudged", BASE)]
    elsewhere = json.loads(json.dumps(document).replace('"flux-system"', '"more"'))
    assert rules(with_base(elsewhere)) == []


def test_automation_and_notification_may_name_the_repository() -> None:
    automation = {**source("ImageUpdateAutomation", sourceRef=OWN), "apiVersion": "image.toolkit.fluxcd.io/v1"}
    health = kustomization(path="./x", healthChecks=[{"apiVersion": "source.toolkit.fluxcd.io/v1", **OWN}])
    assert rules(with_base(automation, health)) == []


@pytest.mark.parametrize("namespace", [None, "flux-system"])
@pytest.mark.parametrize(
    ("document", "names"),
    [
        (source("GitRepository", url=BLUEPRINTS, ref={"tag": "v1.0.0"}), ("flux-system", "platform-blueprints")),
        (kustomization(path="./x"), ("flux-system", "base", "tenants")),
    ],
)
def test_base_has_no_object_of_flux(document: dict[str, Any], names: tuple[str, ...], namespace: str | None) -> None:
    for name in names:
        place = {"name": name, **({"namespace": namespace} if namespace else {})}
        assert rules(with_base({**document, "metadata": place})) == [("unjudged", BASE)]
        assert rules(with_base({**document, "metadata": {"name": name, "namespace": "x"}})) == []
    assert rules(with_base({**document, "metadata": {"name": "more"}})) == []


@pytest.mark.parametrize(
    "field",
    [
        {"resources": ["https://github.com/evil/x//base?ref=main"]}, {"resources": ["../../../docs"]}, {"resources": ["x.txt"]},
        {"resources": ["github.com/evil/x"]}, {"resources": ["sub"]}, {"resources": [{"a": 1}]}, {"resources": "x.yaml"},
        {"components": ["https://evil.example/x"]},
        {"bases": ["../x"]}, {"patches": [{"patch": "x"}]}, {"images": [{"name": "a"}]},
        {"patchesStrategicMerge": ["x.yaml"]}, {"helmCharts": [{"name": "x"}]}, {"generators": ["x.yaml"]},
        {"transformers": ["x.yaml"]},
        {"replacements": [{}]}, {"configMapGenerator": [{"files": ["x"]}]}, {"namespace": "kube-system"},
    ],
)  # fmt: skip
def test_a_kustomization_file_may_only_list_files_beside_it(field: dict[str, Any]) -> None:
    whole = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    path = f"{DEV}/base/kustomization.yaml"
    assert rules(with_base({**whole, **field}, path=path)) == [("unjudged", path)]
    assert ("unjudged", path) in rules(with_base(field, path=path)), "kustomize needs neither apiVersion nor kind"
    assert rules(with_base({**whole, **field})) == [("unjudged", BASE)]
    assert rules(with_base({**whole, "resources": ["tenant-role.yaml", "./admission-images.yaml"]}, path=path)) == []


@pytest.mark.parametrize(
    ("spec", "good"),
    [
        ({"values": {"replicas": 2}}, True),
        ({"postRenderers": [{"kustomize": {"images": [{"name": "a", "newName": "b"}]}}]}, False),
        ({"valuesFrom": [{"kind": "ConfigMap", "name": "x"}]}, False),
        ({"valuesFrom": [{"kind": "Secret", "name": "x"}]}, False),
        ({"valuesFrom": [{"kind": "Secret", "name": "x", "targetPath": "image"}]}, False),
        ({"valuesFrom": [{"kind": "Secret", "name": "x", "targetPath": "a[0].image.tag"}]}, False),
        ({"valuesFrom": [{"kind": "Secret", "name": "x", "targetPath": "database.password"}]}, True),
    ],
)
def test_a_release_shows_the_values_that_it_gives(spec: dict[str, Any], good: bool) -> None:
    assert rules(with_base(release(**spec))) == ([] if good else [("unjudged", BASE)])


@pytest.mark.parametrize(
    "spec",
    [
        {"inputsFrom": [{"kind": "ResourceSetInputProvider", "name": "x"}], "resources": []},
        {"resourcesTemplate": "<< nonsense"},
        {"resourcesTemplate": "<< inputs.missing >>"},
        {"resources": "x"},
        {"inputs": ["x"], "resourcesTemplate": "a: b"},
        {"resources": [resource_set(resources=[])]},
        {"inputStrategy": {"name": "Permute"}, "inputs": [{"id": "a"}], "resources": []},
    ],
)
def test_a_resourceset_whose_objects_are_not_known_is_a_finding(spec: dict[str, Any]) -> None:
    assert set(rules(with_base(resource_set(**spec)))) == {("unjudged", BASE)}
    assert rules(with_base(resource_set(inputStrategy={"name": "Flatten"}, inputs=[{"id": "a"}], resources=[]))) == []


def test_flux_itself_is_set_up_in_one_place() -> None:
    document = {**resource_set(), "kind": "FluxInstance"}
    assert rules(with_base(document)) == [("unjudged", BASE)]


@pytest.mark.parametrize("path", [INSTANCE, PIN, FLUX, INPUT, NAMESPACE, SECRETS, SYNC])
def test_no_file_of_flux_or_of_a_tenant_has_items_that_flux_would_apply_instead(path: str) -> None:
    files = with_edit(B, path, "metadata:", f"items: [{json.dumps(pod(IMAGE))}]\nmetadata:")
    assert rules(files) == [("manifest", path)]


# Images


@pytest.mark.parametrize(
    "place",
    [
        lambda image: pod(image),
        lambda image: pod(image, "flux-system"),
        lambda image: {"apiVersion": "v1", "kind": "List", "items": [pod(image)]},
        lambda image: {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "items": [pod(image)]},
        lambda image: {"apiVersion": "v1", "kind": "AList", "metadata": {"name": "x"}, "items": [], "spec": {"image": image}},
        lambda image: resource_set(resources=[pod(image)]),
        lambda image: resource_set(resourcesTemplate=json.dumps(pod("<< inputs.image >>")), inputs=[{"id": "a", "image": image}]),
        lambda image: {**pod(IMAGE), "spec": {"volumes": [{"name": "a", "image": {"reference": image}}]}},
        lambda image: release(values={"image": image}),
        lambda image: release(values={"image": {"repository": "a", "tag": f"v1@{DIGEST}", "sidecar": {"image": image}}}),
        lambda image: release(values={"agent": {"sidecars": [{"image": image}]}}),
        lambda image: {**pod(IMAGE), "apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus", "spec": {"image": image}},
    ],
    ids=[
        "pod", "flux-system", "list", "items", "no-list", "resources", "inputs", "volume",
        "values", "within-parts", "nested-values", "custom",
    ],
)  # fmt: skip
def test_an_image_is_judged_as_that_of_a_tenant(place: Any) -> None:
    assert rules(with_base(place(IMAGE))) == []
    assert ("image", BASE) in rules(with_base(place("agent:latest"))) or ("object-policy", BASE) in rules(
        with_base(place("agent:latest"))
    )
    for cluster, severity in ((DEV, findings.WARNING), (STAGING, findings.ERROR), (PROD, findings.ERROR)):
        path = f"{cluster}/base/more.yaml"
        (finding,) = lint(with_base(place("agent:v1"), path=path))
        assert (finding.rule, finding.severity, finding.path) == ("image", severity, path)
        assert "'agent:v1' is not pinned" in finding.message or "agent:v1 is not pinned" in finding.message


@pytest.mark.parametrize(
    ("parts", "good"),
    [
        ({"repository": "registry.acme.com/agent", "tag": f"v1@{DIGEST}"}, True),
        ({"registry": "registry.acme.com", "repository": "agent", "tag": "v1", "digest": DIGEST}, True),
        ({"repository": "registry.acme.com/agent", "tag": "v1"}, False),
        ({"name": "registry.acme.com/agent", "tag": f"v1@{DIGEST}"}, True),
        ({"name": "registry.acme.com/agent", "tag": "v1"}, False),
        ({"tag": f"v1@{DIGEST}"}, False),
        ({"pullPolicy": "Always"}, True),
    ],
)
def test_an_image_in_parts_is_put_together(parts: dict[str, Any], good: bool) -> None:
    path = f"{PROD}/base/more.yaml"
    assert rules(with_base(release(values={"image": parts}), path=path)) == ([] if good else [("image", path)])


def test_a_repository_with_a_tag_is_an_image_under_any_name() -> None:
    path = f"{PROD}/base/more.yaml"
    assert rules(with_base(release(values={"agent": {"repository": "a", "tag": "v1"}}), path=path)) == [("image", path)]


def test_a_resourceset_makes_what_admission_would_take() -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "x"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    }  # fmt: skip
    assert rules(with_base(resource_set(resources=[binding]))) == [("object-policy", BASE)]


# Secrets, and what cannot be read


def test_a_secret_in_a_list_is_found() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "stringData": {"password": "hunter2"}}
    assert rules(with_base({"apiVersion": "v1", "kind": "List", "items": [secret]})) == [("secret-value", BASE)]
    wrapped = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "items": [secret]}
    assert rules(with_base(wrapped)) == [("secret-value", BASE)]
    assert ("secret-value", BASE) in rules({**B, BASE: f"a: 1\n---\n# {AWS}\n"})


class Locked(trees.Files):
    """A tree with a file that is listed and cannot be read."""

    def read(self, path: str) -> bytes | None:
        return None if path == BASE else super().read(path)


def test_a_file_that_cannot_be_read_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    locked = Locked({path: text.encode() for path, text in with_base(pod("evil:latest")).items()})
    assert BASE.rpartition("/")[2] in locked.children(f"{DEV}/base")
    with pytest.raises(trees.Unread, match=f"{BASE} is there and cannot be read"):
        trees.checked(locked, BASE)
    monkeypatch.setattr("unit.lint_trees.tree", lambda files, links=(): locked)
    with pytest.raises(trees.Unread):
        lint(B)
    assert trees.checked(tree(B), BASE) is None
