"""Judgements that lint is made of: objects as admission sees them, removals, and findings as CI reads them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from flux_resourceset.repositories import ci_reports, findings, object_policy
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.layout import Tenant
from flux_resourceset.repositories.lint import removals

DIGEST = "sha256:" + "ab" * 32


def messages(text: str) -> list[str]:
    return [fault.message for fault in object_policy.faults(yaml.safe_load(text))]


@pytest.mark.parametrize(
    ("image", "good"),
    [
        ("nginx:1.27", True), (f"nginx@{DIGEST}", True), (f"nginx:1.27@{DIGEST}", True), ("host:5000/nginx:1.27", True),
        ("nginx", False), ("nginx:latest", False), ("host:5000/nginx", False), (f"nginx:latest@{DIGEST}", False), ("", False),
        ("host/latest:v1", True), ("nginx:latest-1", True), ("nginx:", False),
    ],
)  # fmt: skip
def test_an_image_needs_a_tag_other_than_latest_or_a_digest(image: str, good: bool) -> None:
    assert (object_policy.image_fault(image) is None) == good


POD = "{{containers: [{{name: a, image: 'a:1'}}], {0}: [{{name: b, image: {1}}}]}}"


@pytest.mark.parametrize("containers", ["initContainers", "ephemeralContainers"])
@pytest.mark.parametrize(
    "place",
    [
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: x}}\nspec: {0}",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: x}}\nspec: {{template: {{spec: {0}}}}}",
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: x}}\nspec: {{template: {{spec: {0}}}}}",
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: x}}\nspec: {{template: {{spec: {0}}}}}",
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: x}}\nspec: {{template: {{spec: {0}}}}}",
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{}}\nspec: {{jobTemplate: {{spec: {{template: {{spec: {0}}}}}}}}}",
        "apiVersion: v1\nkind: PodTemplate\nmetadata: {{name: x}}\ntemplate: {{spec: {0}}}",
        "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: x}}\nspec: {{template: {{spec: {0}}}}}",
        "apiVersion: v1\nkind: List\nitems: [{{apiVersion: v1, kind: Pod, metadata: {{name: x}}, spec: {0}}}]",
    ],
)
def test_images_are_found_wherever_a_pod_is(place: str, containers: str) -> None:
    assert len(messages(place.format(POD.format(containers, "b:latest")))) == 1
    assert messages(place.format(POD.format(containers, "'b:2'"))) == []


def test_a_container_has_an_image() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: a}]}"
    assert len(messages(text)) == 1


@pytest.mark.parametrize("namespace", ["kube-system", "flux-system"])
def test_a_cluster_may_repair_itself(namespace: str) -> None:
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: x, namespace: {namespace}}}\nspec: {{containers: [{{image: x}}]}}"
    assert messages(text) == []


def test_values_of_a_release_count() -> None:
    text = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: x}}\nspec: {{values: {{image: {0}}}}}"
    assert len(messages(text.format("x"))) == 1
    assert messages(text.format("'x:1'")) == []
    assert messages(text.format("{repository: x}")) == []


@pytest.mark.parametrize("kind", ["RoleBinding", "ClusterRoleBinding"])
def test_nobody_is_bound_to_cluster_admin_but_the_installation(kind: str) -> None:
    text = (
        f"apiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: NAME}}\nroleRef: {{kind: KIND, name: ROLE}}"
    )
    admin = text.replace("KIND", "ClusterRole").replace("ROLE", "cluster-admin")
    assert len(messages(admin)) == 1
    assert len(messages(admin.replace("NAME", "flux-operator"))) == (kind == "RoleBinding")
    assert messages(admin.replace("cluster-admin", "edit")) == []
    assert messages(admin.replace("ClusterRole,", "Role,")) == []


def test_a_namespace_says_whose_it_is() -> None:
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: NAME, labels: {tenant: a, environment: b}}"
    assert messages(text) == []
    assert len(messages(text.replace("tenant: a", "other: a"))) == 1
    assert len(messages(text.replace("environment: b", "environment: ''"))) == 1
    assert messages(text.replace("NAME", "kube-node-lease").replace("tenant: a, ", "")) == []


def test_whatever_an_object_is_made_of_is_judged() -> None:
    odd: list[dict[str, Any]] = [
        {},
        {"kind": "Pod", "apiVersion": "v1", "spec": []},
        {"kind": ["Pod"], "apiVersion": 1, "spec": {"template": None}},
        {"kind": "Pod", "apiVersion": "v1", "spec": {"containers": {"a": "b"}, "initContainers": ["x"]}},
        {"kind": "Namespace", "apiVersion": "v1", "metadata": []},
        {"kind": "List", "apiVersion": "v1", "items": [None, 1, {}]},
    ]
    assert [len(list(object_policy.faults(each))) for each in odd] == [0, 0, 0, 1, 1, 0]


# Removals

GONE = [Tenant("prod", "prod-1", name) for name in ("b", "a", "c")]


@pytest.mark.parametrize(
    ("allowed", "announced", "good"),
    [(None, None, True), (3, None, True), (2, None, False), (0, "3", True), (0, "03", True), (0, "2", False), (2, "4", False),
     (2, "three", False), (2, "", False), (2, "3 tenants", False), (5, "1", True)],
)  # fmt: skip
def test_more_removals_than_allowed_need_their_exact_number(allowed: int | None, announced: str | None, good: bool) -> None:
    found = removals.of_change(GONE, allowed, announced)
    assert (found == []) == good
    assert all((each.rule, each.path, each.line) == ("removals", "prod/prod-1/tenants/a", None) for each in found)


# Findings


def test_findings_are_ordered_by_path_line_and_rule_and_told_once() -> None:
    found = [
        findings.error("b", "x", 2, "m"), findings.error("a", "x", 10, "m"), findings.error("a", "x", 2, "m"),
        findings.warning("z", "x", None, "m"), findings.error("a", "w", 3, "m"), findings.error("a", "w", 3, "m"),
    ]  # fmt: skip
    assert [(each.path, each.line, each.rule) for each in findings.ordered(found)] == [
        ("w", 3, "a"), ("x", None, "z"), ("x", 2, "a"), ("x", 2, "b"), ("x", 10, "a"),
    ]  # fmt: skip


def test_a_warning_fails_the_strict_only() -> None:
    warning, error = findings.warning("a", "b", 1, "c"), findings.error("a", "b", 1, "c")
    assert not findings.is_failure([warning])
    assert findings.is_failure([warning], strict=True)
    assert findings.is_failure([warning, error])
    assert not findings.is_failure([], strict=True)


def test_names_that_are_no_unicode_can_be_told() -> None:
    told = findings.error("layout", b"dev/\xff".decode(errors="surrogateescape"), None, "m").told()
    assert told["path"] == "dev/\\udcff"


HOSTILE = Finding("layout", "error", "a,line=1::x\r\n::error file=b::pwned%", 3, "1%\n::set-output name=a::b: c, d")


def test_github_takes_nothing_in_a_name_for_a_command() -> None:
    (line,) = ci_reports.github([HOSTILE], "sub/")
    assert line == (
        "::error file=sub/a%2Cline=1%3A%3Ax%0D%0A%3A%3Aerror file=b%3A%3Apwned%25,line=3,title=layout"
        "::1%25%0A::set-output name=a::b: c, d"
    )
    (line,) = ci_reports.github([HOSTILE._replace(path="x", line=None, severity="warning", message="m")])
    assert line == "::warning file=x,title=layout::m"


def test_gitlab_gets_a_report_of_code_quality() -> None:
    same = Finding("image", "warning", "x", None, "m")
    first, second, third = ci_reports.gitlab([HOSTILE, same, same], "sub/")
    assert (first["severity"], second["severity"]) == ("major", "minor")
    assert first["location"] == {"path": "sub/" + HOSTILE.path, "lines": {"begin": 3}}
    assert second["location"] == {"path": "sub/x", "lines": {"begin": 1}}
    assert (first["check_name"], first["description"]) == ("layout", HOSTILE.message)
    assert len({each["fingerprint"] for each in (first, second, third)}) == 3
    assert ci_reports.gitlab([HOSTILE._replace(line=9)], "sub/")[0]["fingerprint"] == first["fingerprint"]
