"""Components through their life: versions, overrides, environments, dependencies, disabling, unassigning."""

from __future__ import annotations

import json

import pytest

from .charts import Charts, shown_values
from .home import DEMO, Home
from .kube import NAMESPACE, Kube, Object, condition, ready

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: podinfo}}\ndata: {{text: {text}}}\n"


def test_the_tag_of_the_catalog_decides_the_version_until_a_cluster_has_its_own(home: Home) -> None:
    home.component("tagged")
    home.released("tagged", version="1.0.0", values={})
    home.call("PATCH", "/platform_components/tagged", {"oci_tag": "1.1.0"})
    home.released("tagged", version="1.1.0", values={})
    home.call("PATCH", f"/clusters/{DEMO}/platform_components/tagged", {"oci_tag": "2.0.0"})  # a hotfix
    home.released("tagged", version="2.0.0", values={})
    home.call("PATCH", f"/clusters/{DEMO}/platform_components/tagged", {"oci_tag": None})
    home.released("tagged", version="1.1.0", values={})


def test_without_a_tag_the_component_version_counts(home: Home) -> None:
    home.component("versioned", oci_tag="latest", component_version="1.0.0")
    home.released("versioned", version="1.0.0", values={})
    home.call("PATCH", "/platform_components/versioned", {"component_version": "latest"})
    home.released("versioned", version="2.0.0", values={})


def test_a_path_of_the_cluster_beats_the_catalog(home: Home, charts: Charts) -> None:
    charts.publish(shown_values("1.0.0", "other-chart"))
    home.component("moved", reference={"component_path": "other-chart"})
    home.released("moved", version="1.0.0", values={})
    found = home.kube.get("helmrelease", "platform-moved", NAMESPACE) or {}
    assert found["spec"]["chart"]["spec"]["chart"] == "other-chart"


def test_a_hotfix_of_one_component_leaves_the_others_alone(home: Home, kube: Kube) -> None:
    home.component("steady")
    home.component("hotfixed")
    home.released("steady", version="1.0.0", values={})
    home.released("hotfixed", version="1.0.0", values={})
    before = (kube.get("helmrelease", "platform-steady", NAMESPACE) or {})["metadata"]["generation"]
    home.call("PATCH", f"/clusters/{DEMO}/platform_components/hotfixed", {"oci_tag": "1.1.0"})
    home.released("hotfixed", version="1.1.0", values={})
    assert (kube.get("helmrelease", "platform-steady", NAMESPACE) or {})["metadata"]["generation"] == before


def test_a_canary_on_one_environment_reaches_only_its_clusters(home: Home) -> None:
    home.component("canary")
    home.released("canary", version="1.0.0", values={})
    cluster = {"id": "canary-prod", "cluster_name": "canary-prod", "cluster_dns": "canary-prod.example.com"}
    home.call("POST", "/clusters", {**cluster, "environment": "prod", "platform_components": [{"id": "canary"}]})
    untouched = home.answer("canary-prod.example.com", "platform-components")
    operation = {"op": "assign", "kind": "platform_components", "id": "canary", "environment": "dev"}
    home.call("POST", "/batch", {"operations": [{**operation, "document": {"oci_tag": "2.0.0"}}]})
    home.released("canary", version="2.0.0", values={})
    assert home.answer("canary-prod.example.com", "platform-components") == untouched


def test_a_kustomize_component_follows_its_tag_and_its_environment(home: Home, charts: Charts, kube: Kube) -> None:
    def push(tag: str) -> str:
        return charts.push_kustomization(
            "platform/components",
            tag,
            {
                f"core/thing/1.0.0/{env}": {"cm.yaml": CONFIG_MAP.format(name="thing", text=f"{env}-{tag}")}
                for env in ("dev", "prod")
            },
        )

    url = push("v1.0.0")
    push("v1.0.0-1")
    home.component(
        "thing", type="kustomize", component_path="core/thing/1.0.0", oci_url=url, oci_tag="v1.0.0", cluster_env_enabled=True
    )

    def text(wanted: str) -> None:
        kube.wait_for_object("configmap", "thing", "podinfo", where=lambda found: found["data"]["text"] == wanted)

    text("dev-v1.0.0")
    home.call("PATCH", f"/clusters/{DEMO}/platform_components/thing", {"oci_tag": "v1.0.0-1"})
    text("dev-v1.0.0-1")


