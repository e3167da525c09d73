"""What becomes of a ResourceSet and its inputs."""

from __future__ import annotations

import pytest

import live
from flux_resourceset import cluster_bundle, render
from flux_resourceset.render import dialect
from render import oracle

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: << inputs.id | quote >>\n"


def names(objects: list[render.Manifest]) -> list[str]:
    return [manifest["metadata"]["name"] for manifest in objects]


def test_each_input_is_rendered_in_its_order() -> None:
    objects = render.resourceset(oracle.resourceset(CONFIG_MAP), [{"id": "b"}, {"id": "a"}])
    assert names(objects) == ["b", "a"]


def test_objects_carry_the_labels_of_their_resourceset() -> None:
    (manifest,) = render.resourceset(oracle.resourceset(CONFIG_MAP), [{"id": "a"}])
    assert manifest["metadata"]["labels"] == {
        "resourceset.fluxcd.controlplane.io/name": "sample",
        "resourceset.fluxcd.controlplane.io/namespace": "flux-system",
    }


def test_no_inputs_make_no_objects() -> None:
    assert render.resourceset(oracle.resourceset(CONFIG_MAP), []) == []


def test_a_resourceset_without_provider_is_rendered_once() -> None:
    template = oracle.resourceset("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: only}")
    del template["spec"]["inputsFrom"]
    assert names(render.resourceset(template, [])) == ["only"]


def test_of_two_equal_objects_the_first_wins() -> None:
    text = CONFIG_MAP.replace("inputs.id", "inputs.name") + "data: {from: << inputs.id | quote >>}\n"
    objects = render.resourceset(oracle.resourceset(text), [{"id": "1", "name": "x"}, {"id": "2", "name": "x"}])
    assert [manifest["data"]["from"] for manifest in objects] == ["1"]


def test_objects_of_another_version_are_the_same_and_of_another_group_are_not() -> None:
    text = "\n---\n".join(f"apiVersion: {version}\nkind: A\nmetadata: {{name: x}}" for version in ("g/v1", "g/v2", "h/v1"))
    objects = render.resourceset(oracle.resourceset(text), [{"id": "a"}])
    assert [manifest["apiVersion"] for manifest in objects] == ["g/v1", "h/v1"]


def test_every_step_is_rendered() -> None:
    template = oracle.resourceset("")
    template["spec"]["steps"] = [
        {"name": name, "resourcesTemplate": CONFIG_MAP.replace("<< ", f"<< printf `{name}-%s` ")} for name in "ab"
    ]
    assert names(render.resourceset(template, [{"id": "x"}])) == ["a-x", "b-x"]


def test_inputs_know_their_provider() -> None:
    text = CONFIG_MAP + "data: {provider: << inputs.provider.name | quote >>, kind: << inputs.provider.kind >>}\n"
    (manifest,) = render.resourceset(oracle.resourceset(text), [{"id": "a"}])
    assert manifest["data"] == {"provider": "sample", "kind": "ResourceSetInputProvider"}


def test_an_error_names_the_input_and_the_line() -> None:
    text = CONFIG_MAP + "data:\n  x: << inputs.nope >>\n"
    with pytest.raises(render.TemplateError, match=r"input 'second', line 6: map has no entry for key 'nope'"):
        render.resourceset(oracle.resourceset(text), [{"id": "first", "nope": 1}, {"id": "second"}])


def test_text_that_is_not_yaml_names_the_input_and_the_rendered_line() -> None:
    text = CONFIG_MAP + "data:\n  x: << inputs.text >>\n"
    with pytest.raises(render.TemplateError, match=r"input 'a': invalid YAML: .*\(line 6 of what was rendered\)"):
        render.resourceset(oracle.resourceset(text), [{"id": "a", "text": "b: c: d"}])


@pytest.mark.parametrize(("text", "reason"), [("- a list", "not a map"), ("metadata: {name: x}", "no kind")])
def test_a_document_that_is_no_object_is_refused(text: str, reason: str) -> None:
    with pytest.raises(render.TemplateError, match=reason):
        render.resourceset(oracle.resourceset(text), [{"id": "a"}])


