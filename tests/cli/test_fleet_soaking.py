"""`fleet check-image` and time: how long an image has been somewhere, and where the histories of base and head have met."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cli.gated import HOUR, PROD, V1, V2, V3, Gated, now, prepared, promoted, states

pytestmark = pytest.mark.long


@pytest.fixture
def fleet(tmp_path: Path) -> Gated:
    return prepared(Gated(tmp_path))


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
    fleet.git("revert", "--no-edit", "HEAD", at=now() - 600)
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


def test_an_image_that_was_there_from_the_first_commit_on_has_soaked(fleet: Gated) -> None:
    fleet.git("config", "log.showRoot", "false")
    fleet.on("main")
    fleet.input("staging-1", "orders", image=V1)
    fleet.git("add", "-A")
    fleet.git("commit", "-q", "--amend", "--no-edit", at=now() - 2 * HOUR)
    fleet.branch("main", fleet.git("commit-tree", "main^{tree}", "-m", "the only one", at=now() - 2 * HOUR))
    fleet.branch("change")
    fleet.input("prod-1", "orders", image=V1)
    fleet.commit()
    assert [states(row) for row in fleet.rows(0)] == ["ok ok ok none none"]


def test_each_of_many_images_has_a_soak_of_its_own(fleet: Gated) -> None:
    fleet.on("main")
    names = [f"tenant-{number}" for number in range(60)]
    for name in names:
        fleet.input("staging-1", name, image=V2)
    fleet.write("staging/\n\x01odd\nname", "x")
    fleet.commit("all at once", ago=3 * HOUR)
    fleet.input("staging-1", "tenant-7", image=V3)
    fleet.write("staging/\n\x01odd\nname", "y")
    fleet.commit("one of them is another", ago=700)
    fleet.input("staging-1", "tenant-7", image=V2)
    fleet.input("staging-1", "tenant-8", image=V2, replicas=3)
    fleet.commit("and comes back", ago=600)
    fleet.branch("change")
    for name in names:
        fleet.input("prod-1", name, image=V2)
    fleet.commit()
    assert [row["tenant"] for row in fleet.rows(3) if row["soak"] != "ok"] == ["tenant-7"]


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
