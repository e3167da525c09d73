"""What is wrong in a repository: by which rule, how badly, where, and what helps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

ERROR, WARNING = "error", "warning"


class Finding(NamedTuple):
    rule: str
    severity: str
    path: str  # from the root
    line: int | None
    message: str

    def told(self) -> dict[str, Any]:
        return {**self._asdict(), "path": _unicode(self.path), "message": _unicode(self.message)}


def error(rule: str, path: str, line: int | None, message: str) -> Finding:
    return Finding(rule, ERROR, path, line, message)


def warning(rule: str, path: str, line: int | None, message: str) -> Finding:
    return Finding(rule, WARNING, path, line, message)


def ordered(found: Iterable[Finding]) -> list[Finding]:
    """By path as it is printed, line and rule, each once."""
    return sorted(set(found), key=lambda each: (_unicode(each.path), each.line or 0, each.rule, each.message))


def is_failure(found: Iterable[Finding], *, strict: bool = False) -> bool:
    """Whether anything of it is an error; to the strict, a warning is one."""
    return any(strict or each.severity == ERROR for each in found)


def _unicode(text: str) -> str:
    """Names of files are bytes, which need not be Unicode."""
    return text.encode(errors="backslashreplace").decode()
