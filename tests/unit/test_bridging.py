"""Between Git and the API: kind files of signatures, what is split how, where both sides differ, and what providers say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flux_resourceset.cli.output import yaml_text
from flux_resourceset.kinds import formats, kind_files, model
from flux_resourceset.repositories import bridging, layout, policy, signature_kinds
from unit import samples

Values = dict[str, Any]

POLICY = policy.read(b"environments: [{name: dev}]\napi: {url: 'https://fleet.acme.example/'}\n")
TENANT = layout.Tenant("dev", "dev-use1-01", "payment-app")


# What is split how


def split(*fleet: Values, definition: Values | None = None, references: dict[str, Values] | None = None) -> bridging.Split:
    """Of clusters c1, c2 and so on."""
    return bridging.split({f"c{place}": values for place, values in enumerate(fleet, 1)}, definition or {}, references or {})


def test_the_definition_gets_what_most_clusters_have_and_references_what_differs() -> None:
    made = split({"image": "a", "replicas": 1}, {"image": "b", "replicas": 1}, {"image": "b", "replicas": 2})
    assert made.definition == {"image": "b", "replicas": 1}
    assert made.references == {"c1": {"image": "a"}, "c2": {}, "c3": {"replicas": 2}}


def test_of_values_that_are_there_equally_often_the_first_wins() -> None:
    assert split({"image": "b"}, {"image": "a"}).definition == {"image": "b"}
    assert split({"image": "c"}, {"image": "b"}, {"image": "a"}, {"image": "b"}, {"image": "a"}).definition == {"image": "b"}


def test_a_field_that_any_cluster_lacks_stays_out_of_the_definition() -> None:
    made = split({"image": "a", "debug": True}, {"image": "a", "debug": True}, {"image": "a"})
    assert made.definition == {"image": "a"}
    assert made.references == {"c1": {"debug": True}, "c2": {"debug": True}, "c3": {}}


def test_values_are_told_apart_as_json_and_not_as_python() -> None:
    made = split({"x": 1}, {"x": True}, {"x": True}, {"x": "1"})
    assert made.definition["x"] is True
    assert made.references == {"c1": {"x": 1}, "c2": {}, "c3": {}, "c4": {"x": "1"}}


def test_clusters_that_are_not_selected_keep_their_values_by_their_references() -> None:
    made = split({"image": "new"}, definition={"image": "old"}, references={"other": {}, "own": {"image": "own"}})
    assert made == bridging.Split({"image": "new"}, {"other": {"image": "old"}, "own": {"image": "own"}, "c1": {}})


def test_a_field_that_a_cluster_lacks_which_is_not_selected_stays_out_of_the_definition_too() -> None:
    made = split({"image": "a", "debug": True}, definition={"image": "a"}, references={"other": {}})
    assert made == bridging.Split({"image": "a"}, {"other": {}, "c1": {"debug": True}})


def test_a_field_that_no_selected_cluster_has_leaves_the_definition_for_the_references_of_the_others() -> None:
    made = split({"image": "a"}, definition={"image": "a", "debug": True}, references={"other": {"image": None}})
    assert made == bridging.Split({"image": "a"}, {"other": {"debug": True}, "c1": {}})


def test_a_batch_says_alike_things_once_and_nothing_that_is_so_already() -> None:
    wanted = bridging.Split({"image": "a"}, {"c1": {}, "c2": {}, "c3": {"map": {"b": 1}}, "c4": {}, "c5": {"image": "c"}})
    references = {"c3": {"map": {"a": 1}, "image": "b"}, "c4": {"image": None}, "c5": {"image": "c"}}
    about = {"kind": "apps", "id": "payment"}
    assign = {"op": "assign", **about}
    assert bridging.operations("apps", "payment", None, references, wanted) == [
        {"op": "create", **about, "document": {"id": "payment", "image": "a"}},
        {**assign, "document": {}, "clusters": ["c1", "c2"]},
        {**assign, "document": {"image": None, "map": {"a": None, "b": 1}}, "clusters": ["c3"]},
    ]
    (replaced,) = bridging.operations("apps", "payment", {"image": "b"}, {}, bridging.Split({"image": "a"}, {}))
    assert replaced == {"op": "replace", **about, "document": {"id": "payment", "image": "a"}}
    assert bridging.operations("apps", "payment", {"image": "a", "debug": None}, {}, bridging.Split({"image": "a"}, {})) == []


def test_inputs_that_hold_a_null_are_named_because_the_api_gives_none() -> None:
    assert bridging.nulls({"a": None, "b": {"c": [1, {"d": None}]}, "e": [None], "f": {"g": []}, "h": False}) == ["a", "b", "e"]


# Where both sides differ


def test_fields_that_differ_are_told_in_gits_order_with_null_for_what_is_not_there() -> None:
    found = bridging.differing({"b": 1, "a": "x", "same": [1]}, {"same": [1], "a": "y", "c": True})
    assert found == [("b", 1, None), ("a", "x", "y"), ("c", None, True)]


def test_what_the_api_adds_for_flux_is_no_input_and_its_numbers_are_those_that_git_would_have() -> None:
    answer = {"id": "payment", "replicas": 2.0, "ratio": 0.5, "cluster": {"name": "c1"}, "digest": "1f", "patches": {}}
    assert bridging.inputs(answer) == {"replicas": 2, "ratio": 0.5}
    assert bridging.differing({"replicas": 2}, bridging.inputs({"replicas": 2.0})) == []


# Providers


def test_a_provider_asks_the_api_for_one_input_as_the_policy_names_it() -> None:
    spec = bridging.external(POLICY, "dev.acme.example", "standard-services", "payment-app")
    assert spec == {
        "type": "ExternalService",
        "url": "https://fleet.acme.example/api/v2/flux/clusters/dev.acme.example/standard-services/payment-app",
        "secretRef": {"name": "fleet-api-token"},
        "filter": {"limit": 10000},
    }


def test_only_http_is_insecure() -> None:
    plain = POLICY._replace(api_url="http://127.0.0.1:8080", api_secret="other")
    spec = bridging.external(plain, "dev.acme.example", "apps", "payment-app")
    assert (spec["insecure"], spec["secretRef"]) == (True, {"name": "other"})


def test_a_provider_that_holds_the_values_itself_has_them_in_the_order_of_the_signature() -> None:
    spec = bridging.static({"z": 1, "b": 2, "a": 3}, {"properties": {"a": {}, "b": {}, "c": {}}})
    assert list(spec) == ["type", "defaultValues"]
    assert list(spec["defaultValues"].items()) == [("a", 3), ("b", 2), ("z", 1)]


@pytest.mark.parametrize(
    ("path", "key"),
    [(None, "secret/data/payment-app/dev"), ("kv/data/{environment}/{tenant}/{other}", "kv/data/dev/payment-app/{other}")],
)
def test_the_token_is_where_the_tenants_own_secrets_are(path: str | None, key: str) -> None:
    made = bridging.token_secret(POLICY._replace(secret_path=path), TENANT, "payment-dev", "fleet-api-token")
    assert made["metadata"] == {"name": "fleet-api-token", "namespace": "payment-dev"}
    assert made["spec"]["secretStoreRef"] == {"kind": "SecretStore", "name": "cluster-vault"}
    assert made["spec"]["target"]["name"] == "fleet-api-token"
    assert made["spec"]["data"] == [{"secretKey": "token", "remoteRef": {"key": key, "property": "fleet-api-token"}}]


# Kind files


def kind_file(signature: Values, blueprint: str = "standard-service") -> Values:
    return signature_kinds.kind_file(blueprint, signature)


def loaded(directory: Path, signature: Values, blueprint: str = "standard-service") -> model.Referenced:
    """The kind as a server has it."""
    text = yaml_text.dumped([kind_file(signature, blueprint)])
    return samples.kinds_from(directory, text).referenced_by_name[signature_kinds.kind_name(blueprint)]


def test_a_signature_becomes_a_kind_whose_fields_clusters_may_override(tmp_path: Path) -> None:
    image = {"type": "string", "pattern": "^[a-z:]+$", "description": "Image of the API."}
    signature = {"type": "object", "required": ["image", "level"], "properties": {"image": image, "level": {"enum": ["A", "B"]}}}
    kind = loaded(tmp_path, signature)
    assert (kind.name, kind.singular, kind.endpoint, kind.cluster_field) == (
        "standard_services",
        "standard_service",
        "standard-services",
        "standard_services",
    )
    assert kind.schema["required"] == ["id"]
    assert kind.properties["image"] == image
    assert kind.overrides == ("image", "level")
    assert kind.reference["image"]["type"] == ["string", "null"]
    assert kind.reference["image"]["pattern"] == "^[a-z:]+$"
    assert kind.reference["level"]["enum"] == ["A", "B", None]


def test_a_kind_has_no_defaults_so_that_nothing_is_there_that_git_lacks(tmp_path: Path) -> None:
    nested = {"type": "object", "default": {}, "properties": {"deep": {"type": "integer", "default": 5}}}
    kind = loaded(tmp_path, {"properties": {"a": {"type": "string", "default": "x"}, "b": nested}})
    assert kind.shape.completed({"id": "t", "b": {}}) == {"id": "t", "b": {}}
    assert "default" not in yaml_text.dumped([kind.schema])


def test_references_within_the_signature_are_written_out(tmp_path: Path) -> None:
    shared = {"type": "string", "minLength": 2, "title": "Name"}
    properties = {
        "plain": {"$ref": "#/$defs/a~1b"},
        "told": {"$ref": "#/$defs/a~1b", "description": "Mine."},
        "narrowed": {"$ref": "#/$defs/a~1b", "maxLength": 3},
        "all": {"$ref": "#/$defs/any"},
    }
    kind = loaded(tmp_path, {"properties": properties, "$defs": {"a/b": shared, "any": True}})
    assert kind.properties["plain"] == shared
    assert kind.properties["told"] == {**shared, "description": "Mine."}
    assert kind.properties["narrowed"] == {"title": "Name", "maxLength": 3, "allOf": [{"type": "string", "minLength": 2}]}
    assert kind.properties["all"] == {}


def test_what_is_open_in_the_signature_is_open_in_the_kind(tmp_path: Path) -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    schemas = {"open": inner, "also": {**inner, "additionalProperties": True}, "closed": {**inner, "additionalProperties": False}}
    kind = loaded(tmp_path, {"properties": schemas})
    for name in schemas:
        assert kind.validator.is_valid({"id": "t", name: {"a": "x", "b": 1}}) == (name != "closed")


def test_rules_about_several_inputs_are_left_out_and_named() -> None:
    signature = {"properties": {"a": {}}, "if": {"required": ["a"]}, "then": {}, "minProperties": 1}
    assert signature_kinds.left_out(signature) == ["if", "then", "minProperties"]
    assert set(kind_file(signature)["schema"]["items"]) == {"type", "required", "additionalProperties", "properties"}


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ({"properties": {"app-name": {}}}, "properties.app-name: a field of a kind has letters"),
        ({"properties": {"digest": {}}}, "properties.digest: the name is reserved"),
        ({"properties": {"wait_for": {}}}, "properties.wait_for: the name is reserved"),
        ({"properties": {"a": False}}, "properties.a: no value satisfies it"),
        ({"patternProperties": {"^x": {}}}, "patternProperties at the top"),
        ({"$ref": "#/$defs/all"}, "$ref at the top"),
        ({"properties": {"a": {"items": {"$ref": "https://acme.example/x.json"}}}}, "properties.a.items: $ref https://acme"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "properties.a: $ref #/$defs/none names nothing"),
        ({"properties": {"a": {"$ref": "#/$defs/l"}}, "$defs": {"l": {"items": {"$ref": "#/$defs/l"}}}}, "leads to itself"),
        ({"properties": {"a": {"$dynamicRef": "#x"}}}, "properties.a: $dynamicRef is not supported"),
    ],
)
def test_what_a_kind_file_cannot_say_is_refused(signature: Values, words: str) -> None:
    with pytest.raises(signature_kinds.Untranslatable) as caught:
        kind_file(signature)
    assert words in str(caught.value)


def test_references_that_multiply_are_refused_before_they_fill_the_memory() -> None:
    bombs = {f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 9} for level in range(20)}
    with pytest.raises(signature_kinds.Untranslatable, match="more than 2000 schemas"):
        kind_file({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**bombs, "d20": {}}})


@pytest.mark.parametrize("blueprint", ["3scale", "a--b", "x" * 63])
def test_a_blueprint_whose_name_can_be_no_kind_is_refused(blueprint: str) -> None:
    with pytest.raises(signature_kinds.Untranslatable, match="can be no kind"):
        kind_file({}, blueprint)


@pytest.mark.long
def test_a_blueprint_whose_kind_the_server_would_not_take_is_refused_and_no_other(tmp_path: Path) -> None:
    builtin = kind_files.load()
    words = {word for kind in builtin for word in kind.words} | {*builtin.clusters.properties, "inputs"} | model.RESERVED_KINDS
    candidates = {word.replace("_", "-") for word in words} | {word.removesuffix("s").replace("_", "-") for word in words}
    refused = set()
    for blueprint in sorted(candidates - {""}):
        try:
            kind_file({}, blueprint)
        except signature_kinds.Untranslatable:
            refused.add(blueprint)
            continue
        assert loaded(tmp_path, {}, blueprint).name == signature_kinds.kind_name(blueprint)
    names = {name for blueprint in refused for name in (signature_kinds.kind_name(blueprint), blueprint.replace("-", "_"))}
    assert names >= signature_kinds.TAKEN


def test_formats_are_those_that_the_server_checks_and_any_other_is_dropped() -> None:
    assert signature_kinds.FORMATS <= formats.KNOWN
    made = kind_file({"properties": {"a": {"type": "string", "format": "date"}, "b": {"type": "string", "format": "dns-label"}}})
    assert made["schema"]["items"]["properties"]["a"]["format"] == "date"
    assert made["schema"]["items"]["properties"]["b"] == {"type": "string"}
