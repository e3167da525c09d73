"""`fleet set` and `fleet promote`: value by value, all or none, in the work tree, as a commit, or on a branch."""

from __future__ import annotations

import re
import shutil

import pytest

from cli.fleets import INPUT, Fleet, fleet, scaffold

__all__ = ["fleet", "scaffold"]

DEV, STAGING, PROD = (INPUT.format(name) for name in ("dev", "staging", "prod"))
PIN = "{0}/{0}-use1-01/flux/blueprints.yaml"
DIGEST = "sha256:" + "ab" * 32
IMAGE = f"registry.acme.com/payment:v9@{DIGEST}"


def image_of(fleet: Fleet, path: str) -> str:
    found = re.search(r"^ +image: (.*)$", fleet.read(path), re.MULTILINE)
    assert found is not None
    return found[1].strip("\"'")


def test_setting_an_input_changes_the_bytes_of_its_value_alone(fleet: Fleet) -> None:
    before, old = fleet.read(DEV), image_of(fleet, DEV)
    rows = fleet.ok("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}")
    assert rows == [{"path": DEV, "field": "image", "before": old, "after": IMAGE}]
    assert fleet.read(DEV) == before.replace(old, IMAGE)
    assert fleet.git("status", "--porcelain").split() == ["M", DEV]


def test_what_is_set_already_is_nothing_to_do(fleet: Fleet) -> None:
    fleet.ok("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}", "--commit")
    head = fleet.git("rev-parse", "HEAD")
    assert fleet.ok("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}", "--branch", "again") == []
    assert fleet.git("rev-parse", "HEAD") == head
    assert fleet.git("branch", "--list", "again") == ""


def test_a_dry_run_writes_nothing(fleet: Fleet) -> None:
    assert fleet.ok("set", "payment-app", "--environment", "dev", "--set-json", "replicas=7", "--dry-run")[0]["after"] == 7
    assert fleet.git("status", "--porcelain") == ""


def test_a_commit_holds_the_edited_files_and_leaves_what_is_staged(fleet: Fleet) -> None:
    fleet.write("README.md", "staged\n")
    fleet.git("add", "README.md")
    fleet.write("notes.txt", "mine\n")
    fleet.ok("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}", "--commit")
    assert fleet.changed() == [DEV]
    assert "Fleet-Action: set" in fleet.git("log", "-1", "--format=%B")
    assert fleet.git("status", "--porcelain").splitlines() == ["M  README.md", "?? notes.txt"]


def test_a_branch_leaves_head_and_the_work_tree_alone(fleet: Fleet) -> None:
    head, before = fleet.git("rev-parse", "HEAD"), fleet.read(DEV)
    fleet.ok("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}", "--branch", "bump")
    assert (fleet.git("rev-parse", "HEAD"), fleet.read(DEV), fleet.git("status", "--porcelain")) == (head, before, "")
    assert fleet.git("rev-parse", "bump~1") == head
    assert fleet.changed("HEAD", "bump") == [DEV]
    assert fleet.refused(6, "set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}", "--branch", "bump")


def test_only_files_that_matter_must_be_committed(fleet: Fleet) -> None:
    fleet.edit(DEV, "logLevel: ", "logLevel:  ")
    assert fleet.refused(6, "set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}", "--commit")
    assert image_of(fleet, DEV) != IMAGE
    assert (
        fleet.refused(6, "promote", "payment-app", "--to", "staging", "--commit")
        if image_of(fleet, DEV) != image_of(fleet, STAGING)
        else True
    )
    fleet.ok("set", "payment-app", "--environment", "staging", "--set", f"image={IMAGE}", "--commit")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["set", "payment-app", "--set", "image=x"], 2),
        (["set", "payment-app", "--environment", "dev"], 2),
        (["set", "payment-app", "--environment", "dev", "--set", "image"], 2),
        (["set", "payment-app", "--environment", "dev", "--set-json", "replicas=[1]"], 2),
        (["set", "payment-app", "--environment", "dev", "--set-json", "replicas=NaN"], 2),
        (["set", "payment-app", "--environment", "dev", "--set", "a=1", "--set", "a=2"], 2),
        (["set", "nobody", "--environment", "dev", "--set", "image=x"], 4),
        (["set", "payment-app", "--environment", "moon", "--set", "image=x"], 4),
        (["set", "payment-app", "--environment", "dev", "--cluster", "prod-use1-01", "--set", "image=x"], 4),
        (["set", "payment-app", "--environment", "dev", "--set", "unknown=x"], 3),
        (["set", "payment-app", "--environment", "dev", "--set-json", "replicas=-1"], 3),
        (["set", "payment-app", "--environment", "dev", "--set", "replicas=2"], 3),
        (["promote", "payment-app", "--to", "dev"], 2),
        (["promote", "payment-app"], 2),
        (["promote", "--to", "prod"], 2),
        (["promote", "payment-app", "--all", "--to", "prod"], 2),
        (["promote", "payment-app", "--to", "moon"], 4),
        (["promote", "nobody", "--to", "prod"], 4),
        (["promote", "payment-app", "--to", "prod", "--from-cluster", "nowhere"], 4),
        (["promote", "payment-app", "--to", "prod", "--cluster", "nowhere"], 4),
        (["set", "payment-app", "--environment", "dev", "--set", "image=x:1", "--branch", "-b"], 2),
        (["set", "payment-app", "--environment", "dev", "--set", "image=x:1", "--branch", "HEAD"], 2),
        (["set", "payment-app", "--environment", "dev", "--set", "image=x:1", "--branch", "@{-1}"], 2),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(fleet: Fleet, words: list[str], code: int) -> None:
    assert fleet.refused(code, *words)
    assert fleet.git("status", "--porcelain") == ""


