"""Every command that is there whatever the kinds.

A new command is an entry here and a function `(Session) -> int` in a module of `cli/commands`.
"""

from __future__ import annotations

from flux_resourceset.cli.parsing import cluster_side_commands, context_commands, fleet_commands, past_commands
from flux_resourceset.cli.parsing.grammar import Argument, Command, Group, Option
from flux_resourceset.cli.parsing.shared_options import (
    AT,
    DRY_RUN,
    ENVIRONMENT,
    LIMIT,
    PLANNED,
    READING,
    SELECTOR,
    SETS,
    WRITING,
    YES,
)

FILES = Option(
    "--filename",
    "File or directory with documents, YAML or JSON; - for stdin. Repeatable.",
    "FILE",
    short="-f",
    many=True,
    completes="file",
)
LABELS = (
    Option("--label", "Label of the namespace. Repeatable.", "KEY=VALUE", many=True),
    Option("--annotation", "Annotation of the namespace. Repeatable.", "KEY=VALUE", many=True),
)
APPLYING = (
    Option("--manager", "Who applies: what each manager applied last is remembered; cli if not given.", "NAME"),
    Option("--force-conflicts", "Where somebody else changed the same field, take the value of the files."),
    Option("--revive", "Bring clusters back that were decommissioned."),
    Option("--prune", "Delete documents of the files' kinds that this manager applied and that are no longer in the files."),
    ENVIRONMENT._replace(help="With --prune, of clusters only those of this environment."),
    SELECTOR._replace(help="With --prune, of clusters only those whose labels match."),
)
CLUSTER_ID = Argument("cluster", "Id of the cluster.", completes="clusters")
DNS = Argument("dns", "DNS name of the cluster.")


def groups() -> tuple[Group, ...]:
    return (
        _single(
            Command(
                ("apply",),
                "Create or update the documents of files, in one transaction.",
                "commands.apply:apply",
                options=(FILES, *APPLYING, YES, DRY_RUN, *WRITING),
                examples=(
                    "apply -f fleet/",
                    "apply -f fleet/ --manager pipeline --prune --yes",
                    "namespace get podinfo -o yaml | flux-resourceset-cli apply -f -",
                    "apply -f - --dry-run",
                ),
                details="A document is the API's, with `kind` (a group such as `namespace`, or a collection such as "
                "`namespaces`) at its top. The server remembers what each manager applied last: what others changed since stays, "
                "unless the files change the same field, which is a conflict (exit code 6). Fields that the files named before "
                "and no longer name go back to their defaults. What is equal makes no revision. All documents are "
                "written together, or none.",
            )
        ),
        _single(
            Command(
                ("delete",),
                "Delete the documents of files, in one transaction.",
                "commands.apply:delete",
                options=(FILES, YES, DRY_RUN, *WRITING),
                examples=("delete -f team-sandbox.yaml --yes",),
                details="Of each document only `kind` and `id` count. If one does not exist, nothing is deleted.",
            )
        ),
        _single(
            Command(
                ("plan",),
                "Show what apply would do to which cluster.",
                "commands.apply:plan",
                options=(FILES, *APPLYING, *PLANNED),
                examples=("plan -f fleet/", "plan -f podinfo.yaml --full", "plan -f - -o json"),
                details="The clusters that would change in the same way, with the inputs that Flux would get more, less or "
                "otherwise; then what is odd about it, and the guards and freezes that would hold it up. Nothing is written, and "
                "the token for reading is enough. With -o json it is the API's plan.",
            )
        ),
        _single(
            Command(
                ("diff",),
                "Show what apply would change, or what changed between two points of the log.",
                "commands.past:diff",
                options=(FILES, *APPLYING, *PLANNED, *past_commands.BETWEEN),
                examples=("diff -f fleet/", "diff --from 41", "diff --from 2026-01-31T12:00:00Z --to 44 --kind cluster"),
                details="Exit code 0: no difference; 1: a difference; 2: any error.",
                any_failure_is_usage=True,
            )
        ),
        _single(
            Command(
                ("export",),
                "Write the whole fleet to a file, with a checksum.",
                "commands.export_import:export",
                arguments=(Argument("file", "Where to write; stdout if left out.", optional=True, completes="file"),),
                options=(Option("--history", "With the whole change log."),),
                examples=("export fleet.json", "export --history > backup.json"),
            )
        ),
        _single(
            Command(
                ("import",),
                "Load an exported fleet into the server.",
                "commands.export_import:load",
                arguments=(Argument("file", "An export; - for stdin.", completes="file"),),
                options=(
                    Option("--merge", "Also into a store that is not empty: same ids are replaced, the others stay."),
                    YES,
                    DRY_RUN,
                    *WRITING,
                ),
                examples=("import fleet.json --yes", "import - --merge --yes < fleet.json"),
                details="Refused when the checksum does not fit, or when the store is not empty and --merge is not given.",
            )
        ),
        _single(
            Command(
                ("tags",),
                "List the tags in use, in the order of releases, and the components that differ from the common tag.",
                "commands.tags:tags",
                options=(Option("--field", "Field to look at; oci_tag if not given.", "NAME"), *READING),
                examples=("tags", "tags --field component_path"),
                details="A hotfix such as v1.0.0-1 comes after v1.0.0 and before v1.1.0; a candidate such as v1.1.0-rc1 comes "
                "before v1.1.0. `base` is the release that a tag belongs to, `common` marks the tag that most of the catalog "
                "has, if more than one has it, and `clusters` counts those that are pinned to the tag. After a release, "
                "everything should be on one tag.",
            )
        ),
        _changes(),
        _single(past_commands.REVERT),
        _single(
            Command(
                ("inputs",),
                "Show what Flux gets, byte for byte.",
                "commands.inspection:inputs",
                arguments=(DNS, Argument("view", "Last part of the Flux URL, such as platform-components.", completes="view")),
                options=(AT,),
                examples=(
                    "inputs demo-cluster-01.k8s.example.com platform-components",
                    "inputs demo-cluster-01.k8s.example.com platform-components --at 2026-01-31T12:00:00Z",
                ),
                details="With --at also of a cluster that is decommissioned, at a time when it was there, by the DNS name "
                "that it had or by its id.",
            )
        ),
        _single(past_commands.WHY),
        _single(
            Command(
                ("explain",),
                "Explain a kind or one of its fields.",
                "commands.explanation:explain",
                arguments=(Argument("kind", "A kind, or kind.field.", completes="kind"),),
                examples=("explain component", "explain cluster.patches", "explain rolebinding.subjects.kind"),
            )
        ),
        _single(
            Command(
                ("version",),
                "Show the version of this program, and of the server if it answers within a second.",
                "commands.inspection:version",
                examples=("version",),
            )
        ),
        _single(
            Command(
                ("completion",),
                "Print a script that teaches a shell to complete commands.",
                "commands.shell_scripts:script",
                arguments=(Argument("shell", "bash, zsh or fish.", choices=("bash", "zsh", "fish")),),
                examples=("completion bash > ~/.local/share/bash-completion/completions/flux-resourceset-cli",),
                details="bash: source it, or put it where the example says. zsh: put it as _flux-resourceset-cli into a "
                "directory of $fpath. fish: put it into ~/.config/fish/completions/flux-resourceset-cli.fish.",
            )
        ),
        *cluster_side_commands.groups(),
        *context_commands.groups(),
        *fleet_commands.groups(),
        _demo(),
    )


