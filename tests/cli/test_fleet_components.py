"""`fleet check-components` and `fleet prune-versions`, on the sample repository of components."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

import live
from cli.command import Cli, Done
from cli.fleets import NAMES
from flux_resourceset.cli.repositories.git_trees import WorkTree
from flux_resourceset.repositories import components

pytestmark = pytest.mark.long

SAMPLE = live.ROOT / "examples" / "components-repo"
KUBECTL = """#!/bin/sh
# stands in for kubectl, which make e2e has: builds whatever names no missing file
cd "$2" || exit 1
grep -q broken kustomization.yaml && { echo 'error: broken' >&2; exit 1; }
exit 0
"""


class Repository:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "components"
        shutil.copytree(SAMPLE, self.root)
        programs = folder / "bin"
        programs.mkdir()
        (programs / "kubectl").write_text(KUBECTL)
        (programs / "kubectl").chmod(stat.S_IRWXU)
        self.cli = Cli(folder, **NAMES).but(PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "sample")
        self.git("tag", "v1.1.0")

    def git(self, *words: str) -> None:
        subprocess.run(["git", "-C", str(self.root), *words], check=True, env={**os.environ, **NAMES})

    def check(self, *words: str) -> Done:
        return self.cli("fleet", "check-components", str(self.root), *words)

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text()
        assert old in text
        (self.root / path).write_text(text.replace(old, new))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def rules(done: Done) -> list[tuple[str, str]]:
    assert done.code == (3 if done.data else 0), done
    return [(each["rule"], each["path"]) for each in done.data]


def test_the_sample_is_clean(repository: Repository) -> None:
    assert rules(repository.check("--released", "v1.1.0")) == []


def test_a_directory_that_is_not_listed_is_found(repository: Repository) -> None:
    shutil.copytree(repository.root / "core/cert-manager/1.14.1", repository.root / "core/cert-manager/1.15.0")
    shutil.copytree(repository.root / "core/cert-manager/1.14.1", repository.root / "core/other/2.0.0")
    assert rules(repository.check()) == [("unlisted", "core/cert-manager/1.15.0"), ("unlisted", "core/other/2.0.0")]


def test_a_version_and_an_environment_that_are_missing_are_found(repository: Repository) -> None:
    shutil.rmtree(repository.root / "core/cert-manager/1.14.0")
    shutil.rmtree(repository.root / "observability/grafana/17.0.0/qa")
    assert rules(repository.check()) == [("missing", "core/cert-manager/1.14.0"), ("missing", "observability/grafana/17.0.0/qa")]


def test_what_does_not_build_is_found(repository: Repository) -> None:
    repository.edit("core/cert-manager/1.14.0/prod/kustomization.yaml", "resources:", "resources: # broken")
    assert rules(repository.check()) == [("build", "core/cert-manager/1.14.0/prod")]


def test_a_released_version_must_not_change(repository: Repository) -> None:
    repository.edit("core/cert-manager/1.14.0/base/namespace.yaml", "cert-manager", "other")
    (repository.root / "core/cert-manager/1.14.1/base/more.yaml").write_text("a: 1\n")
    assert rules(repository.check()) == []
    assert rules(repository.check("--released", "v1.1.0")) == [
        ("immutable", "core/cert-manager/1.14.0/base/namespace.yaml"),
        ("immutable", "core/cert-manager/1.14.1/base/more.yaml"),
    ]


def test_a_released_file_is_compared_whatever_its_size_and_as_git_keeps_its_lines(repository: Repository) -> None:
    large = repository.root / "core/cert-manager/1.14.0/base/crds.yaml"
    large.write_text("# " + "x" * 2**21 + "\n")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "large")
    repository.git("tag", "v1.2.0")
    repository.git("config", "core.autocrlf", "true")
    repository.git("rm", "-r", "-q", "--cached", ".")
    repository.git("reset", "-q", "--hard")
    assert b"\r\n" in (repository.root / "COMPONENTS.yaml").read_bytes()
    assert rules(repository.check("--released", "v1.2.0")) == []
    large.write_text(large.read_text() + "# more\n")
    assert rules(repository.check("--released", "v1.2.0")) == [("immutable", "core/cert-manager/1.14.0/base/crds.yaml")]


def test_what_kubectl_says_is_told_without_time_process_and_place(repository: Repository) -> None:
    program = repository.cli.environment["PATH"].split(os.pathsep)[0]
    line = 'E1118 12:46:41.590418   26952 run.go:72] "command failed" err="no $2/missing.yaml"'
    Path(program, "kubectl").write_text(f"#!/bin/sh\ncat >&2 <<EOF\n{line}\nEOF\nexit 1\n")
    done = repository.check()
    assert done.data[0]["message"] == "no core/cert-manager/1.14.0/dev/missing.yaml"


REGISTER = 'environments: [dev]\ncomponents:\n  - {id: a, path: x/a, versions: ["3", "2", "1"]}\n'


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_versions_are_taken_out_of_a_register_however_it_is_written(mark: str) -> None:
    assert components.without_versions(mark + REGISTER, {"a": ["1", "2"]}) == mark + REGISTER.replace(', "2", "1"', "")
    assert components.without_versions(mark + REGISTER, {"a": ["3", "1"]}) == mark + REGISTER.replace('"3", "2", "1"', '"2"')


def test_a_path_of_the_catalog_may_lead_with_a_dot(repository: Repository) -> None:
    tree = WorkTree(repository.root)
    register = components.register(tree)
    used = ["./core/cert-manager/1.14.0/", "core/./../observability//grafana/17.0.0"]
    assert components.prunable(register, used, 1) == []
    assert len(components.prunable(register, [], 1)) == 2
    assert all(components.unavailable(components.Use("v1", path, "it"), tree) is None for path in used)


def test_components_must_not_wait_for_each_other(repository: Repository) -> None:
    repository.edit(
        "COMPONENTS.yaml", "    path: core/cert-manager\n", "    path: core/cert-manager\n    depends_on: [grafana]\n"
    )
    assert rules(repository.check()) == []
    repository.edit(
        "COMPONENTS.yaml",
        "    path: observability/grafana\n",
        "    path: observability/grafana\n    depends_on: [cert-manager]\n",
    )
    assert rules(repository.check()) == [("cycle", "COMPONENTS.yaml")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("environments:", "environmints:"),
        ('versions: ["4.9.0"]', "versions: []"),
        ("path: core/cert-manager", "path: ../core"),
        ("id: grafana", "id: cert-manager"),
        ("    path: core/cert-manager\n", "    path: core/cert-manager\n    depends_on: [nothing]\n"),
        ("components:\n", "components:\n  - &a [*a]\n"),
    ],
)
def test_a_register_that_breaks_its_schema_is_one_finding_a_fault(repository: Repository, old: str, new: str) -> None:
    repository.edit("COMPONENTS.yaml", old, new)
    done = repository.check()
    assert done.code == 3
    assert {each["rule"] for each in done.data} == {"schema"}


def test_what_is_needed_and_not_there_is_said(repository: Repository, tmp_path: Path) -> None:
    assert "kubectl" in repository.cli.but(PATH="/nowhere").refused(2, "fleet", "check-components", str(repository.root))[0]
    assert repository.cli.refused(2, "fleet", "check-components", str(tmp_path))
    assert repository.check("--released", "v9").code == 4
    assert repository.check("--released", "main").code == 4  # a branch is no tag
    assert repository.check("--released", "").code == 2


# With a server


CATALOG = {
    "type": "kustomize",
    "oci_url": "oci://registry.example.com/components",
    "oci_tag": "v1.1.0",
    "cluster_env_enabled": True,
}


@pytest.mark.long
def test_paths_of_the_catalog_and_of_overrides_must_be_in_their_tags(tmp_path: Path) -> None:
    repository = Repository(tmp_path)
    (tmp_path / "server").mkdir()
    with live.serving(tmp_path / "server", SEED_FILE=str(live.ROOT / "data" / "seed.json")) as server, server.client() as api:
        repository.cli.environment |= {
            "FLUX_API_URL": server.url, "FLUX_API_TOKEN": live.READ, "FLUX_API_WRITE_TOKEN": live.WRITE,
        }  # fmt: skip
        assert rules(repository.check("--catalog")) == []
        api.post(
            "/platform_components", json={"id": "grafana", "component_path": "observability/grafana/17.0.0", **CATALOG}
        ).raise_for_status()
        assert rules(repository.check("--catalog")) == []
        reference = {"id": "grafana", "component_path": "observability/grafana/18.0.0"}
        cluster = api.get("/clusters/demo-cluster-01").json()
        references = [*cluster["platform_components"], reference]
        api.patch("/clusters/demo-cluster-01", json={"platform_components": references}).raise_for_status()
        assert rules(repository.check("--catalog")) == [("catalog", "observability/grafana/18.0.0/dev")]
        api.patch("/platform_components/grafana", json={"oci_tag": "v9"}).raise_for_status()
        assert ("catalog", "observability/grafana/17.0.0") in rules(repository.check("--catalog"))
        # what is used is never pruned
        done = repository.cli.ok("fleet", "prune-versions", str(repository.root), "--keep", "1")
        assert done.data == [{"path": "core/cert-manager/1.14.0"}]
        text = (repository.root / "COMPONENTS.yaml").read_text()
        repository.cli.ok("fleet", "prune-versions", str(repository.root), "--keep", "1", "--apply")
        assert not (repository.root / "core/cert-manager/1.14.0").exists()
        assert (repository.root / "observability/grafana/17.0.0").exists()
        assert (repository.root / "COMPONENTS.yaml").read_text() == text.replace('["1.14.0", "1.14.1"]', '["1.14.1"]')
        assert repository.cli.ok("fleet", "prune-versions", str(repository.root), "--keep", "1").data == []
        assert repository.cli.ok("fleet", "prune-versions", str(repository.root)).data == []


def test_nothing_is_pruned_unless_the_catalog_can_be_asked(repository: Repository) -> None:
    assert repository.cli.refused(2, "fleet", "prune-versions", str(repository.root), "--keep", "1", "--apply")
    assert (repository.root / "core/cert-manager/1.14.0").exists()
