"""The documentation is fresh, complete and holds together."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import live
from flux_resourceset import errors, settings
from flux_resourceset.kinds import formats, kind_files, model

DOCS = live.ROOT / "docs"
VIEWS = sorted(path.name for path in (live.ROOT / "deploy" / "cluster" / "views").iterdir() if path.is_dir())
ROOMS = sorted((live.ROOT / "src" / "flux_resourceset").glob("*/README.md"))
BESIDE = [page for place in ("deploy", "examples") for page in sorted((live.ROOT / place).rglob("*.md"))]  # what they describe
PAGES = [*sorted(live.ROOT.glob("*.md")), *sorted(DOCS.glob("*.md")), *ROOMS, *BESIDE]

_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")


def read(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def refusals(root: type[errors.Refusal] = errors.Refusal) -> Iterator[type[errors.Refusal]]:
    for refusal in root.__subclasses__():
        yield refusal
        yield from refusals(refusal)


@pytest.mark.long
def test_generated_files_are_fresh() -> None:
    done = subprocess.run([sys.executable, str(DOCS / "generate.py"), "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"run make generate\n{done.stdout}{done.stderr}"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A project of its own for docs/generate.py, with the cluster's files and nothing generated yet."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("")
    (tmp_path / "docs" / "generate.py").write_text((DOCS / "generate.py").read_text(encoding="utf-8"))
    shutil.copytree(live.ROOT / "deploy" / "cluster", tmp_path / "deploy" / "cluster")
    return tmp_path


def generate(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "docs" / "generate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.long
def test_a_stale_page_is_named(elsewhere: Path) -> None:
    page = elsewhere / "docs" / "errors.md"
    page.write_text("<!-- generated: errors -->\nold\n<!-- end -->\n")
    checked = generate(elsewhere, "--check")
    assert (checked.returncode, "docs/errors.md is stale; run make generate" in checked.stdout) == (1, True), checked
    assert generate(elsewhere).returncode == 0
    assert "not-found" in page.read_text(encoding="utf-8")


@pytest.mark.long
def test_shipped_files_are_included_as_they_are(elsewhere: Path) -> None:
    page = elsewhere / "docs" / "views.md"
    shipped = "deploy/cluster/views/namespaces/provider.yaml"
    page.write_text(f"<!-- generated: file {shipped} as resources/a.yaml -->\n<!-- end -->\n")
    assert generate(elsewhere).returncode == 0
    text = (elsewhere / shipped).read_text(encoding="utf-8")
    assert f"```yaml file=resources/a.yaml\n{text}```\n" in page.read_text(encoding="utf-8")
    (elsewhere / shipped).write_text(text + "# changed\n")
    assert "docs/views.md is stale" in generate(elsewhere, "--check").stdout


@pytest.mark.long
def test_the_package_carries_exactly_what_a_cluster_is_given(elsewhere: Path) -> None:
    bundle = elsewhere / "src" / "flux_resourceset" / "bundle"
    left_over = bundle / "views" / "gone" / "provider.yaml"
    left_over.parent.mkdir(parents=True)
    left_over.write_text("")
    checked = generate(elsewhere, "--check").stdout
    assert "src/flux_resourceset/bundle/cluster-identity.yaml is stale" in checked
    assert "src/flux_resourceset/bundle/views/gone/provider.yaml is stale" in checked
    assert generate(elsewhere).returncode == 0
    found = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
    views = {f"views/{view}/{name}.yaml" for view in VIEWS for name in ("provider", "resourceset")}
    assert found == {"cluster-identity.yaml", "internal-api-token.yaml", *views}


@pytest.mark.parametrize("view", VIEWS)
def test_every_template_and_every_provider_is_shown(view: str) -> None:
    directory = live.ROOT / "deploy" / "cluster" / "views" / view
    assert (directory / "resourceset.yaml").read_text(encoding="utf-8") in read("templates.md")
    assert (directory / "provider.yaml").read_text(encoding="utf-8") in read("providers.md")


@pytest.mark.parametrize("setting", settings.SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_is_documented_with_its_default(setting: settings.Setting) -> None:
    default = f"`{setting.default}`" if setting.default else "none"
    assert f"| `{setting.name}` | {default} |" in read("configuration.md")


@pytest.mark.parametrize(("code", "status"), sorted({(refusal.code, refusal.status) for refusal in refusals()}))
def test_every_error_code_is_documented_with_its_status(code: str, status: int) -> None:
    assert f"| {status} | `{code}` |" in read("api.md")


@pytest.mark.parametrize("name", formats.FORMATS)
def test_every_format_is_documented(name: str) -> None:
    assert f"| `{name}` |" in read("extending.md")


@pytest.mark.parametrize("kind", list(kind_files.load()), ids=lambda kind: kind.name)
def test_every_kind_has_its_routes_and_its_view_in_the_reference(kind: model.Kind) -> None:
    text = read("api.md")
    assert f"`/{kind.name}/{{id}}`" in text
    if isinstance(kind, model.Referenced):
        assert f"`/api/v2/flux/clusters/{{cluster_dns}}/{kind.endpoint}`" in text


def slugs(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", _FENCE.sub("", page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.add(next(s for s in [slug, *(f"{slug}-{n}" for n in range(1, 100))] if s not in found))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(live.ROOT).as_posix())
def test_internal_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in _LINK.findall(_FENCE.sub("", text)):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page.name} links to {target}, which does not exist"
        if anchor:
            assert anchor in slugs(path.read_text(encoding="utf-8")), f"{page.name} links to {target}, which has no such heading"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), [live.ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = (target.partition("#")[0] for target in _LINK.findall(page.read_text(encoding="utf-8")))
        waiting += [(page.parent / target).resolve() for target in targets if target.endswith(".md") and "://" not in target]
    assert set(PAGES) - reached == set()
