"""Writes openapi/openapi.yaml, files of the package and the generated parts of the documentation; `--check` says what is stale.

A generated part stands between `<!-- generated: name -->` and `<!-- end -->`, where name is a key of PARTS, or
`file PATH`, which includes a shipped file; `file PATH as NAME` also marks it as a file of the examples.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grimp
import yaml

from flux_resourceset import cluster_bundle, errors, openapi, settings
from flux_resourceset.cli import reference_page
from flux_resourceset.follower import Follower
from flux_resourceset.http import app
from flux_resourceset.http.metrics import Metrics
from flux_resourceset.kinds import formats, kind_files, model
from flux_resourceset.ledger import Ledger
from flux_resourceset.render import data_functions, functions, text_functions
from flux_resourceset.repositories import policy
from flux_resourceset.store.memory import MemoryStore

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "flux_resourceset"

_PART = re.compile(r"(<!-- generated: ([a-z]+)(?: (\S+)(?: as (\S+))?)? -->\n).*?(<!-- end -->)", re.DOTALL)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |\n" for line in lines)


def code(text: object) -> str:
    return f"`{text}`" if text not in ("", None) else ""


# From the code


def settings_table() -> str:
    return table(
        ("Variable", "Default", "Meaning"),
        ((code(setting.name), code(setting.default) or "none", setting.meaning) for setting in settings.SETTINGS),
    )


def refusals(root: type[errors.Refusal] = errors.Refusal) -> Iterator[type[errors.Refusal]]:
    for refusal in root.__subclasses__():
        yield refusal
        yield from refusals(refusal)


def errors_table() -> str:
    known = sorted(set(refusals()), key=lambda refusal: (refusal.status, refusal.code, refusal.title))
    return table(("Status", "`code`", "Title"), ((str(item.status), code(item.code), item.title) for item in known))


def formats_table() -> str:
    return table(("Format", "A value"), ((code(name), item.message) for name, item in formats.FORMATS.items()))


def metrics_table() -> str:
    measures = Metrics(Follower(kind_files.load(), MemoryStore))
    rows = []
    for metric in measures.collect():
        name = metric.name + ("_total" if metric.type == "counter" else "")
        rows.append((code(name), metric.type, metric.documentation))
    return table(("Metric", "Type", "Meaning"), rows)


def modules_table() -> str:
    """Every module, but for the insides of rooms whose name says enough."""
    rows = []
    for path in [
        *PACKAGE.glob("*.py"),
        *PACKAGE.glob("*/__init__.py"),
        *PACKAGE.glob("cli/**/*.py"),
        *PACKAGE.glob("http/*.py"),
        *PACKAGE.glob("kinds/*.py"),
        *PACKAGE.glob("repositories/**/*.py"),
        *PACKAGE.glob("store/*.py"),
    ]:
        place = path.relative_to(PACKAGE)
        sentence = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
        name = str(place.parent) + "/" if place.name == "__init__.py" else str(place)
        if sentence and name != "./":
            rows.append((code(name), sentence))
    return table(("Module", "What it is for"), sorted(set(rows)))


def _contracts() -> list[dict[str, Any]]:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts: list[dict[str, Any]] = pyproject["tool"]["importlinter"]["contracts"]
    return contracts


def layers_drawing() -> str:
    """Every contract of the linter: layers as they lie on each other, and who must not know whom."""
    parts = []
    for contract in _contracts():
        if contract["type"] == "layers":
            lines = [layer.replace("flux_resourceset.", "") for layer in contract["layers"]]
        else:
            sources, forbidden = (", ".join(_short(contract[name])) for name in ("source_modules", "forbidden_modules"))
            lines = [sources, f"must not import {forbidden}"]
        parts.append(f"{contract['name']}:\n\n```text\n" + "\n".join(lines) + "\n```\n")
    return "\n".join(parts)


def _short(modules: Iterable[str]) -> list[str]:
    return [module.replace("flux_resourceset.", "") for module in modules]


def imports_drawing() -> str:
    """Who imports whom, from the graph that the linter checks; an import that others imply is left out."""
    graph = grimp.build_graph("flux_resourceset")
    rooms = {module.rpartition(".")[2] for module in graph.find_children("flux_resourceset")}
    for room in rooms:
        graph.squash_module(f"flux_resourceset.{room}")
    below = {
        room: {
            module.rpartition(".")[2]
            for module in graph.find_modules_directly_imported_by(f"flux_resourceset.{room}")
            if module.startswith("flux_resourceset.") and module != f"flux_resourceset.{room}"
        }
        for room in sorted(rooms)
    }
    lines = []
    for room, imported in below.items():
        implied = {far for near in imported for far in _reachable(near, below)}
        lines += [f"  {room} --> {name}" for name in sorted(imported - implied)]
    return "```mermaid\nflowchart TD\n" + "\n".join(lines) + "\n```\n"


def _reachable(start: str, below: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for name in below.get(waiting.pop(), set()) - reached:
            reached.add(name)
            waiting.append(name)
    return reached


def functions_table() -> str:
    """Every function that templates may call, by the module that holds it."""
    rooms = (
        ("text/template, evaluated one argument after the other", functions.LAZY),
        ("data", data_functions.TABLE),
        ("text", text_functions.TABLE),
    )
    return table(("About", "Functions"), ((about, ", ".join(map(code, sorted(names)))) for about, names in rooms))


# From the kinds

# The hints have no other place for prose; hints_table() refuses to differ from the meta-schema.
_HINTS = {
    "singular": ("The group of the command line, and the word in messages.", "the kind without its final s"),
    "short": ("A short word for the kind on the command line; no other kind may have it as a word.", "none"),
    "endpoint": ("Last segment of the Flux path.", "the kind with `-` for `_`"),
    "cluster_field": ("The reference array on clusters; `null`: none, and no Flux path.", "the kind"),
    "reference": (
        "What a reference may hold besides `id`: a map of properties, or a JSON Schema object (`type: object`, `properties`, "
        "perhaps `required`).",
        "nothing",
    ),
    "overrides": ("Fields of a reference that override the definition's field of the same name, unless they are null.", "none"),
    "nest": ("Fields of the answer that are gathered under a name.", "none"),
    "patches": ("Whether `cluster.patches[id]` goes into the answer as `patches`.", "`false`"),
    "patch_keys": ("The format that keys of patches must have, where what is patched is as in `where`.", "`helm-path`"),
    "dependencies": (
        "A field that names documents of its kind; they must exist, agree in `same`, and make no cycle.",
        "none",
    ),
    "versions": (
        "Fields that pin a version, where the document is as in `where`: warned about when they disagree or leave a choice.",
        "none",
    ),
}


def hints_table() -> str:
    schema = yaml.safe_load((PACKAGE / "kinds" / "kind_file.schema.yaml").read_text(encoding="utf-8"))
    known = schema["properties"]["metadata"]["properties"]["x-flux"]["properties"]
    if known.keys() != _HINTS.keys():
        raise SystemExit(f"docs/generate.py: _HINTS and kind_file.schema.yaml differ in {sorted(known.keys() ^ _HINTS.keys())}")
    example = yaml.safe_load(kind_files.builtin_files()["platform_components.yaml"])["metadata"]["x-flux"]
    rows = ((code(name), meaning, default, _shown_hint(example.get(name))) for name, (meaning, default) in _HINTS.items())
    return table(("Hint", "Meaning", "Default", "In `platform_components`"), rows)


def _shown_hint(value: Any) -> str:
    if isinstance(value, dict) and any(isinstance(item, dict) for item in value.values()):
        return ", ".join(map(code, value))
    if value is None:
        return ""
    return code(yaml.safe_dump(value, default_flow_style=True, width=1000).replace("\n...", "").strip())


def reserved_table() -> str:
    rows = (("kind", model.RESERVED_KINDS), ("field", model.RESERVED_FIELDS))
    return table(("No name for a", "because it is taken"), ((what, ", ".join(map(code, sorted(names)))) for what, names in rows))


def kinds_tables() -> str:
    return "\n".join(f"### {kind.name}\n\n{kind.description}\n\n{_fields(kind)}" for kind in kind_files.load())


def _fields(kind: model.Kind) -> str:
    required = kind.schema.get("required", ())
    rows = []
    for name, schema in kind.properties.items():
        default = code(yaml.safe_dump(schema["default"], default_flow_style=True).split("\n")[0]) if "default" in schema else ""
        rows.append((code(name), _type(schema), "required" if name in required else default, schema.get("description", "")))
    return table(("Field", "Type", "Default", "Meaning"), rows)


def _type(schema: model.Schema) -> str:
    if "enum" in schema:
        return " or ".join(code(option) for option in schema["enum"])
    if schema["type"] == "array":
        items = schema.get("items", {})
        inner = ", ".join(map(code, items["properties"])) if "properties" in items else items.get("type", "")
        return f"array of {{{inner}}}" if "properties" in items else f"array of {inner}"
    if "format" in schema:
        return f"{schema['type']}, {code(schema['format'])}"
    return schema["type"] if isinstance(schema["type"], str) else " or ".join(schema["type"])


# From the policy of two repositories


def policy_table() -> str:
    """Every field of fleet.yaml, with its meaning."""
    return table(("Field", "Meaning"), _policy_rows(policy.schema(), ""))


def _policy_rows(schema: Mapping[str, Any], place: str) -> Iterator[Sequence[str]]:
    for name, inner in schema.get("properties", {}).items():
        needed = " Required." if name in schema.get("required", ()) else ""
        yield code(f"{place}{name}"), inner["description"] + needed
        items = inner.get("items", {})
        yield from _policy_rows(items if "properties" in items else inner, f"{place}{name}{'[]' if items else ''}.")


# From the OpenAPI document

_METHODS = ("get", "put", "post", "patch", "delete")


@functools.cache
def specification_text() -> str:
    return openapi.text(kind_files.load(), writable=True).decode()


@functools.cache
def specification() -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it was built
    document: dict[str, Any] = yaml.load(specification_text(), Loader=loader)  # noqa: S506  # both are safe
    return document


def endpoints_table() -> str:
    rights = _rights()
    rows = []
    for path, item in specification()["paths"].items():
        for method in _METHODS:
            if method in item:
                statuses = " ".join(status for status in item[method]["responses"] if status.isdigit())
                right = rights[method.upper(), path]
                rows.append((code(method.upper()), code(path), item[method].get("summary", ""), right, statuses))
    return table(("Method", "Path", "What it does", "Token", "Statuses"), rows)


def _rights() -> dict[tuple[str, str], str]:
    """What every method of every path asks for, from the table of routes that the server uses."""
    kinds = kind_files.load()
    ledger = Ledger(Follower(kinds, MemoryStore))
    routes = app.routes(kinds, ledger, Metrics(ledger.follower), lambda: b"", writable=True)
    return {
        (method, route.path): endpoint.access.value for route in routes for method, endpoint in route.resource.endpoints.items()
    }


def headers_table() -> str:
    document = specification()
    meanings: dict[tuple[str, str], str] = {}
    for place, header in _headers(document):
        name, item = header
        meanings.setdefault((place, name), _resolved(document, item).get("description", ""))
    rows = ((code(name), place, meaning) for (place, name), meaning in sorted(meanings.items(), key=lambda entry: entry[0][::-1]))
    return table(("Header", "Where", "Meaning"), rows)


def _headers(document: dict[str, Any]) -> Iterator[tuple[str, tuple[str, Any]]]:
    for item in document["paths"].values():
        for operation in (item[method] for method in _METHODS if method in item):
            for raw in [*item.get("parameters", ()), *operation.get("parameters", ())]:
                parameter = _resolved(document, raw)
                if parameter["in"] == "header":
                    yield "request", (parameter["name"], parameter)
            for raw in operation["responses"].values():
                for name, header in _resolved(document, raw).get("headers", {}).items():
                    yield "answer", (name, header)


def _resolved(document: dict[str, Any], item: Any) -> dict[str, Any]:
    while "$ref" in item:
        target: Any = document
        for step in item["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        item = target
    resolved: dict[str, Any] = item
    return resolved


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings_table,
    "errors": errors_table,
    "formats": formats_table,
    "metrics": metrics_table,
    "modules": modules_table,
    "layers": layers_drawing,
    "functions": functions_table,
    "imports": imports_drawing,
    "hints": hints_table,
    "reserved": reserved_table,
    "kinds": kinds_tables,
    "policy": policy_table,
    "endpoints": endpoints_table,
    "headers": headers_table,
}


# Files


def filled(text: str) -> str:
    """The page with its generated parts as they should be."""
    return _PART.sub(lambda match: f"{match[1]}\n{_part(match)}\n{match[5]}", text)


def _part(match: re.Match[str]) -> str:
    if match[2] == "file":
        return included(match[3], match[4])
    return PARTS[match[2]]()


def included(path: str, name: str | None) -> str:
    """A shipped file as a block; with a name, a file that the page's examples find under it."""
    text = (ROOT / path).read_text(encoding="utf-8").rstrip("\n")
    mark = f" file={name}" if name else ""
    return f"[{path}](../{path}):\n\n```{Path(path).suffix.removeprefix('.')}{mark}\n{text}\n```\n"


