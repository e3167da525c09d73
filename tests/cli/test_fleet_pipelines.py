"""The pipelines that `fleet init` writes: their steps are run, with a forge, a registry and installers that only remember."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli import forge_server
from cli.fleets import INPUT, NAMES, Fleet, fleet, scaffold
from cli.forge_server import Told

__all__ = ["fleet", "scaffold"]

pytestmark = pytest.mark.long

SHELL = shutil.which("bash") or "sh"
DIGEST = "sha256:" + "cd" * 32
IMAGE = f"registry.acme.com/payment:v3@{DIGEST}"
NUMBER = "7"
BOTH = ("acme-platform-blueprints", "acme-fleet-config")

# What is not there in a test: each remembers its words; some have something to say.
STAND_INS = {
    "pip": "",
    "apk": "",
    "curl": "",
    "cosign": "",
    "docker": f'case "$1" in inspect) echo "registry.acme.com/payment@{DIGEST}";; esac',
    "gh": 'case "$*" in *"/pulls?"*) echo "0000 6"; echo "$HEAD_SHA 7";; esac',
}


class Pipelines:
    """Bare repositories where a forge would have them, a workspace, and stand-ins on the PATH."""

    def __init__(self, fleet: Fleet, forge: forge_server.Forge) -> None:
        self.fleet, self.forge = fleet, forge
        self.home = fleet.folder / "ci"
        self.server = self.home / "server"
        self.space = self.home / "workspace"
        self.said = self.home / "said"
        bin = self.home / "bin"
        for folder in (self.server / "acme", self.space, self.home / "temp", bin):
            folder.mkdir(parents=True)
        for name, script in STAND_INS.items():
            (bin / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {self.said}\n{script}\n')
            (bin / name).chmod(0o755)
        fleet.edit("fleet.yaml", "people:", "people:\n  dev-1: [dev@acme.example]\n  #")
        fleet.commit("Who commits")
        for name in BOTH:
            fleet.git("clone", "-q", "--bare", str(fleet.folder / name), str(self.bare(name)))
        self.path = os.pathsep.join([str(bin), str(Path(sys.executable).parent), os.environ["PATH"]])

    def bare(self, name: str) -> Path:
        return self.server / "acme" / f"{name}.git"

    def propose(self, message: str = "change") -> str:
        """A commit that the forge has as the head of a request, and main has not."""
        head = self.fleet.commit(message)
        for ref in ("refs/pull/7/head", "refs/merge-requests/7/head"):
            self.fleet.git("push", "-q", str(self.bare(BOTH[1])), f"HEAD:{ref}")
        self.approved(head)
        return head

    def approved(self, head: str, *users: str) -> None:
        pull = "/api/v3/repos/acme/acme-fleet-config/pulls/7"
        reviews = [
            {"user": {"login": user}, "state": "APPROVED", "commit_id": head, "submitted_at": "2026-01-31T12:00:00Z"}
            for user in users
        ]
        self.forge.pages[pull] = Told({"head": {"sha": head}, "user": {"login": "dev-1"}})
        self.forge.pages[f"{pull}/reviews"] = Told(reviews)
        merge = "/api/v4/projects/acme%2Facme-fleet-config/merge_requests/7"
        self.forge.pages[merge] = Told({"sha": head, "author": {"username": "dev-1"}})
        self.forge.pages[f"{merge}/versions"] = Told([{"head_commit_sha": head, "created_at": "2026-01-31T11:00:00Z"}])
        self.forge.pages[f"{merge}/reviewers"] = Told([])
        approvals = [{"user": {"username": user}, "approved_at": "2026-01-31T12:00:00Z"} for user in users]
        self.forge.pages[f"{merge}/approvals"] = Told({"approved_by": approvals})

    def run(self, script: str, at: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        variables = {"PATH": self.path, "HOME": str(self.home), **NAMES, **environment}
        return subprocess.run([SHELL, "-ec", script], cwd=at, env=variables, capture_output=True, text=True, timeout=120)

    @property
    def lines(self) -> list[str]:
        return self.said.read_text().splitlines() if self.said.exists() else []


@pytest.fixture
def pipelines(fleet: Fleet) -> Iterator[Pipelines]:
    with forge_server.running() as forge:
        yield Pipelines(fleet, forge)


# GitHub


class Job:
    """The steps of a job of a workflow, one after the other, as GitHub runs them."""

    def __init__(self, pipelines: Pipelines, text: str, job: str, **expressions: str) -> None:
        self.pipelines = pipelines
        self.job: dict[str, Any] = yaml.safe_load(text)["jobs"][job]
        self.workflow: dict[str, Any] = yaml.safe_load(text)
        self.expressions = {f"${{{{ {name} }}}}": value for name, value in expressions.items()}
        self.env_file = pipelines.home / "env"
        self.env_file.write_text("")
        self.outcomes: dict[str, bool] = {}
        self.shown: dict[str, str] = {}

    def run(self) -> bool:
        for step in self.job["steps"]:
            if "run" in step and self._wanted(step):
                self._run(step)
        return all(self.outcomes.values())

    def _wanted(self, step: Mapping[str, Any]) -> bool:
        match step.get("if"):
            case None:
                return all(self.outcomes.values())
            case "${{ always() }}":
                return True
            case "${{ !cancelled() && steps.change.outcome == 'success' }}":
                return self.outcomes["Fetch the change"]
        raise AssertionError(step["if"])

    def _run(self, step: Mapping[str, Any]) -> None:
        usual = self.job.get("defaults", {}).get("run", {}).get("working-directory", ".")
        at = self.pipelines.space / step.get("working-directory", usual)
        self.expressions["${{ job.status }}"] = "success" if all(self.outcomes.values()) else "failure"
        kept = dict(line.split("=", 1) for line in self.env_file.read_text().splitlines())
        given = {**self.workflow.get("env", {}), **self.job.get("env", {}), **kept, **step.get("env", {})}
        environment = {name: self.expressions.get(str(value), str(value)) for name, value in given.items()}
        assert not [value for value in environment.values() if "${{" in value], environment
        done = self.pipelines.run(step["run"], at, {**self._usual(), **environment})
        self.outcomes[step["name"]] = done.returncode == 0
        self.shown[step["name"]] = done.stdout + done.stderr

    def _usual(self) -> dict[str, str]:
        home = self.pipelines.home
        return {
            "GITHUB_REPOSITORY": "acme/acme-fleet-config", "GITHUB_ENV": str(self.env_file), "RUNNER_TEMP": str(home / "temp"),
            "GITHUB_SERVER_URL": f"file://{self.pipelines.server}", "GITHUB_RUN_ID": "1", "GITHUB_SHA": "f" * 40,
            "GITHUB_ACTOR": "dev-1", "GITHUB_API_URL": f"{self.pipelines.forge.url}/api/v3",
        }  # fmt: skip


def gates(pipelines: Pipelines, head: str, number: str = NUMBER) -> Job:
    for name in BOTH:
        shutil.rmtree(pipelines.space / name, ignore_errors=True)
        pipelines.fleet.git("clone", "-q", "--branch", "main", str(pipelines.bare(name)), str(pipelines.space / name))
    text = pipelines.fleet.git("show", "HEAD:.github/workflows/gates.yaml", at=pipelines.space / BOTH[1])
    return Job(
        pipelines, text, "gates",
        **{
            "github.token": forge_server.TOKEN,
            "github.event.pull_request.number": number,
            "github.event.pull_request.head.sha || github.event.workflow_run.head_sha": head,
        },
    )  # fmt: skip


def verdicts(pipelines: Pipelines) -> list[str]:
    return [line.split("state=")[1].split()[0] for line in pipelines.lines if "/statuses/" in line]


def set_image(fleet: Fleet, environment: str) -> None:
    fleet.ok("set", "payment-app", "--environment", environment, "--set", f"image={IMAGE}")


def test_a_change_of_the_first_environment_passes_by_itself(pipelines: Pipelines) -> None:
    set_image(pipelines.fleet, "dev")
    job = gates(pipelines, pipelines.propose())
    assert job.run(), job.shown
    assert verdicts(pipelines) == ["pending", "success"]
    assert any(line.startswith("gh pr comment 7 --repo acme/acme-fleet-config ") for line in pipelines.lines)
    comment = (pipelines.home / "temp" / "diff.md").read_text()
    assert IMAGE in comment


def test_a_change_that_needs_approvals_waits_for_them(pipelines: Pipelines) -> None:
    set_image(pipelines.fleet, "staging")
    head = pipelines.propose()
    job = gates(pipelines, head)
    assert not job.run()
    assert [name for name, fine in job.outcomes.items() if not fine] == ["Check approvals"]
    pipelines.approved(head, "sre-1")
    after_review = gates(pipelines, head, number="")  # an event that does not tell the pull request
    assert after_review.run(), after_review.shown
    assert verdicts(pipelines) == ["pending", "failure", "pending", "success"]


def test_a_change_cannot_bring_its_own_policy(pipelines: Pipelines) -> None:
    pipelines.fleet.edit("fleet.yaml", "require: {sre: 2, tech-leads: 1}", "require: {}")
    pipelines.fleet.write("CODEOWNERS", pipelines.fleet.read("CODEOWNERS").replace("@lead-1", ""))
    job = gates(pipelines, pipelines.propose())
    assert not job.run()
    assert not job.outcomes["Check approvals"]
    assert verdicts(pipelines)[-1] == "failure"


def test_where_blueprints_come_from_is_reviewed_in_the_first_environment_too(pipelines: Pipelines) -> None:
    """Neither its address nor the policy's list of sources changes without approvals."""
    for path in ("dev/dev-use1-01/flux/blueprints.yaml", "fleet.yaml"):
        pipelines.fleet.edit(path, "github.com/acme/acme-platform-blueprints.git", "github.com/evil/acme-platform-blueprints.git")
        job = gates(pipelines, pipelines.propose())
        assert not job.run()
        assert not job.outcomes["Check approvals"]


