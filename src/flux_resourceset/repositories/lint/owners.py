"""Rule codeowners: whether the forge asks those whom the policy wants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flux_resourceset.repositories import codeowners, findings, trees
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.policy import Policy
from flux_resourceset.repositories.trees import Sort

RULE = "codeowners"
FILE = "CODEOWNERS"
_SHADOW = f".github/{FILE}"  # GitHub takes the first that it finds, and looks here before the root
_REMEDY = "run flux-resourceset-cli fleet codeowners"


def lint(tree: trees.Tree, policy: Policy) -> Iterator[Finding]:
    if not policy.approvals:
        return
    wanted = codeowners.text(policy.approvals, policy.teams).splitlines()
    found = _lines(tree, FILE)
    if found is None:
        if tree.children("").get(FILE) is not Sort.LINK:  # which is told as such
            yield findings.error(RULE, FILE, None, f"is missing; {_REMEDY}")
    elif found != wanted:
        yield findings.error(RULE, FILE, _first_difference(found, wanted), f"is not what fleet.yaml says; {_REMEDY}")
    if _lines(tree, _SHADOW) is not None:
        yield findings.error(RULE, _SHADOW, None, f"GitHub reads it instead of {FILE}; remove it")


def _lines(tree: trees.Tree, path: str) -> list[str] | None:
    try:
        body = trees.checked(tree, path)
    except trees.TooLarge:
        return []
    return None if body is None else body.decode(errors="replace").splitlines()


def _first_difference(found: Sequence[str], wanted: Sequence[str]) -> int:
    """The line where it shows; the last one, if lines are missing after it."""
    for line, (one, other) in enumerate(zip(found, wanted, strict=False), 1):
        if one != other:
            return line
    return max(1, min(len(found), len(wanted) + 1))
