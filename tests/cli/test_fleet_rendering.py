"""`fleet render` and `fleet diff`: the objects of tenants, from commits and work trees, by the pinned blueprints."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.fleets import INPUT, Fleet, fleet, scaffold
from flux_resourceset.cli.repositories.git import Git

pytestmark = pytest.mark.long

__all__ = ["fleet", "scaffold"]

DEV = INPUT.format("dev")
PIN = "dev/dev-use1-01/flux/blueprints.yaml"
TEMPLATE = "apps/standard-service/resourceset.yaml"
API = "helm.toolkit.fluxcd.io/v2/HelmRelease/{}/payment-processor-api"


def names(rendered: dict[str, Any]) -> list[str]:
    return [f"{each['kind']}/{each['metadata']['name']}" for each in rendered["objects"]]


def diff(fleet: Fleet, *words: str) -> Any:
    done = fleet("diff", *words)
    assert done.code == (1 if done.data["tenants"] else 0), done
    return done.data


def second_cluster(fleet: Fleet, environment: str = "dev") -> None:
    first, second = (f"{environment}/{environment}-use1-0{number}" for number in (1, 2))
    for path in fleet.git("ls-files", first).splitlines():
        text = fleet.read(path).replace("use1-01", "use1-02").replace(f"payment-{environment}", f"payments-{environment}")
        fleet.write(path.replace(first, second), text)


def test_the_sample_renders_a_database_and_an_api_that_waits_for_it(fleet: Fleet) -> None:
    rendered = fleet.ok("render", "-o", "json")
    assert [(each["environment"], each["cluster"], each["tenant"]) for each in rendered] == [
        (environment, f"{environment}-use1-01", "payment-app") for environment in ("dev", "staging", "prod")
    ]
    assert names(rendered[0])[1:] == ["HelmRelease/payment-processor-db", "HelmRelease/payment-processor-api"]
    api = rendered[0]["objects"][-1]
    assert api["spec"]["dependsOn"] == [{"name": "payment-processor-db"}]
    held = yaml.safe_load(fleet.read(DEV))["spec"]["defaultValues"]
    expected = {name: held[name] for name in ("image", "replicas", "logLevel", "environment")}
    assert api["spec"]["values"] == {**expected, "existingSecret": "payment-app-secrets"}
    assert api["spec"]["serviceAccountName"] == "tenant"


def test_without_a_format_it_is_a_stream_of_yaml(fleet: Fleet) -> None:
    done = fleet("render", "payment-app", "--environment", "prod")
    assert [each["kind"] for each in yaml.safe_load_all(done.out)] == ["HelmRepository", "HelmRelease", "HelmRelease"]


def test_files_go_below_environment_cluster_and_tenant(fleet: Fleet, tmp_path: Path) -> None:
    assert fleet("render", "--environment", "dev", "--output-dir", str(tmp_path / "out")).code == 0
    files = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.yaml"))
    assert len(files) == 3
    assert all(file.startswith("dev/dev-use1-01/payment-app/") for file in files)


def test_blueprints_come_from_the_pinned_tag_and_never_from_the_work_tree_or_a_branch(fleet: Fleet) -> None:
    before = fleet.ok("render", "-o", "json")
    (fleet.blueprints / TEMPLATE).write_text("broken: [")
    assert fleet.ok("render", "-o", "json") == before
    fleet.git("checkout", "-q", ".", at=fleet.blueprints)
    fleet.git("tag", "-d", "v1.0.0", at=fleet.blueprints)
    fleet.git("branch", "v1.0.0", at=fleet.blueprints)  # a branch is no tag
    assert "v1.0.0" in fleet.refused(4, "render")[0]


def test_an_earlier_revision_renders_as_it_was(fleet: Fleet) -> None:
    before = fleet.ok("render", "payment-app", "-o", "json")
    fleet.edit(DEV, "replicas: 2", "replicas: 4")
    fleet.commit()
    assert fleet.ok("render", "payment-app", "-o", "json", "--at", "HEAD~1") == before
    assert fleet.ok("render", "payment-app", "-o", "json")[0]["objects"][-1]["spec"]["values"]["replicas"] == 4


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["render", "nobody"], 4),
        (["render", "--environment", "moon"], 4),
        (["render", "--cluster", "moon"], 4),
        (["render", "--environment", "dev", "--cluster", "prod-use1-01"], 4),
        (["render", "--at", "nowhere"], 4),
        (["render", "--at", ""], 2),
        (["render", "--at", "--output=/tmp/x"], 4),
        (["render", "--blueprints-dir", "/nowhere"], 2),
        (["diff", "--from", "-x"], 4),
        (["diff", "--to", ""], 2),
        (["render", "--output-dir", ""], 2),
    ],
)
def test_what_is_not_there_is_said(fleet: Fleet, words: list[str], code: int) -> None:
    assert fleet.refused(code, *words)


def test_a_broken_file_is_named_with_its_line(fleet: Fleet) -> None:
    fleet.edit(DEV, "  type: Static\n", "  type: Static\n  type: Static\n")
    (line,) = fleet.refused(3, "render")
    assert line.startswith(f"{DEV}:")
    assert "duplicate key" in line


def test_a_difference_is_told_by_field_and_equal_ones_together(fleet: Fleet) -> None:
    assert diff(fleet) == {"tenants": [], "groups": [], "totals": {"tenants": 0, "added": 0, "removed": 0, "changed": 0}}
    second_cluster(fleet)
    fleet.commit()
    for number in (1, 2):
        fleet.edit(DEV.replace("use1-01", f"use1-0{number}"), "replicas: 2", "replicas: 5")
    told = diff(fleet)
    assert [each["cluster"] for each in told["tenants"]] == ["dev-use1-01", "dev-use1-02"]
    assert told["tenants"][0]["changed"] == [
        {"object": API.format("payment-dev"), "fields": [{"path": "/spec/values/replicas", "before": 2, "after": 5}]}
    ]
    (group,) = told["groups"]
    assert group["count"] == 2
    assert [each["cluster"] for each in group["tenants"]] == ["dev-use1-01", "dev-use1-02"]
    assert told["totals"] == {"tenants": 2, "added": 0, "removed": 0, "changed": 2}


def test_tenants_that_come_and_go_are_objects_added_and_removed(fleet: Fleet) -> None:
    second_cluster(fleet)
    told = diff(fleet)
    assert told["totals"] == {"tenants": 1, "added": 3, "removed": 0, "changed": 0}
    head = fleet.commit()
    shutil.rmtree(fleet.root / "dev/dev-use1-02/tenants/payment-app")
    fleet.commit()
    told = diff(fleet, "--from", head, "--to", "HEAD")
    assert told["tenants"][0]["removed"] == [each for each in told["tenants"][0]["removed"] if "/payments-dev/" in each]
    assert told["totals"] == {"tenants": 1, "added": 0, "removed": 3, "changed": 0}


def test_another_pin_reaches_every_tenant_of_its_cluster_and_no_other(fleet: Fleet) -> None:
    second_cluster(fleet)
    fleet.commit()
    fleet.release("v1.1.0", TEMPLATE, "interval: 30m", "interval: 45m")
    assert diff(fleet)["tenants"] == []
    fleet.edit(PIN, "v1.0.0", "v1.1.0")
    told = diff(fleet)
    assert [each["cluster"] for each in told["tenants"]] == ["dev-use1-01"]
    assert told["tenants"][0]["changed"][0]["fields"] == [{"path": "/spec/interval", "before": "30m", "after": "45m"}]


def test_markdown_cannot_be_broken_out_of(fleet: Fleet) -> None:
    fleet.release("v2.0.0", "apps/standard-service/inputs.schema.json", '"enum"', '"examples"')
    fleet.edit(PIN, "v1.0.0", "v2.0.0")
    fleet.edit(DEV, "logLevel: DEBUG", r'logLevel: "```\n# not a heading\n@everyone <b>"')
    text = fleet("diff", "-o", "markdown").out
    assert "\n# not a heading" not in text
    fence = next(line for line in text.splitlines() if line.endswith("diff")).removesuffix("diff")
    assert len(fence) == 4
    assert text.rstrip().endswith(fence)


def test_an_inherited_git_dir_does_not_lead_elsewhere(fleet: Fleet, tmp_path: Path) -> None:
    fleet.edit(DEV, "replicas: 2", "replicas: 5")
    fleet.cli.environment |= {"GIT_DIR": str(tmp_path / "nowhere.git"), "GIT_WORK_TREE": str(tmp_path)}
    assert diff(fleet)["totals"]["changed"] == 1


def test_the_nearest_directory_above_with_a_policy_is_the_root(fleet: Fleet) -> None:
    shell = f"cd {fleet.root}/prod/prod-use1-01/base && flux-resourceset-cli fleet render payment-app --environment dev -o json"
    done = fleet.cli.shell(shell)
    assert done.code == 0, done
    assert json.loads(done.out)[0]["tenant"] == "payment-app"
    done = fleet.cli.shell(f"cd {fleet.folder} && flux-resourceset-cli fleet render")
    assert (done.code, "fleet.yaml" in done.err) == (2, True)


@pytest.mark.parametrize(
    "text",
    [
        "environments: []",
        "environments: [{name: dev}]\nunknown: 1",
        "[",
        "environments: [{name: dev}, {name: dev}]",
        "a: &a [*a]",
        "",
    ],
)
def test_a_policy_that_cannot_be_used_is_refused_with_its_line(fleet: Fleet, text: str) -> None:
    fleet.write("fleet.yaml", text)
    assert all(line.startswith("fleet.yaml") for line in fleet.refused(2, "render"))


def test_both_engines_give_the_same(fleet: Fleet) -> None:
    program = shutil.which("flux-operator", path=os.environ["PATH"])
    if program is None:
        assert fleet.refused(2, "render", "--engine", "flux-operator")
    else:
        assert fleet.ok("render", "-o", "json", "--engine", "builtin") == fleet.ok(
            "render", "-o", "json", "--engine", "flux-operator"
        )


@pytest.mark.parametrize("way", ["exit 0", "kill -9 $$"])
def test_an_engine_that_prints_nothing_renders_no_empty_tenant(fleet: Fleet, way: str) -> None:
    program = fleet.folder / "bin" / "flux-operator"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{way}\n")
    program.chmod(0o755)
    fleet.cli = fleet.cli.but(PATH=f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    fleet.edit(INPUT.format("dev"), "logLevel: DEBUG", "logLevel: INFO")
    for words in (("render",), ("diff",)):
        assert "flux-operator" in fleet.refused(3, *words)[0]


def test_what_only_leads_to_a_commit_is_no_tag(fleet: Fleet) -> None:
    fleet.git("branch", "refs/tags/v7", at=fleet.blueprints)  # in full: refs/heads/refs/tags/v7
    for tag in ("v7", "v1.0.0^0", "v1.0.0~0"):
        text = fleet.read(PIN)
        fleet.edit(PIN, "tag: v1.0.0", f"tag: {tag}")
        assert tag in fleet.refused(4, "render", "--environment", "dev")[0]
        fleet.write(PIN, text)


def test_other_blueprints_of_the_same_name_make_a_difference(fleet: Fleet) -> None:
    shutil.copytree(fleet.blueprints, fleet.folder / "others")
    fleet.git("tag", "-d", "v1.0.0", at=fleet.blueprints)
    fleet.release("v1.0.0", TEMPLATE, "interval: 30m", "interval: 31m")
    fleet.edit("fleet.yaml", "../acme-platform-blueprints", "../others")
    told = diff(fleet)
    assert told["totals"] == {"tenants": 3, "added": 0, "removed": 0, "changed": 3}


def test_the_newest_release_is_the_last_version_and_neither_its_candidate_nor_a_word(fleet: Fleet) -> None:
    for tag in ("v1.10.0-rc1", "v1.9.0", "v1.10.0", "stable"):
        fleet.git("tag", tag, at=fleet.blueprints)
    assert Git(fleet.blueprints, fleet.cli.environment).tags() == ["v1.10.0", "v1.10.0-rc1", "v1.9.0", "v1.0.0", "stable"]


def test_people_read_a_difference_in_lines(fleet: Fleet) -> None:
    assert fleet("diff", "-o", "table").out == "no difference\n"
    fleet.edit(DEV, "replicas: 2", "replicas: 5")
    assert fleet("diff", "-o", "table").out.splitlines() == [
        "@ dev/dev-use1-01/payment-app",
        "  ~ helm.toolkit.fluxcd.io/v2/HelmRelease//payment-processor-api",
        "      /spec/values/replicas: 2 → 5",
    ]


def test_a_signature_that_refers_to_something_else_is_refused_and_nothing_is_fetched(fleet: Fleet) -> None:
    place = "apps/standard-service/inputs.schema.json"
    fleet.release("v1.1.0", place, '"type": "integer"', '"$ref": "file:///etc/hostname"')
    fleet.edit(PIN, "v1.0.0", "v1.1.0")
    (line,) = fleet.refused(3, "render", "--environment", "dev")
    assert place in line
    assert "must hold everything itself" in line
