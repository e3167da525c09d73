"""The order of releases: hotfixes after their base, candidates before it."""

from __future__ import annotations

import itertools

import pytest

from flux_resourceset.repositories import release_order

IN_ORDER = [
    "v0.9.0", "v1.0.0-rc1", "v1.0.0-rc2", "v1.0.0-rc10", "v1.0.0", "v1.0.0-1", "v1.0.0-2", "v1.0.0-10", "v1.0.1", "v1.1.0-beta",
    "v1.1.0", "v1.2.0", "v1.10.0", "v2.0.0", "latest", "main",
]  # fmt: skip


def test_tags_sort_as_releases_follow_one_another() -> None:
    for earlier, later in itertools.pairwise(IN_ORDER):
        assert release_order.order(earlier) < release_order.order(later)


@pytest.mark.parametrize(
    ("tag", "release"),
    [("v1.0.0-1", "v1.0.0"), ("v1.0.0", "v1.0.0"), ("1.1.0-rc1", "1.1.0"), ("v2.0.0-12", "v2.0.0"), ("latest", "latest")],
)
def test_the_base_of_a_tag_can_be_told(tag: str, release: str) -> None:
    assert release_order.base(tag) == release
