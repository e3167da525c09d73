"""Bounds of a YAML text, looked at before anything is built of it: how deep it goes, and how much its aliases stand for."""

from __future__ import annotations

from typing import Any

import yaml

# the same language, ten times as fast where libyaml is there
PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MOST = 100_000  # values that aliases may add; a few aliases of aliases can stand for more than any memory holds


def check(text: str, deepest: int) -> None:
    """Raises the error of YAML that tells the place. What holds itself is not noticed here: it is found when it is walked."""
    sizes: dict[str, int] = {}  # by anchor
    opened: list[tuple[str | None, int]] = []  # the anchors of what is not complete, and the total before it
    total = added = 0
    for event in yaml.parse(text, Loader=PARSER):
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, total))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            if anchor is not None:
                sizes[anchor] = total - before
        elif isinstance(event, yaml.AliasEvent):
            size = sizes.get(event.anchor or "", 1)
            total, added = total + size, added + size
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
        if len(opened) > deepest:
            raise yaml.MarkedYAMLError(problem=f"nested more than {deepest} levels deep", problem_mark=event.start_mark)
        if added > MOST:
            raise yaml.MarkedYAMLError(problem=f"its aliases stand for more than {MOST} values", problem_mark=event.start_mark)
