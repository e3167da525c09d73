"""The commands of `fleet`: two repositories, blueprints and fleet config, on Git checkouts."""

from __future__ import annotations

from flux_resourceset.cli.parsing.cluster_side_commands import ENGINE
from flux_resourceset.cli.parsing.grammar import Argument, Command, Group, Option
from flux_resourceset.cli.parsing.shared_options import ACTOR, CONSENT

REPO = Option(
    "--repo", "The repository of fleet config; else the nearest directory above with a fleet.yaml.", "DIR", completes="file"
)
BLUEPRINTS = Option(
    "--blueprints-dir", "A checkout of the blueprints; it beats blueprints.checkout of fleet.yaml.", "DIR", completes="file"
)
ENVIRONMENT = Option("--environment", "Only in this environment.", "NAME")
CLUSTER = Option("--cluster", "Only in this cluster.", "NAME")
AT = Option("--at", "As this revision of Git has it; the work tree if not given.", "REV")
BASE = Option("--base", "What the change is judged by: policy and keys are those of this revision.", "REV")
HEAD = Option("--head", "The revision that is judged; HEAD if not given. It is read, not checked out.", "REV")
ALL = Option("--all", "All tenants; also if none is named.")
SETS = (
    Option("--set", "An input as text. Repeatable.", "KEY=VALUE", many=True),
    Option("--set-json", "An input as a number, true, false, null or a JSON string. Repeatable.", "KEY=JSON", many=True),
)
DRY_RUN = Option("--dry-run", "Show the edits, and write nothing.")
EDITING = (
    DRY_RUN,
    Option("--commit", "Commit the edited files, and nothing else."),
    Option("--branch", "Commit on a new branch from HEAD; the work tree stays as it is.", "NAME"),
)
ANNOTATED = Option(
    "--output",
    "How to print: table, json, yaml or name; github or gitlab as their CI reads findings.",
    "FORMAT",
    short="-o",
    choices=("table", "json", "yaml", "name", "github", "gitlab"),
)
MARKDOWN = Option(
    "--output",
    "How to print: table, json, yaml, name or markdown.",
    "FORMAT",
    short="-o",
    choices=("table", "json", "yaml", "name", "markdown"),
)
MANIFESTS = Option(
    "--output",
    "How to print: json, yaml or name. Without it, YAML.",
    "FORMAT",
    short="-o",
    choices=("json", "yaml", "name", "table", "wide"),
)
HELD = (*CONSENT, ACTOR)  # for what the API holds, as for every write to it
TENANT = Argument("tenant", "Name of the tenant.")
SOME_TENANT = Argument("tenant", "Name of the tenant.", optional=True)
SOME_DIR = Argument("dir", "The repository; the current directory if left out.", optional=True, completes="file")


def groups() -> tuple[Group, ...]:
    commands = (*_SCAFFOLDING, *_LOOKING, *_EDITING, *_GATES, *_BRIDGE, *_COMPONENTS)
    return (Group("fleet", "Blueprints and fleet config in two Git repositories: scaffold, check, promote, gate.", commands),)


_SCAFFOLDING = (
    Command(
        ("fleet", "init"),
        "Make both repositories, with a sample tenant.",
        "repositories.scaffolding:init",
        arguments=(Argument("dir", "Where to make them.", completes="file"),),
        options=(
            Option("--name", "What their names begin with; acme if not given.", "NAME"),
            Option("--environments", "Environments in the order of promotion; dev,staging,prod if not given.", "NAMES"),
            Option("--ci", "Whose CI they get; github if not given.", "FORGE", choices=("github", "gitlab")),
            Option("--charts", "Helm repository of the sample's charts, https:// or oci://.", "URL"),
        ),
        examples=("fleet init .", "fleet init fleet --name acme --environments dev,prod --ci gitlab"),
        details="Both are committed on main, and the blueprints are tagged v1.0.0.",
    ),
    Command(
        ("fleet", "new-cluster"),
        "Add a cluster.",
        "repositories.scaffolding:new_cluster",
        arguments=(Argument("cluster", "Name of the cluster."),),
        options=(Option("--environment", "Its environment.", "NAME"), REPO, BLUEPRINTS),
        examples=("fleet new-cluster prod-euw1-01 --environment prod",),
        details="Files are written; nothing is committed.",
    ),
    Command(
        ("fleet", "new-tenant"),
        "Add a tenant to a cluster.",
        "repositories.scaffolding:new_tenant",
        arguments=(TENANT,),
        options=(
            Option("--cluster", "Where it is to run.", "NAME"),
            Option("--blueprint", "The blueprint that makes objects of its inputs.", "NAME"),
            Option("--namespace", "Its namespace; <tenant>-<environment> if not given.", "NAME"),
            *SETS,
            REPO,
            BLUEPRINTS,
        ),
        examples=(
            "fleet new-tenant orders --cluster dev-use1-01 --blueprint standard-service --set appName=orders "
            "--set image=registry.acme.com/orders:v1 --set-json replicas=1 --set logLevel=DEBUG",
        ),
        details="Files are written; nothing is committed. The inputs must satisfy the blueprint's signature.",
    ),
    Command(
        ("fleet", "codeowners"),
        "Write CODEOWNERS from the policy.",
        "repositories.linting:codeowners",
        options=(DRY_RUN._replace(help="Show it, and write nothing."), REPO),
        examples=("fleet codeowners",),
    ),
)

