"""The commands that look back and go back, whatever the kinds."""

from __future__ import annotations

from flux_resourceset.cli.parsing.grammar import Argument, Command, Option
from flux_resourceset.cli.parsing.shared_options import AT, DRY_RUN, ENVIRONMENT, SELECTOR, WRITING, YES

BETWEEN = (
    Option("--from", "Compare from this point on: a revision, or a time (RFC 3339).", "WHEN"),
    Option("--to", "With --from, up to this point; now if not given.", "WHEN"),
    Option("--cluster", "With --from, what became of the answers of this cluster only.", "ID", completes="clusters"),
    Option("--kind", "With --from, only documents of this kind.", "KIND", completes="kind"),
)

TO = Option("--to", "What to go back to: a revision, or a time (RFC 3339).", "WHEN")
BACK = (YES, DRY_RUN, *WRITING)  # what every command has that goes back

WHY = Command(
    ("why",),
    "Show where the values of an input come from, and which change set them.",
    "commands.reasons:why",
    arguments=(
        Argument("cluster", "Id of the cluster.", completes="clusters"),
        Argument("input", "Id of the input, such as that of a component."),
        Argument("field", "Only this field: /source/oci_tag, source.oci_tag or oci_tag.", optional=True),
    ),
    options=(
        Option(
            "--view", "The view that has the input; needed where several have one of that id and field.", "VIEW", completes="view"
        ),
        AT,
    ),
    examples=("why demo-cluster-01 podinfo oci_tag --view platform-components", "why demo-cluster-01 dev-readers"),
    details="A value stands in the definition, in what the cluster says of it (reference), in patches of the cluster, or in the "
    "cluster document; or it is a default, or computed. For the first four, the change that last set it there is shown.",
)

REVERT_CHANGE = Command(
    ("changes", "revert"),
    "Undo one change, field by field; what others changed since stays.",
    "commands.reverting:change",
    arguments=(Argument("revision", "Of the change."),),
    options=(Option("--force", "Also where a field of it was changed again since."), *BACK),
    examples=("changes revert 42 --dry-run", "changes revert 42 --reason 'wrong cluster' --yes"),
    details="A field that was changed again since is a conflict (exit code 6), unless --force is given. What was deleted comes "
    "back, also a decommissioned cluster. The plan is shown before the question, and only that plan is carried out.",
)

REVERT = Command(
    ("revert",),
    "Make the whole fleet, or a part of it, what it was.",
    "commands.reverting:fleet",
    options=(
        TO,
        Option("--kind", "Only documents of this kind.", "KIND", completes="kind"),
        ENVIRONMENT,
        SELECTOR,
        *BACK,
    ),
    examples=("revert --to 41 --dry-run", "revert --to 2026-01-31T12:00:00Z --environment dev --yes"),
    details="One transaction, and all of it can be reverted in turn. With --environment or --selector: the clusters that match "
    "now or matched then; clusters created since are decommissioned, clusters decommissioned since come back. Freezes stay as "
    "they are.",
)
