"""CODEOWNERS from the approvals of the policy, so that the forge asks those whom the gate will want; the gate decides."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flux_resourceset.repositories import globs, policy

HEADER = """\
# Generated from fleet.yaml by `flux-resourceset-cli fleet codeowners`: change the policy there, and run it again.
# Of all lines that match a path the last one holds, so a line also names the owners of the lines before it that it meets.
"""

_OWNER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")  # what a forge can look up behind an @
_ANYWHERE = re.compile(r"(?P<within>(?:[^/]+/)*?)\*\*/(?P<name>(?:(?!\*\*)[^/])+)")  # files of some name, at any depth
_INSIDE = re.compile(r"(?<=[^/*])\*{2,}|\*{2,}(?=[^/*])")  # stars that cross slashes without being a whole segment
_MOST_INSIDE = 3  # each of them doubles the lines, and hardly anybody writes one


def text(rules: Sequence[Mapping[str, Any]], teams: Mapping[str, Sequence[str]]) -> str:
    """The file for the root of the repository, as GitHub and GitLab both read it."""
    owners: dict[str, dict[str, str]] = {}
    for rule in rules:
        for pattern in rule["paths"]:
            owners.setdefault(pattern, {}).update(_members(rule["require"], teams))
    pairs = [*itertools.permutations(owners, 2)]
    shared = [_below_both(*pair) for pair in pairs if not owners[pair[1]].keys() <= owners[pair[0]].keys()]
    for meeting in [*filter(None, [*shared, *itertools.starmap(_anywhere_in, pairs)])]:
        owners.setdefault(meeting, {})
    ordered = sorted(owners, key=globs.specificity)
    lines = []
    for position, pattern in enumerate(ordered):
        asked = dict(owners[pattern])
        for broader in ordered[:position]:
            if _decides_for(pattern, broader, owners):
                asked = {**owners[broader], **asked}
        names = [f"@{asked[key]}" for key in sorted(asked)]
        lines += [" ".join([shown, *names]) for shown in _patterns(pattern)]
    return HEADER + "".join(f"{line}\n" for line in dict.fromkeys(lines))


def _decides_for(pattern: str, broader: str, known: Collection[str]) -> bool:
    """Whether the line of a pattern holds for paths of an earlier line; where there is doubt, rather too many are asked."""
    if not globs.overlap(broader, pattern):
        return False
    meetings = {_meeting(pattern, broader), _meeting(broader, pattern)} - {pattern}
    return globs.covers(broader, pattern) or not any(meeting in known for meeting in meetings)


def _meeting(folder: str, named: str) -> str | None:
    return _below_both(folder, named) or _anywhere_in(folder, named)


def _anywhere_in(folder: str, named: str) -> str | None:
    """The pattern of what two others share: `prod/**` and `**/secrets.yaml` both mean `prod/**/secrets.yaml`, whose line needs
    the owners of both, while all else in prod, and all other secrets, do not."""
    anywhere = _ANYWHERE.fullmatch(named)
    if folder.endswith("/**") and anywhere and globs.covers(anywhere["within"] + "**", folder):
        return f"{folder}/{anywhere['name']}"
    return None


def _below_both(folder: str, named: str) -> str | None:
    """The pattern of what a folder shares with one whose first segments are stars: `dev/**` and `*/*/base/**` both mean
    `dev/*/base/**`."""
    above, segments = folder.removesuffix("/**").split("/"), named.split("/")
    stars = [segment == "*" for segment in segments[: len(above)]]
    if not folder.endswith("/**") or "*" in "".join(above) or len(segments) <= len(above) or not all(stars):
        return None
    return "/".join([*above, *segments[len(above) :]])


def _members(require: Mapping[str, int], teams: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Users by their names without case. The team that is everybody has none to name."""
    needed = [team for team, places in require.items() if places > 0 and team != policy.ANY]
    return {user.lower(): user for team in needed for user in teams.get(team, ()) if _OWNER.fullmatch(user)}


# Patterns. GitHub reads them as .gitignore does. GitLab reads them by Ruby's fnmatch, to which `**` means folders only where
# a slash follows: `/dev/**` would leave out /dev/a/b. `/dev/` is everything below dev for both.


def _patterns(pattern: str) -> list[str]:
    return ["*" if text == "**" else _spelled("/" + text) for text in dict.fromkeys(_whole_segments(_tidied(pattern)))]


def _tidied(pattern: str) -> str:
    stars = re.sub(r"\*{2,}", "**", pattern)
    return re.sub(r"(?<![^/])(?:\*\*/)+(?=\*\*(?:/|\Z))", "", stars)


def _whole_segments(pattern: str) -> Iterator[str]:
    """The same paths by patterns whose `**` are whole segments: `a**b` is `a*b` and `a*/**/*b`."""
    inside = _INSIDE.search(pattern)
    if inside is None:
        yield pattern
    elif len(_INSIDE.findall(pattern)) > _MOST_INSIDE:
        yield pattern[: inside.start()].rpartition("/")[0] + "/**" if "/" in pattern[: inside.start()] else "**"  # asks more
    else:
        before, after = pattern[: inside.start()], pattern[inside.end() :]
        yield from _whole_segments(f"{before}*{after}")
        yield from _whole_segments(f"{before}*/**/*{after}")


def _spelled(pattern: str) -> str:
    """What only one of the two forges can quote becomes `?`, which is any one character for both."""
    below = pattern.removesuffix("**") if pattern.endswith("/**") else pattern
    return "".join(_characters(below))


def _characters(pattern: str) -> Iterable[str]:
    for character in pattern:
        if character == " ":
            yield "\\ "
        else:
            yield "?" if character in "\\[]#" or not character.isprintable() else character
