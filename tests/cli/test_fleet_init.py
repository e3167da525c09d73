"""`fleet init`, `fleet new-cluster` and `fleet new-tenant`: repositories, clusters and tenants that were not there before."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import live
from cli.command import Cli
from cli.fleets import INPUT, NAMES, Fleet, fleet, scaffold
from flux_resourceset.repositories import scaffold as scaffolds

pytestmark = pytest.mark.long

__all__ = ["fleet", "scaffold"]

EXAMPLES = live.ROOT / "examples" / "two-repositories"
BOTH = ("acme-platform-blueprints", "acme-fleet-config")
IMAGE = "registry.acme.com/orders:v1@sha256:" + "ab" * 32
INPUTS = ("--set", "appName=orders", "--set", f"image={IMAGE}", "--set-json", "replicas=1", "--set", "logLevel=INFO")
ORDERS = ("new-tenant", "orders", "--cluster", "dev-use1-01", "--blueprint", "standard-service")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, env={**os.environ, **NAMES}
    )
    return done.stdout.strip()


def texts(folder: Path) -> dict[str, str]:
    """The files of both repositories, without what Git keeps."""
    found = (file for file in folder.rglob("*") if file.is_file() and ".git" not in file.relative_to(folder).parts)
    return {file.relative_to(folder).as_posix(): file.read_bytes().decode() for file in found}


def document(fleet: Fleet, path: str, kind: str) -> Any:
    (found,) = [each for each in yaml.safe_load_all(fleet.read(path)) if each["kind"] == kind]
    return found


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """With nobody's configuration."""
    return Cli(tmp_path, **NAMES)


# init


def test_both_repositories_are_committed_on_main_and_the_blueprints_tagged(scaffold: Path) -> None:
    for name in BOTH:
        assert git(scaffold / name, "symbolic-ref", "HEAD") == "refs/heads/main"
        assert git(scaffold / name, "rev-list", "--count", "HEAD") == "1"
        assert git(scaffold / name, "status", "--porcelain") == ""
    first, second = (scaffold / name for name in BOTH)
    assert git(first, "tag") == "v1.0.0"
    assert git(first, "rev-parse", "v1.0.0^{commit}") == git(first, "rev-parse", "HEAD")
    assert git(second, "tag") == ""


