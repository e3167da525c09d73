"""One version everywhere, and a changelog that a release can be made from."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml

import flux_resourceset
import live

pytestmark = pytest.mark.long

PLACES = (
    "src/flux_resourceset/__init__.py",
    "deploy/chart/flux-resourceset/Chart.yaml",
    "deploy/server/overlays/production/kustomization.yaml",
    "deploy/server/samples/move-to-postgresql.yaml",
    "deploy/cluster/delivery.yaml",
    "docs/bootstrap.md",
    "docs/install.md",
    "openapi/openapi.yaml",
    "CHANGELOG.md",
)
TODAY = r"\d{4}-\d\d-\d\d"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(live.ROOT / name, tmp_path / name)
    return tmp_path


def releases(root: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, str(live.ROOT / "docs" / "releases.py"), "--root", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_the_version_is_one_everywhere() -> None:
    assert releases(live.ROOT) == (0, f"version {flux_resourceset.__version__}: everything agrees\n")
    assert metadata.version("flux-resourceset") == flux_resourceset.__version__
    chart = yaml.safe_load((live.ROOT / PLACES[1]).read_text())
    assert chart["version"] == chart["appVersion"] == flux_resourceset.__version__


def mentions() -> list[tuple[str, int]]:
    """Every file that names the version, as often as it does."""
    texts = {name: (live.ROOT / name).read_text() for name in PLACES if name != "CHANGELOG.md"}
    return [(name, number) for name, text in texts.items() for number in range(text.count(flux_resourceset.__version__))]


@pytest.mark.parametrize(("name", "number"), mentions())
def test_a_place_with_another_version_is_named(project: Path, name: str, number: int) -> None:
    parts = (project / name).read_text().split(flux_resourceset.__version__)
    before, after = parts[: number + 1], parts[number + 1 :]
    (project / name).write_text("9.9.9".join([flux_resourceset.__version__.join(part) for part in (before, after)]))
    code, said = releases(project)
    assert (code, "9.9.9" in said) == (1, True)


def test_a_version_is_set_everywhere_and_gets_its_notes(project: Path) -> None:
    before = (project / "CHANGELOG.md").read_text()
    assert releases(project, "--set", "9.8.7") == (0, "version 9.8.7: everything agrees\n")
    assert [name for name, _ in mentions() if flux_resourceset.__version__ in (project / name).read_text()] == []
    changelog = (project / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[Unreleased\]\n\n## \[9\.8\.7\] - {TODAY}\n", changelog, re.MULTILINE)
    assert releases(project, "--tag", "v9.8.7")[0] == 0
    notes = releases(project, "--notes", "v9.8.7")[1]
    assert notes.strip()
    assert notes.strip() in before


def test_a_tag_without_a_version_or_notes_is_no_release(project: Path) -> None:
    code, said = releases(project, "--tag", "v9.9.9")
    assert code == 1
    assert "the tag is v9.9.9" in said
    assert "says nothing of v9.9.9" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("# Changelog\n\n## [1.0.0] - 2026-01-01\n", "[Unreleased]"),
        ("## [Unreleased]\n\n## [1.0.0] - 2026-01-01\n\n## [1.1.0] - 2026-02-01\n", "newest first"),
        ("## [Unreleased]\n\n## [1.0.0]\n", "YYYY-MM-DD"),
        ("## [Unreleased]\n\n### Broken\n", "'Broken'"),
    ],
)
def test_a_changelog_that_nobody_can_read_is_refused(project: Path, text: str, why: str) -> None:
    (project / "CHANGELOG.md").write_text(text)
    code, said = releases(project)
    assert (code, why in said) == (1, True), said