def outputs() -> Iterator[tuple[Path, str | None]]:
    """Every file that is generated in whole or in part, with its content; None is one that must not be."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(PACKAGE.glob("*/README.md"))]:
        text = path.read_text(encoding="utf-8")
        if _PART.search(text):
            yield path, filled(text)
    yield ROOT / "openapi" / "openapi.yaml", specification_text()
    yield from packaged_bundle()
    yield from command_line()


def packaged_bundle() -> Iterator[tuple[Path, str | None]]:
    """The package carries what a cluster is given; deploy/cluster is where it is edited."""
    target = PACKAGE / "bundle"
    wanted = {target / name: text for name, text in cluster_bundle.chosen(ROOT / "deploy" / "cluster").items()}
    yield from wanted.items()
    yield from ((path, None) for path in sorted(target.rglob("*")) if path.is_file() and path not in wanted)


def command_line() -> Iterator[tuple[Path, str]]:
    """Its reference page; and the built-in kinds for it, as data, because YAML takes longer to read than help may take."""
    described = [kind.described() for kind in kind_files.load()]
    yield PACKAGE / "cli" / "builtin_kinds.json", json.dumps(described, ensure_ascii=False, indent=1) + "\n"
    yield ROOT / "docs" / "cli.md", reference_page.reference(described)


def main(arguments: Sequence[str]) -> int:
    check = "--check" in arguments
    stale = []
    for path, content in outputs():
        if content != (path.read_text(encoding="utf-8") if path.exists() else None):
            stale.append(path)
            if not check:
                write(path, content)
    for path in stale:
        print(f"{path.relative_to(ROOT)} {'is stale; run make generate' if check else 'written'}")
    return 1 if check and stale else 0


def write(path: Path, content: str | None) -> None:
    if content is None:
        path.unlink()
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
