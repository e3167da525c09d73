"""The commands that the book prints, in its order and its words, on the demo data."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import live
from cli.command import Cli

COMMANDS = """
flux-resourceset-cli cluster list -o json
flux-resourceset-cli cluster get demo-cluster-01 -o json
flux-resourceset-cli namespace list -o json
flux-resourceset-cli namespace get cert-manager -o json
flux-resourceset-cli namespace create team-sandbox --cluster demo-cluster-01 \\
  --label team=sandbox --annotation owner=platform
flux-resourceset-cli namespace assign team-sandbox --cluster demo-cluster-01
flux-resourceset-cli namespace unassign team-sandbox --cluster demo-cluster-01
flux-resourceset-cli component list -o json
flux-resourceset-cli component get cert-manager -o json
flux-resourceset-cli component create cert-manager-two \\
  --component-path core/cert-manager/1.14.0 \\
  --component-version 1.14.0 \\
  --oci-url oci://registry.example/platform-components \\
  --oci-tag v1.0.0 \\
  --cluster demo-cluster-01
flux-resourceset-cli component assign cert-manager --cluster demo-cluster-01
flux-resourceset-cli component unassign cert-manager --cluster demo-cluster-01
flux-resourceset-cli component patch podinfo --cluster demo-cluster-01 --set replicaCount=3
flux-resourceset-cli demo add-namespace demo-cluster-01 demo-runtime \\
  --label team=platform \\
  --annotation owner=you
flux-resourceset-cli demo patch-component demo-cluster-01 podinfo \\
  --set replicaCount=3 \\
  --set ui.message="Hello" \\
  --set ui.color="#3b82f6"
flux-resourceset-cli demo flux-namespaces demo-cluster-01.k8s.example.com
flux-resourceset-cli demo patch-component demo-cluster-01 podinfo --set replicaCount=5
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cli, httpx.Client]]:
    directory = tmp_path_factory.mktemp("demo")
    with live.serving(directory, SEED_FILE=str(live.ROOT / "data" / "seed.json")) as server, server.client() as api:
        yield Cli(directory, server.url), api


@pytest.mark.long
def test_every_printed_command_works_and_prints_json(demo: tuple[Cli, httpx.Client]) -> None:
    cli, api = demo
    for line in re.sub(r"\\\n\s*", "", COMMANDS).strip().splitlines():
        done = cli(*shlex.split(line)[1:])
        assert done.code == 0, (line, done)
        assert done.data is not None, line
    cluster = api.get("/clusters/demo-cluster-01").json()
    assert [ref["id"] for ref in cluster["namespaces"]] == ["cert-manager", "traefik", "podinfo", "demo-runtime"]
    assert [ref["id"] for ref in cluster["platform_components"]] == ["traefik", "podinfo", "cert-manager-two"]
    assert cluster["patches"]["podinfo"] == {"replicaCount": "5", "ui.color": "#3b82f6", "ui.message": "Hello"}
    assert api.get("/namespaces/team-sandbox").json()["annotations"] == {"owner": "platform"}


def test_the_printed_component_create_does_not_overwrite_the_catalog_of_the_demo(demo: tuple[Cli, httpx.Client]) -> None:
    cli, api = demo
    before = api.get("/platform_components/cert-manager").json()
    printed = (
        "component create cert-manager --component-path core/cert-manager/1.14.0 --component-version 1.14.0 "
        "--oci-url oci://registry.example/platform-components --oci-tag v1.0.0 --cluster demo-cluster-01"
    )
    (line,) = cli.refused(6, *printed.split())
    assert "/oci_tag" in line
    assert "--update" in line
    assert api.get("/platform_components/cert-manager").json() == before


def test_output_goes_through_a_pipe_as_one_json_value(demo: tuple[Cli, httpx.Client]) -> None:
    cli, _ = demo
    script = (
        "flux-resourceset-cli demo patch-component demo-cluster-01 podinfo --set replicaCount=3 "
        '--set ui.message="Hello from CLI patch" --set ui.color="#3b82f6" | '
        'python3 -c \'import json, sys; print(json.load(sys.stdin)["after"]["ui.message"])\''
    )
    assert cli.shell(script).out == "Hello from CLI patch\n"


def test_patching_prints_the_values_before_and_after(demo: tuple[Cli, httpx.Client]) -> None:
    cli, _ = demo
    cli.ok("demo", "patch-component", "demo-cluster-01", "podinfo", "--set", "replicaCount=1")
    told: dict[str, Any] = cli.ok("demo", "patch-component", "demo-cluster-01", "podinfo", "--set", "replicaCount=7").data
    assert (told["before"]["replicaCount"], told["after"]["replicaCount"]) == ("1", "7")


def test_a_shortcut_names_the_command_that_changes_what_exists(demo: tuple[Cli, httpx.Client]) -> None:
    cli, _ = demo
    cli.ok("namespace", "create", "short", "--label", "a=b")
    (line,) = cli.refused(6, "demo", "add-namespace", "demo-cluster-01", "short", "--label", "a=c")
    assert line.endswith("; change it with: flux-resourceset-cli namespace update short")
    patched = cli.ok("demo", "patch-component", "demo-cluster-01", "podinfo", "--set", "replicaCount=7", "-o", "name")
    assert patched.out == "clusters/demo-cluster-01\n"


def test_flux_namespaces_are_what_flux_gets(demo: tuple[Cli, httpx.Client]) -> None:
    cli, api = demo
    dns = "demo-cluster-01.k8s.example.com"
    body = api.get(f"/api/v2/flux/clusters/{dns}/namespaces").text
    assert cli.ok("demo", "flux-namespaces", dns).out == body
    assert cli.ok("inputs", dns, "namespaces").out == body


def test_the_make_target_of_the_book_can_be_scripted(demo: tuple[Cli, httpx.Client]) -> None:
    cli, _ = demo
    done = cli.shell('export FLUX_API_WRITE_TOKEN="$FLUX_API_TOKEN"; flux-resourceset-cli namespace create from-script')
    assert done.code == 3, done  # the read token is no write token here, and the refusal says so
    assert "may only read" in done.err