def test_a_chart_comes_from_an_oci_registry_too(home: Home, charts: Charts, kube: Kube) -> None:
    home.component("from-oci", oci_url=charts.oci_url, oci_tag="1.1.0")
    found = kube.wait_for_object("helmrepository", "charts-from-oci", NAMESPACE)
    assert found["spec"]["type"] == "oci"
    # the registry here has no TLS, which a HelmRepository must be told; production registries have it
    kube.patch("helmrepository", "charts-from-oci", {"spec": {"insecure": True}}, NAMESPACE)
    home.released("from-oci", version="1.1.0", values={})


def test_a_dependent_waits_for_what_the_cluster_has_and_not_for_what_it_lacks(home: Home, kube: Kube) -> None:
    home.component("first", oci_tag="9.9.9")  # does not exist: never ready
    home.call("POST", "/platform_components", {
        "id": "absent", "component_path": "shown-values", "oci_url": home.charts.http_url, "oci_tag": "1.0.0",
    })  # fmt: skip
    home.component("second", depends_on=["first", "absent"])

    def waits(found: Object) -> bool:
        return not ready(found) and [d["name"] for d in found["spec"]["dependsOn"]] == ["platform-first"]

    kube.wait_for_object("helmrelease", "platform-second", NAMESPACE, where=waits)
    home.call("PATCH", "/platform_components/first", {"oci_tag": "1.0.0"})
    kube.wait_ready("helmrelease", "platform-second")


def test_a_disabled_component_is_collected_and_comes_back(home: Home, kube: Kube) -> None:
    home.component("switched")
    home.patch("switched", {"greeting": "hi"})
    home.released("switched", version="1.0.0", values={"greeting": "hi"})
    home.call("PATCH", f"/clusters/{DEMO}/platform_components/switched", {"enabled": False})
    kube.wait_gone("helmrelease", "platform-switched", NAMESPACE)
    kube.wait_gone("configmap", "switched-values", "switched")
    home.call("PATCH", f"/clusters/{DEMO}/platform_components/switched", {"enabled": True})
    home.released("switched", version="1.0.0", values={"greeting": "hi"})


def test_an_unassigned_component_is_collected_and_its_namespace_kept(home: Home, kube: Kube) -> None:
    home.component("leaving")
    home.call("POST", "/namespaces", {"id": "leaving"})
    home.call("PUT", f"/clusters/{DEMO}/namespaces/leaving", {})
    home.released("leaving", version="1.0.0", values={})
    home.call("DELETE", f"/clusters/{DEMO}/platform_components/leaving")
    home.call("DELETE", f"/clusters/{DEMO}/namespaces/leaving")
    kube.wait_gone("helmrelease", "platform-leaving", NAMESPACE)
    kube.wait_gone("configmap", "leaving-values", "leaving")
    kube.wait_for(lambda: not any("leaving" in entry for entry in home.inventory("namespaces")), "the namespace is let go")
    assert "deletionTimestamp" not in (kube.get("namespace", "leaving") or {})["metadata"]


def test_a_namespace_that_allows_it_is_deleted_when_unassigned(home: Home, kube: Kube) -> None:
    home.call("POST", "/namespaces", {"id": "throwaway", "allow_prune": True})
    home.call("PUT", f"/clusters/{DEMO}/namespaces/throwaway", {})
    kube.wait_for_object("namespace", "throwaway")
    home.call("DELETE", f"/clusters/{DEMO}/namespaces/throwaway")
    kube.wait_gone("namespace", "throwaway")


# Values that must arrive letter by letter, whatever Helm's --set or YAML would make of them.
STRINGS = {
    "commas": "a,b,c", "braces": "{a,b}", "quotes": "say \"hi\" it's", "colon": "a: b # c", "equals": "a=b", "hash": "#fff",
    "backslash": "C:\\temp", "brackets": "x[0]", "unicode": "héllo → 世界", "empty": "", "word": "null", "leading": "007",
    "version": "1.10", "dollar": "${HOME} $x", "template": "{{ .Values }} << inputs >>", "spaces": "  a  ",
}  # fmt: skip


def test_patch_values_keep_their_meaning_in_a_release(home: Home) -> None:
    home.component("typed")
    typed = {"number": "3", "count": 4, "flag": "true", "off": False, "nested.deep.key": "v", "ratio": 0.5}
    home.patch("typed", {**typed, **STRINGS})
    expected = {"number": 3, "count": 4, "flag": True, "off": False, "nested": {"deep": {"key": "v"}}, "ratio": 0.5}
    home.released("typed", version="1.0.0", values={**expected, **STRINGS})


