"""What JSON allows but neither templates nor Flux survive: control characters, and secrets in patches."""

from __future__ import annotations

from typing import Any

import pytest

from flux_resourceset import documents
from flux_resourceset.kinds import kind_files, model
from unit.samples import cluster, component, namespace, rolebinding

KNOWN = kind_files.load()
CONTROL = [*range(0x20), *range(0x7F, 0xA0)]


def pointers(known: model.Kinds, kind: str, document: Any) -> set[str]:
    of = known.by_name[kind]
    return {found.pointer for found in documents.violations(known, of, documents.completed(of, document))}


@pytest.mark.parametrize("code", CONTROL, ids=lambda code: f"U+{code:04X}")
def test_every_control_character_is_refused(code: int) -> None:
    assert pointers(KNOWN, "clusters", cluster(cluster_name=f"a{chr(code)}b")) == {"/cluster_name"}


@pytest.mark.parametrize("text", [" ", "~", "\u00a0", "\u00ad", "\u200b", "\u2028", "\ufeff", "\U0001f680", "é"])
def test_other_characters_are_no_control_characters(text: str) -> None:
    assert pointers(KNOWN, "clusters", cluster(cluster_name=f"a{text}b")) == set()


@pytest.mark.parametrize(
    ("kind", "document", "pointer"),
    [
        ("clusters", cluster(vm_image="a\nb"), "/vm_image"),
        ("clusters", cluster(platform_components=[{"id": "a", "oci_tag": "1\t"}]), "/platform_components/0/oci_tag"),
        ("clusters", cluster(platform_components=[{"id": "a"}], patches={"a": {"x": "a\nb"}}), "/patches/a/x"),
        ("platform_components", component("a", component_path="a\x85"), "/component_path"),
        ("namespaces", namespace("a", annotations={"a": "two\nlines"}), "/annotations/a"),
        ("namespaces", namespace("a", annotations={"a\x7f": "x"}), "/annotations/a\x7f"),
        ("rolebindings", rolebinding("r", subjects=[{"kind": "User", "name": "a\x00"}]), "/subjects/0/name"),
    ],
)
def test_control_characters_are_refused_everywhere(kind: str, document: Any, pointer: str) -> None:
    assert pointer in pointers(KNOWN, kind, document)


# Secrets

ENDINGS = ["password", "passwd", "passphrase", "apikey", "privatekey", "clientsecret", "secretkey", "accesskey", "credentials"]
WORDS = ["secret", "token", "authtoken", "accesstoken", "bearertoken"]


@pytest.mark.parametrize(
    "key",
    [
        *ENDINGS,
        *(f"db{ending}" for ending in ENDINGS),
        *WORDS,
        "PASSWORD",
        "Api-Key",
        "API_KEY",
        "auth.adminPassword",
        "a.b.client-secret",
        "x.access_token",
        "global.S-E_C-R-E-T",
        "password[0]",
        r"config\.token",
    ],
)
def test_a_key_that_looks_like_a_secret_is_refused(key: str) -> None:
    document = cluster(platform_components=[{"id": "a"}], patches={"a": {key: "x"}})
    assert pointers(KNOWN, "clusters", document) == {f"/patches/a/{key}"}


@pytest.mark.parametrize(
    "key", ["existingSecret", "passwordPolicy", "password.length", "mytoken", "tokens", "secretname", "credential", "token.ttl"]
)  # fmt: skip
def test_a_key_that_only_resembles_a_secret_is_taken(key: str) -> None:
    assert not documents.looks_secret(key)
    assert pointers(KNOWN, "clusters", cluster(platform_components=[{"id": "a"}], patches={"a": {key: "x"}})) == set()


def test_a_secret_looking_key_can_be_allowed_by_its_exact_name() -> None:
    known = kind_files.load(secret_keys_allowed=["auth.token"])
    for key, fine in (("auth.token", True), ("token", False), ("auth.Token", False), ("x.auth.token", False)):
        document = cluster(platform_components=[{"id": "a"}], patches={"a": {key: "x"}})
        assert (pointers(known, "clusters", document) == set()) is fine
