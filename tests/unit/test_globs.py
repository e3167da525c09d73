"""Patterns of paths: one star stays in its segment, two cross them, and nothing else is special."""

from __future__ import annotations

import itertools

import pytest

from flux_resourceset.repositories import globs

MATCHES = [
    ("fleet.yaml", "fleet.yaml"),
    ("dev/**", "dev/a"),
    ("dev/**", "dev/a/b/c.yaml"),
    ("dev/**", "dev/.hidden/x"),
    ("**", "a"),
    ("**", "a/b"),
    ("*", "a"),
    ("*.yaml", "fleet.yaml"),
    ("dev/*", "dev/a"),
    ("dev/*/base/*", "dev/c/base/x"),
    ("**/input.yaml", "input.yaml"),
    ("**/input.yaml", "dev/c/tenants/t/input.yaml"),
    ("dev/**/input.yaml", "dev/input.yaml"),
    ("dev/**/input.yaml", "dev/c/t/input.yaml"),
    ("**/**/x", "x"),
    ("**/**/**", "a/b"),
    ("a***b", "a/b"),
    ("dev/**.yaml", "dev/c/x.yaml"),
    ("a**b", "ab"),
    ("a**b", "a/x/b"),
    ("a*b*c", "aXbYc"),
    ("a?c", "a?c"),
    ("a[b]c", "a[b]c"),
    ("a b", "a b"),
    ("pr\nod/*", "pr\nod/x\ny"),
]
DIFFERS = [
    ("fleet.yaml", "dev/fleet.yaml"),
    ("fleet.yaml", "fleet.yaml.bak"),
    ("fleet.yaml", "fleetXyaml"),
    ("dev/**", "dev"),
    ("dev/**", "develop/a"),
    ("dev/**", "x/dev/a"),
    ("dev", "dev/a"),
    ("dev/", "dev/a"),
    ("/dev/**", "dev/a"),
    ("*", "a/b"),
    ("dev/*", "dev/a/b"),
    ("*.yaml", "dev/x.yaml"),
    ("**/input.yaml", "dev/other-input.yaml"),
    ("dev/**/input.yaml", "dev/c/xinput.yaml"),
    ("dev/**/input.yaml", "devinput.yaml"),
    ("a*b", "a/b"),
    ("a?c", "abc"),
    ("a[b]c", "abc"),
    ("a{b,c}", "ab"),
    ("", "a"),
    ("DEV/**", "dev/a"),
]


@pytest.mark.parametrize(("pattern", "path"), MATCHES)
def test_a_pattern_means_this_path(pattern: str, path: str) -> None:
    assert globs.matches(pattern, path)


@pytest.mark.parametrize(("pattern", "path"), DIFFERS)
def test_a_pattern_does_not_mean_that_path(pattern: str, path: str) -> None:
    assert not globs.matches(pattern, path)


@pytest.mark.parametrize("pattern", ["**/" * 300 + "x", "*a" * 300, "**a" * 300, "*" * 900, "a/**/" * 200 + "b"])
def test_no_pattern_takes_longer_than_its_length_times_that_of_the_path(pattern: str) -> None:
    """By anything that goes back and tries again these would never end."""
    assert globs.matches(pattern, "a" * 60 + "/b") is (set(pattern) == {"*"})


def test_patterns_overlap_when_there_is_a_path_that_both_mean() -> None:
    together = [
        ("prod/**", "**/input.yaml"),
        ("prod/**", "prod/x"),
        ("*.yaml", "fleet.*"),
        ("**", "a"),
        ("a/**/b", "a/b"),
        ("a**", "*/b"),
        ("a*", "*b"),
        ("**/x/**", "y/**"),
    ]
    apart = [("dev/**", "prod/**"), ("*", "a/b"), ("fleet.yaml", "**/input.yaml"), ("a*", "b*"), ("dev/*", "dev/a/b"), ("", "a")]
    assert [globs.overlap(*pair) for pair in together] == [True] * len(together)
    assert [globs.overlap(*reversed(pair)) for pair in together] == [True] * len(together)
    assert [globs.overlap(*pair) for pair in apart] == [False] * len(apart)


@pytest.mark.parametrize(
    ("broader", "narrower"),
    [
        ("**", "prod/**"),
        ("prod/**", "prod/*/base/**"),
        ("prod/**", "prod/**/secrets.yaml"),
        ("**/secrets.yaml", "prod/**/secrets.yaml"),
        ("**/*.yaml", "**/secrets.yaml"),
        ("*/x", "a*/x"),
        ("prod/*", "prod/x"),
        ("a**b", "a*b"),
    ],
)
def test_a_pattern_covers_a_narrower_one_and_not_the_other_way(broader: str, narrower: str) -> None:
    assert globs.covers(broader, narrower)
    assert globs.covers(broader, broader)
    assert not globs.covers(narrower, broader)


def is_path(text: str) -> bool:
    return not text.startswith("/") and not text.endswith("/") and "//" not in text


def test_what_is_said_of_two_patterns_agrees_with_every_short_path() -> None:
    spelled = {"".join(piece) for size in (1, 2, 3) for piece in itertools.product(["a", "/", "*", "**"], repeat=size)}
    patterns = [pattern for pattern in sorted(spelled) if is_path(pattern) and "***" not in pattern]
    paths = ["".join(letters) for size in range(1, 7) for letters in itertools.product("ab/", repeat=size)]
    meant = {pattern: {path for path in paths if is_path(path) and globs.matches(pattern, path)} for pattern in patterns}
    for one, other in itertools.permutations(meant, 2):
        assert globs.overlap(one, other) == bool(meant[one] & meant[other]), (one, other)
        assert meant[one] >= meant[other] or not globs.covers(one, other), (one, other)
        if meant[one] > meant[other]:
            assert globs.specificity(one) < globs.specificity(other), (one, other)