def test_patch_keys_with_dots_in_segments_list_elements_and_whole_lists_reach_a_release(home: Home) -> None:
    home.component("escaped")
    home.patch(
        "escaped",
        {
            r"grafana\.ini.server.root_url": "https://grafana.example.com/?a,b={c}",
            r"grafana\.ini.server.port": "3000",
            r"grafana\.ini.ratio": 0.5,
            r"nodeSelector.kubernetes\.io/os": "linux",
            "hosts[0].name": "a.example.com",
            "hosts[0].paths[0]": "/",
            "hosts[1].name": "b.example.com",
            "hosts[1].weight": 3,
            "hosts[1].tls": "true",
            "list": ["a", "3", 4, 0.5, True, "", "a,b"],
            r"deep\.er.list": [],
            "plain.key": "text",
        },
    )
    server = {"root_url": "https://grafana.example.com/?a,b={c}", "port": 3000}
    expected: Object = {
        "grafana.ini": {"server": server, "ratio": 0.5},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "hosts": [{"name": "a.example.com", "paths": ["/"]}, {"name": "b.example.com", "weight": 3, "tls": True}],
        "list": ["a", "3", 4, 0.5, True, "", "a,b"],
        "deep.er": {"list": []},
        "plain": {"key": "text"},
    }
    home.released("escaped", version="1.0.0", values=expected)
    home.patch("escaped", {"hosts[0].name": "c.example.com"})
    changed = [{"name": "c.example.com", "paths": ["/"]}, expected["hosts"][1]]
    home.released("escaped", version="1.0.0", values={**expected, "hosts": changed})


# Flux reads a manifest, writes it anew and substitutes then: quotes around a variable are gone before the value is there.
SUBSTITUTED = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: podinfo}}
data:
  text: {text}
"""
IN_QUOTES = "'${code}'"
AS_TEXT = """'${quote:="}${code}${quote:="}'"""
AS_LINES = "|\n    code: ${code}\n    again: ${code}"
WITHIN = "'v${code}'"

LOOKS_TYPED = ["007", "true", "null", "1.10", "1e3", "0x1F", "yes", "2026-01-01", "~", "", 3, 0.5, False]


def kustomized(home: Home, name: str, text: str) -> None:
    manifest = SUBSTITUTED.format(name=name, text=text)
    url = home.charts.push_kustomization(f"platform/{name}", "v1", {"at": {"cm.yaml": manifest}})
    home.component(name, type="kustomize", component_path="at", oci_url=url, oci_tag="v1")


def shown(value: object) -> str:
    """A patch value as it stands in the ConfigMap of the patches."""
    return value if isinstance(value, str) else json.dumps(value)


@pytest.mark.parametrize("value", ["007", "true", 3])
def test_quotes_around_a_variable_do_not_keep_a_value_text(value: object, home: Home, kube: Kube) -> None:
    name = f"quoted-{shown(value)}"
    kustomized(home, name, IN_QUOTES)
    home.patch(name, {"code": value})

    def is_refused(found: Object) -> bool:
        said = condition(found, "Ready")
        return said.get("status") == "False" and "data.text" in said.get("message", "")

    kube.wait_for_object("kustomization", f"platform-{name}", NAMESPACE, where=is_refused)
    home.call("DELETE", f"/clusters/{DEMO}/platform_components/{name}")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("as-text", AS_TEXT, "{}"),
        ("as-lines", AS_LINES, "code: {0}\nagain: {0}\n"),
        ("within", WITHIN, "v{}"),
    ],
)
def test_a_value_is_text_where_the_manifest_makes_it_text(name: str, text: str, expected: str, home: Home, kube: Kube) -> None:
    kustomized(home, name, text)
    for value in LOOKS_TYPED:
        home.patch(name, {"code": value})
        wanted = expected.format(shown(value))
        kube.wait_for_object("configmap", name, "podinfo", where=lambda f, w=wanted: f["data"]["text"] == w)  # type: ignore[misc]  # mypy cannot type a default of a lambda


def test_lines_take_any_text(home: Home, kube: Kube) -> None:
    kustomized(home, "any-text", AS_LINES)
    for value in ('it\'s #1: "ü" {x}', "C:\\temp", "${HOME} $x", "- a", "a: b"):
        home.patch("any-text", {"code": value})
        wanted = f"code: {value}\nagain: {value}\n"
        kube.wait_for_object("configmap", "any-text", "podinfo", where=lambda f, w=wanted: f["data"]["text"] == w)  # type: ignore[misc]  # mypy cannot type a default of a lambda
