"""Keeps a release together: docs/releases.py checks versions and changelog, --set prepares one, --notes prints what it brings.

The version stands in src/flux_resourceset/__init__.py; --set writes it where nobody can read it there: chart, manifests, pages,
the description of the API. What is generated comes out the same when it is made anew.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "src/flux_resourceset/__init__.py"
VERSION = r"\d+\.\d+\.\d+"
# file → what stands before the version in it
PLACES = {
    SOURCE: (r'__version__ = "',),
    "deploy/chart/flux-resourceset/Chart.yaml": (r"^version: ", r"^appVersion: "),
    "deploy/server/overlays/production/kustomization.yaml": (r"newTag: ",),
    "deploy/server/samples/move-to-postgresql.yaml": (r"/flux-resourceset:",),
    "deploy/cluster/delivery.yaml": (r"flux-resourceset/cluster:", r"tag: "),
    "docs/bootstrap.md": (r"flux-resourceset/cluster:", r"^    tag: "),
    "docs/install.md": (r"flux-resourceset:", r"ref=v", r"newTag: "),
    "openapi/openapi.yaml": (r"^  version: ",),
}
SECTIONS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")  # of Keep a Changelog


def read(root: Path, name: str) -> str:
    return (root / name).read_text(encoding="utf-8")


def version(root: Path) -> str:
    line = re.search(rf'__version__ = "({VERSION})"', read(root, SOURCE))
    assert line, f"{SOURCE} has no version"
    return line[1]


def strays(root: Path) -> Iterator[str]:
    """Places that name another version than the source does, or none."""
    wanted = version(root)
    for name, leads in PLACES.items():
        for lead in leads:
            named = re.findall(rf"{lead}({VERSION})", read(root, name), re.MULTILINE)
            if not named:
                yield f"{name}: no version behind {lead!r}"
            yield from (
                f"{name}: {other} is not {wanted}; docs/releases.py --set writes it" for other in named if other != wanted
            )


def releases(changelog: str) -> dict[str, str]:
    """The text of every release, by version; what is to come is `Unreleased`."""
    parts = re.split(r"^## \[([^\]]+)\].*\n", changelog, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def faults_of_changelog(changelog: str) -> Iterator[str]:
    names = list(releases(changelog))
    if not names or names[0] != "Unreleased":
        yield "CHANGELOG.md: the first release is to be [Unreleased]"
    numbers = [tuple(map(int, name.split("."))) for name in names if re.fullmatch(VERSION, name)]
    if len(numbers) != len(names) - 1 or numbers != sorted(set(numbers), reverse=True):
        yield "CHANGELOG.md: releases are X.Y.Z, each once, the newest first"
    for line in re.findall(r"^## .*$", changelog, re.MULTILINE)[1:]:
        if not re.fullmatch(rf"## \[{VERSION}\] - \d{{4}}-\d\d-\d\d", line):
            yield f"CHANGELOG.md: {line!r} is not `## [X.Y.Z] - YYYY-MM-DD`"
    for name in re.findall(r"^### (.*)$", changelog, re.MULTILINE):
        if name not in SECTIONS:
            yield f"CHANGELOG.md: {name!r} is none of {', '.join(SECTIONS)}"


def faults_of_tag(root: Path, tag: str) -> Iterator[str]:
    if tag != f"v{version(root)}":
        yield f"the tag is {tag}, the version {version(root)}"
    if not releases(read(root, "CHANGELOG.md")).get(tag.removeprefix("v"), "").strip():
        yield f"CHANGELOG.md says nothing of {tag}"


def set_version(root: Path, wanted: str, today: str) -> None:
    """Write a version everywhere, and give what is unreleased its name and date."""
    for name, leads in PLACES.items():
        text = read(root, name)
        for lead in leads:
            text = re.sub(rf"({lead}){VERSION}", rf"\g<1>{wanted}", text, flags=re.MULTILINE)
        (root / name).write_text(text, encoding="utf-8")
    changelog = read(root, "CHANGELOG.md")
    if wanted not in releases(changelog):
        changelog = changelog.replace("## [Unreleased]\n", f"## [Unreleased]\n\n## [{wanted}] - {today}\n", 1)
        (root / "CHANGELOG.md").write_text(changelog, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--set", metavar="X.Y.Z", help="write this version everywhere, and its heading into the changelog")
    parser.add_argument("--tag", metavar="vX.Y.Z", help="check also that this tag may be released")
    parser.add_argument("--notes", metavar="vX.Y.Z", help="print what the changelog says of it")
    options = parser.parse_args()
    changelog = read(options.root, "CHANGELOG.md")
    if options.notes:
        print(releases(changelog)[options.notes.removeprefix("v")].strip())
        return 0
    if options.set:
        if not re.fullmatch(VERSION, options.set):
            parser.error(f"{options.set!r} is not X.Y.Z")
        set_version(options.root, options.set, datetime.datetime.now(datetime.UTC).date().isoformat())
        changelog = read(options.root, "CHANGELOG.md")
    faults = [*strays(options.root), *faults_of_changelog(changelog)]
    faults += faults_of_tag(options.root, options.tag) if options.tag else ()
    print("\n".join(faults) or f"version {version(options.root)}: everything agrees")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
