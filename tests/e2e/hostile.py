"""Documents that the API accepts, with text in every field that could break out of a template."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from flux_resourceset import documents
from flux_resourceset.kinds import formats

Texts = st.SearchStrategy[str]
Document = dict[str, Any]
Documents = st.SearchStrategy[Document]

# What means something to YAML, to Go templates, to Helm's --set, to Flux's substitution or to a shell.
FRAGMENTS = (
    "---", "...", "<<", ">>", "<< inputs.id >>", "<<- end >>", "<<: *a", "{{", "}}", "{{ .Values }}", "${x}",
    "${CLUSTER_DNS}", "$(x)", "#", " # ", ": ", "- ", "? ", "'", '"', '\\"', "\\", "\\n", "%", "%s", "%!d(", "*a", "&a",
    "!t", "!!int", "|", ">", "@", "`", "[a", "]", "{a: b}", "}", ",", "=", "a,b", "a=b", "x[0]", "yes", "no", "y", "n",
    "on", "Off", "null", "~", "true", "False", "1", "-7", "1e3", "0x1F", "0o17", "007", "1_000", "1.10", ".5", ".inf",
    ".nan", "1:30", "2024-01-01", "latest", " ", "  ", "é", "e\u0301", "世界", "😀", "\u00a0", "\u00ad", "\u2028", "\u2029",
    "\u200b", "\u202e", "\ufeff", "\ufffd", "\U0001fffe", "\U0010ffff", "apiVersion: v1", "kind: Secret",
)  # fmt: skip
WORDS = (
    "y",
    "n",
    "yes",
    "no",
    "on",
    "off",
    "null",
    "true",
    "false",
    "1",
    "007",
    "1e3",
    "0x1f",
    "0",
    "a-b",
    "a--b",
)  # DNS labels all

_free = st.characters(exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")  # the API refuses the others
_composed = st.lists(st.sampled_from(FRAGMENTS) | st.sampled_from("ab"), min_size=1, max_size=6).map("".join)
_long = st.sampled_from(FRAGMENTS).map(lambda fragment: (fragment * 1984)[:1984])  # as long as a path may be

# mostly what is known to hurt, for a wider alphabet dilutes it
texts: Texts = st.one_of(st.sampled_from(FRAGMENTS), _composed, _composed, st.text(_free, min_size=1, max_size=30), _long)
texts_or_empty = texts | st.just("")
labels: Texts = st.sampled_from(WORDS) | st.from_regex(re.compile(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?"), fullmatch=True)
names: Texts = st.lists(labels, min_size=1, max_size=3).map(".".join)
urls: Texts = st.builds(
    lambda scheme, rest: scheme + re.sub(r"\s", "", rest), st.sampled_from(["oci://", "https://", "http://"]), texts
).filter(formats.is_source_url)
label_values: Texts = st.sampled_from([*WORDS, "", "A_b.c", "1.10", "1_000"])
label_keys: Texts = st.sampled_from([*WORDS, "a.b_c", "example.com/y", "null.io/null", "1.5/1e3"])
# the last segments of what looks like a secret are refused
helm_paths: Texts = st.lists(
    st.sampled_from([*WORDS, "-", "--", "_", "a_b", "UI", r"a\.b", r"\.", "x/y", r"kubernetes\.io/os"])
    | st.from_regex(re.compile(r"[A-Za-z0-9_-]{1,8}"), fullmatch=True),
    min_size=1, max_size=3,
).map(".".join).filter(lambda key: not documents.looks_secret(key))  # fmt: skip
variables: Texts = st.sampled_from([word for word in WORDS if formats.is_variable(word)] + ["_", "__", "UI"]).filter(
    lambda key: not documents.looks_secret(key)
)
numbers = st.integers(-documents.MAX_INTEGER, documents.MAX_INTEGER) | st.floats(-1e15, 1e15, allow_nan=False)
quantities: Texts = st.from_regex(re.compile(r"[0-9]{1,3}(\.[0-9]{1,2})?(m|k|M|Gi|Ti|E)?"), fullmatch=True)
counts: Texts = st.from_regex(re.compile(r"[0-9]{1,3}(k|M|Gi|Ti|E)?"), fullmatch=True)
_counted: Texts = st.sampled_from(["pods", "services.nodeports", "count/no", "count/1e3.null"]) | st.from_regex(
    re.compile(r"count/[a-z0-9][a-z0-9.-]{0,9}[a-z0-9]"), fullmatch=True
)
_measured: Texts = st.sampled_from(["cpu", "memory", "ephemeral-storage"])
ports = st.sampled_from([1, 80, 9898, 65535])


def some(fields: dict[str, st.SearchStrategy[Any]], optional: dict[str, st.SearchStrategy[Any]] | None = None) -> Documents:
    return st.fixed_dictionaries(fields, optional=optional or {})


def _few(items: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, min_size=least, max_size=3)


_accounts = some({"kind": st.just("ServiceAccount"), "name": names, "namespace": labels})
_people = some({"kind": st.sampled_from(["User", "Group"]), "name": texts})


def _from_a_registry(component: Document) -> Document:
    """What is not a chart comes from an OCI registry."""
    place = component["oci_url"].partition("//")[2]
    return {**component, "oci_url": f"oci://{place}"} if component["type"] == "kustomize" else component


# Definitions by kind, without their ids
DEFINITIONS: dict[str, Documents] = {
    "platform_components": some(
        {"type": st.sampled_from(["helm", "helm", "kustomize"]), "component_path": texts, "oci_url": urls, "oci_tag": texts},
        {"component_version": texts, "cluster_env_enabled": st.booleans()},
    ).map(_from_a_registry),
    "namespaces": some(
        {},
        {
            "labels": st.dictionaries(label_keys, label_values, max_size=4),
            "annotations": st.dictionaries(label_keys, texts_or_empty, max_size=4),
            "allow_prune": st.booleans(),
        },
    ),
    "rolebindings": some({"role": texts.filter(formats.is_path_segment), "subjects": _few(_accounts | _people)}),
    "network_policies": some(
        {"target_namespace": labels, "ingress_rules": _few(some({"from_namespace": labels, "port": ports}))},
    ),
    "resource_quotas": some(
        {
            "target_namespace": labels,
            "hard": st.builds(
                lambda counted, measured: {**counted, **measured},
                st.dictionaries(_counted, counts, max_size=3),
                st.dictionaries(st.sampled_from(["cpu", "limits.memory", "requests.storage"]), quantities, min_size=1),
            ),
        },
        # requests below limits, which no schema can ask for
        {
            "container_defaults": st.dictionaries(_measured, quantities.map(lambda text: f"1{text}")),
            "container_requests": st.dictionaries(_measured, st.sampled_from(["0", "0.5m", "1m"])),
        },
    ),
    "external_secrets": some(
        {
            "target_namespace": labels,
            "store": names,
            "entries": _few(
                some(
                    {"name": st.sampled_from([*WORDS, "-", "--", "...", "A_b.c"]), "remote_key": texts},
                    {"remote_property": texts_or_empty},
                ),
                1,
            ),
        },
        {
            "store_kind": st.sampled_from(["SecretStore", "ClusterSecretStore"]),
            "refresh_interval": st.from_regex(re.compile(r"([0-9]{1,3}(s|m|h)){1,2}"), fullmatch=True),
        },
    ),
    "ingress_routes": some(
        {
            "target_namespace": labels,
            "host": names.filter(lambda name: re.search("[a-z]", name)),
            "tls_secret": names,
            "paths": _few(
                some(
                    {
                        "path": st.sampled_from(["/", "/~", "/null/", "/1e3/-", "/y/n"]),
                        "service": st.sampled_from(["y", "null", "off"]),
                        "port": ports,
                    },
                    {"path_type": st.sampled_from(["Exact", "Prefix", "ImplementationSpecific"])},
                ),
                1,
            ),
        },
        {"ingress_class": names, "cluster_issuer": labels | st.just("")},
    ),
}  # fmt: skip

REFERENCES: dict[str, Documents] = {
    "platform_components": some(
        {}, {"enabled": st.booleans(), "oci_tag": st.none() | texts, "component_path": st.none() | texts}
    ),
    "external_secrets": some({}, {"store": st.none() | names}),
    "ingress_routes": some({}, {"host": st.none() | names.filter(lambda name: re.search("[a-z]", name))}),
}
RESERVED = {
    "namespaces": {"default", "kube-system", "kube-public", "kube-node-lease", "flux-system"},
    "rolebindings": {"cluster-admin"},
}
_patch_values = texts_or_empty | st.sampled_from(["true", "false", "3", "-7", "0", "-0", "+1"]) | st.booleans() | numbers


@st.composite
def fleets(draw: st.DrawFn, kind: str) -> tuple[Document, list[Document]]:
    """A cluster that refers to every one of the definitions of a kind, in its own order."""
    chosen = draw(st.sets(labels, min_size=5, max_size=15)) - RESERVED.get(kind, set())
    definitions = [{"id": id, **draw(DEFINITIONS[kind])} for id in sorted(chosen)]
    references = [{"id": each["id"], **draw(REFERENCES.get(kind, st.just({})))} for each in definitions]
    cluster: Document = {
        "id": "c1",
        "cluster_name": draw(texts)[:253],
        "cluster_dns": "c1.example.com",
        "environment": draw(st.sampled_from(["dev", "prod"])),
        kind: draw(st.permutations(references)),
    }
    if kind == "platform_components":
        _connect(draw, definitions)
        keys = {each["id"]: helm_paths if each["type"] == "helm" else variables for each in definitions}
        patched = draw(st.sets(st.sampled_from(sorted(keys))))
        cluster["patches"] = {id: draw(st.dictionaries(keys[id], _patch_values, max_size=4)) for id in sorted(patched)}
    return cluster, definitions


def _connect(draw: st.DrawFn, components: list[Document]) -> None:
    """Dependencies on earlier components of the same type: no cycles."""
    for position, component in enumerate(components):
        before = [each["id"] for each in components[:position] if each["type"] == component["type"]]
        if before:
            component["depends_on"] = draw(st.lists(st.sampled_from(before), unique=True, max_size=2))
