"""What a planted fault is: a place in a file, and what stands there instead."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    path: str  # below the root of the project
    place: str  # the function or the section that it is in
    start: int  # in characters of the file's text
    end: int
    new: str
    text: str  # of the file, before

    @property
    def planted(self) -> str:
        return self.text[: self.start] + self.new + self.text[self.end :]

    @property
    def said(self) -> str:
        """What is changed, by the lines that it stands on; the name under which it is explained."""
        begin = self.text.rfind("\n", 0, self.start) + 1
        end = self.text.find("\n", self.end)
        before = self.text[begin : end if end >= 0 else None]
        after = self.text[begin : self.start] + self.new + self.text[self.end : end if end >= 0 else None]
        return f"{self.path} {self.place}: {' '.join(before.split())} → {' '.join(after.split())}"