def test_it_prints_what_it_wrote_and_that_is_what_is_committed(cli: Cli, tmp_path: Path) -> None:
    done = cli.ok("fleet", "init", str(tmp_path / "a" / "b"))
    committed = [
        {"path": f"{name}/{path}"}
        for name in BOTH
        for path in git(tmp_path / "a" / "b" / name, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    ]
    assert done.data == committed
    assert sorted(os.listdir(tmp_path / "a" / "b")) == sorted(BOTH)


def test_on_a_terminal_it_says_where_they_are(cli: Cli, tmp_path: Path) -> None:
    shown = cli.on_terminal("fleet", "init", str(tmp_path / "a"))
    assert shown.code == 0
    assert re.fullmatch(r"(.*/acme-(platform-blueprints|fleet-config): [0-9]+ files, committed on main\n){2}", shown.out), shown


def test_what_is_asked_for_is_what_there_is(cli: Cli, tmp_path: Path) -> None:
    words = ("--name", "umbrella", "--environments", "test, live", "--ci", "gitlab", "--charts", "http://127.0.0.1:5000/charts")
    cli.ok("fleet", "init", str(tmp_path), *words)
    assert (
        texts(tmp_path).items()
        >= {
            f"{name}/{path}": text
            for name, files in scaffolds.repositories(
                "umbrella", ["test", "live"], "gitlab", "http://127.0.0.1:5000/charts"
            ).items()
            for path, text in files.items()
        }.items()
    )


def test_the_configuration_of_whoever_runs_it_does_not_matter(cli: Cli, tmp_path: Path) -> None:
    hooks = tmp_path / "template" / "hooks"
    hooks.mkdir(parents=True)
    for name in ("pre-commit", "commit-msg", "post-commit"):
        (hooks / name).write_text("#!/bin/sh\nexit 1\n")
        (hooks / name).chmod(0o755)
    (tmp_path / "ignored").write_text("*.yaml\nREADME.md\n")
    (tmp_path / "attributes").write_text("* text eol=crlf\n")
    config = tmp_path / "config"
    config.write_text(
        f"[init]\n\tdefaultBranch = trunk\n\ttemplateDir = {hooks.parent}\n"
        f"[core]\n\thooksPath = {hooks}\n\texcludesFile = {tmp_path / 'ignored'}\n\tautocrlf = true\n"
        f"\tattributesFile = {tmp_path / 'attributes'}\n"
        "[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n[gpg]\n\tprogram = false\n"
        "[user]\n\tname = Somebody\n\temail = somebody@acme.example\n"
    )
    (tmp_path / "other").mkdir()
    mine = Cli(tmp_path, GIT_CONFIG_GLOBAL=str(config), GIT_CONFIG_SYSTEM=os.devnull, GIT_DIR=str(tmp_path / "other"))
    mine.ok("fleet", "init", str(tmp_path / "made"))
    assert list((tmp_path / "other").iterdir()) == []
    for name in BOTH:
        made = tmp_path / "made" / name
        assert git(made, "log", "--format=%an <%ae> %D").startswith("Somebody <somebody@acme.example> HEAD -> main")
        assert git(made, "ls-files", "--eol").count("i/crlf") == 0
        assert len(git(made, "ls-files").splitlines()) == len(texts(made))
        assert not (made / ".git" / "hooks").exists()


def test_somebody_who_is_nobody_to_git_gets_them_too(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("[user]\n\tuseConfigOnly = true\n")
    nobody = Cli(tmp_path, GIT_CONFIG_GLOBAL=str(config), GIT_CONFIG_SYSTEM=os.devnull)
    nobody.ok("fleet", "init", str(tmp_path / "made"))
    for name in BOTH:
        assert git(tmp_path / "made" / name, "log", "--format=%an %cn") == "fleet init fleet init"


@pytest.mark.parametrize("there", BOTH)
@pytest.mark.parametrize("sort", ["folder", "file", "dangling link"])
def test_what_exists_is_not_touched(cli: Cli, tmp_path: Path, there: str, sort: str) -> None:
    place = tmp_path / "made" / there
    place.parent.mkdir()
    match sort:
        case "folder":
            place.mkdir()
        case "file":
            place.write_text("mine")
        case _:
            place.symlink_to(tmp_path / "nowhere")
    (line,) = cli.refused(6, "fleet", "init", str(tmp_path / "made"))
    assert there in line
    assert os.listdir(tmp_path / "made") == [there]
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--name", "Acme"),
        ("--name", "../acme"),
        ("--name", ""),
        ("--name", "a" * 60),
        ("--name", "1e3"),
        ("--environments", ""),
        ("--environments", "dev,"),
        ("--environments", "dev,dev"),
        ("--environments", "Dev"),
        ("--environments", "dev,.."),
        ("--environments", "dev,keys"),
        ("--environments", "terraform"),
        ("--environments", "on,off"),
        ("--environments", "a" * 60),
        ("--charts", "charts.example.com"),
        ("--charts", "file:///etc"),
        ("--charts", 'https://a/"b'),
        ("--charts", "https://a/<< inputs >>"),
        ("--charts", "https://a/${b}"),
        ("--charts", "https://user:word@a/b"),
        ("--charts", "https://charts.acme.dev"),
        ("--charts", "https://vault.example/charts"),
        ("--ci", "jenkins"),
    ],
)
def test_names_and_addresses_that_cannot_be_are_refused_before_anything_is_written(
    cli: Cli, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (line,) = cli.refused(2, "fleet", "init", str(tmp_path / "made"), *words)
    assert words[0] in line
    assert not (tmp_path / "made").exists()


def test_an_empty_directory_name_is_not_the_current_directory(cli: Cli) -> None:
    (line,) = cli.refused(2, "fleet", "init", "")
    assert "<dir> is empty" in line


def test_logs_are_loud_in_dev_alone(cli: Cli, tmp_path: Path) -> None:
    cli.ok("fleet", "init", str(tmp_path), "--environments", "test,dev,prod")
    for name, level in (("test", "INFO"), ("dev", "DEBUG"), ("prod", "INFO")):
        text = (tmp_path / "acme-fleet-config" / INPUT.format(name)).read_text()
        assert f"logLevel: {level}\n" in text


def test_where_git_is_needed_pipelines_of_gitlab_install_it(cli: Cli, tmp_path: Path) -> None:
    cli.ok("fleet", "init", str(tmp_path), "--ci", "gitlab")
    lines = (tmp_path / "acme-platform-blueprints" / ".gitlab-ci.yml").read_text().splitlines()
    (lint,) = [place for place, line in enumerate(lines) if "lint-blueprints" in line]
    assert any("apk add --no-cache git" in line for line in lines[:lint])  # the image has none


def test_an_owner_whose_name_is_an_environment_says_where_the_charts_are(cli: Cli, tmp_path: Path) -> None:
    (line,) = cli.refused(2, "fleet", "init", str(tmp_path), "--name", "dev")
    assert line.endswith("blueprints name no dev; give another address with --charts")
    cli.ok("fleet", "init", str(tmp_path), "--name", "dev", "--charts", "https://charts.example")
    assert cli.ok("fleet", "lint-blueprints", str(tmp_path / "dev-platform-blueprints")).data == []


def test_without_git_nothing_is_written(cli: Cli, tmp_path: Path) -> None:
    (line,) = cli.but(PATH=str(tmp_path)).refused(2, "fleet", "init", str(tmp_path / "made"))
    assert line == "git is not on the PATH; install it"
    assert not (tmp_path / "made").exists()


def test_a_place_that_cannot_be_is_told(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (line,) = cli.refused(2, "fleet", "init", str(tmp_path / "file" / "made"))
    assert "cannot be written" in line


@pytest.mark.parametrize("step", ["init", "add", "commit", "tag"])
def test_when_git_fails_nothing_is_left_behind(cli: Cli, tmp_path: Path, step: str) -> None:
    real = shutil.which("git")
    script = tmp_path / "bin" / "git"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\ncase " $* " in *" {step} "*) echo "fatal: no more" >&2; exit 1;; esac\nexec {real} "$@"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    failing = cli.but(PATH=f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    assert failing.refused(2, "fleet", "init", str(tmp_path / "made")) == [f"git {step} failed: no more"]
    assert list((tmp_path / "made").iterdir()) == []


def test_the_examples_are_what_init_makes(scaffold: Path) -> None:
    made, shipped = texts(scaffold), texts(EXAMPLES)
    assert sorted(made) == sorted(shipped), "delete examples/two-repositories, run fleet init there, and remove both .git"
    assert [path for path in made if made[path] != shipped[path]] == []


@pytest.mark.parametrize(
    "words", [(), ("--ci", "gitlab", "--environments", "one"), ("--environments", "a,b,c,d,e", "--name", "x")]
)
def test_lint_has_nothing_to_say_about_them(cli: Cli, tmp_path: Path, words: tuple[str, ...]) -> None:
    cli.ok("fleet", "init", str(tmp_path / "made"), *words)
    first, second = sorted((tmp_path / "made").iterdir(), reverse=True)
    assert cli.ok("fleet", "lint", "--strict", "--repo", str(second)).data == []
    assert cli.ok("fleet", "lint-blueprints", str(first)).data == []


# new-cluster


def test_a_new_cluster_is_written_and_not_committed(fleet: Fleet) -> None:
    written = [row["path"] for row in fleet.ok("new-cluster", "dev-euw1-01", "--environment", "dev")]
    assert written == sorted(written)
    assert {path.removeprefix("dev/dev-euw1-01/") for path in written} >= {
        "flux-instance.yaml", "flux/blueprints.yaml", "flux/sync.yaml", "tenants/.gitkeep",
    }  # fmt: skip
    assert fleet.git("status", "--porcelain", "--untracked-files=all").split("\n") == [f"?? {path}" for path in written]
    for path in written:
        twin = fleet.read(path.replace("euw1", "use1"))
        assert fleet.read(path) == twin.replace("dev-use1-01", "dev-euw1-01")
    assert fleet.ok("lint", "--strict") == []


def test_a_new_cluster_is_pinned_as_its_environment_is(fleet: Fleet) -> None:
    fleet.git("tag", "v1.1.0", at=fleet.blueprints)
    fleet.git("tag", "v1.10.0", at=fleet.blueprints)
    fleet.edit("staging/staging-use1-01/flux/blueprints.yaml", "v1.0.0", "v1.1.0")
    shutil.rmtree(fleet.root / "prod")
    for environment, tag in (("dev", "v1.0.0"), ("staging", "v1.1.0"), ("prod", "v1.10.0")):
        fleet.ok("new-cluster", f"{environment}-2", "--environment", environment)
        source = document(fleet, f"{environment}/{environment}-2/flux/blueprints.yaml", "GitRepository")
        assert source["spec"]["ref"]["tag"] == tag


def test_without_a_tag_there_is_nothing_to_pin(fleet: Fleet) -> None:
    fleet.git("tag", "-d", "v1.0.0", at=fleet.blueprints)
    shutil.rmtree(fleet.root / "prod")
    (line,) = fleet.refused(4, "new-cluster", "prod-2", "--environment", "prod")
    assert "has no tag" in line
    assert not (fleet.root / "prod").exists()


def test_addresses_are_taken_over(fleet: Fleet) -> None:
    fleet.edit("dev/dev-use1-01/flux/blueprints.yaml", "https://github.com/acme/", "https://git.example/")
    fleet.edit("dev/dev-use1-01/flux-instance.yaml", "https://github.com/acme/", "ssh://git@git.example/")
    fleet.ok("new-cluster", "dev-2", "--environment", "dev")
    assert "url: https://git.example/acme-platform-blueprints.git\n" in fleet.read("dev/dev-2/flux/blueprints.yaml")
    assert "url: ssh://git@git.example/acme-fleet-config.git\n" in fleet.read("dev/dev-2/flux-instance.yaml")


@pytest.mark.parametrize(
    ("code", "words", "says"),
    [
        (4, ("new", "--environment", "qa"), 'environment "qa" not found; there are dev, staging, prod'),
        (6, ("dev-use1-01", "--environment", "dev"), 'cluster "dev-use1-01" exists in dev'),
        (6, ("prod-use1-01", "--environment", "dev"), 'cluster "prod-use1-01" exists in prod'),
        (2, ("New", "--environment", "dev"), "<cluster> is 'New'"),
        (2, ("../new", "--environment", "dev"), "<cluster> is '../new'"),
        (2, ("0x10", "--environment", "dev"), "<cluster> is '0x10'"),
        (2, ("new",), "--environment"),
    ],
)
def test_a_cluster_that_cannot_be_added_changes_nothing(fleet: Fleet, code: int, words: tuple[str, ...], says: str) -> None:
    (line,) = fleet.refused(code, "new-cluster", *words)
    assert says in line
    assert fleet.git("status", "--porcelain", "--untracked-files=all") == ""


def test_a_symlink_is_not_followed(fleet: Fleet, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.rmtree(fleet.root / "dev")
    (fleet.root / "dev").symlink_to(elsewhere)
    (line,) = fleet.refused(3, "new-cluster", "dev-2", "--environment", "dev")
    assert "symlink" in line
    assert list(elsewhere.iterdir()) == []


# new-tenant


def test_a_new_tenant_is_written_with_what_follows_from_its_place(fleet: Fleet) -> None:
    rows = fleet.ok(*ORDERS, *INPUTS)
    folder = "dev/dev-use1-01/tenants/orders"
    assert rows == [{"path": f"{folder}/{name}"} for name in ("input.yaml", "namespace.yaml", "secrets.yaml", "sync.yaml")]
    assert fleet.git("status", "--porcelain", "--untracked-files=all").split("\n") == [f"?? {row['path']}" for row in rows]
    provider = document(fleet, f"{folder}/input.yaml", "ResourceSetInputProvider")
    assert provider["metadata"]["name"] == "orders-inputs"
    assert list(provider["spec"]["defaultValues"].items()) == [
        ("appName", "orders"), ("image", IMAGE), ("replicas", 1), ("logLevel", "INFO"), ("environment", "dev"),
        ("secretName", "orders-secrets"),
    ]  # fmt: skip
    assert document(fleet, f"{folder}/namespace.yaml", "Namespace")["metadata"]["name"] == "orders-dev"
    secret = document(fleet, f"{folder}/secrets.yaml", "ExternalSecret")
    assert secret["spec"]["target"]["name"] == "orders-secrets"
    assert secret["spec"]["data"][0]["remoteRef"]["key"] == "secret/data/orders/dev"
    assert fleet.ok("lint", "--strict") == []


def test_a_new_tenant_is_rendered_like_any_other(fleet: Fleet) -> None:
    fleet.ok(*ORDERS, *INPUTS, "--namespace", "shop")
    (found,) = fleet.ok("render", "orders", "-o", "json")
    assert [each["metadata"]["name"] for each in found["objects"]] == ["orders-charts", "orders-db", "orders-api"]
    assert {each["metadata"]["namespace"] for each in found["objects"]} == {"shop"}


def test_what_is_given_wins_over_what_would_be_filled_in(fleet: Fleet) -> None:
    fleet.ok(*ORDERS, *INPUTS, "--set", "secretName=mine")
    folder = "dev/dev-use1-01/tenants/orders"
    assert document(fleet, f"{folder}/input.yaml", "ResourceSetInputProvider")["spec"]["defaultValues"]["secretName"] == "mine"
    assert document(fleet, f"{folder}/secrets.yaml", "ExternalSecret")["spec"]["target"]["name"] == "mine"


def test_the_secrets_are_where_the_policy_and_the_neighbours_have_them(fleet: Fleet) -> None:
    fleet.edit("fleet.yaml", "secret/data/{tenant}/{environment}", "kv/data/{environment}/{tenant}")
    fleet.edit(
        "dev/dev-use1-01/tenants/payment-app/secrets.yaml", "https://vault.dev-use1-01.acme.example:8200", "https://vault.example"
    )
    fleet.edit("dev/dev-use1-01/tenants/payment-app/secrets.yaml", "path: secret", "path: kv")
    fleet.ok(*ORDERS, *INPUTS)
    path = "dev/dev-use1-01/tenants/orders/secrets.yaml"
    vault = document(fleet, path, "SecretStore")["spec"]["provider"]["vault"]
    assert (vault["server"], vault["path"]) == ("https://vault.example", "kv")
    assert vault["auth"]["kubernetes"]["role"] == "orders"
    assert document(fleet, path, "ExternalSecret")["spec"]["data"][0]["remoteRef"]["key"] == "kv/data/dev/orders"


def test_the_signature_is_that_of_the_pinned_release(fleet: Fleet) -> None:
    fleet.release("v1.1.0", "apps/standard-service/inputs.schema.json", '"maximum": 100', '"maximum": 0')
    fleet.ok(*ORDERS, *INPUTS)
    fleet.edit("prod/prod-use1-01/flux/blueprints.yaml", "v1.0.0", "v1.1.0")
    words = ("new-tenant", "orders", "--cluster", "prod-use1-01", "--blueprint", "standard-service")
    (line,) = fleet.refused(3, *words, *INPUTS)
    assert "replicas" in line
    assert not (fleet.root / "prod/prod-use1-01/tenants/orders").exists()


@pytest.mark.parametrize(
    ("code", "words", "says"),
    [
        (4, ("orders", "--cluster", "nowhere", "--blueprint", "standard-service"), 'cluster "nowhere" not found'),
        (4, ("orders", "--cluster", "dev-use1-01", "--blueprint", "other"), 'blueprint "other" not found at tag v1.0.0'),
        (4, ("orders", "--cluster", "dev-use1-01", "--blueprint", "../apps/standard-service"), "not found"),
        (6, ("payment-app", "--cluster", "dev-use1-01", "--blueprint", "standard-service"), 'tenant "payment-app" exists'),
        (6, (*ORDERS[1:], "--namespace", "payment-dev"), 'namespace "payment-dev" is that of payment-app'),
        (2, ("Orders", "--cluster", "dev-use1-01", "--blueprint", "standard-service"), "<tenant> is 'Orders'"),
        (2, ("a" * 57, "--cluster", "dev-use1-01", "--blueprint", "standard-service"), "<tenant>"),
        (2, (*ORDERS[1:], "--namespace", "flux-system"), "--namespace is 'flux-system'"),
        (2, (*ORDERS[1:], "--namespace", "kube-system"), "--namespace is 'kube-system'"),
        (2, (*ORDERS[1:], "--namespace", "1e3"), "--namespace is '1e3'"),
        (2, (*ORDERS[1:], "--set", "appName"), "--set is 'appName'"),
        (2, ("orders", "--blueprint", "standard-service"), "--cluster is missing"),
        (2, ("orders", "--cluster", "dev-use1-01"), "--blueprint is missing"),
        (3, (*ORDERS[1:], "--set", "other=1"), "other is not a known field"),
        (3, (*ORDERS[1:], "--set", "environment=Not"), "environment"),
        (3, (*ORDERS[1:], "--set", "environment=prod"), "environment of a tenant in dev/dev-use1-01 must be dev"),
    ],
)
def test_a_tenant_that_cannot_be_added_changes_nothing(fleet: Fleet, code: int, words: tuple[str, ...], says: str) -> None:
    given = () if "--set" in words and "appName" in words else INPUTS
    (line,) = fleet.refused(code, "new-tenant", *words, *given)
    assert says in line
    assert fleet.git("status", "--porcelain", "--untracked-files=all") == ""


def test_every_missing_input_is_told_and_no_example_stands_in_for_it(fleet: Fleet) -> None:
    lines = fleet.refused(3, *ORDERS)
    assert [line.split()[0] for line in lines] == ["appName", "image", "logLevel", "replicas"]
    assert not (fleet.root / "dev/dev-use1-01/tenants/orders").exists()


def test_where_only_the_api_may_hold_inputs_no_tenant_is_added_by_git(fleet: Fleet) -> None:
    fleet.edit("fleet.yaml", "{name: dev}", "{name: dev, inputs: [api]}")
    (line,) = fleet.refused(3, *ORDERS, *INPUTS)
    assert "dev takes inputs from api only" in line


def test_a_pin_that_is_no_tag_of_the_blueprints_is_told(fleet: Fleet) -> None:
    fleet.edit("dev/dev-use1-01/flux/blueprints.yaml", "v1.0.0", "v9.0.0")
    (line,) = fleet.refused(4, *ORDERS, *INPUTS)
    assert 'tag "v9.0.0"' in line


def test_a_tenant_of_a_new_cluster_needs_nothing_else(fleet: Fleet) -> None:
    fleet.ok("new-cluster", "staging-euw1-01", "--environment", "staging")
    fleet.ok("new-tenant", "orders", "--cluster", "staging-euw1-01", "--blueprint", "standard-service", *INPUTS)
    assert fleet.ok("lint", "--strict") == []


def test_text_that_yaml_takes_for_something_else_is_quoted(fleet: Fleet) -> None:
    words = [word if not word.startswith("image=") else "image=1e3" for word in INPUTS]
    fleet.ok(*ORDERS, *words)
    assert '    image: "1e3"\n' in fleet.read("dev/dev-use1-01/tenants/orders/input.yaml")