_LOOKING = (
    Command(
        ("fleet", "lint"),
        "Check a repository of fleet config.",
        "repositories.linting:lint",
        options=(
            AT,
            BASE._replace(help="Also judge how many tenants the change from this revision removes."),
            Option("--strict", "Warnings are failures, too."),
            REPO,
            BLUEPRINTS,
            ANNOTATED,
        ),
        examples=("fleet lint", "fleet lint --at HEAD --base origin/main --strict", "fleet lint -o github"),
        details="Exit code 3: something is wrong.",
    ),
    Command(
        ("fleet", "lint-blueprints"),
        "Check a repository of blueprints.",
        "repositories.linting:lint_blueprints",
        arguments=(SOME_DIR,),
        options=(ANNOTATED,),
        examples=("fleet lint-blueprints", "fleet lint-blueprints ../acme-platform-blueprints -o gitlab"),
        details="Exit code 3: something is wrong.",
    ),
    Command(
        ("fleet", "render"),
        "Show the objects that tenants get.",
        "repositories.rendering:render_tenants",
        arguments=(SOME_TENANT,),
        options=(
            ENVIRONMENT,
            CLUSTER,
            AT,
            ENGINE,
            Option(
                "--output-dir",
                "Write files into this directory, below <environment>/<cluster>/<tenant>.",
                "DIR",
                completes="file",
            ),
            REPO,
            BLUEPRINTS,
            MANIFESTS,
        ),
        examples=("fleet render payment-app --environment prod", "fleet render --at HEAD~1 -o json"),
        details="Blueprints are those of the tag to which the cluster is pinned; their work tree does not matter.",
    ),
    Command(
        ("fleet", "diff"),
        "Show what a change does to the objects of tenants.",
        "repositories.comparing:diff",
        options=(
            Option("--from", "The revision before; HEAD if not given.", "REV"),
            Option("--to", "The revision after; the work tree if not given.", "REV"),
            ENGINE,
            REPO,
            BLUEPRINTS,
            MARKDOWN,
        ),
        examples=("fleet diff", "fleet diff --from origin/main --to HEAD -o markdown"),
        details="Exit code 0: no difference; 1: a difference.",
    ),
)

_EDITING = (
    Command(
        ("fleet", "set"),
        "Set inputs of a tenant.",
        "repositories.editing:set_inputs",
        arguments=(TENANT,),
        options=(ENVIRONMENT, CLUSTER, *SETS, *EDITING, *HELD, REPO, BLUEPRINTS),
        examples=("fleet set payment-app --environment dev --set image=registry.acme.com/payment:v2.1.0 --commit",),
        details="Only the bytes of the value change. Inputs that the API holds are set there.",
    ),
    Command(
        ("fleet", "promote"),
        "Carry the promoted inputs, or the pin of the blueprints, from the environment before into this one.",
        "repositories.editing:promote",
        arguments=(SOME_TENANT,),
        options=(
            Option("--to", "The environment to promote into.", "NAME"),
            Option("--all", "All tenants that both environments have."),
            Option("--blueprints", "The pin of the blueprints instead of inputs."),
            Option("--from-cluster", "Take the values of this cluster of the environment before.", "NAME"),
            CLUSTER._replace(help="Only into this cluster."),
            *EDITING,
            *HELD,
            REPO,
            BLUEPRINTS,
        ),
        examples=(
            "fleet promote payment-app --to staging --branch promote-payment",
            "fleet promote --blueprints --to prod --dry-run",
        ),
    ),
)

