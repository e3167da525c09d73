"""Options that several commands have, and that mean the same in each."""

from __future__ import annotations

from flux_resourceset.cli.parsing.grammar import Option

YES = Option("--yes", "Do it without asking.", short="-y")
DRY_RUN = Option("--dry-run", "Show the plan, which cluster would get what, and change nothing.")
FULL = Option("--full", "Show all groups of clusters of a plan, and all ids; not only the first 20.")
RENDER = Option("--render", "Of a plan, also show what becomes of the Kubernetes objects of one cluster of each group.")
CONFIRM_REMOVALS = Option(
    "--confirm-removals", "Confirm for the guard that exactly this number of inputs is removed.", "N", least=0
)
CONFIRM_CLUSTERS = Option(
    "--confirm-clusters", "Confirm for the guard that exactly this number of clusters gets other inputs.", "N", least=0
)
OVERRIDE_FREEZE = Option(
    "--override-freeze",
    "Do it in spite of this freeze; needs --reason. Repeatable, or ids with commas.",
    "ID",
    many=True,
    completes="freezes",
)
IF_PLAN = Option("--if-plan", "Do it only if this is still the plan, by the id that a plan has; otherwise exit code 6.", "ID")
PLANNED = (FULL, RENDER)  # how a plan is shown, be it for a dry run or for a question
CONSENT = (CONFIRM_REMOVALS, CONFIRM_CLUSTERS, OVERRIDE_FREEZE, IF_PLAN)
ACTOR = Option("--actor", "For whom it is done, for the change log; $FLUX_API_ACTOR if not given.", "NAME")
WRITING = (*PLANNED, *CONSENT, ACTOR)  # what every command has that writes
AT = Option("--at", "As it was then: a revision, or a time (RFC 3339).", "WHEN")
LIMIT = Option("--limit", "Show at most so many.", "N", least=1)
SORT_BY = Option("--sort-by", "Sort what is shown by this field, as in .environment or .node_count.", ".FIELD")
NO_HEADERS = Option("--no-headers", "Leave out the first line of a table.")
SHOW_LABELS = Option("--show-labels", "Show the labels as the last column of a table.")
WATCH = Option("--watch", "Then go on with a row for every change, until interrupted.", short="-w")
READING = (SORT_BY, NO_HEADERS)  # what every command has that is made for reading
DOCUMENTS = (*READING, SHOW_LABELS, WATCH)  # and what lists and gets have on top
SELECTOR = Option(
    "--selector", "Only clusters whose labels match, as in zone=edge,team!=x,region in (a,b),!beta.", "SELECTOR", short="-l",
    completes="labels:clusters",
)  # fmt: skip
ENVIRONMENT = Option("--environment", "Only clusters of this environment.", "NAME", completes="values:clusters.environment")
SETS = (
    Option("--set", "Value for a dotted path of the chart, stored as text. Repeatable.", "KEY=VALUE", many=True),
    Option(
        "--set-json", "Value as a number, true or false, a JSON string, or a list of these. Repeatable.", "KEY=JSON", many=True
    ),
    Option("--set-file", "Value from a file; one final newline is dropped. Repeatable.", "KEY=FILE", many=True),
    Option("--unset", "Path to take back, so that the chart's own value holds. Repeatable.", "KEY", many=True),
)
