"""The commands that stand on the cluster's side of the API: bootstrap, render, simulate."""

from __future__ import annotations

from flux_resourceset.cli.parsing.grammar import Argument, Command, Group, Option
from flux_resourceset.cli.parsing.shared_options import AT

ENGINE = Option(
    "--engine",
    "What renders: builtin, or the flux-operator CLI. auto takes the CLI when it is on the PATH.",
    "ENGINE",
    choices=("auto", "builtin", "flux-operator"),
)
VIEW = Option(
    "--view", "Only this view, such as namespaces. Repeatable; without it, all of them.", "VIEW", many=True, completes="view"
)
DIRECTORY = Option("--directory", "Write files into this directory instead of printing.", "DIR", completes="file")
OUTPUT = Option(
    "--output",
    "How to print: json, yaml or name. Without it, YAML.",
    "FORMAT",
    short="-o",
    choices=("json", "yaml", "name"),
    otherwise="files are written with --directory DIR",
)

BOOTSTRAP = Command(
    ("bootstrap",),
    "Print the manifests that a cluster needs to poll the API.",
    "cluster.bootstrap:bootstrap",
    arguments=(Argument("cluster", "Id of the cluster.", completes="clusters"),),
    options=(
        Option("--api-url", "Base URL of the API as the cluster reaches it; http:// is marked as insecure.", "URL"),
        Option("--interval", "How often the cluster polls, such as 30s; 5m if not given.", "DURATION"),
        Option("--token-file", "File with the token for reading; - for stdin.", "FILE", completes="file"),
        Option("--existing-secret", "Name of a Secret in flux-system that holds the token already; none is printed.", "NAME"),
        DIRECTORY,
        OUTPUT,
    ),
    examples=(
        "bootstrap demo-cluster-01 --api-url https://fleet.example.com --token-file token | kubectl apply -f -",
        "bootstrap demo-cluster-01 --api-url https://fleet.example.com --existing-secret fleet-token --directory bundle",
    ),
    details="The identity (an immutable ConfigMap), the token Secret, and for every view the server knows a provider that "
    "polls it and the ResourceSet that makes objects of it. The ResourceSet of a kind from RESOURCES_DIR is the file "
    "<kind>.resourceset.yaml beside the kind. Without --token-file and --existing-secret the Secret holds a placeholder.",
)

RENDER = Command(
    ("render",),
    "Show the manifests that a cluster would apply.",
    "cluster.rendered_views:render_views",
    arguments=(Argument("cluster", "Id of the cluster; not needed with --inputs.", optional=True, completes="clusters"),),
    options=(
        VIEW,
        Option("--filename", "ResourceSet to render instead of the shipped one.", "FILE", short="-f", completes="file"),
        Option(
            "--inputs",
            "File with inputs (a list, or what Flux gets) instead of the server's; - for stdin.",
            "FILE",
            completes="file",
        ),
        AT,
        ENGINE,
        DIRECTORY,
        OUTPUT,
    ),
    examples=(
        "render demo-cluster-01",
        "render demo-cluster-01 --at 2026-01-31T12:00:00Z",
        "render demo-cluster-01 --view namespaces --directory manifests",
        "render --inputs inputs.json -f network_policies.resourceset.yaml",
    ),
    details="Which view a template belongs to is told by --view, or else by the provider that it names.",
)

SIMULATE = Command(
    ("simulate",),
    "Behave as Flux would in a cluster, with a directory in the cluster's place.",
    "cluster.simulate:simulate",
    arguments=(Argument("cluster", "Id of the cluster, or its DNS name.", completes="clusters"),),
    options=(
        Option("--interval", "How often to poll, such as 500ms or 10s; 2s if not given.", "DURATION"),
        Option("--once", "Poll once and end; exit code 5 if a view could not be polled, 3 if not rendered."),
        ENGINE,
        Option("--directory", "The directory; simulated/<cluster> if not given.", "DIR", completes="file"),
        OUTPUT._replace(help="How to tell of changes: json, a line for each, yaml or name. Without it, lines for people."),
    ),
    examples=("simulate demo-cluster-01", "simulate demo-cluster-01 --interval 500ms --directory /tmp/demo-cluster-01"),
    details="Polls every view and keeps its objects as files: + created, ~ changed with the changed fields, - deleted, "
    "= kept because pruning is disabled on it. After any error the last state is kept. Ctrl-C ends it; the next start "
    "goes on from the files.",
)


def groups() -> tuple[Group, ...]:
    return tuple(Group(command.words[0], command.summary, (command,)) for command in (BOOTSTRAP, RENDER, SIMULATE))
