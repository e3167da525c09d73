"""Findings in the forms in which CI shows them beside the lines of a change: commands of GitHub, Code Quality of GitLab."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from flux_resourceset.repositories.findings import ERROR, Finding

# GitHub reads a command from any line; a name that held a line break or a separator could begin another.
_DATA = {ord("%"): "%25", ord("\r"): "%0D", ord("\n"): "%0A"}
_PROPERTY = {**_DATA, ord(":"): "%3A", ord(","): "%2C"}
_SEVERITIES = {ERROR: "major"}


def github(found: Iterable[Finding], folder: str = "") -> Iterator[str]:
    """A line each; `folder` leads from the top of the repository to the root."""
    for finding in found:
        told = finding.told()
        where = {"file": folder + told["path"], **({"line": finding.line} if finding.line else {}), "title": finding.rule}
        properties = ",".join(f"{name}={str(value).translate(_PROPERTY)}" for name, value in where.items())
        yield f"::{finding.severity} {properties}::{told['message'].translate(_DATA)}"


def gitlab(found: Iterable[Finding], folder: str = "") -> list[dict[str, Any]]:
    """A report; a finding keeps its fingerprint when lines before it come or go."""
    seen: Counter[str] = Counter()
    report = []
    for finding in found:
        told = finding.told()
        path = folder + told["path"]
        own = "\0".join((finding.rule, path, told["message"]))
        seen[own] += 1
        report.append(
            {
                "description": told["message"],
                "check_name": finding.rule,
                "fingerprint": hashlib.sha256(f"{own}\0{seen[own]}".encode()).hexdigest(),
                "severity": _SEVERITIES.get(finding.severity, "minor"),
                "location": {"path": path, "lines": {"begin": finding.line or 1}},
            }
        )
    return report
