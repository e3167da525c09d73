"""Manifests as files of a directory, and the way back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flux_resourceset.cli import failures
from flux_resourceset.cli.cluster import manifest_files
from flux_resourceset.render import dialect, resourcesets

MANIFEST: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
PLACE = Path("b", "configmap", "a.yaml")


@pytest.fixture
def stored(tmp_path: Path) -> manifest_files.Stored:
    return manifest_files.write(tmp_path, MANIFEST)


def test_what_was_written_is_loaded(tmp_path: Path, stored: manifest_files.Stored) -> None:
    assert manifest_files.load(tmp_path) == {("", "ConfigMap", "b", "a"): stored}
    assert (tmp_path / PLACE).read_text() == stored.text


@pytest.mark.parametrize(
    "manifest",
    [
        {**MANIFEST, "metadata": {"name": "other", "namespace": "b"}},
        {**MANIFEST, "metadata": {"name": "a", "namespace": "b", "labels": ["c"]}},
        {**MANIFEST, "metadata": None},
        {"metadata": {"name": "a"}},
    ],
)
def test_a_file_that_is_not_what_its_place_says_is_refused(manifest: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / PLACE).parent.mkdir(parents=True)
    (tmp_path / PLACE).write_text(dialect.presented([manifest]))
    with pytest.raises(failures.Failure, match=r"a\.yaml was not made here; choose an empty directory, or one that was"):
        manifest_files.load(tmp_path)


def test_a_file_is_looked_at_again(tmp_path: Path, stored: manifest_files.Stored) -> None:
    identity = resourcesets.identity(MANIFEST)
    assert manifest_files.reread(tmp_path, identity, stored) is stored
    drifted = {**MANIFEST, "data": {"x": "y"}}
    (tmp_path / PLACE).write_text(dialect.presented([drifted]))
    found = manifest_files.reread(tmp_path, identity, stored)
    assert found is not None
    assert found.manifest == drifted


@pytest.mark.parametrize("text", ["", "kind: [", "metadata: {name: a}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: z}"])
def test_a_file_that_became_something_else_is_no_object(text: str, tmp_path: Path, stored: manifest_files.Stored) -> None:
    (tmp_path / PLACE).write_text(text)
    assert manifest_files.reread(tmp_path, resourcesets.identity(MANIFEST), stored) is None


def test_an_object_that_goes_takes_its_empty_directories_along(tmp_path: Path, stored: manifest_files.Stored) -> None:
    manifest_files.remove(tmp_path, resourcesets.identity(stored.manifest))
    assert list(tmp_path.iterdir()) == []
