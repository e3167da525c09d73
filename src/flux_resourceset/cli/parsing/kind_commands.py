"""The commands that a kind gives: verbs from its methods and hints, options from its schema."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from flux_resourceset.cli.known_kinds import CLUSTERS, FREEZES, Kind, Kinds, ReferencedKind
from flux_resourceset.cli.parsing import field_options, grammar, past_commands, whereabouts_commands
from flux_resourceset.cli.parsing.grammar import Argument, Command, Group, Option
from flux_resourceset.cli.parsing.shared_options import (
    AT,
    DOCUMENTS,
    DRY_RUN,
    ENVIRONMENT,
    LIMIT,
    READING,
    SELECTOR,
    SETS,
    WRITING,
    YES,
)
from flux_resourceset.kinds.fields import sample

TARGETS = (
    Option("--cluster", "Id of the cluster. Repeatable.", "ID", many=True, completes=CLUSTERS),
    SELECTOR,
    ENVIRONMENT,
    Option("--all", "All clusters."),
)
_FROM_FILE = Option(
    "--from-file", "Document to start from, YAML or JSON; the options win over it. - for stdin.", "FILE", completes="file"
)
_EDITED = Option(
    "--from-file", "A file that was edited already; it is stored as it is, and no editor opens.", "FILE", completes="file"
)
_FROM = Option("--from", "Document to clone: KIND/ID; the options win over it.", "KIND/ID")
_UPDATE = Option("--update", "If it exists with other content, update it.")
_CLEAR = Option("--clear", "Field to take away, so that its default holds. Repeatable.", "FIELD", many=True)
_FORCE = Option("--force", "Also when clusters use it; it is then skipped for them.")
_BY_LABEL = Option("--selector", "Only those whose labels match, as in zone=edge,!beta.", "SELECTOR", short="-l")
_REASON = Option("--reason", "Why; whoever is refused reads it, and it is stored in the change log.", "TEXT")
_LISTING = (LIMIT, Option("--offset", "Leave out so many at the start.", "N", least=0), AT)
_BULK = (
    "With --selector, --environment or --all it acts on all these clusters in one transaction, and asks first "
    "when they are more than one."
)

_MAKING = frozenset({"post", "put", "patch"})  # without any of them the server lets nobody go back
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789=/:.-_+")  # no shell minds these

_GLOBAL = frozenset(spelling for option in grammar.GLOBALS for spelling in option.spellings)


def taken(*options: Option) -> set[str]:
    """The spellings that options of fields cannot have."""
    return {*_GLOBAL, *(spelling for option in options for spelling in option.spellings)}


def create_fields(kind: Kind) -> list[field_options.Field]:
    used = taken(*_targets(kind), _FROM_FILE, _FROM, _UPDATE, _CLEAR, DRY_RUN, YES, *WRITING)
    fields = field_options.fields(kind.properties, used)
    return [field._replace(option=_REASON) if _is_reason(kind, field) else _completed(kind, field) for field in fields]


def _completed(kind: Kind, field: field_options.Field) -> field_options.Field:
    """With what could be its value: what is allowed or in use, and for maps their keys."""
    place = f"{kind.name}.{field.name}"
    is_version = isinstance(kind, ReferencedKind) and field.name in kind.overrides
    if is_version or "enum" in field.schema:
        return field._replace(option=field.option._replace(completes=f"values:{place}"))
    return field._replace(option=field.option._replace(completes=f"keys:{place}")) if field.shape == "map" else field


def _is_reason(kind: Kind, field: field_options.Field) -> bool:
    """Why a freeze is made is why it is there, so one option says both."""
    return kind.name == FREEZES and field.name == "reason"


def reference_fields(kind: ReferencedKind) -> list[field_options.Field]:
    fields = field_options.fields(kind.reference, taken(*TARGETS, DRY_RUN, YES, *WRITING))
    return [_completed(kind, field) for field in fields]


def pin_fields(kind: ReferencedKind) -> list[field_options.Field]:
    return [field for field in reference_fields(kind) if field.name in kind.overrides]


def _targets(kind: Kind) -> tuple[Option, ...]:
    return TARGETS if isinstance(kind, ReferencedKind) else ()


def groups(known: Kinds, taken_words: Collection[str]) -> list[Group]:
    of_kinds = [_group(kind, kind.group if kind.group not in taken_words else kind.name.replace("_", "-")) for kind in known]
    return [*of_kinds, Group("overrides", _OVERRIDES, (_overrides(known),))]


def _group(kind: Kind, word: str) -> Group:
    aliases = tuple(name for name in kind.names() if name != word)
    return Group(word, kind.description, lambda: commands(kind, word), aliases)


def commands(kind: Kind, word: str) -> Iterator[Command]:
    of_many, of_one = kind.methods.get("resource", []), kind.methods.get("instance", [])
    if "get" in of_many:
        yield _list(kind, word)
    if "get" in of_one:
        yield Command(
            (word, "get"), f"Show {kind.name.replace('_', ' ')} by their ids.", "commands.reading_verbs:get", (ids(kind),),
            (AT, *DOCUMENTS), kind=kind.name,
            examples=(f"{word} get {example_id(kind)}", f"{word} get {example_id(kind)} -o yaml"),
            details="If one of several is not found, the others are shown, and the exit code is 4.",
        )  # fmt: skip
        yield whereabouts_commands.describe(kind.singular, (word, "describe"), _id(kind), kind.name, example_id(kind))
        yield Command(
            (word, "history"), f"Show the changes of one {kind.singular}, newest first.", "commands.past:history", (_id(kind),),
            (LIMIT,), kind=kind.name, examples=(f"{word} history {example_id(kind)} --limit 5",),
            details="Who changed which field, when and why; also of a document that was deleted.",
        )  # fmt: skip
    if "post" in of_many:
        yield _create(kind, word)
    if "patch" in of_one:
        yield _update(kind, word)
    if "put" in of_one and "get" in of_one:
        yield Command(
            (word, "edit"), f"Change one {kind.singular} in $EDITOR.", "commands.editing:edit", (_id(kind),),
            (_EDITED, *WRITING), kind=kind.name,
            examples=(f"{word} edit {example_id(kind)}",),
            details="What is refused opens again, with the errors as comments on top; saved unchanged, it is given up and the "
            "file is kept. When others change other fields meanwhile, both changes hold; when they change the same field, "
            "the edited file is kept and the exit code is 6.",
        )  # fmt: skip
    if "delete" in of_one:
        yield _delete(kind, word)
    if _MAKING & {*of_many, *of_one}:
        yield _revert(kind, word)
    if isinstance(kind, ReferencedKind):
        yield from _on_clusters(kind, word)


def _id(kind: Kind) -> Argument:
    text = kind.properties["id"].get("description", f"Id of the {kind.singular}.")
    return Argument("id", str(text), completes=kind.name)


def ids(kind: Kind) -> Argument:
    """Any number of them, but at least one."""
    return _id(kind)._replace(many=True)


def example_id(kind: Kind) -> str:
    return str(kind.properties["id"].get("example", f"my-{kind.group}"))


def filters(kind: Kind) -> dict[str, Option]:
    """The options of `list` by the query parameter that they stand for."""
    options = {}
    for name in kind.filters:
        option = f"--{name.replace('_', '-')}"
        text = f"Only those with this value. {kind.properties[name].get('description', '')}".strip()
        if option not in taken(*_LISTING, _BY_LABEL, *DOCUMENTS):
            options[name] = Option(option, text, "VALUE", completes=f"values:{kind.name}.{name}")
    if kind.has_labels:
        options["selector"] = _BY_LABEL._replace(completes=f"labels:{kind.name}")
    return {**options, **{option.key: option for option in _LISTING}}


def _list(kind: Kind, word: str) -> Command:
    own = next((name for name in filters(kind) if name in kind.filters), None)
    narrowed = f"list --{own.replace('_', '-')} {sample(kind.properties[own], chosen=True)}" if own else "list -o wide"
    return Command(
        (word, "list"), f"List {kind.name.replace('_', ' ')}.", "commands.reading_verbs:list", kind=kind.name,
        options=(*filters(kind).values(), *whereabouts_commands.of_lists(kind.name), *DOCUMENTS),
        examples=(f"{word} list", f"{word} {narrowed}", f"{word} list -o json | jq .", f"{word} list --watch"),
    )  # fmt: skip


def _create(kind: Kind, word: str) -> Command:
    fields = create_fields(kind)
    either = kind.schema.get("anyOf") or [{}]
    needed = {*kind.required, *either[0].get("required", ())}
    given = " ".join(_shown(field) for field in fields if field.name in needed)
    optional = next((field for field in fields if field.shape == "map"), None)
    given = given or (_shown(optional) if optional else "")
    plain = f"{word} create {example_id(kind)} {given}".rstrip()
    assignable = isinstance(kind, ReferencedKind)
    assigned = (f"{plain} --cluster demo-cluster-01",) if assignable else ()
    return Command(
        (word, "create"),
        f"Create one {kind.singular}" + (", and assign it to clusters." if assignable else "."),
        "commands.kind_verbs:create",
        (_id(kind),),
        (
            *(field.option for field in fields),
            *_targets(kind),
            _FROM_FILE,
            _FROM._replace(completes=f"clone:{kind.group}"),
            _UPDATE,
            DRY_RUN,
            *((YES,) if assignable else ()),
            *WRITING,
        ),
        (plain, *assigned, f"{word} create {example_id(kind)} --from-file {word}.yaml", _cloning(kind, word)),
        "If it exists with equal content, nothing happens; with other content it is refused, unless --update is given. "
        + (f"Without a cluster option it is only created. {_BULK}" if assignable else ""),
        kind=kind.name,
    )


def _cloning(kind: Kind, word: str) -> str:
    own = " --cluster-dns new.k8s.example.com" if kind.name == CLUSTERS else ""
    return f"{word} create my-{word} --from {word}/{example_id(kind)}{own}"


def _update(kind: Kind, word: str) -> Command:
    fields = create_fields(kind)
    return Command(
        (word, "update"),
        f"Change fields of one {kind.singular}; the other fields stay as they are.",
        "commands.kind_verbs:update",
        (_id(kind),),
        (*(field.option for field in fields), _FROM_FILE, _CLEAR, DRY_RUN, *WRITING),
        (f"{word} update {example_id(kind)} {_shown(fields[0]) if fields else '--from-file f.yaml'}",),
        kind=kind.name,
    )


def _delete(kind: Kind, word: str) -> Command:
    if kind.name == CLUSTERS:
        return Command(
            (word, "decommission"), "Delete clusters; Flux then removes everything from them.", "commands.kind_verbs:delete",
            (ids(kind),), (YES, DRY_RUN, *WRITING), (f"{word} decommission {example_id(kind)} --yes",),
            "Its DNS name answers with empty lists from then on, so that Flux on the cluster removes what it had applied. "
            "Several are deleted in one transaction.", kind=kind.name, aliases=("delete",),
        )  # fmt: skip
    assignable = isinstance(kind, ReferencedKind)
    return Command(
        (word, "delete"), f"Delete {kind.name.replace('_', ' ')} by their ids, in one transaction.", "commands.kind_verbs:delete",
        (ids(kind),), (*((_FORCE,) if assignable else ()), YES, DRY_RUN, *WRITING), (f"{word} delete {example_id(kind)} --yes",),
        "Refused while clusters use it, unless --force is given." if assignable else "", kind=kind.name,
    )  # fmt: skip


def _revert(kind: Kind, word: str) -> Command:
    return Command(
        (word, "revert"), f"Make one {kind.singular} what it was.", "commands.reverting:document", (_id(kind),),
        (past_commands.TO, *past_commands.BACK), (f"{word} revert {example_id(kind)} --to 41 --dry-run",),
        "One that is gone comes back. The plan is shown before the question, and only that plan is carried out.", kind=kind.name,
    )  # fmt: skip


def _on_clusters(kind: ReferencedKind, word: str) -> Iterator[Command]:
    id, one = (_id(kind),), example_id(kind)
    common = (*TARGETS, DRY_RUN, YES, *WRITING)
    skips = f"{_BULK} Clusters that do not have it are skipped then; named with --cluster, they are an error. "

    def command(verb: str, summary: str, options: tuple[Option, ...], example: str, details: str) -> Command:
        examples = (
            f"{word} {verb} {one} --cluster demo-cluster-01{example}",
            f"{word} {verb} {one} --environment dev{example} --yes",
        )
        run = f"commands.per_cluster_verbs:{verb}"
        return Command((word, verb), summary, run, id, (*options, *common), examples, details.strip(), kind=kind.name)

    yield whereabouts_commands.usage(kind.singular, (word, "usage"), _id(kind), kind.name, one)
    own = tuple(field.option for field in reference_fields(kind))
    yield command("assign", "Assign it to clusters; references that they have already stay as they are.", own, "", _BULK)
    yield command("unassign", "Remove it from clusters, together with their patches for it.", (), "", _BULK)
    if kind.switched:
        yield command("enable", "Switch it on where it is assigned.", (), "", skips)
        yield command("disable", "Switch it off; it stays assigned.", (), "", skips)
    if kind.overrides:
        pins = pin_fields(kind)
        yield command(
            "pin", "Let clusters deviate from the definition.", tuple(f.option for f in pins),
            f" {_shown(pins[0])}", f"At least one of {', '.join(f.option.name for f in pins)} is needed. {skips}",
        )  # fmt: skip
        yield command("unpin", "Let clusters follow the definition again.", (), "", skips)
    if kind.patches:
        yield command(
            "patch",
            "Set Helm values of clusters for it.",
            tuple(option._replace(completes=f"patches:{kind.name}") for option in SETS),
            " --set replicaCount=3",
            skips,
        )


def _shown(field: field_options.Field) -> str:
    """An option with an example value, as one would type it."""
    if field.shape == "boolean":
        return field.option.name
    value = sample(field.schema, chosen=True)
    if field.shape == "map" and isinstance(value, dict) and value:
        value = "=".join(map(str, next(iter(value.items()))))
    elif isinstance(value, list):
        value = value[0] if value else sample(field.schema.get("items", {}), chosen=True)
    text = value if isinstance(value, str) and field.shape not in ("items", "json") else json.dumps(value, ensure_ascii=False)
    quoted = text if set(text) <= _PLAIN else "'" + text.replace("'", "'\\''") + "'"
    return f"{field.option.name} {quoted}"


# The differences of clusters, over all kinds that allow any

_OVERRIDES = "List every override and patch in the fleet."


def overridable(known: Kinds) -> list[ReferencedKind]:
    referenced = (kind for kind in known if isinstance(kind, ReferencedKind))
    return [kind for kind in referenced if kind.overrides or kind.patches or kind.reference]


def _overrides(known: Kinds) -> Command:
    of_kinds = tuple(
        Option(f"--{kind.group}", f"Only those of this {kind.singular}.", "ID", completes=kind.name)
        for kind in overridable(known)
    )
    one = next((f"overrides --{kind.group} {example_id(kind)}" for kind in overridable(known)), "overrides -o wide")
    return Command(
        ("overrides",),
        _OVERRIDES,
        "commands.overrides:overrides",
        options=(
            *of_kinds,
            Option("--cluster", "Only those of this cluster.", "ID", completes=CLUSTERS),
            *TARGETS[1:],
            LIMIT,
            *READING,
        ),
        examples=("overrides", one, "overrides --cluster demo-cluster-01"),
        details="Everything in which clusters differ from the definitions they refer to, with the value otherwise.",
    )
