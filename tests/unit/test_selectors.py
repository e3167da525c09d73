"""The label selector grammar of Kubernetes, against truth tables written by hand."""

from __future__ import annotations

import pytest

from flux_resourceset import errors, selectors

# The columns of the table below, left to right.
COLUMNS: list[dict[str, str]] = [
    {},
    {"tier": "edge"},
    {"tier": "core", "team": "x"},
    {"tier": "", "zone": "a"},
    {"zone": "b", "beta": "1"},
    {"example.com/size": "10", "tier": "edge", "team": "y"},
]

TRUTH: dict[str, str] = {
    # selector: one mark per column, x where it matches
    "": "xxxxxx",
    "   ": "xxxxxx",
    "tier=edge": ".x...x",
    "tier==edge": ".x...x",
    " tier = edge ": ".x...x",
    "tier!=edge": "x.xxx.",
    "tier=": "...x..",
    "tier= ": "...x..",
    "tier!=": "xxx.xx",
    "tier": ".xxx.x",
    "!tier": "x...x.",
    "! tier": "x...x.",
    "tier in (edge)": ".x...x",
    "tier in (edge,core)": ".xx..x",
    "tier in ( edge , core )": ".xx..x",
    "tier in(edge)": ".x...x",
    "tier\tin\n(edge)": ".x...x",
    "tier in ()": "...x..",
    "tier in (edge,)": ".x.x.x",
    "tier notin (edge)": "x.xxx.",
    "tier notin (edge,core)": "x..xx.",
    "tier notin ()": "xxx.xx",
    "zone in (a,b),!beta": "...x..",
    "tier=edge,team!=x": ".x...x",
    "tier=edge,team=y": ".....x",
    "tier,team": "..x..x",
    "tier,!team": ".x.x..",
    "tier=edge,tier=core": "......",
    "example.com/size>9": ".....x",
    "example.com/size>10": "......",
    "example.com/size<11": ".....x",
    "example.com/size < 10": "......",
    "tier>1": "......",
    "beta>0,zone=b": "....x.",
    "in=a": "......",
    "tier in (in,notin,edge)": ".x...x",
}

BROKEN = [
    ",",
    "tier,",
    "tier, ",
    ",tier",
    "tier,,team",
    "a in (xyz),",
    "=edge",
    "!=edge",
    "!",
    "!tier=edge",
    "tier=a=b",
    "tier==a==b",
    "tier=a||team=b",
    "tier=a b",
    "tier edge",
    "tier nott in (y)",
    "tier in edge",
    "tier in (a",
    "tier in a)",
    "tier in (a b)",
    "tier in (a)b",
    "tier in (a)(b)",
    "tier (",
    "(",
    ")",
    "tier notin(",
    "tier<a",
    "tier>1.5",
    "tier>",
    "tier=-a",
    "tier=ä",
    "-tier=a",
    "a/b/c=d",
    "/a=b",
    "A.com/x/=b",
    "tier=" + "a" * 64,
    "a" * 64 + "=b",
    "tier in (a,-b)",
    "tier=a;team=b",
]


@pytest.mark.parametrize("text", TRUTH)
def test_a_selector_matches_what_its_row_says(text: str) -> None:
    matches = selectors.parse(text)
    assert "".join("x" if matches(labels) else "." for labels in COLUMNS) == TRUTH[text]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_selector_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(errors.BadQuery) as caught:
        selectors.parse(text)
    assert repr(text) in caught.value.detail
    assert caught.value.status == 400


@pytest.mark.parametrize(
    "text", [" " * 16_000 + "!", "a=" + " " * 16_000 + "!", "a" + " " * 16_000 + "?(", "a," * 8_000 + "!", "x" * 20_000]
)
def test_a_long_mistake_is_found_in_one_pass(text: str) -> None:
    with pytest.raises(errors.BadQuery):
        selectors.parse(text)
