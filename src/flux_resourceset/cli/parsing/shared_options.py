"""Options that several commands have, and that mean the same in each."""

from __future__ import annotations

from flux_resourceset.cli.parsing.grammar import Option

YES = Option("--yes", "Do it without asking.", short="-y")
DRY_RUN = Option("--dry-run", "Show what would change, and change nothing.")
AT = Option("--at", "As it was then: a revision, or a time (RFC 3339).", "WHEN")
LIMIT = Option("--limit", "Show at most so many.", "N", least=1)
SELECTOR = Option(
    "--selector", "Only clusters whose labels match, as in zone=edge,team!=x,region in (a,b),!beta.", "SELECTOR", short="-l"
)
ENVIRONMENT = Option("--environment", "Only clusters of this environment.", "NAME")
SETS = (
    Option("--set", "Value for a dotted path of the chart, stored as text. Repeatable.", "KEY=VALUE", many=True),
    Option("--set-json", "Value as a number, true or false, or a JSON string. Repeatable.", "KEY=JSON", many=True),
    Option("--set-file", "Value from a file; one final newline is dropped. Repeatable.", "KEY=FILE", many=True),
    Option("--unset", "Path to take back, so that the chart's own value holds. Repeatable.", "KEY", many=True),
)
