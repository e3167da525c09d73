"""A document against its kind: what is filled in, and every rule with the pointer of its violation."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from flux_resourceset import documents
from flux_resourceset.kinds import kind_files
from unit import samples
from unit.samples import cluster, component, namespace, rolebinding

KNOWN = kind_files.load()
TOO_LONG = "a" * 64
NAMED: dict[str, Any] = {"platform_components": [{"id": "a"}]}


def violations_of(kind: str, document: Any) -> dict[str, str]:
    """The violations of a document as it would be stored: pointer → message."""
    of = KNOWN.by_name[kind]
    completed = documents.completed(of, document) if isinstance(document, dict) else document
    return dict(documents.violations(KNOWN, of, completed))


# Completion


def test_a_component_is_completed() -> None:
    assert documents.completed(KNOWN.by_name["platform_components"], component("a")) == {
        **component("a"),
        "type": "helm",
        "component_version": "latest",
        "cluster_env_enabled": False,
        "depends_on": [],
    }


def test_what_is_complete_already_is_not_copied() -> None:
    of = KNOWN.clusters
    done = documents.completed(of, cluster(platform_components=[{"id": "a"}], labels={"x": "y"}))
    assert documents.completed(of, done) is done
    other = documents.completed(of, {**done, "namespaces": [{"id": "n", "of_no_kind": 1}], "patches": {"a": {"k": 1}}})
    assert other["platform_components"] is done["platform_components"]
    assert other["labels"] is done["labels"]
    again = documents.completed(
        of, {**done, "platform_components": [{"enabled": False, "id": "b"}, *done["platform_components"]]}
    )
    assert list(again["platform_components"][0]) == ["id", "enabled"]
    assert done["platform_components"] == [{"id": "a", "enabled": True}]


def test_a_namespace_is_completed() -> None:
    completed = documents.completed(KNOWN.by_name["namespaces"], {"id": "a"})
    assert completed == {"id": "a", "labels": {}, "annotations": {}, "allow_prune": False}


def test_a_cluster_is_completed_and_so_are_its_references() -> None:
    given = cluster(platform_components=[{"id": "a"}, {"id": "b", "enabled": False, "oci_tag": None}])
    assert documents.completed(KNOWN.clusters, given) == {
        **cluster(),
        "labels": {},
        "platform_components": [{"id": "a", "enabled": True}, {"id": "b", "enabled": False, "oci_tag": None}],
        "namespaces": [],
        "rolebindings": [],
        "patches": {},
    }


@pytest.mark.parametrize("kind", ["User", "Group"])
def test_users_and_groups_get_their_api_group(kind: str) -> None:
    completed = documents.completed(KNOWN.by_name["rolebindings"], rolebinding("r", subjects=[{"kind": kind, "name": "x"}]))
    assert completed["subjects"] == [{"kind": kind, "name": "x", "apiGroup": "rbac.authorization.k8s.io"}]


def test_service_accounts_get_an_empty_api_group() -> None:
    subject = {"kind": "ServiceAccount", "name": "x", "namespace": "n"}
    completed = documents.completed(KNOWN.by_name["rolebindings"], rolebinding("r", subjects=[subject]))
    assert completed["subjects"] == [{**subject, "apiGroup": ""}]


def test_completion_neither_shares_nor_changes_what_it_gets() -> None:
    given = cluster(platform_components=[{"id": "a"}])
    kept = copy.deepcopy(given)
    one, two = documents.completed(KNOWN.clusters, given), documents.completed(KNOWN.clusters, given)
    one["labels"]["tier"] = "edge"
    one["platform_components"][0]["enabled"] = False
    assert two["labels"] == {}
    assert given == kept


def test_completing_twice_changes_nothing_more() -> None:
    once = documents.completed(KNOWN.by_name["rolebindings"], rolebinding("r"))
    assert documents.completed(KNOWN.by_name["rolebindings"], once) == once


# Documents that are right

RIGHT: list[tuple[str, Any]] = [
    ("clusters", cluster()),
    ("clusters", cluster(labels={"example.com/tier": "edge", "x": "", "A_b.c": "Z_9"})),
    ("clusters", cluster(labels={"fluxcd.io/anything": "is-free-here"})),
    ("clusters", cluster(cluster_dns="localhost", node_count=0, vm_image="ubuntu", k0s_version="v1.31.2+k0s.0")),
    ("clusters", cluster(node_count=2**53 - 1)),
    ("clusters", cluster(cluster_name="Ünïcode „name“ 🚀")),
    ("clusters", cluster(**NAMED, patches={"a": {"x": "s", "y.z-1_": 1, "b": True, "f": -0.5}})),
    ("clusters", cluster(**NAMED, patches={"a": {"k" * 250: "v"}})),
    ("clusters", cluster(**NAMED, patches={"a": {"a\\.b/c[0].d": 1, "l": ["x", 0.5, True]}})),
    ("clusters", cluster(**NAMED, patches={"a": {"n": -(2**53 - 1)}})),
    ("clusters", cluster(**NAMED, patches={"a": {"auth.existingSecret": "name", "tokens": "1", "token-ttl": 1}})),
    ("clusters", cluster("a" * 63)),
    ("platform_components", component("a" * 44)),
    ("platform_components", component("a", type="kustomize", depends_on=["b"])),
    ("platform_components", component("a", oci_url="http://x")),
    ("namespaces", namespace("a", labels={"kubernetes.io/name": "x"}, annotations={"a/b": "anything goes: {}, ü"})),
    ("namespaces", namespace("a", labels={"notfluxcd.io/a": "x"}, annotations={"example.com/fluxcd.io": "x"})),
    ("rolebindings", rolebinding("r", role="system:node", subjects=[])),
    ("rolebindings", rolebinding("r", subjects=[{"kind": "User", "name": "jane@example.com"}])),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "document"), RIGHT, ids=range(len(RIGHT)))
def test_a_right_document_has_no_violation(kind: str, document: Any) -> None:
    assert violations_of(kind, document) == {}


# Documents with one mistake: its pointer, and a piece of the message

CLUSTERS: list[tuple[Any, str, str]] = [
    (["not", "an", "object"], "", "must be a JSON object"),
    ("text", "", "must be a JSON object"),
    (None, "", "must be a JSON object"),
    (cluster(colour="red"), "/colour", "is not a known field"),
    ({**cluster(), "a/b~c": 1}, "/a~1b~0c", "is not a known field"),
    ({**cluster(), "id": 5}, "/id", "must be a string"),
    ({**cluster(), "id": ""}, "/id", "DNS-1123"),
    (cluster("C1", cluster_dns="c1"), "/id", "DNS-1123"),
    (cluster("a.b"), "/id", "DNS-1123"),
    (cluster("-a", cluster_dns="a"), "/id", "DNS-1123"),
    (cluster(TOO_LONG, cluster_dns="a"), "/id", "DNS-1123"),
    (cluster(cluster_name=""), "/cluster_name", "must not be empty"),
    (cluster(cluster_name=None), "/cluster_name", "must be a string"),
    (cluster(cluster_dns="C1.example.com"), "/cluster_dns", "lower-case RFC 1123"),
    (cluster(cluster_dns="a..b"), "/cluster_dns", "lower-case RFC 1123"),
    (cluster(cluster_dns="a_b.example.com"), "/cluster_dns", "lower-case RFC 1123"),
    (cluster(cluster_dns="a.example.com."), "/cluster_dns", "lower-case RFC 1123"),
    (cluster(cluster_dns=TOO_LONG + ".com"), "/cluster_dns", "lower-case RFC 1123"),
    (cluster(cluster_dns=".".join(["a" * 63] * 4)), "/cluster_dns", "lower-case RFC 1123"),
    (cluster(environment="staging"), "/environment", "must be one of dev, qa, uat, prod"),
    (cluster(environment="DEV"), "/environment", "must be one of"),
    (cluster(node_count=-1), "/node_count", "must be at least 0"),
    (cluster(node_count=1.5), "/node_count", "must be an integer"),
    (cluster(node_count="3"), "/node_count", "must be an integer"),
    (cluster(node_count=True), "/node_count", "must be an integer"),
    (cluster(node_count=2**53), "/node_count", "must be within"),
    (cluster(node_count=1e20), "/node_count", "must be within"),
    (cluster(labels=[]), "/labels", "must be an object"),
    (cluster(labels={"tier": 1}), "/labels/tier", "must be a string"),
    (cluster(labels={"-tier": "a"}), "/labels/-tier", "label key"),
    (cluster(labels={"a/b/c": "a"}), "/labels/a~1b~1c", "label key"),
    (cluster(labels={"Example.com/a": "a"}), "/labels/Example.com~1a", "label key"),
    (cluster(labels={"": "a"}), "/labels/", "label key"),
    (cluster(labels={TOO_LONG: "a"}), f"/labels/{TOO_LONG}", "label key"),
    (cluster(labels={"tier": "a b"}), "/labels/tier", "label value"),
    (cluster(labels={"tier": "-a"}), "/labels/tier", "label value"),
    (cluster(labels={"tier": TOO_LONG}), "/labels/tier", "label value"),
    (cluster(namespaces={}), "/namespaces", "must be an array"),
    (cluster(namespaces=["a"]), "/namespaces/0", "must be an object"),
    (cluster(namespaces=[{"id": "a"}, {}]), "/namespaces/1/id", "is required"),
    (cluster(namespaces=[{"id": "A"}]), "/namespaces/0/id", "DNS-1123"),
    (cluster(namespaces=[{"id": "a", "labels": {}}]), "/namespaces/0/labels", "is not a known field"),
    (cluster(namespaces=[{"id": "a"}, {"id": "b"}, {"id": "a"}]), "/namespaces/2/id", "'a' is listed twice"),
    (cluster(rolebindings=[{"id": "a"}, {"id": "a"}]), "/rolebindings/1/id", "'a' is listed twice"),
    (cluster(platform_components=[{"id": "a", "enabled": "yes"}]), "/platform_components/0/enabled", "true or false"),
    (cluster(platform_components=[{"id": "a", "oci_tag": ""}]), "/platform_components/0/oci_tag", "must not be empty"),
    (cluster(platform_components=[{"id": "a", "oci_tag": 1}]), "/platform_components/0/oci_tag", "a string"),
    (cluster(platform_components=[{"id": "a", "oci_url": "oci://x"}]), "/platform_components/0/oci_url", "not a known field"),
    (cluster(platform_components=[{"id": "a", "depends_on": []}]), "/platform_components/0/depends_on", "not a known field"),
    (cluster(patches={"a": {}}), "/patches/a", "not in /platform_components; assign it first"),
    (cluster(**NAMED, patches=[]), "/patches", "must be an object"),
    (cluster(**NAMED, patches={"a": "x"}), "/patches/a", "must be an object"),
    (cluster(**NAMED, patches={"a": {"x": None}}), "/patches/a/x", "must be"),
    (cluster(**NAMED, patches={"a": {"x": {"y": 1}}}), "/patches/a/x", "must be"),
    (cluster(**NAMED, patches={"a": {"x": [[1]]}}), "/patches/a/x/0", "must be true or false or a number or a string"),
    (cluster(**NAMED, patches={"a": {"x[0]": [1]}}), "/patches/a/x[0]", "one by one"),
    (cluster(**NAMED, patches={"a": {"x": 2**53}}), "/patches/a/x", "must be within"),
    (cluster(**NAMED, patches={"a": {"x": -(2**53)}}), "/patches/a/x", "must be within"),
    (cluster(**NAMED, patches={"a": {"k" * 254: 1}}), "/patches/a/" + "k" * 254, "Helm value path"),
    *((cluster(**NAMED, patches={"a": {key: 1}}), f"/patches/a/{key}", "Helm value path")
      for key in ("", ".", "a.", ".a", "a..b", "a[", "a]", "[0]", "a b", "a,b", "a=b", "ä", "a\\", "{a}")),
]  # fmt: skip

COMPONENTS: list[tuple[Any, str, str]] = [
    (component("a" * 45), "/id", "must have at most 44 characters"),
    (component("a", type="jsonnet"), "/type", "must be one of helm, kustomize"),
    (component("a", component_path=""), "/component_path", "must not be empty"),
    (component("a", component_version=1.2), "/component_version", "must be a string"),
    (component("a", cluster_env_enabled="no"), "/cluster_env_enabled", "true or false"),
    (component("a", oci_url="ftp://x"), "/oci_url", "oci://, https:// or http://"),
    (component("a", oci_url="https://"), "/oci_url", "oci://, https:// or http://"),
    (component("a", oci_url="https://a b"), "/oci_url", "oci://, https:// or http://"),
    (component("a", oci_tag=None), "/oci_tag", "must be a string"),
    (component("a", depends_on="b"), "/depends_on", "must be an array"),
    (component("a", depends_on=["b", "b"]), "/depends_on", "must not hold the same value twice"),
    (component("a", depends_on=["B"]), "/depends_on/0", "DNS-1123"),
    (component("a", depends_on=[1]), "/depends_on/0", "must be a string"),
]  # fmt: skip

NAMESPACES: list[tuple[Any, str, str]] = [
    *((namespace(id), "/id", "system namespace")
      for id in ("default", "kube-system", "kube-public", "kube-node-lease", "flux-system")),
    (namespace("a", allow_prune=1), "/allow_prune", "true or false"),
    (namespace("a", labels=None), "/labels", "must be an object"),
    (namespace("a", annotations={"a": 1}), "/annotations/a", "must be a string"),
    (namespace("a", annotations={"a b": "x"}), "/annotations/a b", "label key"),
    (namespace("a", labels={"x": "a b"}), "/labels/x", "label value"),
    *((namespace("a", **{field: {key: "x"}}), f"/{field}/{key.replace('/', '~1')}", "not reserved")
      for field in ("labels", "annotations")
      for key in ("kubernetes.io/metadata.name", "fluxcd.controlplane.io/prune", "kustomize.toolkit.fluxcd.io/name",
                  "toolkit.fluxcd.io/tenant", "fluxcd.io/x", "my.fluxcd.io/x", "a.fluxcd.controlplane.io/x")),
]  # fmt: skip


def subject(**fields: Any) -> Any:
    return rolebinding("r", subjects=[{"kind": "Group", "name": "x", **fields}])


ROLEBINDINGS: list[tuple[Any, str, str]] = [
    (rolebinding("r", role=""), "/role", "RBAC"),
    (rolebinding("r", role="a/b"), "/role", "RBAC"),
    (rolebinding("r", role=".."), "/role", "RBAC"),
    (rolebinding("r", role="a%b"), "/role", "RBAC"),
    (rolebinding("r", subjects={}), "/subjects", "must be an array"),
    (subject(kind="Robot"), "/subjects/0/kind", "must be one of User, Group, ServiceAccount"),
    (subject(name=""), "/subjects/0/name", "must not be empty"),
    (subject(apiGroup="apps"), "/subjects/0/apiGroup", "must be one of rbac.authorization.k8s.io"),
    (subject(apiGroup=""), "/subjects/0/apiGroup", "must be one of rbac.authorization.k8s.io"),
    (subject(colour="red"), "/subjects/0/colour", "is not a known field"),
    (subject(kind="ServiceAccount"), "/subjects/0/namespace", "is required"),
    (subject(kind="ServiceAccount", namespace="N"), "/subjects/0/namespace", "DNS-1123"),
    (subject(kind="ServiceAccount", namespace="n", name="A B"), "/subjects/0/name", "RFC 1123"),
    (subject(kind="ServiceAccount", namespace="n", apiGroup="apps"), "/subjects/0/apiGroup", "must be one of ''"),
]  # fmt: skip

WRONG = [
    (kind, *case)
    for kind, cases in (
        ("clusters", CLUSTERS),
        ("platform_components", COMPONENTS),
        ("namespaces", NAMESPACES),
        ("rolebindings", ROLEBINDINGS),
    )
    for case in cases
]


@pytest.mark.parametrize(("kind", "document", "pointer", "message"), WRONG, ids=range(len(WRONG)))
def test_a_mistake_is_told_with_its_pointer(kind: str, document: Any, pointer: str, message: str) -> None:
    violations = violations_of(kind, document)
    assert list(violations) == [pointer]
    assert message in violations[pointer]


@pytest.mark.parametrize("kind", ["clusters", "platform_components", "namespaces", "rolebindings"])
def test_every_missing_field_is_pointed_at(kind: str) -> None:
    required = KNOWN.by_name[kind].schema["required"]
    assert violations_of(kind, {}) == {f"/{name}": "is required" for name in required}


def test_all_violations_come_at_once() -> None:
    document = {
        "id": "Bad Id",
        "environment": "moon",
        "labels": {"-": "x"},
        "namespaces": [{"id": "a"}, {"id": "a", "x": 1}],
        "patches": {"ghost": {"a b": [], "password": "x"}},
        "extra": "\x00",
    }
    assert sorted(violations_of("clusters", document)) == [
        "/cluster_dns",
        "/cluster_name",
        "/environment",
        "/extra",
        "/id",
        "/labels/-",
        "/namespaces/1/id",
        "/namespaces/1/x",
        "/patches/ghost",
        "/patches/ghost/a b",
        "/patches/ghost/password",
    ]


# Kinds of one's own


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ("{const: 3}", 4, "must be 3"),
        ("{const: ''}", "a", "must be ''"),
        ("{type: integer, maximum: 5}", 6, "must be at most 5"),
        ("{type: integer, minimum: 5}", 4, "must be at least 5"),
        ("{type: integer, multipleOf: 5}", 4, "breaks its schema: 4 is not a multiple of 5"),
        (
            "{properties: {a: {type: string}}, additionalProperties: {type: integer}}",
            {"b": "c"},
            "must be an integer",
        ),
    ],
)
def test_a_kind_of_ones_own_tells_its_mistakes_alike(schema: str, value: Any, message: str, tmp_path: Path) -> None:
    known = samples.kinds_from(tmp_path, samples.PLAIN + f"      own: {schema}\n")
    ((pointer, told),) = documents.violations(known, known.by_name["widgets"], {"id": "a", "own": value})
    assert (pointer.split("/")[1], told) == ("own", message)


# Size


LARGE = "x" * (documents.MAX_BYTES + 1)


@pytest.mark.parametrize(
    "news",
    [
        {"labels": {"x": LARGE}}, {"labels": {LARGE: "x"}}, {LARGE: None}, {LARGE: "x"}, {"patches": {"a": {"k": [LARGE]}}},
        {"namespaces": [{}] * (documents.MAX_VALUES * 2 + 1)},
    ],
    ids=["value", "name", "name of null", "name at the top", "in a list", "many"],
)  # fmt: skip
def test_what_is_new_in_a_document_is_measured_before_it_is_written_down(news: Any) -> None:
    before = documents.completed(KNOWN.clusters, cluster(**NAMED))
    assert documents.is_bounded({**before, **news}) is False
    assert documents.is_bounded({**before, **news}, before) is False
    wrong = documents.violations(KNOWN, KNOWN.clusters, {**before, **news}, None, before)
    assert [(found.pointer, found.message) for found in wrong] == [("", documents.TOO_LARGE)]


def test_what_stays_counts_too() -> None:
    half = "x" * (documents.MAX_BYTES // 2)
    before = documents.completed(KNOWN.clusters, cluster(vm_image=half))
    assert documents.violations(KNOWN, KNOWN.clusters, before) == []
    wrong = documents.violations(KNOWN, KNOWN.clusters, {**before, "k0s_version": half + "x"}, None, before)
    assert [found.message for found in wrong] == [documents.TOO_LARGE]


@pytest.mark.parametrize("text", ["a" * 63, "a" * 64, "A", "a" * 10_000])
def test_a_format_says_of_a_text_the_same_every_time(text: str) -> None:
    first, second = (violations_of("clusters", cluster(id=text)) for _ in range(2))
    assert first == second
    assert ("/id" in first) == (text != "a" * 63)
