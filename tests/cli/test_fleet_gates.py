"""`fleet check-image` on real repositories of Git, with a stand-in for cosign."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from cli.command import Done
from cli.gated import DIGESTS, HOUR, PROD, SOAKED, V1, V2, V3, Gated, prepared, promoted, states

pytestmark = pytest.mark.long

KEY = {"key": "keys/cosign.pub", "transparency_log": False, "attestation": "https://acme.example/tested"}
NOTHING = "nothing had to be checked: the change brings no image to an environment with a rule in images\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Gated:
    return prepared(Gated(tmp_path))


def with_rules(fleet: Gated, *rules: dict[str, Any]) -> Gated:
    fleet.on("main")
    fleet.policy(images=rules)
    fleet.commit("policy", ago=1)
    fleet.branch("change")
    return fleet


# What is judged


def test_a_promoted_image_that_soaked_is_fine(fleet: Gated) -> None:
    assert promoted(fleet).rows(0) == [
        {
            "object": None,
            "environment": "prod", "cluster": "prod-1", "tenant": "payment-app", "image": V2, "pinned": "ok", "same": "ok",
            "soak": "ok", "signature": "none", "attestation": "none", "message": "",
        }
    ]  # fmt: skip


def test_head_is_what_is_checked_out_if_not_given(fleet: Gated) -> None:
    promoted(fleet)
    done = fleet("check-image", "--base", "main")
    assert [row["image"] for row in done.data] == [V2]
    fleet.on("main")
    assert fleet("check-image", "--base", "main").data == []


def test_a_change_without_an_image_is_fine_and_needs_no_cosign(fleet: Gated) -> None:
    with_rules(fleet, {**SOAKED, "cosign": KEY}).no_cosign()
    fleet.input("prod-1", image=V1, replicas=3)
    fleet.input("dev-1", image=V3)
    fleet.write("README.md", "hello\n")
    fleet.commit()
    assert fleet("check-image", "--base", "main") == (0, "[]\n", NOTHING)


def test_all_judges_what_did_not_change(fleet: Gated) -> None:
    fleet.input("prod-1", "orders", picture="x")
    fleet.commit()
    orders, payment = fleet.rows(3, "--all")
    assert (orders["image"], states(orders)) == (None, "failed failed none none none")
    assert (payment["image"], states(payment)) == (V1, "ok failed none none none")
    assert payment["message"] == f"staging/staging-1 has {V2}"


def test_an_image_changed_and_changed_back_is_no_change(fleet: Gated) -> None:
    promoted(promoted(fleet, V3), V1)
    assert fleet.rows(0) == []


def test_what_base_changed_meanwhile_is_not_the_change(fleet: Gated) -> None:
    promoted(fleet)
    fleet.on("main")
    fleet.input("prod-1", "orders", image="orders:latest")
    fleet.commit("base goes on")
    assert [row["tenant"] for row in fleet.rows(0)] == ["payment-app"]


def test_a_new_tenant_and_a_new_cluster_are_judged(fleet: Gated) -> None:
    fleet.input("prod-1", "orders", image=V2)
    fleet.input("prod-2", image=V2)
    fleet.commit()
    orders, payment = fleet.rows(3)
    assert (orders["tenant"], orders["message"]) == ("orders", "no cluster of staging has the tenant")
    assert (payment["cluster"], states(payment)) == ("prod-2", "ok ok ok none none")


@pytest.mark.parametrize("image", [None, 5, ["x"], {"x": 1}, "", "registry.acme.com/payment:v2", f"-x@{DIGESTS[2]}", f"{V2}\n"])
def test_what_is_not_pinned_is_refused_without_cosign(fleet: Gated, image: Any) -> None:
    promoted(with_rules(fleet, {"environment": "prod", "cosign": KEY}), image).no_cosign()
    (row,) = fleet.rows(3)
    assert states(row) == "failed none none none none"


def test_an_image_that_is_not_pinned_is_refused_though_it_is_the_same(fleet: Gated) -> None:
    fleet.on("main")
    fleet.input("staging-1", image="registry.acme.com/payment:v2")
    fleet.commit(ago=2 * HOUR)
    fleet.branch("change")
    (row,) = promoted(fleet, "registry.acme.com/payment:v2").rows(3)
    assert states(row) == "failed ok ok none none"


def test_an_image_whose_inputs_the_api_holds_is_not_judged(fleet: Gated) -> None:
    fleet.write(PROD, "kind: ResourceSetInputProvider\nspec: {type: ExternalService, url: https://fleet.acme.example}\n")
    fleet.commit()
    assert fleet.rows(0) == []
    promoted(fleet, V1)
    assert fleet.rows(0) == [], "back in Git, as it was before the change"


def test_line_ends_of_windows_change_no_image(fleet: Gated) -> None:
    fleet.write(PROD, (fleet.root / PROD).read_bytes().replace(b"\n", b"\r\n"))
    fleet.commit()
    assert fleet.rows(0) == []
    fleet.write(PROD, (fleet.root / PROD).read_bytes().replace(V1.encode(), V2.encode()))
    fleet.commit()
    assert [states(row) for row in fleet.rows(0)] == ["ok ok ok none none"]


def test_a_fleet_below_the_top_of_its_repository_is_judged(tmp_path: Path) -> None:
    fleet = prepared(Gated(tmp_path, "platform/fleet"))
    (fleet.repository / "prod").mkdir()
    (fleet.repository / "prod" / "x").write_text("another project\n")
    assert [states(row) for row in promoted(fleet).rows(0)] == ["ok ok ok none none"]


# Policy, keys and sources of base


def test_a_change_cannot_loosen_the_policy_that_judges_it(fleet: Gated) -> None:
    fleet.policy()
    assert [states(row) for row in promoted(fleet, "x:latest").rows(3)] == ["failed failed none none none"]
    (fleet.root / "fleet.yaml").write_text("{")
    fleet.commit("broken")
    assert [states(row) for row in fleet.rows(3)] == ["failed failed none none none"]


def test_a_change_cannot_bring_the_key_that_judges_it(fleet: Gated) -> None:
    with_rules(fleet, {"environment": "prod", "cosign": KEY}).cosign()
    fleet.write("keys/cosign.pub", "key of the change\n")
    assert [states(row) for row in promoted(fleet).rows(0)] == ["ok none none ok ok"]
    assert fleet.keys == "key of base\n" * 2


def test_a_change_cannot_bring_an_image_into_both_environments(fleet: Gated) -> None:
    fleet.input("staging-1", image=V3)
    (row,) = promoted(fleet, V3).rows(3)
    assert (states(row), row["message"]) == ("ok failed none none none", f"staging/staging-1 has {V2}")


def test_the_whole_value_counts_and_not_the_digest_alone(fleet: Gated) -> None:
    (row,) = promoted(fleet, V2.replace(":v2@", "@")).rows(3)
    assert states(row) == "ok failed none none none"


def test_every_cluster_with_the_tenant_must_have_the_image(fleet: Gated) -> None:
    fleet.on("main")
    fleet.input("staging-2", image=V1)
    fleet.input("staging-3", "orders", image=V1)
    fleet.commit(ago=2 * HOUR)
    fleet.branch("change")
    (row,) = promoted(fleet).rows(3)
    assert (states(row), row["message"]) == ("ok failed none none none", f"staging/staging-2 has {V1}")
    fleet.on("main")
    fleet.input("staging-2", image=V2)
    fleet.commit(ago=HOUR // 2)
    (row,) = fleet.rows(3)
    assert states(row) == "ok ok failed none none"
    assert row["message"].startswith("it has been in staging/staging-2 for 30m")


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("kind: ResourceSetInputProvider\nspec: {type: ExternalService}\n", "the API holds the inputs in staging/staging-1"),
        ("a: 1\na: 2\n", "staging/staging-1/tenants/payment-app/input.yaml:2: "),
        (None, "staging/staging-1/tenants/payment-app/input.yaml: is missing"),
    ],
)
def test_an_image_that_base_does_not_tell_is_never_the_same(fleet: Gated, body: str | None, why: str) -> None:
    fleet.on("main")
    fleet.write("staging/staging-1/tenants/payment-app/sync.yaml", "{}")
    if body is None:
        (fleet.root / "staging/staging-1/tenants/payment-app/input.yaml").unlink()
    else:
        fleet.write("staging/staging-1/tenants/payment-app/input.yaml", body)
    fleet.commit(ago=2 * HOUR)
    fleet.branch("change")
    (row,) = promoted(fleet).rows(3)
    assert states(row) == "ok failed none none none"
    assert row["message"].startswith(why)


# What cannot be read


@pytest.mark.parametrize("body", [b"a: 1\na: 1\n", b"\xff\xfe\x00\x01", b"", b"[" * 3000, b"kind: ResourceSetInputProvider\n"])
def test_a_file_that_the_change_breaks_is_refused_by_name(fleet: Gated, body: bytes) -> None:
    fleet.write(PROD, body)
    fleet.commit()
    assert PROD in fleet.refused(3, "check-image", "--base", "main")


@pytest.mark.parametrize("path", [PROD, "prod/prod-1/tenants/payment-app", "prod/prod-1/tenants", "prod/prod-1", "prod"])
def test_a_symlink_in_the_place_of_a_file_or_directory_is_refused(fleet: Gated, path: str) -> None:
    place = fleet.root / path
    moved = fleet.root / "elsewhere"
    place.rename(moved)
    place.symlink_to(os.path.relpath(moved, place.parent))
    fleet.commit()
    assert path in fleet.refused(3, "check-image", "--base", "main")


def test_a_submodule_in_the_place_of_a_tenant_is_refused(fleet: Gated) -> None:
    fleet.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},prod/prod-1/tenants/orders")
    fleet.git("commit", "-q", "-m", "submodule")
    assert "prod/prod-1/tenants/orders" in fleet.refused(3, "check-image", "--base", "main")


# Folders that no `git add` writes, and that a checkout reads in its own way


def listing(fleet: Gated, tree: str) -> list[list[str]]:
    """Mode, object and name of every entry of a folder."""
    lines = fleet.git("ls-tree", tree).splitlines()
    return [[line.split()[0].lstrip("0"), line.split()[2], line.partition("\t")[2]] for line in lines]


def judged(fleet: Gated, entries: list[list[str]]) -> Done:
    """What check-image says of a commit that has these entries at its top."""
    ordered = sorted(entries, key=lambda each: each[2] + ("/" if int(each[0], 8) == 0o040000 else ""))
    body = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(id) for mode, id, name in ordered)
    file = fleet.folder / "tree"
    file.write_bytes(body)
    tree = fleet.git("hash-object", "-w", "-t", "tree", "--literally", str(file))
    fleet.git("update-ref", "refs/heads/crafted", fleet.git("commit-tree", tree, "-p", "main", "-m", "crafted"))
    return fleet("check-image", "--base", "main", "--head", "crafted")


@pytest.fixture
def tops(fleet: Gated) -> tuple[list[list[str]], list[list[str]]]:
    """The folder at the top before and after a change that must be refused."""
    promoted(fleet, V3)
    return listing(fleet, "main"), listing(fleet, "change")


Tops = tuple[list[list[str]], list[list[str]]]


def test_a_name_that_is_a_path_hides_no_image(fleet: Gated, tops: Tops) -> None:
    before, _ = tops
    folder = "prod/prod-1/tenants"
    others = [each for each in before if each[2] != "prod"]
    whole = ["40000", fleet.git("rev-parse", f"change:{folder}"), folder]
    image = ["100644", fleet.git("rev-parse", f"change:{PROD}"), "prod/prod-1/tenants/other/input.yaml"]
    for entries in ([*others, whole], [*before, image]):
        done = judged(fleet, entries)
        assert (done.code, done.out) == (2, ""), done
        assert "wrong entry 'prod/prod-1/tenants" in done.lines[0]


def test_a_name_that_is_there_twice_hides_no_image(fleet: Gated, tops: Tops) -> None:
    before, after = tops
    for first, second in ((before, after), (after, before)):
        done = judged(fleet, [*first, *(each for each in second if each[2] == "prod")])
        assert (done.code, done.out) == (2, ""), done
        assert "wrong entry 'prod'" in done.lines[0]


@pytest.mark.parametrize("mode", ["040000", "40755"])
def test_a_folder_is_one_in_every_notation_of_its_mode(fleet: Gated, tops: Tops, mode: str) -> None:
    _, after = tops
    done = judged(fleet, [[mode if name == "prod" else given, id, name] for given, id, name in after])
    assert done.code == 3, done
    assert [row["image"] for row in done.data] == [V3]


def test_names_that_steer_a_terminal_are_shown_as_escapes(fleet: Gated) -> None:
    fleet.input("prod-1", "x\x1b[2J\ny", image=V2)
    fleet.commit()
    done = fleet("check-image", "--base", "main")
    assert done.code == 3
    assert "\x1b" not in done.out + done.err
    assert len(done.lines) == len(done.err.splitlines()) == 1


# The command line


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, []),
        (2, ["--head", "main"]),
        (2, ["--base", ""]),
        (2, ["--base", "main", "--head", ""]),
        (4, ["--base", "nowhere"]),
        (4, ["--base", "main", "--head", "nowhere"]),
        (4, ["--base=-x"]),
        (4, ["--base", "--output=/dev/null"]),
        (4, ["--base", "main", "--head=--all"]),
        (4, ["--base", "main:fleet.yaml"]),
        (4, ["--base", "main^{tree}"]),
        (4, ["--base", "main..change"]),
        (4, ["--base", "main\nchange"]),
    ],
)
@pytest.mark.parametrize("command", [["check-image"], ["check-approvals", "--approvals", "nothing.json"]])
def test_a_revision_must_be_one_commit(fleet: Gated, command: list[str], code: int, words: list[str]) -> None:
    fleet.refused(code, *command, *words)


def test_a_missing_base_is_asked_for(fleet: Gated) -> None:
    assert "--base is missing" in fleet.refused(2, "check-image")


def test_a_base_without_a_policy_is_refused(fleet: Gated) -> None:
    fleet.on("main")
    (fleet.root / "fleet.yaml").unlink()
    fleet.commit()
    fleet.policy(images=[SOAKED])
    fleet.commit("back again")
    assert "fleet.yaml is missing" in fleet.refused(2, "check-image", "--base", "main~1")


def test_a_directory_that_git_does_not_know_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("environments: [{name: dev}]\n")
    done = Gated(tmp_path / "x").cli("fleet", "check-image", "--base", "main", "--repo", str(tmp_path))
    assert (done.code, "in no Git repository" in done.err) == (2, True)


@pytest.mark.long
def test_a_terminal_shows_a_table_and_why(fleet: Gated) -> None:
    promoted(fleet, V3)
    words = ("fleet", "check-image", "--base", "main", "--repo", str(fleet.root))
    shown = fleet.cli.but(NO_COLOR="1").on_terminal(*words, size=(140, 40))
    assert (shown.code, shown.out.splitlines()[0].split()[:5]) == (3, ["ENVIRONMENT", "CLUSTER", "TENANT", "PINNED", "SAME"])
    assert f"error: prod/prod-1/payment-app: staging/staging-1 has {V2}" in shown.out
    fleet.on("main")
    assert fleet.cli.on_terminal(*words).out == NOTHING


# Images of base

AGENT = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: agent, namespace: kube-system}}\n" + (
    "spec: {{template: {{spec: {{containers: [{{name: agent, image: '{0}'}}]}}}}}}\n"
)


def with_base(fleet: Gated, *clusters: str, image: str, file: str = "agent.yaml") -> Gated:
    for cluster in clusters:
        fleet.write(f"{cluster.partition('-')[0]}/{cluster}/base/{file}", AGENT.format(image))
    return fleet


def test_an_image_of_base_is_judged_as_that_of_a_tenant(fleet: Gated) -> None:
    fleet.on("main")
    with_base(fleet, "staging-1", image=V1).commit(ago=9 * HOUR)
    with_base(fleet, "staging-1", image=V2).commit(ago=2 * HOUR)
    fleet.branch("change")
    with_base(fleet, "prod-1", "dev-1", image=V2).commit()
    assert fleet.rows(0) == [
        {
            "environment": "prod", "cluster": "prod-1", "tenant": None, "image": V2, "pinned": "ok", "same": "ok", "soak": "ok",
            "signature": "none", "attestation": "none", "message": "",
            "object": "base/agent.yaml: DaemonSet.apps kube-system/agent: spec.template.spec.containers[agent].image",
        }
    ]  # fmt: skip
    with_base(fleet, "prod-1", image=V3).commit()
    (row,) = fleet.rows(3)
    assert (states(row), row["message"]) == ("ok failed none none none", f"staging/staging-1 has {V2}")
    with_base(fleet, "prod-1", image="agent:v2").commit()
    (row,) = fleet.rows(3)
    assert states(row) == "failed failed none none none"


def test_an_image_in_flux_is_judged_as_one_of_base(fleet: Gated) -> None:
    fleet.write("prod/prod-1/flux/sync.yaml", AGENT.format(V2))
    fleet.commit()
    (row,) = fleet.rows(3)
    assert row["object"].startswith("flux/sync.yaml: DaemonSet.apps kube-system/agent")
    assert states(row) == "ok failed none none none"


OWN_CHART = (
    "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: a, namespace: flux-system}\n"
    "spec: {chart: {spec: {chart: ./docs, sourceRef: {kind: GitRepository, name: fleet}}}}\n"
)


@pytest.mark.parametrize("path", ["base/agent.yaml", "flux/sync.yaml"])
def test_a_chart_of_the_fleets_own_repository_is_refused(fleet: Gated, path: str) -> None:
    fleet.write("prod/prod-1/flux-instance.yaml", "kind: FluxInstance\nspec: {sync: {name: fleet}}\n")
    fleet.write(f"prod/prod-1/{path}", OWN_CHART)
    fleet.commit()
    assert f"prod/prod-1/{path}" in fleet.refused(3, "check-image", "--base", "main", "--head", "change")


def test_an_image_of_base_must_have_been_in_the_environment_before_for_long_enough(fleet: Gated) -> None:
    fleet.on("main")
    with_base(fleet, "staging-1", image=V2).commit(ago=HOUR // 2)
    fleet.branch("change")
    with_base(fleet, "prod-1", image=V2).commit()
    (row,) = fleet.rows(3)
    assert states(row) == "ok ok failed none none"
    assert "staging/staging-1" in row["message"]


def test_an_object_of_base_that_the_environment_before_does_not_have_is_refused(fleet: Gated) -> None:
    with_base(fleet, "prod-1", image=V2).commit()
    (row,) = fleet.rows(3)
    assert row["message"] == "no cluster of staging has an image at this place of such an object in base"


def test_a_signature_is_asked_for_an_image_of_base(fleet: Gated) -> None:
    with_rules(fleet, {"environment": "prod", "cosign": KEY}).cosign()
    with_base(fleet, "prod-1", image=V2).commit()
    assert [states(row) for row in fleet.rows(0)] == ["ok none none ok ok"]
    fleet.cosign("exit 1")
    (row,) = fleet.rows(3)
    assert (row["tenant"], states(row)) == (None, "ok none none failed failed")


def test_an_object_that_moves_to_another_file_brings_no_image(fleet: Gated) -> None:
    fleet.on("main")
    with_base(fleet, "prod-1", image=V1).commit()
    fleet.branch("change")
    (fleet.root / "prod/prod-1/base/agent.yaml").rename(fleet.root / "prod/prod-1/base/agents.yaml")
    fleet.commit()
    assert fleet.rows(0) == []
    with_base(fleet, "prod-1", image=V3, file="second.yaml").commit("the same object once more")
    assert [row["image"] for row in fleet.rows(3)] == [V3]


def test_all_judges_the_images_of_base(fleet: Gated) -> None:
    fleet.on("main")
    with_base(fleet, "prod-1", image=V1).commit()
    fleet.branch("change")
    assert fleet.rows(0) == []
    assert [row["tenant"] for row in fleet.rows(3, "--all")] == ["payment-app", None]


PATCHED = (
    "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: base, namespace: flux-system}\n"
    "spec:\n  path: ./prod/prod-1/base\n"
)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("flux/sync.yaml", PATCHED + "  images: [{name: agent, newName: evil}]\n"),
        ("flux/sync.yaml", PATCHED + "  patches: [{patch: x}]\n"),
        ("flux/sync.yaml", PATCHED + "  postBuild: {substitute: {tag: latest}}\n"),
        ("flux/sync.yaml", PATCHED.replace("./prod/prod-1/base", "./docs")),
        ("flux/sync.yaml", PATCHED.replace("./prod/prod-1/base", "./prod/prod-1/base/../../../docs")),
        ("base/kustomization.yaml", "resources: [https://evil.example/x]\n"),
        ("base/agent.txt", AGENT.format(V1)),
        ("base/agent.yml", AGENT.format(V1)),
        ("base/agent.json", "{}"),
        ("base/more/agent.yaml", AGENT.format(V1)),
        ("base/agent.yaml", "a: [\n"),
        ("base/agent.yaml", "a: 1\na: 2\n"),
    ],
)
def test_a_change_that_hides_images_is_refused(fleet: Gated, path: str, body: str) -> None:
    fleet.write(f"prod/prod-1/{path}", body)
    fleet.commit()
    line = fleet.refused(3, "check-image", "--base", "main", "--head", "change")
    assert line.startswith("prod/prod-1/" + path.partition("/agent.yaml" if "more" in path else "\0")[0])
    fleet.branch("change", "main")
    fleet.write(f"dev/dev-1/{path}", body)
    fleet.commit()
    assert fleet.rows(0) == [], "no rule is for images in dev"


def test_a_symlink_in_base_is_refused(fleet: Gated) -> None:
    (fleet.root / "prod/prod-1/base").mkdir()
    (fleet.root / "prod/prod-1/base/agent.yaml").symlink_to("../../../docs/agent.yaml")
    fleet.commit()
    assert "prod/prod-1/base/agent.yaml" in fleet.refused(3, "check-image", "--base", "main", "--head", "change")


def test_results_go_to_stderr_so_that_stdout_stays_json(fleet: Gated) -> None:
    done = promoted(fleet)("check-image", "--base", "main", "--head", "change")
    assert (done.code, len(done.data), done.err) == (0, 1, "checked 1 image: all passed\n")
