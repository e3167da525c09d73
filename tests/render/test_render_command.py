"""`render`: the manifests that a cluster would apply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import live
from cli.command import Cli
from flux_resourceset.render import dialect
from render import oracle

CLUSTER = "demo-cluster-01"
EXAMPLES = live.ROOT / "examples" / "kinds"
TEMPLATE = str(EXAMPLES / "network_policies.resourceset.yaml")


def objects(text: str) -> list[dict[str, Any]]:
    return [document for _, document in dialect.documents(text)]


def names(text: str) -> list[str]:
    return [f"{each['kind']} {each['metadata']['name']}" for each in objects(text)]


def test_all_views_of_a_cluster_are_rendered_from_live_data(cli: Cli) -> None:
    done = cli.ok("render", CLUSTER)
    found = names(done.out)
    assert {"Namespace podinfo", "HelmRelease platform-podinfo", "ClusterRoleBinding dev-readers"} <= set(found)
    assert f"{len(found)} objects" in done.err


def test_views_can_be_chosen(cli: Cli) -> None:
    assert names(cli.ok("render", CLUSTER, "--view", "namespaces").out) == [
        "Namespace cert-manager", "Namespace traefik", "Namespace podinfo",
    ]  # fmt: skip


def test_a_template_of_your_own_takes_the_place_of_the_shipped_one(cli: Cli, tmp_path: Path) -> None:
    template = oracle.resourceset("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: << inputs.id | quote >>\n")
    template["spec"]["inputsFrom"][0]["name"] = "rolebindings"
    (tmp_path / "own.yaml").write_text(json.dumps(template))
    assert names(cli.ok("render", CLUSTER, "-f", str(tmp_path / "own.yaml")).out) == [
        "ConfigMap platform-admins", "ConfigMap dev-readers",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["external_secrets", "ingress_routes", "network_policies", "resource_quotas"])
def test_inputs_from_a_file_need_no_server(kind: str, tmp_path: Path) -> None:
    files = ("--inputs", str(EXAMPLES / f"{kind}.inputs.json"), "-f", str(EXAMPLES / f"{kind}.resourceset.yaml"))
    assert names(Cli(tmp_path).ok("render", *files).out)


def test_a_shipped_view_is_known_by_its_name_and_inputs_may_be_a_bare_list_on_stdin(tmp_path: Path) -> None:
    inputs = [{"id": "one", "labels": {"a": "yes"}, "annotations": {}}]
    (namespace,) = objects(Cli(tmp_path).ok("render", "--view", "namespaces", "--inputs", "-", stdin=json.dumps(inputs)).out)
    assert namespace["metadata"]["labels"]["a"] == "yes"


def test_a_directory_gets_a_file_for_each_object(cli: Cli, tmp_path: Path) -> None:
    cli.ok("render", CLUSTER, "--view", "platform-components", "--directory", str(tmp_path / "out"))
    path = tmp_path / "out" / "flux-system" / "helmrelease.helm.toolkit.fluxcd.io" / "platform-podinfo.yaml"
    (release,) = objects(path.read_text())
    assert release["spec"]["releaseName"] == "podinfo"


def test_the_format_is_chosen_as_everywhere(cli: Cli) -> None:
    words = ("render", CLUSTER, "--view", "platform-components")
    plain = cli.ok(*words).out
    assert cli.ok(*words, "-o", "yaml").out == plain
    told = cli.ok(*words, "-o", "json").data
    assert told["kind"] == "List"
    assert told["items"] == objects(plain)
    assert "helmrelease.helm.toolkit.fluxcd.io/platform-podinfo" in cli.ok(*words, "-o", "name").out.split()


@pytest.mark.parametrize("words", [["render", CLUSTER], ["bootstrap", CLUSTER, "--api-url", "https://x"], ["simulate", CLUSTER]])
def test_a_directory_in_the_place_of_a_format_is_refused_with_the_remedy(cli: Cli, words: list[str], tmp_path: Path) -> None:
    for option in (["-o", str(tmp_path / "out")], ["--output", "table"], ["--output-dir", str(tmp_path / "out")]):
        (line,) = cli.refused(2, *words, *option)
        assert "--directory" in line
    assert not (tmp_path / "out").exists()


def test_a_directory_is_made_also_for_nothing(tmp_path: Path) -> None:
    done = Cli(tmp_path).ok("render", "--view", "namespaces", "--inputs", "-", "--directory", str(tmp_path / "out"), stdin="[]")
    assert f"0 objects in {tmp_path / 'out'}" in done.err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("name", ["東京", "한국", "prod 😀", "القاهرة", "½", "№5", "a\N{ZERO WIDTH SPACE}b"])
def test_a_cluster_of_any_name_is_rendered(name: str, cli: Cli, server: live.Server) -> None:
    id = f"named-{ord(name[0]):x}"
    cluster = {"id": id, "cluster_name": name, "cluster_dns": f"{id}.example.com", "environment": "dev"}
    with server.client() as api:
        api.post("/clusters", json=cluster).raise_for_status()
        api.put(f"/clusters/{id}/platform_components/podinfo", json={}).raise_for_status()
        api.patch(f"/clusters/{id}/patches/podinfo", json={"replicaCount": "2"}).raise_for_status()
    assert any(each.startswith("ConfigMap values-podinfo-") for each in names(cli.ok("render", id, "--engine", "builtin").out))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[" * 100_000, "nested more than 100 levels deep"),
        ("- " * 100_000, "nested more than 100 levels deep"),
        (json.dumps([{"id": "a", "labels": json.loads("[" * 500 + "]" * 500)}]), "nested more than 100 levels deep"),
        ("- id: !!timestamp x", "invalid YAML"),
        ("- id: !!binary x", "invalid YAML"),
        ("- id: 0b_\n- id: 0b_", "without an id of their own"),
    ],
)
def test_inputs_that_nobody_can_use_are_refused_with_their_file(text: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "in.yaml").write_text(text)
    (line,) = Cli(tmp_path).refused(2, "render", "--view", "namespaces", "--inputs", str(tmp_path / "in.yaml"))
    assert "in.yaml" in line
    assert word in line


@pytest.mark.long
def test_both_engines_render_the_demo_fleet_alike(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "flux-operator").symlink_to(oracle.required())
    with_operator = cli.but(PATH=f"{tmp_path / 'bin'}:{cli.environment['PATH']}")
    builtin = objects(with_operator.ok("render", CLUSTER, "--engine", "builtin").out)
    assert objects(with_operator.ok("render", CLUSTER, "--engine", "flux-operator").out) == builtin
    assert objects(with_operator.ok("render", CLUSTER).out) == builtin


def test_what_flux_operator_says_is_told_in_a_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "flux-operator").symlink_to(oracle.required())
    (tmp_path / "own.json").write_text(json.dumps(oracle.resourceset("x: << inputs.nope >>")))
    (tmp_path / "in.json").write_text('[{"id": "a"}]')
    words = ("render", "-f", str(tmp_path / "own.json"), "--inputs", str(tmp_path / "in.json"), "--engine", "flux-operator")
    done = cli.but(PATH=str(tmp_path / "bin"))(*words)
    assert done.code == 3
    assert 'map has no entry for key "nope"' in done.lines[0]


@pytest.mark.parametrize("engine", ["builtin", "flux-operator"])
def test_half_a_character_is_refused(engine: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "flux-operator").symlink_to(oracle.required())
    words = ("render", "--view", "namespaces", "--inputs", "-", "--engine", engine)
    inputs = '[{"id": "a", "labels": {"a": "\\ud800"}, "annotations": {}}]'
    assert Cli(tmp_path, PATH=str(tmp_path / "bin")).refused(3, *words, stdin=inputs)


def test_a_template_that_fails_is_refused_with_its_input_and_line(tmp_path: Path) -> None:
    text = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "<< inputs.nope >>"\n'
    (tmp_path / "own.json").write_text(json.dumps(oracle.resourceset(text)))
    done = Cli(tmp_path)(
        "render", "-f", str(tmp_path / "own.json"), "--inputs", "-", "--engine", "builtin", stdin='[{"id": "a"}]'
    )
    assert done.code == 3
    assert done.lines == ["sample: input 'a', line 4: map has no entry for key 'nope'"]


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ((), 2, "which cluster"),
        (("nobody",), 4, "nobody"),
        ((CLUSTER, "--view", "nothing"), 4, 'view "nothing" not found; the server has namespaces'),
        ((CLUSTER, "-f", "/nowhere.yaml"), 2, "/nowhere.yaml"),
        (("--inputs", "-"), 2, "--view"),
        (("--inputs", "-", "--view", "namespaces"), 2, "holds no list of inputs"),
        ((CLUSTER, "--engine", "flux-operator"), 2, "not on the PATH"),
        ((CLUSTER, "--engine", "magic"), 2, "--engine"),
        ((CLUSTER, "-f", TEMPLATE, "--view", "namespaces", "--view", "rolebindings"), 2, "-f renders one view; name one --view"),
    ],
)
def test_what_cannot_be_done_is_told_in_a_line(options: tuple[str, ...], code: int, word: str, cli: Cli, tmp_path: Path) -> None:
    done = cli.but(PATH=str(tmp_path))("render", *options)
    assert done.code == code
    assert word in done.lines[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "ConfigMap"}, "it must hold one object, a ResourceSet"),
        ({"metadata": {}}, "its metadata must hold a name"),
        ({"spec": "text"}, "its spec must be an object"),
        ({"spec": {"resourcesTemplate": 1}}, "resourcesTemplate must be text"),
        ({"spec": {"steps": [{"resources": [1]}]}}, "resources must be a list of objects"),
        ({"spec": {"commonMetadata": {"labels": "a"}}}, "commonMetadata must be an object of objects"),
        ({"spec": {"resourcesTemplate": ""}}, "names no provider in spec.inputsFrom; say its --view"),
    ],
)
def test_a_file_that_is_no_resourceset_is_refused_with_its_name(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text(json.dumps({**oracle.resourceset(""), **change}))
    (line,) = Cli(tmp_path).refused(2, "render", "-f", str(file), "--inputs", "-", stdin="[]")
    assert line.startswith(str(file))
    assert words in line


def test_a_file_that_is_no_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("kind: ResourceSet\nmetadata: [")
    (line,) = Cli(tmp_path).refused(2, "render", "-f", str(tmp_path / "own.yaml"), "--inputs", "-", stdin="[]")
    assert line.startswith(f"{tmp_path / 'own.yaml'}: line 3: invalid YAML: ")


# The program of Flux Operator, as far as its words go


def operator(directory: Path, script: str) -> Cli:
    (directory / "bin").mkdir()
    program = directory / "bin" / "flux-operator"
    program.write_text(script)
    program.chmod(0o755)
    return Cli(directory, PATH=f"{directory / 'bin'}:/usr/bin:/bin")


NAMESPACES = ("render", "--view", "namespaces", "--engine", "flux-operator", "--inputs", "-")
ONE = '[{"id": "one", "labels": {}, "annotations": {}}]'


def test_no_inputs_are_no_question_to_flux_operator(tmp_path: Path) -> None:
    assert "0 objects" in operator(tmp_path, "#!/bin/sh\nexit 1\n").ok(*NAMESPACES, stdin="[]").err


def test_that_everything_is_switched_off_is_no_failure_of_flux_operator(tmp_path: Path) -> None:
    script = "#!/bin/sh\necho '✗ no objects were generated' >&2\nexit 1\n"
    assert "0 objects" in operator(tmp_path, script).ok(*NAMESPACES, stdin=ONE).err


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\necho ' ✗ no such thing' >&2\nexit 1\n", "namespaces: flux-operator: no such thing"),
        ("#!/bin/sh\nexit 1\n", "namespaces: flux-operator: failed without a word"),
        ("#!/nowhere\n", "flux-operator failed: [Errno 2] No such file or directory"),
    ],
)
def test_a_flux_operator_that_fails_is_told_in_a_line(script: str, words: str, tmp_path: Path) -> None:
    (line,) = operator(tmp_path, script).refused(3, *NAMESPACES, stdin=ONE)
    assert words in line
