"""All rules for a repository of blueprints, one blueprint after the other."""

from __future__ import annotations

from collections.abc import Iterator

from flux_resourceset import names
from flux_resourceset.repositories import blueprints, findings, trees
from flux_resourceset.repositories.blueprints import APPS, EXAMPLE, KUSTOMIZATION, RESOURCESET, SCHEMA
from flux_resourceset.repositories.findings import Finding
from flux_resourceset.repositories.lint import blueprint_schemas, blueprint_templates, places, reports
from flux_resourceset.repositories.lint.reports import LAYOUT, Report

_OTHERS = "README.md"
_BELONGS = f"a blueprint has {', '.join(blueprints.FILES)}, and perhaps a {_OTHERS}"


def lint(tree: trees.Tree) -> Iterator[Finding]:
    """Everything that is wrong, in no order."""
    belongs = f"{APPS}/ has a directory for each blueprint, and nothing else"
    inside = tree.children(APPS)
    yield from _misplaced(places.placed(tree, APPS, inside, lambda name: False, lambda name: True, belongs))
    for name in blueprints.names(tree):
        yield from _of_blueprint(tree, name)


def _misplaced(placed: Iterator[places.Placed]) -> Iterator[Finding]:
    return (wrong for _, wrong in placed if wrong is not None)


def _of_blueprint(tree: trees.Tree, name: str) -> Iterator[Finding]:
    folder = f"{APPS}/{name}"
    inside = tree.children(folder)
    is_own = {*blueprints.FILES, _OTHERS}.__contains__
    yield from _misplaced(places.placed(tree, folder, inside, is_own, lambda name: False, _BELONGS))
    yield from places.missing(folder, inside, blueprints.FILES, _BELONGS)
    if not names.is_dns_label(name):
        message = f"{name!r} cannot be the name of a blueprint: take lower-case letters, digits and hyphens"
        yield findings.error(LAYOUT, folder, None, message)
    found = [Report(f"{folder}/{file}") for file in (KUSTOMIZATION, RESOURCESET, SCHEMA, EXAMPLE)]
    kustomization, resourceset, schema, example = found
    bodies = [reports.body(tree, report.path, report) for report in found]
    blueprint_templates.check_kustomization(kustomization, bodies[0])
    template = blueprint_templates.checked_template(resourceset, bodies[1])
    signature = blueprint_schemas.checked_signature(schema, bodies[2])
    for report, body in ((schema, bodies[2]), (example, bodies[3])):
        blueprint_templates.check_stores(report, body)
    if template is not None and signature is not None and bodies[3] is not None:
        blueprint_templates.check_example(resourceset, example, bodies[3], template, signature)
    for report in found:
        yield from report.found