@pytest.mark.parametrize(
    "text", ["a\n---\nkind: Injected", "x: y", '"', "{{", "<< inputs.id >>", "true", "1e3", "#", "\u2028", "é😀"]
)
def test_quoted_text_arrives_as_it_is(text: str) -> None:
    source = CONFIG_MAP + "data:\n  quoted: << inputs.text | quote >>\n  json: << inputs.text | toJson >>\n"
    (manifest,) = render.resourceset(oracle.resourceset(source), [{"id": "a", "text": text}])
    assert manifest["data"] == {"quoted": text, "json": text}


def test_what_is_written_is_read_back_the_same() -> None:
    value = {
        "a": "yes",
        "b": ["1", 1, 1.5, True, None, ""],
        "c": {"d": "one\ntwo\n", "e": "2024-01-01", "f: g": "h # i"},
        "y": "~",
    }
    for text in (dialect.dumped(value), dialect.presented([value])):
        assert [document for _, document in dialect.documents(text)] == [value]


def test_the_package_carries_the_files_of_deploy_cluster() -> None:
    assert cluster_bundle.chosen(live.ROOT / "deploy" / "cluster") == dict(cluster_bundle.files()), "make generate brings them in"


def test_resources_are_rendered_before_the_template_each_for_every_input() -> None:
    resource = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "<< inputs.id >>"}, "data": {"n": "<< inputs.n >>"}}
    objects = render.resourceset(oracle.resourceset(CONFIG_MAP, resources=[resource]), [{"id": "a", "n": 1}, {"id": "b", "n": 2}])
    assert [(each["kind"], each["metadata"]["name"]) for each in objects] == [
        ("Secret", "a"), ("Secret", "b"), ("ConfigMap", "a"), ("ConfigMap", "b"),
    ]  # fmt: skip
    assert [each["data"]["n"] for each in objects[:2]] == [1, 2]


@pytest.mark.parametrize("kind", ["List", "ConfigMapList", "Any"])
def test_of_a_list_every_item_is_an_object(kind: str) -> None:
    items = "".join(f"- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}\n" for name in "ab")
    objects = render.resourceset(oracle.resourceset(f"apiVersion: v1\nkind: {kind}\nitems:\n{items}"), [{"id": "x"}])
    assert names(objects) == ["a", "b"]


def test_what_is_switched_off_or_not_for_a_cluster_is_left_out() -> None:
    off = "apiVersion: v1\nkind: A\nmetadata: {name: off, annotations: {fluxcd.controlplane.io/reconcile: disabled}}"
    kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: x}"
    text = "\n---\n".join([off, kustomization, "apiVersion: v1\nkind: A\nmetadata: {}", CONFIG_MAP])
    assert names(render.resourceset(oracle.resourceset(text), [{"id": "a"}])) == ["a"]


def test_common_metadata_wins_over_what_an_object_says() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata: {name: x, labels: {own: a, kept: b}}"
    common = {"labels": {"own": "c"}, "annotations": {"note": "d"}}
    (manifest,) = render.resourceset(oracle.resourceset(text, commonMetadata=common), [{"id": "a"}])
    assert (manifest["metadata"]["labels"]["own"], manifest["metadata"]["labels"]["kept"]) == ("c", "b")
    assert manifest["metadata"]["annotations"] == {"note": "d"}


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan"), 10**400])
def test_an_input_that_is_no_finite_number_is_refused(number: float) -> None:
    with pytest.raises(render.TemplateError, match="input 'a': a number is not finite"):
        render.resourceset(oracle.resourceset(CONFIG_MAP), [{"id": "a", "number": number}])


def test_a_whole_number_beyond_64_bits_is_a_fraction_to_a_template() -> None:
    text = CONFIG_MAP + "data: {kind: << kindOf inputs.n >>, number: << inputs.n >>}"
    (manifest,) = render.resourceset(oracle.resourceset(text), [{"id": "a", "n": 2**64}])
    assert manifest["data"] == {"kind": "float64", "number": 2.0**64}