def test_nothing_of_the_change_is_in_the_work_tree(pipelines: Pipelines) -> None:
    pipelines.fleet.write(
        "dev/dev-use1-01/base/more.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"
    )
    job = gates(pipelines, pipelines.propose())
    job.run()
    place = pipelines.space / BOTH[1]
    assert pipelines.fleet.git("status", "--porcelain", at=place) == ""
    assert not (place / "dev/dev-use1-01/base/more.yaml").exists()


def test_what_is_wrong_is_told_where_it_stands(pipelines: Pipelines) -> None:
    pipelines.fleet.edit(INPUT.format("dev"), "environment: dev", "environment: prod")
    job = gates(pipelines, pipelines.propose())
    assert not job.run()
    assert "::error file=dev/dev-use1-01/tenants/payment-app/input.yaml,line=" in job.shown["Lint"]
    assert job.outcomes["Check images"]


def test_a_commit_that_is_no_longer_the_last_one_is_not_judged(pipelines: Pipelines) -> None:
    set_image(pipelines.fleet, "dev")
    old = pipelines.propose()
    pipelines.fleet.write("README.md", "other\n")
    pipelines.propose()
    job = gates(pipelines, old)
    assert not job.run()
    assert list(job.outcomes) == ["Install the command line", "Fetch the change", "Tell the verdict"]


