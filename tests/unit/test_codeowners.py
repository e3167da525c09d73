"""CODEOWNERS from the policy: whoever a rule wants is an owner, for GitHub's reading of a pattern and for GitLab's."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from flux_resourceset.repositories import approvals, codeowners, globs

TEAMS = {"sre": ["sre-2", "sre-1"], "tech-leads": ["lead-1", "sre-1"], "security": ["sec-1"]}
RULES: list[dict[str, Any]] = [
    {"paths": ["prod/**", "fleet.yaml", "keys/**", ".github/**"], "require": {"sre": 2, "tech-leads": 1}},
    {"paths": ["dev/**"], "require": {}},
    {"paths": ["staging/**"], "require": {"sre": 1}},
]


def lines(rules: list[dict[str, Any]], teams: dict[str, list[str]] = TEAMS) -> list[str]:
    text = codeowners.text(rules, teams)
    assert text.startswith(codeowners.HEADER)
    return text.removeprefix(codeowners.HEADER).splitlines()


def test_the_file_says_how_it_is_made() -> None:
    first = codeowners.text(RULES, TEAMS).splitlines()[0]
    assert first.startswith("#")
    assert "flux-resourceset-cli fleet codeowners" in first


def test_every_pattern_has_a_line_with_the_members_of_the_teams_it_needs() -> None:
    assert lines(RULES) == [
        "/dev/",
        "/keys/ @lead-1 @sre-1 @sre-2",
        "/prod/ @lead-1 @sre-1 @sre-2",
        "/.github/ @lead-1 @sre-1 @sre-2",
        "/staging/ @sre-1 @sre-2",
        "/fleet.yaml @lead-1 @sre-1 @sre-2",
    ]


def test_a_line_names_also_the_owners_of_the_broader_ones() -> None:
    rules = [
        {"paths": ["prod/*/base/**"], "require": {"security": 1}},
        {"paths": ["prod/**"], "require": {"sre": 1}},
        {"paths": ["prod/c/base/open.yaml"], "require": {}},
        {"paths": ["**"], "require": {"tech-leads": 1}},
    ]
    assert lines(rules) == [
        "* @lead-1 @sre-1",
        "/prod/ @lead-1 @sre-1 @sre-2",
        "/prod/*/base/ @lead-1 @sec-1 @sre-1 @sre-2",
        "/prod/c/base/open.yaml @lead-1 @sec-1 @sre-1 @sre-2",
    ]


def test_what_two_patterns_share_has_a_line_of_its_own_with_the_owners_of_both() -> None:
    rules = [
        {"paths": ["**/secrets.yaml"], "require": {"security": 1}},
        {"paths": ["dev/**"], "require": {}},
        {"paths": ["prod/**"], "require": {"sre": 1}},
    ]
    assert lines(rules) == [
        "/**/secrets.yaml @sec-1",
        "/dev/",
        "/dev/**/secrets.yaml @sec-1",
        "/prod/ @sre-1 @sre-2",
        "/prod/**/secrets.yaml @sec-1 @sre-1 @sre-2",
    ]


def test_a_pattern_for_every_environment_has_a_line_in_those_that_ask_fewer() -> None:
    rules = [
        {"paths": ["*/*/base/**"], "require": {"sre": 1}},
        {"paths": ["dev/**"], "require": {}},
        {"paths": ["prod/**"], "require": {"sre": 2, "tech-leads": 1}},
        {"paths": ["staging/**"], "require": {"security": 1}},
    ]
    assert lines(rules) == [
        "/*/*/base/ @sre-1 @sre-2",
        "/dev/",
        "/dev/*/base/ @sre-1 @sre-2",
        "/prod/ @lead-1 @sre-1 @sre-2",
        "/staging/ @sec-1",
        "/staging/*/base/ @sec-1 @sre-1 @sre-2",
    ]


def test_where_two_patterns_meet_without_a_pattern_for_it_rather_too_many_are_asked() -> None:
    rules = [{"paths": ["prod/a*"], "require": {"sre": 1}}, {"paths": ["prod/*b"], "require": {"security": 1}}]
    assert lines(rules) == ["/prod/*b @sec-1", "/prod/a* @sec-1 @sre-1 @sre-2"]


def test_rules_with_the_same_pattern_share_a_line() -> None:
    rules = [{"paths": ["a", "a"], "require": {"sre": 1}}, {"paths": ["a"], "require": {"security": 1, "tech-leads": 0}}]
    assert lines(rules) == ["/a @sec-1 @sre-1 @sre-2"]


def test_everybody_and_unknown_teams_have_nobody_to_name() -> None:
    assert lines([{"paths": ["a"], "require": {"any": 2, "ghosts": 1}}]) == ["/a"]


def test_a_user_is_named_once_and_a_name_that_is_none_never() -> None:
    teams = {"sre": ["Ann", "ann", "x @mallory", "#", "", "group/sub.group"]}
    assert lines([{"paths": ["a"], "require": {"sre": 1}}], teams) == ["/a @ann @group/sub.group"]


def test_the_order_of_the_policy_makes_no_difference() -> None:
    assert codeowners.text([*reversed(RULES)], TEAMS) == codeowners.text(RULES, TEAMS)


def test_a_policy_without_rules_gives_the_heading_alone() -> None:
    assert codeowners.text([], {}) == codeowners.HEADER


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("my files/x", ["/my\\ files/x"]),
        ("a#b", ["/a?b"]),
        ("a[1]", ["/a?1?"]),
        ("a\\b", ["/a?b"]),
        ("a\tb", ["/a?b"]),
        ("**", ["*"]),
        ("**/**", ["*"]),
        ("**/x", ["/**/x"]),
        ("**/**/x", ["/**/x"]),
        ("a/**/**", ["/a/"]),
        ("a/***", ["/a/"]),
        ("a**b", ["/a*b", "/a*/**/*b"]),
        ("d/a**b**c**d**e", ["/d/"]),
        ("a**b**c**d**e", ["*"]),
    ],
)
def test_a_pattern_is_written_so_that_both_forges_read_it(pattern: str, shown: list[str]) -> None:
    assert lines([{"paths": [pattern], "require": {}}]) == shown


# What the forges make of it

PATHS = [
    "fleet.yaml", "README.md", "x.yaml", "dev/a", "dev/c/t/x", "prod/x.yaml", "prod/c/base/a.yaml", "prod/c/base/deep/er.yaml",
    "prod/c/tenants/t/secrets.yaml", "secrets.yaml", "production/x", "my files/x", "a[1]/x", "old/prod/x",
]  # fmt: skip
MANY: list[dict[str, Any]] = [
    {"paths": ["**/secrets.yaml"], "require": {"security": 1}},
    {"paths": ["prod/**", "a[1]/**"], "require": {"sre": 2}},
    {"paths": ["prod/*/base/**", "*.yaml", "my files/**"], "require": {"tech-leads": 1}},
    {"paths": ["prod**.yaml"], "require": {"docs": 1}},
    {"paths": ["dev/**", "**"], "require": {}},
]
PEOPLE = {**TEAMS, "docs": ["writer"]}


def of_github(pattern: str, folder: Path) -> set[str]:
    """GitHub reads a pattern as .gitignore does, so Git is asked."""
    (folder / ".gitignore").write_text(pattern + "\n")
    command = ["git", "-C", str(folder), "check-ignore", "--no-index", "--stdin", "-z"]
    asked = subprocess.run(command, input="\0".join(PATHS).encode(), stdout=subprocess.PIPE, check=False)  # 1: none of them
    return {*asked.stdout.decode().split("\0")} - {""}


@functools.cache
def ruby(pattern: str) -> re.Pattern[str]:
    """What Ruby's fnmatch means with FNM_PATHNAME: `**` is special only as a whole segment before another one."""
    pieces = re.split(r"((?:(?<=/)|\A)\*\*/|\*+|\?)", pattern)
    regular = {"**/": "(?:[^/]+/)*", "?": "[^/]"}
    return re.compile("".join("[^/]*" if set(each) == {"*"} else regular.get(each) or re.escape(each) for each in pieces))


