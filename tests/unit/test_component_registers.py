"""The register of components, edited: a version goes, and everything else stays as it is written."""

from __future__ import annotations

import pytest

from flux_resourceset.repositories import components

HEAD = "environments: [dev]\ncomponents:\n  - id: a\n    path: x/a\n"
BLOCK = (
    HEAD
    + """\
    versions: # oldest first
      - "1.0"
      - '1.1' # the hotfix
      - 1.2.0
    depends_on: []
"""
)


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        (BLOCK, ["1.0"], BLOCK.replace('      - "1.0"\n', "")),
        (BLOCK, ["1.0", "1.1"], BLOCK.replace("""      - "1.0"\n      - '1.1' # the hotfix\n""", "")),
        (HEAD + '    versions: ["1", "2", "3"]\n', ["1"], HEAD + '    versions: ["2", "3"]\n'),
        (HEAD + '    versions: ["1", "2", "3"]\n', ["2"], HEAD + '    versions: ["1", "3"]\n'),
        (HEAD + '    versions: ["3", "2", "1"]\n', ["1"], HEAD + '    versions: ["3", "2"]\n'),
    ],
)
def test_a_version_is_taken_out_and_nothing_else(text: str, gone: list[str], left: str) -> None:
    assert components.without_versions(text, {"a": gone}) == left


def test_what_cannot_be_taken_out_alone_is_refused() -> None:
    text = HEAD + '    versions: &v ["1", "2"]\n  - id: b\n    path: x/b\n    versions: *v\n'
    with pytest.raises(components.Refused):
        components.without_versions(text, {"a": ["1"]})