def test_an_image_of_the_last_environment_that_was_never_before_it_is_refused(pipelines: Pipelines) -> None:
    set_image(pipelines.fleet, "prod")
    head = pipelines.propose()
    pipelines.approved(head, "sre-1", "sre-2", "lead-1")
    job = gates(pipelines, head)
    assert not job.run()
    assert [name for name, fine in job.outcomes.items() if not fine] == ["Check images"]


@pytest.mark.parametrize(("before", "fine"), [("0" * 40, True), ("a" * 40, False)])
def test_a_tag_that_was_moved_is_refused(pipelines: Pipelines, before: str, fine: bool) -> None:
    text = (pipelines.fleet.blueprints / ".github/workflows/blueprints.yaml").read_text()
    job = Job(pipelines, text, "tag", **{"github.ref_name": "v1.0.0", "github.event.before": before})
    assert job.run() is fine


def test_blueprints_are_linted(pipelines: Pipelines) -> None:
    text = (pipelines.fleet.blueprints / ".github/workflows/blueprints.yaml").read_text()
    shutil.copytree(pipelines.fleet.blueprints, pipelines.space, dirs_exist_ok=True)
    assert Job(pipelines, text, "lint").run()
    (pipelines.space / "apps/standard-service/example.json").write_text("{}")
    assert not Job(pipelines, text, "lint").run()


