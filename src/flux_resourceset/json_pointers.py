"""JSON pointers (RFC 6901): the place of a value in a document, as text."""

from __future__ import annotations

from collections.abc import Iterable

Step = str | int


def pointer(steps: Iterable[Step]) -> str:
    return "".join(["/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps])


def steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