def test_a_promotion_carries_the_allowed_fields_and_says_whence(fleet: Fleet) -> None:
    fleet.ok("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}", "--set-json", "replicas=5", "--commit")
    head, before = fleet.git("rev-parse", "HEAD"), fleet.read(STAGING)
    old = image_of(fleet, STAGING)
    rows = fleet.ok("promote", "payment-app", "--to", "staging", "--commit")
    assert rows == [{"path": STAGING, "field": "image", "before": old, "after": IMAGE}]
    assert fleet.read(STAGING) == before.replace(old, IMAGE)
    message = fleet.git("log", "-1", "--format=%B")
    assert "Fleet-Action: promote" in message
    assert f"Fleet-From: dev/dev-use1-01@{head}" in message
    assert fleet.ok("promote", "payment-app", "--to", "staging", "--commit") == []


def test_source_clusters_must_agree_and_targets_are_all_or_none(fleet: Fleet) -> None:
    for environment in ("dev", "staging"):
        first, second = (f"{environment}/{environment}-use1-0{number}" for number in (1, 2))
        fleet.git("rev-parse", "HEAD")
        for path in fleet.git("ls-files", first).splitlines():
            fleet.write(path.replace(first, second), fleet.read(path).replace(f"{environment}-use1-01", f"{environment}-use1-02"))
    fleet.commit()
    fleet.ok("set", "payment-app", "--environment", "dev", "--cluster", "dev-use1-02", "--set", f"image={IMAGE}")
    assert "--from-cluster" in fleet.refused(6, "promote", "payment-app", "--to", "staging")[0]
    rows = fleet.ok("promote", "payment-app", "--to", "staging", "--from-cluster", "dev-use1-02", "--dry-run")
    assert [row["path"] for row in rows] == [STAGING, STAGING.replace("use1-01", "use1-02")]
    fleet.edit(STAGING.replace("use1-01", "use1-02"), "image: ", "image: &x ")
    fleet.edit(STAGING.replace("use1-01", "use1-02"), "logLevel: INFO", "logLevel: INFO\n    other: *x")
    before = fleet.read(STAGING)
    assert fleet.refused(3, "promote", "payment-app", "--to", "staging", "--from-cluster", "dev-use1-02")
    assert fleet.read(STAGING) == before


def test_the_pin_of_the_blueprints_is_promoted_too(fleet: Fleet) -> None:
    fleet.release("v1.1.0", "apps/standard-service/resourceset.yaml", "interval: 30m", "interval: 31m")
    fleet.edit(PIN.format("dev"), "v1.0.0", "v1.1.0")
    rows = fleet.ok("promote", "--blueprints", "--to", "staging")
    assert rows == [{"path": PIN.format("staging"), "field": "tag", "before": "v1.0.0", "after": "v1.1.0"}]
    assert "v1.1.0" in fleet.read(PIN.format("staging"))
    assert "v1.0.0" in fleet.read(PIN.format("prod"))


def test_a_release_that_refuses_the_inputs_of_a_tenant_is_not_promoted(fleet: Fleet) -> None:
    fleet.release("v2.0.0", "apps/standard-service/inputs.schema.json", '"replicas"', '"instances"')
    fleet.edit(PIN.format("dev"), "v1.0.0", "v2.0.0")
    assert fleet.refused(3, "promote", "--blueprints", "--to", "staging")
    assert "v1.0.0" in fleet.read(PIN.format("staging"))