def test_an_application_proposes_its_signed_image_to_the_first_environment(pipelines: Pipelines) -> None:
    fleet = pipelines.fleet
    text = (fleet.blueprints / "samples/application/.github/workflows/deploy.yaml").read_text()
    secrets = {f"secrets.{name}": "x" for name in ("COSIGN_PRIVATE_KEY", "COSIGN_PASSWORD", "FLEET_TOKEN")}
    settings = {"vars.IMAGE": "registry.acme.com/payment", "vars.TENANT": "payment-app", "vars.FLEET_ENVIRONMENT": "dev"}
    job = Job(pipelines, text, "deploy", **{"github.token": "x"}, **secrets, **settings)
    assert job.run(), job.shown
    bare = pipelines.bare(BOTH[1])
    (branch,) = fleet.git("branch", "--list", "deploy/*", "--format=%(refname:short)", at=bare).splitlines()
    assert fleet.git("diff", "--name-only", "main", branch, at=bare).splitlines() == [INPUT.format("dev")]
    change = fleet.git("show", f"{branch}:{INPUT.format('dev')}", at=bare)
    (image,) = [line.split(": ", 1)[1] for line in change.splitlines() if " image: " in line]
    assert image.startswith("registry.acme.com/payment:v")
    assert image.endswith(f"@{DIGEST}")
    said = [line.split()[:2] for line in pipelines.lines if line.split()[0] in ("docker", "cosign", "gh")]
    assert said == [
        ["docker", "login"], ["docker", "build"], ["docker", "build"], ["docker", "push"], ["docker", "inspect"],
        ["cosign", "sign"], ["cosign", "attest"], ["gh", "auth"], ["gh", "pr"], ["gh", "pr"],
    ]  # fmt: skip
    assert [line for line in pipelines.lines if line.startswith("cosign") and not line.endswith(image)] == []
    assert pipelines.lines[-1] == f"gh pr merge {branch} --auto --squash --delete-branch"


# GitLab


