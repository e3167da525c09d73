"""`fleet lint`, `lint-blueprints` and `codeowners` on real repositories of Git."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cli.fleets import INPUT, NAMES, Fleet, fleet, scaffold

pytestmark = pytest.mark.long

__all__ = ["fleet", "scaffold"]

DEV, PROD = INPUT.format("dev"), INPUT.format("prod")
TENANT = "dev/dev-use1-01/tenants/payment-app"
STRAY = "dev/stray.txt"


def findings(fleet: Fleet, *words: str, code: int = 3) -> list[tuple[str, str]]:
    done = fleet("lint", *words)
    assert done.code == code, done
    return [(each["rule"], each["path"]) for each in done.data]


def tenants(fleet: Fleet, *names: str) -> None:
    """More of them in dev, made of the one that is there."""
    for name in names:
        for file in (fleet.root / TENANT).iterdir():
            text = file.read_text().replace("payment-app", name).replace("payment-dev", f"{name}-dev")
            fleet.write(f"{TENANT}/{file.name}".replace("payment-app", name), text.replace("payment-processor", name))


def remove(fleet: Fleet, *names: str) -> None:
    for name in names:
        shutil.rmtree(fleet.root / TENANT.replace("payment-app", name))


def test_what_init_makes_is_clean(fleet: Fleet) -> None:
    assert fleet.ok("lint", "--strict") == []
    assert fleet.ok("lint", "--at", "HEAD", "--base", "HEAD") == []
    assert fleet.cli.ok("fleet", "lint-blueprints", str(fleet.blueprints)).data == []


def test_a_finding_says_rule_severity_path_line_and_message(fleet: Fleet) -> None:
    fleet.edit(DEV, "replicas: 2", "replicas: many")
    done = fleet("lint")
    assert done.code == 3
    (finding,) = done.data
    line = fleet.read(DEV).split("replicas")[0].count("\n") + 1
    assert list(finding) == ["rule", "severity", "path", "line", "message"]
    assert (finding["rule"], finding["severity"], finding["path"], finding["line"]) == ("inputs", "error", DEV, line)
    assert "replicas" in finding["message"]


def test_warnings_fail_the_strict_only(fleet: Fleet) -> None:
    image = next(line for line in fleet.read(DEV).splitlines() if "image:" in line)
    fleet.edit(DEV, image, "    image: registry.acme.com/payment:v3")
    done = fleet("lint")
    assert (done.code, [each["severity"] for each in done.data]) == (0, ["warning"])
    assert fleet("lint", "--strict").code == 3


def test_a_revision_is_judged_as_it_was_committed(fleet: Fleet) -> None:
    good = fleet.git("rev-parse", "HEAD")
    fleet.write(STRAY, "x")
    assert findings(fleet) == [("layout", STRAY)]
    assert findings(fleet, "--at", "HEAD", code=0) == []
    fleet.commit()
    assert findings(fleet, "--at", "HEAD") == [("layout", STRAY)]
    (fleet.root / STRAY).unlink()
    assert findings(fleet, code=0) == []
    assert findings(fleet, "--at", "HEAD") == [("layout", STRAY)]
    assert findings(fleet, "--at", good, code=0) == []


@pytest.mark.parametrize("option", ["--at", "--base"])
def test_a_revision_that_is_none_is_told(fleet: Fleet, option: str) -> None:
    fleet.refused(2, "lint", f"{option}=")
    fleet.refused(4, "lint", f"{option}=nowhere")
    fleet.refused(4, "lint", f"{option}=--output=x")
    assert not (fleet.root / "x").exists()


def test_what_git_ignores_is_left_out(fleet: Fleet) -> None:
    fleet.write("terraform/.terraform/providers/x.yaml", "x: AKIAABCDEFGH23456789")
    fleet.write(".gitignore", ".terraform/\n*.swp\nscratch/\n")
    fleet.write(f"{TENANT}/.input.yaml.swp", "x")
    fleet.write("scratch/x.yaml", "x")
    assert findings(fleet, code=0) == []
    fleet.git("add", "-f", f"{TENANT}/.input.yaml.swp")
    assert findings(fleet) == [("layout", f"{TENANT}/.input.yaml.swp")]


def test_a_fleet_may_be_in_no_repository_or_in_a_folder_of_one(fleet: Fleet) -> None:
    shutil.rmtree(fleet.root / ".git")
    assert findings(fleet, code=0) == []
    fleet.write(STRAY, "x")
    assert findings(fleet) == [("layout", STRAY)]
    fleet.git("init", "-q", "-b", "main", at=fleet.folder)
    shutil.move(fleet.blueprints, fleet.folder.parent)
    fleet.edit("fleet.yaml", "../acme-platform", "../../acme-platform")
    fleet.commit("everything")
    assert findings(fleet, "--at", "HEAD") == [("layout", STRAY)]
    done = fleet("lint", "-o", "github")
    assert done.out.startswith(f"::error file=acme-fleet-config/{STRAY},title=layout::")


def test_links_and_repositories_inside_are_not_followed(fleet: Fleet) -> None:
    (fleet.root / f"{TENANT}/secrets.yaml").unlink()
    (fleet.root / f"{TENANT}/secrets.yaml").symlink_to("../../../../secret")
    (fleet.root / "docs").symlink_to(fleet.blueprints)
    shutil.copytree(fleet.blueprints, fleet.root / "terraform/module")
    expected = [("layout", f"{TENANT}/secrets.yaml"), ("layout", "docs"), ("layout", "terraform/module")]
    assert findings(fleet) == expected
    fleet.git("-c", "advice.addEmbeddedRepo=false", "add", "-A")
    fleet.git("commit", "-q", "-m", "x")
    assert findings(fleet, "--at", "HEAD") == expected


# The policy


@pytest.mark.parametrize(
    "text",
    [
        "",
        "environments: []\n",
        "environments: [{name: dev}]\nunknown: 1\n",
        "a: 1\na: 2\n",
        "a: &a [*a, *a]\n",
        "[" * 200,
        "x: \x00",
    ],
)
def test_a_policy_that_cannot_be_read_is_exit_2(fleet: Fleet, text: str) -> None:
    fleet.write("fleet.yaml", text)
    assert all(line.startswith("fleet.yaml") for line in fleet.refused(2, "lint"))


def test_a_policy_that_is_a_link_is_exit_2(fleet: Fleet) -> None:
    (fleet.root / "fleet.yaml").rename(fleet.folder / "fleet.yaml")
    (fleet.root / "fleet.yaml").symlink_to(fleet.folder / "fleet.yaml")
    fleet.refused(2, "lint")


def test_the_blueprints_must_be_there(fleet: Fleet) -> None:
    elsewhere = fleet.folder / "elsewhere"
    fleet.blueprints.rename(elsewhere)
    assert "--blueprints-dir" in fleet.refused(2, "lint")[0]
    assert findings(fleet, "--blueprints-dir", str(elsewhere), code=0) == []


def test_only_tags_are_releases(fleet: Fleet) -> None:
    pin = "dev/dev-use1-01/flux/blueprints.yaml"
    fleet.git("branch", "next", at=fleet.blueprints)
    for name in ("next", "heads/next", "v1.0.0^0", "v1.0.0:apps"):
        text = fleet.read(pin)
        fleet.edit(pin, "tag: v1.0.0", f"tag: {name}")
        assert findings(fleet) == [("pin", pin)], name
        fleet.write(pin, text)


# Removals


def test_many_removals_need_their_number(fleet: Fleet) -> None:
    tenants(fleet, "orders", "stock")
    base = fleet.commit("two more")
    remove(fleet, "orders")
    fleet.commit("one may go")
    assert findings(fleet, "--base", base, "--at", "HEAD", code=0) == []
    remove(fleet, "stock")
    fleet.commit("a second one\n\nFleet-Removes: 1")
    assert findings(fleet, "--base", base, "--at", "HEAD") == [("removals", TENANT.replace("payment-app", "orders"))]
    assert findings(fleet, "--at", "HEAD", code=0) == []
    fleet.git("commit", "-q", "--allow-empty", "-m", "so many\n\nFleet-Removes: 2")
    assert findings(fleet, "--base", base, "--at", "HEAD", code=0) == []
    fleet.git("commit", "-q", "--allow-empty", "-m", "the last one holds\n\nFleet-Removes: 3")
    assert findings(fleet, "--base", base) == [("removals", TENANT.replace("payment-app", "orders"))]


def test_a_work_tree_is_a_change_too(fleet: Fleet) -> None:
    tenants(fleet, "orders", "stock")
    base = fleet.commit("two more")
    remove(fleet, "orders", "stock")
    assert findings(fleet, "--base", base) == [("removals", TENANT.replace("payment-app", "orders"))]
    assert findings(fleet, "--base", base, "--at", "HEAD", code=0) == []


def test_removals_are_counted_per_cluster_and_from_where_the_change_began(fleet: Fleet) -> None:
    base = fleet.git("rev-parse", "HEAD")
    fleet.git("checkout", "-q", "-b", "change")
    for environment in ("dev", "staging"):
        shutil.rmtree(fleet.root / f"{environment}/{environment}-use1-01/tenants/payment-app")
    head = fleet.commit("both gone")
    fleet.git("checkout", "-q", "main")
    tenants(fleet, "later", "later-still")
    now = fleet.commit("tenants that the change knows nothing of")
    for against in (base, now):
        done = fleet("lint", "--base", against, "--at", head)
        assert (done.code, [each["rule"] for each in done.data]) == (3, ["removals"])
        assert "removes 2 tenants" in done.data[0]["message"]


def test_guards_are_those_of_the_base(fleet: Fleet) -> None:
    tenants(fleet, "orders", "stock")
    base = fleet.commit("two more")
    fleet.edit("fleet.yaml", "removed_tenants: 1", "removed_tenants: 9")
    fleet.edit("fleet.yaml", "  - {name: dev}\n", "")
    shutil.rmtree(fleet.root / "dev")
    fleet.commit("an environment goes, and the guard with it")
    assert ("removals", TENANT.replace("payment-app", "orders")) in findings(fleet, "--base", base)


def test_without_a_guard_all_may_go(fleet: Fleet) -> None:
    tenants(fleet, "orders", "stock")
    fleet.edit("fleet.yaml", "guards:\n", "# guards:\n")
    text = fleet.read("fleet.yaml")
    fleet.write("fleet.yaml", "".join(line for line in text.splitlines(True) if "removed_tenants" not in line))
    base = fleet.commit("no guard")
    remove(fleet, "orders", "stock", "payment-app")
    assert findings(fleet, "--base", base, code=0) == []


def test_a_base_without_a_policy_is_exit_2(fleet: Fleet) -> None:
    fleet.git("rm", "-q", "--cached", "fleet.yaml")
    fleet.git("commit", "-q", "-m", "no policy")
    base = fleet.git("rev-parse", "HEAD")
    fleet.commit("a policy")
    fleet.refused(2, "lint", "--base", base)


# For CI


HOSTILE = "a,title=x::b\n::error::pwned%"


def test_github_gets_one_command_for_each_finding_whatever_files_are_called(fleet: Fleet) -> None:
    fleet.write(f"dev/{HOSTILE}", "x")
    fleet.edit(DEV, "replicas: 2", "replicas: many")
    lines = fleet("lint", "-o", "github").out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("::error file=dev/a%2Ctitle=x%3A%3Ab%0A%3A%3Aerror%3A%3Apwned%25,title=layout::")
    assert lines[1].startswith(f"::error file={DEV},line=")
    assert ",title=inputs::" in lines[1]


def test_gitlab_gets_a_report(fleet: Fleet) -> None:
    assert fleet("lint", "-o", "gitlab").data == []
    fleet.write(f"dev/{HOSTILE}", "x")
    done = fleet("lint", "-o", "gitlab")
    assert done.code == 3
    (each,) = done.data
    assert each["location"] == {"path": f"dev/{HOSTILE}", "lines": {"begin": 1}}
    assert (each["severity"], each["check_name"], len(each["fingerprint"])) == ("major", "layout", 64)


@pytest.mark.parametrize("form", ["json", "table", "yaml", "name", "github", "gitlab"])
def test_a_name_that_is_no_text_is_told_in_every_form(fleet: Fleet, form: str) -> None:
    Path(os.fsdecode(os.fsencode(fleet.root) + b"/dev/\xff\x1b[31m")).write_bytes(b"")
    done = fleet("lint", "-o", form)
    assert (done.code, done.err) == (3, "")
    assert "\\udcff" in done.out
    assert "\x1b" not in done.out


def test_clean_is_an_empty_list(fleet: Fleet) -> None:
    assert [fleet("lint", "-o", form).out for form in ("json", "github", "table", "name")] == ["[]\n", "", "", ""]


# Blueprints


def lint_blueprints(fleet: Fleet, *words: str) -> Any:
    return fleet.cli("fleet", "lint-blueprints", *words)


def test_blueprints_are_linted_as_they_are_in_the_work_tree(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fleet.blueprints / "apps/standard-service/resourceset.yaml"
    path.write_text(path.read_text().replace("inputs.logLevel", "inputs.id"))
    done = lint_blueprints(fleet, str(fleet.blueprints))
    assert (done.code, [each["rule"] for each in done.data]) == (3, ["input-id"])
    monkeypatch.chdir(fleet.blueprints)
    assert lint_blueprints(fleet).data == done.data
    assert lint_blueprints(fleet, "-o", "github").out.startswith("::error file=apps/standard-service/resourceset.yaml,line=")


def test_a_directory_without_blueprints_is_exit_2(fleet: Fleet) -> None:
    for folder in (fleet.root, fleet.folder / "nowhere", fleet.blueprints / "README.md"):
        done = lint_blueprints(fleet, str(folder))
        assert (done.code, len(done.lines)) == (2, 1), done


def test_blueprints_need_no_repository(fleet: Fleet) -> None:
    shutil.rmtree(fleet.blueprints / ".git")
    assert lint_blueprints(fleet, str(fleet.blueprints)).data == []


def test_a_schema_is_fetched_from_nowhere(fleet: Fleet, tmp_path: Path) -> None:
    elsewhere = tmp_path / "other.json"
    elsewhere.write_text('{"type": "integer"}')
    schema = fleet.blueprints / "apps/standard-service/inputs.schema.json"
    schema.write_text(schema.read_text().replace('"type": "integer"', f'"$ref": "file://{elsewhere}"'))
    done = lint_blueprints(fleet, str(fleet.blueprints))
    assert (done.code, [each["rule"] for each in done.data]) == (3, ["schema"])


# Owners


def test_codeowners_is_written_from_the_policy(fleet: Fleet) -> None:
    before = fleet.read("CODEOWNERS")
    fleet.edit("fleet.yaml", "sre: [sre-1,", "sre: [sre-0, sre-1,")
    assert findings(fleet) == [("codeowners", "CODEOWNERS")]
    dry = fleet("codeowners", "--dry-run")
    assert dry.code == 0
    assert "@sre-0" in dry.out
    assert fleet.read("CODEOWNERS") == before
    done = fleet("codeowners")
    assert (done.code, done.out) == (0, dry.out)
    assert fleet.read("CODEOWNERS") == dry.out
    assert findings(fleet, code=0) == []


def test_codeowners_follows_no_link(fleet: Fleet) -> None:
    (fleet.root / "CODEOWNERS").rename(fleet.folder / "precious")
    (fleet.root / "CODEOWNERS").symlink_to(fleet.folder / "precious")
    fleet.edit("fleet.yaml", "sre: [sre-1,", "sre: [sre-0, sre-1,")
    fleet.refused(3, "codeowners")
    assert "@sre-0" not in (fleet.folder / "precious").read_text()


@pytest.mark.long
@pytest.mark.parametrize("words", [("--ci", "gitlab"), ("--environments", "one"), ("--environments", "a,b,c,d", "--name", "x")])
def test_whatever_init_is_asked_for_is_clean(tmp_path: Path, words: tuple[str, ...]) -> None:
    from cli.command import Cli

    cli = Cli(tmp_path, **NAMES)
    cli.ok("fleet", "init", str(tmp_path), *words)
    (config,) = tmp_path.glob("*-fleet-config")
    (blueprints,) = tmp_path.glob("*-platform-blueprints")
    assert cli.ok("fleet", "lint", "--strict", "--repo", str(config)).data == []
    assert cli.ok("fleet", "lint-blueprints", str(blueprints)).data == []
    assert subprocess.run(["git", "-C", str(config), "status", "--porcelain"], capture_output=True).stdout == b""


def test_a_fleet_without_clusters_has_nothing_to_check_and_says_so(fleet: Fleet) -> None:
    for name in ("dev", "staging", "prod"):
        shutil.rmtree(fleet.root / name)
    done = fleet("lint")
    assert (done.code, done.data, done.err) == (0, [], "nothing had to be checked: there is no cluster\n")


def test_a_source_that_the_policy_does_not_list_is_reported(fleet: Fleet) -> None:
    path = "dev/dev-use1-01/flux/blueprints.yaml"
    fleet.edit(path, "github.com/acme/", "github.com/evil/")
    assert findings(fleet) == [("source", path)]
    fleet.edit("fleet.yaml", "sources: #", "sources:\n  - https://github.com/evil/acme-platform-blueprints.git\n  #")
    assert findings(fleet, code=0) == []