_GATES = (
    Command(
        ("fleet", "check-image"),
        "Judge the images that a change brings: pinned, tested before, long enough, signed.",
        "repositories.gates:check_image",
        options=(BASE, HEAD, Option("--all", "Every image that a rule is for, changed or not."), REPO),
        examples=('fleet check-image --base origin/main --head "$HEAD"',),
        details="Exit code 3: an image is refused. cosign must be on the PATH where a rule asks for it.",
    ),
    Command(
        ("fleet", "check-approvals"),
        "Judge whether a change has the approvals that its paths need.",
        "repositories.gates:check_approvals",
        options=(
            BASE,
            HEAD,
            Option("--approvals", "File with the reviews, as JSON; - for stdin.", "FILE", completes="file"),
            Option("--github", "The pull request, asked for with $GITHUB_TOKEN.", "OWNER/REPO#N"),
            Option("--gitlab", "The merge request, asked for with $GITLAB_TOKEN.", "PROJECT!N"),
            REPO,
        ),
        examples=("fleet check-approvals --base origin/main --github acme/acme-fleet-config#7",),
        details="Exit code 3: approvals are missing.",
    ),
)

_BRIDGE = (
    Command(
        ("fleet", "kind"),
        "Print the kind file of a blueprint, for RESOURCES_DIR of the server.",
        "repositories.bridge:kind",
        arguments=(Argument("blueprint", "Name of the blueprint."),),
        options=(AT._replace(help="A tag of the blueprints; the newest if not given.", metavar="TAG"), REPO, BLUEPRINTS),
        examples=("fleet kind standard-service > resources/standard_services.yaml",),
    ),
    Command(
        ("fleet", "import"),
        "Write the inputs of tenants from Git into the API, as one transaction.",
        "repositories.bridge:load",
        arguments=(SOME_TENANT,),
        options=(
            ALL,
            ENVIRONMENT,
            CLUSTER,
            Option("--dry-run", "Show what would be written, and write nothing."),
            *HELD,
            REPO,
            BLUEPRINTS,
        ),
        examples=("fleet import payment-app --dry-run", "fleet import --all"),
        details="What most clusters have goes into the definition, and what differs into the references of clusters.",
    ),
    Command(
        ("fleet", "compare"),
        "Compare the inputs of tenants in Git with those of the API.",
        "repositories.bridge:compare",
        arguments=(SOME_TENANT,),
        options=(ALL, ENVIRONMENT, CLUSTER, REPO, BLUEPRINTS),
        examples=("fleet compare payment-app", "fleet compare --all -o json"),
        details="Exit code 0: no difference; 1: a difference.",
    ),
    Command(
        ("fleet", "switch"),
        "Let the API hold the inputs of a tenant, or Git again.",
        "repositories.bridge:switch",
        arguments=(TENANT,),
        options=(
            Option("--to", "Who is to hold them.", "HOLDER", choices=("api", "git")),
            ENVIRONMENT,
            CLUSTER,
            *EDITING,
            REPO,
            BLUEPRINTS,
        ),
        examples=("fleet switch payment-app --to api --environment dev",),
        details="The provider of the tenant is rewritten, and nothing in the cluster changes: both must have the same inputs.",
    ),
)

_COMPONENTS = (
    Command(
        ("fleet", "check-components"),
        "Check a repository of components against its COMPONENTS.yaml.",
        "repositories.components:check",
        arguments=(SOME_DIR,),
        options=(
            Option("--released", "Versions that this tag has must be unchanged.", "TAG"),
            Option("--catalog", "Every path of the API's catalog and overrides must be in the tag that it names."),
            ANNOTATED,
        ),
        examples=("fleet check-components", "fleet check-components --released v1.4.0 --catalog"),
        details="Exit code 3: something is wrong.",
    ),
    Command(
        ("fleet", "prune-versions"),
        "List old versions of components that nothing uses, or remove them.",
        "repositories.components:prune",
        arguments=(SOME_DIR,),
        options=(
            Option("--keep", "How many versions of a component stay in any case; 3 if not given.", "N", least=1),
            Option("--apply", "Remove their directories."),
        ),
        examples=("fleet prune-versions", "fleet prune-versions --keep 5 --apply"),
        details="What the API's catalog or an override uses stays. Nothing is committed, and no registry is touched.",
    ),
)