def of_gitlab(pattern: str) -> set[str]:
    plain = "/**/*" if pattern == "*" else pattern.replace("\\ ", " ")
    whole = plain + "**/*" if plain.endswith("/") else plain
    return {path for path in PATHS if ruby(whole).fullmatch("/" + path)}


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_the_last_line_that_matches_a_path_names_all_whom_the_gate_may_want(forge: str, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    owners: dict[str, set[str]] = {}
    for line in lines(MANY, PEOPLE):
        pattern, *names = re.split(r"(?<!\\) ", line)
        for path in of_github(pattern, tmp_path) if forge == "github" else of_gitlab(pattern):
            owners[path] = {name.removeprefix("@") for name in names}
    for path in PATHS:
        needed, _ = approvals.requirement(MANY, [path])
        assert {user for team in needed for user in PEOPLE[team]} <= owners[path], path
    assert owners["dev/c/t/x"] == owners["README.md"] == set()
    assert owners["production/x"] == set()


@pytest.mark.parametrize(
    "pattern", ["dev/**", "prod/*", "**/secrets.yaml", "prod/**/secrets.yaml", "*.yaml", "prod/*/base/**", "**"]
)
def test_both_forges_mean_the_paths_that_the_policy_means(pattern: str, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (written,) = lines([{"paths": [pattern], "require": {}}])
    meant = {path for path in PATHS if globs.matches(pattern, path)}
    assert of_gitlab(written) == meant
    github = of_github(written, tmp_path)
    below = {path for path in PATHS if any(path.startswith(f"{folder}/") for folder in ("prod/c",))}
    assert github == (meant | below if pattern == "prod/*" else meant)  # Git also takes what is below a folder that matches
