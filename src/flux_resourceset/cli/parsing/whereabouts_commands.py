"""The commands that tell what runs where: describe, usage, and the list of clusters that are no more."""

from __future__ import annotations

from flux_resourceset.cli.known_kinds import CLUSTERS
from flux_resourceset.cli.parsing.grammar import Argument, Command, Option
from flux_resourceset.cli.parsing.shared_options import ENVIRONMENT, LIMIT, READING, SELECTOR

DECOMMISSIONED = Option("--decommissioned", "Only those that were decommissioned: when, by whom, and why.")
_SUMMARY = Option("--summary", "Count the clusters per value and environment.")


def of_lists(kind: str) -> tuple[Option, ...]:
    """What only lists of some kinds have."""
    return (DECOMMISSIONED,) if kind == CLUSTERS else ()


def describe(singular: str, words: tuple[str, ...], id: Argument, kind: str, example: str) -> Command:
    what = "what it runs in which version, and where that comes from" if kind == CLUSTERS else "its fields, and who uses it"
    gone = " Of a decommissioned one: when, by whom, and why." if kind == CLUSTERS else ""
    return Command(
        words,
        f"Show everything about one {singular}, for reading.",
        "commands.descriptions:describe",
        (id,),
        examples=(f"{' '.join(words)} {example}",),
        details=f"With {what}, and its last five changes.{gone}",
        kind=kind,
    )


def usage(singular: str, words: tuple[str, ...], id: Argument, kind: str, example: str) -> Command:
    word = " ".join(words)
    return Command(
        words,
        f"Show which clusters have which {singular}, and the values in use there.",
        "commands.usages:usage",
        (id._replace(optional=True),),
        (SELECTOR, ENVIRONMENT, _SUMMARY, LIMIT, *READING),
        (f"{word} {example}", f"{word} {example} --environment prod", f"{word} --summary"),
        "A row per cluster, with the values at work, those that the cluster overrides, and how many patches it has.",
        kind=kind,
    )