@pytest.fixture(scope="session")
def gitlab_scaffold(scaffold: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gitlab")
    Fleet(folder).cli.ok("fleet", "init", str(folder), "--ci", "gitlab")
    return folder


@pytest.fixture
def gitlab(gitlab_scaffold: Path, tmp_path: Path) -> Iterator[Pipelines]:
    shutil.copytree(gitlab_scaffold, tmp_path / "gitlab")
    with forge_server.running() as forge:
        yield Pipelines(Fleet(tmp_path / "gitlab"), forge)


def run_job(pipelines: Pipelines, pipeline: Mapping[str, Any], name: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A job as GitLab runs it: all of its lines in one shell, in the directory of the project."""
    job = pipeline[name]
    lines = [*job.get("before_script", pipeline.get("default", {}).get("before_script", [])), *job["script"]]
    elsewhere = f"url.file://{pipelines.server}/.insteadOf"  # for addresses that hold a host
    environment = {
        "CI_PROJECT_DIR": str(pipelines.space), "CI_DEFAULT_BRANCH": "main", "CI_MERGE_REQUEST_IID": NUMBER, "CI_PROJECT_ID": "1",
        "CI_REPOSITORY_URL": f"file://{pipelines.bare(BOTH[1])}", "CI_PROJECT_PATH": "acme/acme-fleet-config",
        "CI_JOB_TOKEN": "x", "CI_SERVER_HOST": "gitlab.example", "FLEET_TOKEN": "x", "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": elsewhere,
        "GIT_CONFIG_VALUE_0": "https://gitlab-ci-token:x@gitlab.example/", "GIT_CONFIG_KEY_1": elsewhere,
        "GIT_CONFIG_VALUE_1": "https://oauth2:x@gitlab.example/", **pipelines.forge.gitlab,
    }  # fmt: skip
    return pipelines.run("\n".join(lines), pipelines.space, {**environment, **variables})


def pipeline_of(pipelines: Pipelines) -> Any:
    return yaml.safe_load(pipelines.fleet.read(".gitlab-ci.yml"))


def test_gitlab_runs_the_same_gates(gitlab: Pipelines) -> None:
    pipeline = pipeline_of(gitlab)
    set_image(gitlab.fleet, "staging")
    head = gitlab.propose()
    codes = {name: run_job(gitlab, pipeline, name).returncode for name in ("lint", "diff", "images", "approvals")}
    assert codes == {"lint": 0, "diff": 0, "images": 0, "approvals": 3}
    assert (gitlab.space / "gl-code-quality-report.json").read_text().strip() == "[]"
    assert IMAGE in (gitlab.space / "diff.md").read_text()
    assert any(line.startswith("curl ") and line.endswith("/merge_requests/7/notes") for line in gitlab.lines)
    assert gitlab.fleet.git("status", "--porcelain", at=gitlab.space / BOTH[1]) == ""
    gitlab.approved(head, "sre-3")
    assert run_job(gitlab, pipeline, "approvals").returncode == 0


def test_gitlab_gets_a_report_of_what_is_wrong(gitlab: Pipelines) -> None:
    gitlab.fleet.edit(INPUT.format("dev"), "environment: dev", "environment: prod")
    gitlab.propose()
    assert run_job(gitlab, pipeline_of(gitlab), "lint").returncode == 3
    assert "tenants/payment-app/input.yaml" in (gitlab.space / "gl-code-quality-report.json").read_text()


@pytest.mark.parametrize(("before", "code"), [("0" * 40, 0), ("a" * 40, 1)])
def test_gitlab_refuses_a_tag_that_was_moved(gitlab: Pipelines, before: str, code: int) -> None:
    pipeline = yaml.safe_load((gitlab.fleet.blueprints / ".gitlab-ci.yml").read_text())
    done = run_job(gitlab, pipeline, "tag", CI_COMMIT_TAG="v1.0.0", CI_COMMIT_BEFORE_SHA=before)
    assert done.returncode == code, done


def test_gitlab_deploys_an_application(gitlab: Pipelines) -> None:
    fleet = gitlab.fleet
    pipeline = yaml.safe_load((fleet.blueprints / "samples/application/.gitlab-ci.yml").read_text())
    variables = {
        "CI_REGISTRY": "registry.acme.com", "CI_REGISTRY_IMAGE": "registry.acme.com/payment", "CI_REGISTRY_USER": "x",
        "CI_REGISTRY_PASSWORD": "x", "CI_COMMIT_SHORT_SHA": "abcdef01", "CI_COMMIT_SHA": "f" * 40, "TENANT": "payment-app",
        "FLEET_ENVIRONMENT": "dev",
    }  # fmt: skip
    done = run_job(gitlab, pipeline, "build", **variables)
    assert done.returncode == 0, done
    pinned = (gitlab.space / "image.env").read_text().strip().removeprefix("PINNED=")
    assert pinned.endswith(f"@{DIGEST}")
    fleet.git("config", "receive.advertisePushOptions", "true", at=gitlab.bare(BOTH[1]))
    done = run_job(gitlab, pipeline, "deploy", **variables, PINNED=pinned)
    assert done.returncode == 0, done
    branch = "deploy/payment-app/abcdef01"
    assert fleet.git("diff", "--name-only", "main", branch, at=gitlab.bare(BOTH[1])).splitlines() == [INPUT.format("dev")]
    assert f"image: {pinned}\n" in fleet.git("show", f"{branch}:{INPUT.format('dev')}", at=gitlab.bare(BOTH[1]))