def test_all_takes_what_both_environments_have(fleet: Fleet) -> None:
    fleet.ok("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}")
    assert [row["path"] for row in fleet.ok("promote", "--all", "--to", "staging")] == [STAGING]
    for path in fleet.git("ls-files", "prod/prod-use1-01/tenants").splitlines():
        (fleet.root / path).unlink()
    assert fleet.ok("promote", "--all", "--to", "prod") == []
    assert fleet.refused(4, "promote", "payment-app", "--to", "prod")


def test_windows_ends_of_lines_stay(fleet: Fleet) -> None:
    fleet.write(DEV, fleet.read(DEV).replace("\n", "\r\n"))
    before, old = fleet.read(DEV), image_of(fleet, DEV).strip()
    fleet.ok("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}")
    assert fleet.read(DEV) == before.replace(old.strip("\"'"), IMAGE)


def test_a_symlink_in_the_place_of_a_tenant_is_not_followed(fleet: Fleet) -> None:
    place = fleet.root / "dev/dev-use1-01/tenants/payment-app"
    place.rename(fleet.folder / "elsewhere")
    place.symlink_to(fleet.folder / "elsewhere")
    before = (fleet.folder / "elsewhere/input.yaml").read_bytes()
    assert fleet.refused(4, "set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}")
    assert (fleet.folder / "elsewhere/input.yaml").read_bytes() == before


def test_a_number_that_is_there_in_other_digits_is_nothing_to_do(fleet: Fleet) -> None:
    head = fleet.git("rev-parse", "HEAD")
    assert fleet.ok("set", "payment-app", "--environment", "dev", "--set-json", "replicas=2.0", "--commit") == []
    assert fleet.git("rev-parse", "HEAD") == head


def test_a_branch_is_not_made_of_what_the_source_had_before_it_was_changed(fleet: Fleet) -> None:
    fleet.ok("set", "payment-app", "--environment", "staging", "--set", f"image={IMAGE}")
    (line,) = fleet.refused(6, "promote", "payment-app", "--to", "prod", "--branch", "promotion")
    assert STAGING in line
    assert fleet.git("branch", "--list", "promotion") == ""


def test_a_root_below_the_top_of_its_repository_is_committed_too(fleet: Fleet) -> None:
    shutil.rmtree(fleet.root / ".git")
    top = fleet.folder / "mono repo"
    top.mkdir()
    fleet.root = fleet.root.rename(top / "fleet")
    fleet.edit("fleet.yaml", "../acme-platform", "../../acme-platform")
    fleet.git("init", "-q", "-b", "main", at=top)
    fleet.commit("begin")
    for way in (["--commit"], ["--branch", "promotion"]):
        fleet.ok("promote", "payment-app", "--to", "staging", *way, "--dry-run")
        fleet.ok("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}-{len(way)}"[: len(IMAGE)], *way)
    assert fleet.changed() == [f"fleet/{DEV}"]
    assert fleet.git("status", "--porcelain") == ""


def test_where_the_index_cannot_follow_nothing_is_committed(fleet: Fleet) -> None:
    head = fleet.git("rev-parse", "HEAD")
    (fleet.root / ".git/index.lock").touch()
    assert fleet.refused(6, "set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}", "--commit")
    (fleet.root / ".git/index.lock").unlink()
    assert (fleet.git("rev-parse", "HEAD"), fleet.git("status", "--porcelain")) == (head, "")


def test_before_the_first_commit_there_is_nothing_to_commit_upon(fleet: Fleet) -> None:
    shutil.rmtree(fleet.root / ".git")
    fleet.git("init", "-q")
    before = fleet.read(DEV)
    for way in (["--commit"], ["--branch", "b"]):
        assert fleet.refused(4, "set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}", *way)
    assert fleet.read(DEV) == before


def test_what_a_caller_says_of_its_own_repository_and_paths_does_not_matter(fleet: Fleet) -> None:
    fleet.cli.environment |= {"GIT_ALTERNATE_OBJECT_DIRECTORIES": "/nowhere", "GIT_GLOB_PATHSPECS": "1"}
    done = fleet("set", "payment-app", "--environment", "dev", "--set", f"image={IMAGE}", "--commit")
    assert (done.code, done.err) == (0, "")
    assert fleet.changed() == [DEV]


def test_a_directory_without_a_name_is_not_the_current_one(fleet: Fleet) -> None:
    assert "--blueprints-dir is empty" in fleet.refused(2, "promote", "payment-app", "--to", "staging", "--blueprints-dir", "")[0]
    assert "--repo is empty" in fleet.cli.refused(2, "fleet", "render", "--repo", "")[0]
