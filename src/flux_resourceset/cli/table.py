"""Every command that does not come from a kind, and where those of the kinds join.

A new command is an entry here and a function `(Session) -> int` in a module of this package.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flux_resourceset.cli import cluster_table
from flux_resourceset.cli.grammar import Argument, Command, Group, Option

if TYPE_CHECKING:
    from flux_resourceset.cli.kinds import Kinds

COMPLETE = "__complete"

YES = Option("--yes", "Do it without asking.", short="-y")
DRY_RUN = Option("--dry-run", "Show what would change, and change nothing.")
FILES = Option(
    "--filename",
    "File or directory with documents, YAML or JSON; - for stdin. Repeatable.",
    "FILE",
    short="-f",
    many=True,
    completes="file",
)
LIMIT = Option("--limit", "Show at most so many.", "N", least=1)
SELECTOR = Option(
    "--selector", "Only clusters whose labels match, as in tier=edge,team!=x,zone in (a,b),!beta.", "SELECTOR", short="-l"
)
ENVIRONMENT = Option("--environment", "Only clusters of this tier.", "NAME")
SETS = (
    Option("--set", "Value for a dotted path of the chart, stored as text. Repeatable.", "KEY=VALUE", many=True),
    Option("--set-json", "Value as a number, true or false, or a JSON string. Repeatable.", "KEY=JSON", many=True),
    Option("--set-file", "Value from a file; one final newline is dropped. Repeatable.", "KEY=FILE", many=True),
    Option("--unset", "Path to take back, so that the chart's own value holds. Repeatable.", "KEY", many=True),
)
LABELS = (
    Option("--label", "Label of the namespace. Repeatable.", "KEY=VALUE", many=True),
    Option("--annotation", "Annotation of the namespace. Repeatable.", "KEY=VALUE", many=True),
)
CLUSTER_ID = Argument("cluster", "Id of the cluster.", completes="clusters")
DNS = Argument("dns", "DNS name of the cluster.")


def fixed() -> tuple[Group, ...]:
    """The commands that are there whatever the kinds."""
    return (
        _single(
            Command(
                ("apply",),
                "Create or update the documents of files, in one transaction.",
                "files:apply",
                options=(FILES, DRY_RUN),
                examples=(
                    "apply -f fleet/",
                    "namespace get podinfo -o yaml | flux-resourceset-cli apply -f -",
                    "apply -f - --dry-run",
                ),
                details="A document is the API's, with `kind` (a group such as `namespace`, or a collection such as "
                "`namespaces`) at its top. What exists is replaced as PUT does; what is equal makes no revision. "
                "All documents are written together, or none.",
            )
        ),
        _single(
            Command(
                ("delete",),
                "Delete the documents of files, in one transaction.",
                "files:delete",
                options=(FILES, YES, DRY_RUN),
                examples=("delete -f team-sandbox.yaml --yes",),
                details="Of each document only `kind` and `id` count. If one does not exist, nothing is deleted.",
            )
        ),
        _single(
            Command(
                ("diff",),
                "Show what apply would change.",
                "files:diff",
                options=(FILES,),
                examples=("diff -f fleet/",),
                details="Exit code 0: no difference; 1: a difference; 2: any error.",
                any_failure_is_usage=True,
            )
        ),
        _single(
            Command(
                ("export",),
                "Write the whole fleet to a file, with a checksum.",
                "whole:export",
                arguments=(Argument("file", "Where to write; stdout if left out.", optional=True, completes="file"),),
                options=(Option("--history", "With the whole change log."),),
                examples=("export fleet.json", "export --history > backup.json"),
            )
        ),
        _single(
            Command(
                ("import",),
                "Load an exported fleet into the server.",
                "whole:load",
                arguments=(Argument("file", "An export; - for stdin.", completes="file"),),
                options=(Option("--merge", "Also into a store that is not empty: same ids are replaced, the others stay."), YES),
                examples=("import fleet.json --yes", "import - --merge --yes < fleet.json"),
                details="Refused when the checksum does not fit, or when the store is not empty and --merge is not given.",
            )
        ),
        _single(
            Command(
                ("tags",),
                "List the tags in use, in the order of releases, and what is off the common one.",
                "tags:tags",
                options=(Option("--field", "Field to look at; oci_tag if not given.", "NAME"),),
                examples=("tags", "tags --field component_path"),
                details="A hotfix such as v1.0.0-1 comes after v1.0.0 and before v1.1.0; a candidate such as v1.1.0-rc1 comes "
                "before v1.1.0. `base` is the release that a tag belongs to, `common` marks the tag that most of the catalog "
                "has, and `clusters` counts those that are pinned to the tag. After a release, everything should be on one tag.",
            )
        ),
        _single(
            Command(
                ("changes",),
                "Show the change log, newest first.",
                "history:changes",
                options=(
                    Option("--kind", "Only transactions that touched this kind.", "KIND", completes="kind"),
                    Option("--id", "Only transactions that touched this document.", "ID"),
                    Option("--actor", "Only those of this token.", "NAME"),
                    Option("--since", "Only from this moment on (RFC 3339).", "TIME"),
                    Option("--until", "Only up to this moment (RFC 3339).", "TIME"),
                    LIMIT,
                    Option("--follow", "Go on printing as changes come, oldest first; a line of JSON each.", short="-F"),
                ),
                examples=(
                    "changes --limit 5",
                    "changes --kind cluster --id demo-cluster-01",
                    "changes --since 2026-01-31T12:00:00Z --actor write",
                    "changes --follow",
                ),
            )
        ),
        _single(
            Command(
                ("inputs",),
                "Show what Flux gets, byte for byte.",
                "inspection:inputs",
                arguments=(DNS, Argument("view", "Last part of the Flux URL, such as platform-components.", completes="view")),
                examples=("inputs demo-cluster-01.k8s.example.com platform-components",),
            )
        ),
        _single(
            Command(
                ("explain",),
                "Explain a kind or one of its fields.",
                "inspection:explain",
                arguments=(Argument("kind", "A kind, or kind.field.", completes="kind"),),
                examples=("explain component", "explain cluster.patches", "explain rolebinding.subjects.kind"),
            )
        ),
        _single(
            Command(
                ("version",),
                "Show the version of this program, and of the server if it answers within a second.",
                "inspection:version",
                examples=("version",),
            )
        ),
        _single(
            Command(
                ("completion",),
                "Print a script that teaches a shell to complete commands.",
                "completion:script",
                arguments=(Argument("shell", "bash, zsh or fish.", choices=("bash", "zsh", "fish")),),
                examples=("completion bash > ~/.local/share/bash-completion/completions/flux-resourceset-cli",),
                details="bash: source it, or put it where the example says. zsh: put it as _flux-resourceset-cli into a "
                "directory of $fpath. fish: put it into ~/.config/fish/completions/flux-resourceset-cli.fish.",
            )
        ),
        *cluster_table.groups(),
        _config(),
        _demo(),
    )


def _config() -> Group:
    name = Argument("name", "Name of the context.", completes="context")
    from_stdin = " A - reads it from stdin, a line each, so that it shows in no process list."
    return Group(
        "config",
        "Store and choose servers and tokens.",
        (
            Command(
                ("config", "set-context"),
                "Store a server and its tokens under a name.",
                "config:set_context",
                arguments=(name,),
                options=(
                    Option("--url", "Base URL of the API, as in http://127.0.0.1:8080.", "URL"),
                    Option("--token", "Token for reading." + from_stdin, "TOKEN"),
                    Option("--write-token", "Token for writing." + from_stdin, "TOKEN"),
                ),
                examples=(
                    "config set-context demo --url http://127.0.0.1:8080 --token - --write-token - < tokens",
                    "config set-context demo --url https://fleet.example.com",
                ),
                details="What is not given stays as it was. The first context becomes the current one. The file is "
                "~/.config/flux-resourceset/config.yaml; FLUX_API_URL, FLUX_API_TOKEN and FLUX_API_WRITE_TOKEN win over it.",
            ),
            Command(
                ("config", "use-context"), "Choose the current context.", "config:use_context", (name,),
                examples=("config use-context demo",),
            ),
            Command(
                ("config", "get-contexts"), "List the contexts, without their tokens.", "config:get_contexts",
                examples=("config get-contexts",),
            ),
        ),
    )  # fmt: skip


def _demo() -> Group:
    return Group(
        "demo",
        "Shortcuts for the demo fleet.",
        (
            Command(
                ("demo", "add-namespace"),
                "Create a namespace and assign it to a cluster.",
                "demo:add_namespace",
                arguments=(CLUSTER_ID, Argument("namespace", "Name of the namespace.")),
                options=LABELS,
                examples=("demo add-namespace demo-cluster-01 demo-runtime --label team=platform --annotation owner=you",),
            ),
            Command(
                ("demo", "patch-component"),
                "Set Helm values of a component on a cluster; prints them before and after.",
                "demo:patch_component",
                arguments=(CLUSTER_ID, Argument("component", "Id of the component.")),
                options=SETS,
                examples=('demo patch-component demo-cluster-01 podinfo --set replicaCount=3 --set ui.color="#3b82f6"',),
            ),
            Command(
                ("demo", "flux-namespaces"),
                "Show the namespaces that Flux gets for a cluster.",
                "demo:flux_namespaces",
                arguments=(DNS,),
                examples=("demo flux-namespaces demo-cluster-01.k8s.example.com",),
            ),
        ),
    )


def _single(command: Command) -> Group:
    return Group(command.words[0], command.summary, (command,))


def groups(known: Kinds) -> tuple[Group, ...]:
    """All commands: those of the kinds first, then the fixed ones."""
    from flux_resourceset.cli import kind_table

    taken = {group.word for group in fixed()}
    return (*kind_table.groups(known, taken), *fixed())


def find(among: Iterable[Group], word: str) -> Group | None:
    return next((group for group in among if word == group.word or word in group.aliases), None)