def _changes() -> Group:
    log = Command(
        ("changes",),
        "Show the change log, newest first, or one change as a whole.",
        "commands.change_log:changes",
        arguments=(Argument("revision", "Of one change, which is shown field by field.", optional=True),),
        options=(
            Option("--kind", "Only transactions that touched this kind.", "KIND", completes="kind"),
            Option("--id", "Only transactions that touched this document.", "ID"),
            Option("--actor", "Only those of this token.", "NAME"),
            Option("--since", "Only from this moment on: a time (RFC 3339), or as long ago as 90m, 1h or 2d.", "TIME"),
            Option("--until", "Only up to this moment, said in the same way.", "TIME"),
            LIMIT,
            Option("--follow", "Go on printing as changes come, oldest first; with -o json a line of JSON each.", short="-F"),
            *READING,
        ),
        examples=(
            "changes --limit 5",
            "changes 42",
            "changes --kind cluster --id demo-cluster-01",
            "changes --since 2d --actor write",
            "changes --follow",
        ),
        details="A line for each change, with the documents that --kind and --id ask for first, and the fields of one that "
        "--id asks for. A revision shows the whole change: the documents that changed in the same way together, and what became "
        "of their fields.",
    )
    return Group(log.words[0], log.summary, (log, past_commands.REVERT_CHANGE))


def _demo() -> Group:
    return Group(
        "demo",
        "Shortcuts for the demo fleet.",
        (
            Command(
                ("demo", "add-namespace"),
                "Create a namespace and assign it to a cluster.",
                "commands.demo:add_namespace",
                arguments=(CLUSTER_ID, Argument("namespace", "Name of the namespace.")),
                options=(*LABELS, *WRITING),
                examples=("demo add-namespace demo-cluster-01 demo-runtime --label team=platform --annotation owner=you",),
            ),
            Command(
                ("demo", "patch-component"),
                "Set Helm values of a component on a cluster; prints them before and after.",
                "commands.demo:patch_component",
                arguments=(CLUSTER_ID, Argument("component", "Id of the component.")),
                options=(*SETS, *WRITING),
                examples=('demo patch-component demo-cluster-01 podinfo --set replicaCount=3 --set ui.color="#3b82f6"',),
            ),
            Command(
                ("demo", "flux-namespaces"),
                "Show the namespaces that Flux gets for a cluster.",
                "commands.demo:flux_namespaces",
                arguments=(DNS,),
                examples=("demo flux-namespaces demo-cluster-01.k8s.example.com",),
            ),
        ),
        hidden=True,
    )


def _single(command: Command) -> Group:
    return Group(command.words[0], command.summary, (command,))
