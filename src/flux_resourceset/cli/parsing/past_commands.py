"""The commands that look back and go back, whatever the kinds."""

from __future__ import annotations

from flux_resourceset.cli.parsing.grammar import Argument, Command, Option
from flux_resourceset.cli.parsing.shared_options import AT

BETWEEN = (
    Option("--from", "Compare from this point on: a revision, or a time (RFC 3339).", "WHEN"),
    Option("--to", "With --from, up to this point; now if not given.", "WHEN"),
    Option("--cluster", "With --from, what became of the answers of this cluster only.", "ID", completes="clusters"),
    Option("--kind", "With --from, only documents of this kind.", "KIND", completes="kind"),
)

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
        Option("--view", "The view that has the input; needed only where several have one of that id.", "VIEW", completes="view"),
        AT,
    ),
    examples=("why demo-cluster-01 podinfo oci_tag --view platform-components", "why demo-cluster-01 dev-readers"),
    details="A value stands in the definition, in what the cluster says of it (reference), in patches of the cluster, or in the "
    "cluster document; or it is a default, or computed. For the first four, the change that last set it there is shown.",
)
