"""`fleet check-image` on real repositories of Git, with a stand-in for cosign."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.gated import DIGESTS, HOUR, NOW, V1, V2, V3, Gated

KEY = {"key": "keys/cosign.pub", "transparency_log": False, "attestation": "https://acme.example/tested"}
SOAKED = {"environment": "prod", "field": "image", "same_as": "staging", "soak": "1h"}
V2_DIGEST = f"registry.acme.com/payment@{DIGESTS[2]}"
PROD = "prod/prod-1/tenants/payment-app/input.yaml"


@pytest.fixture
def fleet(tmp_path: Path) -> Gated:
    """Staging has had version 2 for two hours, prod has version 1, and there is a branch for a change."""
    return prepared(Gated(tmp_path))


def prepared(fleet: Gated) -> Gated:
    fleet.policy(images=[SOAKED])
    fleet.write("keys/cosign.pub", "key of base\n")
    for cluster in ("dev-1", "staging-1", "prod-1"):
        fleet.input(cluster, image=V1, replicas=2)
    fleet.commit("all have version 1", ago=9 * HOUR)
    fleet.input("staging-1", image=V2, replicas=2)
    fleet.commit("staging gets version 2", ago=2 * HOUR)
    fleet.branch("change")
    return fleet


def promoted(fleet: Gated, image: Any = V2) -> Gated:
    fleet.input("prod-1", image=image, replicas=2)
    fleet.commit("prod gets it")
    return fleet


def with_rules(fleet: Gated, *rules: dict[str, Any]) -> Gated:
    fleet.on("main")
    fleet.policy(images=rules)
    fleet.commit("policy", ago=1)
    fleet.branch("change")
    return fleet


def states(row: dict[str, Any]) -> str:
    return " ".join(row[name] for name in ("pinned", "same", "soak", "signature", "attestation"))


# What is judged


def test_a_promoted_image_that_soaked_is_fine(fleet: Gated) -> None:
    assert promoted(fleet).rows(0) == [
        {
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
    assert fleet.rows(0) == []


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


# Soak


def test_an_image_that_came_too_lately_is_refused(fleet: Gated) -> None:
    fleet.on("main")
    fleet.input("staging-1", image=V3)
    fleet.commit(ago=HOUR - 600)
    fleet.branch("change")
    (row,) = promoted(fleet, V3).rows(3)
    assert states(row) == "ok ok failed none none"
    assert row["message"].startswith("it has been in staging/staging-1 for 50m")


def test_an_image_from_the_future_is_refused(fleet: Gated) -> None:
    fleet.on("main")
    fleet.input("staging-1", image=V3)
    fleet.commit(ago=-9 * HOUR)
    fleet.branch("change")
    (row,) = promoted(fleet, V3).rows(3)
    assert states(row) == "ok ok failed none none"
    assert "in the future" in row["message"]


def test_a_commit_that_leaves_the_value_alone_does_not_restart_the_soak(fleet: Gated) -> None:
    fleet.on("main")
    fleet.input("staging-1", image=V2, replicas=7)
    fleet.commit("replicas only", ago=60)
    fleet.branch("change")
    assert [states(row) for row in promoted(fleet).rows(0)] == ["ok ok ok none none"]


@pytest.mark.parametrize("between", [V3, None])
def test_a_value_that_went_and_came_back_soaks_anew(fleet: Gated, between: str | None) -> None:
    fleet.on("main")
    if between is None:
        (fleet.root / "staging/staging-1/tenants/payment-app/input.yaml").unlink()
    else:
        fleet.input("staging-1", image=between)
    fleet.commit("gone", ago=700)
    fleet.git("revert", "--no-edit", "HEAD", at=NOW - 600)
    fleet.branch("change")
    (row,) = promoted(fleet).rows(3)
    assert states(row) == "ok ok failed none none"
    assert row["message"].startswith("it has been in staging/staging-1 for 10m")


@pytest.mark.parametrize(("ago", "code", "soak"), [(600, 3, "failed"), (2 * HOUR, 0, "ok")])
def test_the_time_of_the_merge_into_base_counts_and_not_that_of_the_commit(fleet: Gated, ago: int, code: int, soak: str) -> None:
    fleet.branch("work", "main")
    fleet.input("staging-1", image=V3)
    fleet.commit("long ago, on a branch", ago=5 * HOUR)
    fleet.on("main")
    fleet.write("README.md", "hello\n")
    fleet.commit("base goes on", ago=3 * HOUR)
    fleet.merge("work", ago=ago)
    fleet.branch("change")
    assert [row["soak"] for row in promoted(fleet, V3).rows(code)] == [soak]


def test_a_merge_of_base_into_a_side_branch_that_base_follows_counts_by_the_first_parent(fleet: Gated) -> None:
    fleet.branch("work", "main~1")
    fleet.input("dev-1", image=V3)
    fleet.commit("from before staging had it", ago=5 * HOUR)
    fleet.merge("main", ago=600, message="the first parent is the branch")
    fleet.branch("main", "work")
    fleet.branch("change")
    (row,) = promoted(fleet).rows(3)
    assert row["soak"] == "failed"
    assert row["message"].startswith("it has been in staging/staging-1 for 10m")


def test_a_merge_of_three_branches_brings_a_value_when_it_is_made(fleet: Gated) -> None:
    for name, cluster in (("one", "dev-1"), ("two", "staging-1"), ("three", "dev-2")):
        fleet.branch(name, "main")
        fleet.input(cluster, image=V3)
        fleet.commit(name, ago=5 * HOUR)
    fleet.on("main")
    fleet.merge("one", "two", "three", ago=600)
    assert len(fleet.git("rev-list", "--parents", "-1", "HEAD").split()) == 5
    fleet.branch("change")
    assert [states(row) for row in promoted(fleet, V3).rows(3)] == ["ok ok failed none none"]


# Histories


def test_a_head_before_base_and_base_itself_are_no_change(fleet: Gated) -> None:
    for head in ("main~1", "main"):
        assert fleet("check-image", "--base", "main", "--head", head).data == []


def test_a_head_that_took_base_in_is_judged_by_what_it_adds(fleet: Gated) -> None:
    promoted(fleet)
    fleet.on("main")
    fleet.input("prod-1", "orders", image="orders:latest")
    fleet.commit("base goes on")
    fleet.on("change")
    fleet.merge("main")
    assert [row["tenant"] for row in fleet.rows(0)] == ["payment-app"]


def test_crossed_merges_hide_no_image(fleet: Gated) -> None:
    """Head has an image that one of the places has where the histories met, and base another: a merge would take head's."""
    fleet.branch("side", "main")
    fleet.write("notes.txt", "x\n")
    side = fleet.commit("has version 1 in prod", ago=HOUR)
    fleet.on("main")
    fleet.input("prod-1", image=V2)
    middle = fleet.commit("prod gets version 2", ago=HOUR)
    fleet.merge("side", ago=60)
    fleet.branch("change", side)
    fleet.joined(side, middle, message="takes base in, and leaves version 1")
    assert sorted(fleet.git("merge-base", "--all", "main", "change").split()) == sorted([side, middle])
    fleet.branch("merged", "main")
    fleet.merge("change")
    assert V1 in (fleet.root / PROD).read_text(), "the merge would bring version 1 back"
    (row,) = fleet.rows(3)
    assert (row["image"], row["same"]) == (V1, "failed")


def test_histories_that_never_met_are_unknown(fleet: Gated) -> None:
    fleet.git("checkout", "-q", "--orphan", "change2")
    fleet.commit("another root")
    assert "have no commit in common" in fleet.refused(4, "check-image", "--base", "main")


def test_a_shallow_clone_that_hides_part_of_the_change_is_refused(fleet: Gated, tmp_path: Path) -> None:
    promoted(fleet)
    fleet.on("main")
    fleet.write("README.md", "hello\n")
    fleet.commit("base goes on")
    fleet.on("change")
    fleet.merge("main")
    clone = tmp_path / "clone"
    words = ["git", "clone", "-q", "--depth", "2", "--no-single-branch", f"file://{fleet.repository}", str(clone)]
    subprocess.run(words, check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    done = fleet.cli("fleet", "check-image", "--base", "origin/main", "--head", "origin/change", "--repo", str(clone))
    assert (done.code, "the clone is shallow" in done.err) == (4, True), done


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
    assert fleet.cli.on_terminal(*words).out == "no image is to be judged\n"
