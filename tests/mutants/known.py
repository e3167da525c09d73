"""Faults worth planting by hand: each would give Flux an empty, stale or wrong answer, or turn off a guard.

One that does not fit its file any more is an error: it moves with the code.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mutants.fault import Fault


class Known(NamedTuple):
    path: str
    wrong: str
    before: str
    after: str


class Stale(Exception):
    """What was to be replaced is not there, or there twice."""


def planted(known: Known, root: Path) -> Fault:
    text = (root / known.path).read_text(encoding="utf-8")
    if text.count(known.before) != 1:
        raise Stale(f"{known.path}: {known.before!r} stands there {text.count(known.before)} times; {known.wrong}")
    start = text.index(known.before)
    return Fault(known.path, known.wrong, start, start + len(known.before), known.after, text)


_MERGE, _ANSWERS = "src/flux_resourceset/merge.py", "src/flux_resourceset/answers.py"
_RULES = "src/flux_resourceset/rules.py"
_FLEET, _CHANGES = "src/flux_resourceset/fleet.py", "src/flux_resourceset/changes.py"
_POLL, _DRAFTS = "src/flux_resourceset/http/poll.py", "src/flux_resourceset/drafts.py"
_LISTENING = "src/flux_resourceset/http/listening.py"
_FOLLOWER, _AHEAD = "src/flux_resourceset/follower.py", "src/flux_resourceset/ahead.py"
_COMPONENTS, _NAMESPACES = (f"deploy/cluster/views/{view}/resourceset.yaml" for view in ("platform-components", "namespaces"))
_BINDINGS = "deploy/cluster/views/rolebindings/resourceset.yaml"

KNOWN = (
    Known(
        _POLL,
        "an empty list when the store fails",
        "it is logged there\n            return None",
        "it is logged there\n            made = [begin + b'13\\r\\n\\r\\n{\"inputs\":[]}']",
    ),
    Known(_LISTENING, "the store is not looked at", "            self._fast.follower.look()\n", "            pass\n"),
    Known(
        _LISTENING,
        "nobody waits for what was written",
        "            await self._fast.follower.catch_up()\n",
        "            pass\n",
    ),
    Known(_POLL, "the store is not looked at between requests", "            self.follower.look()\n", "            pass\n"),
    Known(_POLL, "the next request is taken for a body, or the other way round", '("content-length", ', "("),
    Known(_POLL, "a revision is not waited for", ', "x-min-revision")', ")"),
    Known(_AHEAD, "a changed cluster is taken for one that is not", "[(CLUSTERS, id), *named]", "named"),
    Known(_AHEAD, "a changed definition is taken for one that is not", "[(CLUSTERS, id), *named]", "[(CLUSTERS, id)]"),
    Known(_AHEAD, "what a document was, not what it is", "        if key in self.outline.changed:\n", "        if False:\n"),
    Known(_FLEET, "single inputs go stale", "(self.answers, self.packed, self._cuts.by_key)", "(self.answers, self.packed)"),
    Known(
        _FLEET,
        "an empty list for an input that is not assigned",
        "raise unassigned(self.kinds.by_endpoint[endpoint], cluster, id)",
        "return answers.EMPTY",
    ),
    Known(_AHEAD, "an empty list for what was just unassigned", "raise unassigned(kind, cluster, of_one[0])", "return body"),
    Known(_FOLLOWER, "what was written while others wait is missed", "await asyncio.wait([self._catching_up])", "pass"),
    Known(
        _POLL,
        "a token that is bound to a cluster reads the others",
        "if clusters is not None and dns not in clusters:",
        "if False:",
    ),
    Known(
        _POLL,
        "revoked tokens stay good",
        "            self.verified.clear()\n            self._generation",
        "            self._generation",
    ),
    Known(
        _ANSWERS, "remembered parts go stale", "if part is None or part.definition is not item.definition:", "if part is None:"
    ),
    Known(
        _ANSWERS,
        "overrides of one cluster reach others",
        "_encode(item.reference), item.wait_for",
        '_encode(item.reference["id"]), item.wait_for',
    ),
    Known(
        _ANSWERS,
        "what others wait for is remembered",
        "_encode(item.reference), item.wait_for",
        "_encode(item.reference), ()",
    ),
    Known(
        _ANSWERS,
        "patches are taken for others'",
        "parts = row.patched if patches else row.plain",
        "parts = row.plain",
    ),
    Known(_MERGE, "waits for what is not there", "if other in running]", "]"),
    Known(_MERGE, "waits for what is disabled", 'if ref.get("enabled", True)}', "}"),
    Known(
        _MERGE,
        "disabled ones are left out",
        '()) if ref["id"] in definitions]',
        '()) if ref["id"] in definitions and ref.get("enabled", True)]',
    ),
    Known(
        _MERGE,
        "a null override empties the definition's value",
        "in reference.items() if value is not None}",
        "in reference.items()}",
    ),
    Known(_ANSWERS, "the digest does not tell clusters apart", "    digest.update(block)\n", ""),
    Known(
        _ANSWERS,
        "the digest depends on the order",
        "_encode(content)[:-1], _canonical(content)",
        "_encode(content)[:-1], _encode(content)",
    ),
    Known(_ANSWERS, "remembered rows go stale", "if row is None or not row.is_made_of(definitions):", "if row is None:"),
    Known(
        _MERGE, "a null is sent", "for name, value in result.items() if value is not None}", "for name, value in result.items()}"
    ),
    Known(
        _MERGE,
        "the reference is overridden by the definition",
        "{**item.definition, **_said(item.reference)}",
        "{**_said(item.reference), **item.definition}",
    ),
    Known(_RULES, "a dependent is deleted by force", "        if dependents:\n", "        if dependents and not force:\n"),
    Known(
        _RULES,
        "what clusters use is deleted without force",
        "    if not force:\n        yield _in_use",
        "    if False:\n        yield _in_use",
    ),
    Known(_RULES, "a name is given twice", "        if owner != change.id:\n", "        if False:\n"),
    Known(
        _RULES,
        "answers of the users of a definition may grow too large",
        "                touched.setdefault(user, {}).setdefault(changed.name, (changed, change))\n",
        "                pass\n",
    ),
    Known(_DRAFTS, "an omitted list is emptied by PUT", "if name not in document and before.get(name)", "if False"),
    Known(
        _DRAFTS,
        "a cluster's name changes",
        'yield Violation("/cluster_dns", "never changes; decommission the cluster and create it anew")',
        "pass",
    ),
    Known(_COMPONENTS, "waits for what is not there", "$dependencies = inputs.wait_for", "$dependencies = inputs.depends_on"),
    Known(_COMPONENTS, "disabled ones are rendered", "<<- if inputs.enabled >>", "<<- if true >>"),
    Known(
        _COMPONENTS, "values lose their quotes", "<< $name | quote >>: << $text | quote >>", "<< $name | quote >>: << $text >>"
    ),
    Known(_NAMESPACES, "namespaces are pruned", "        fluxcd.controlplane.io/prune: disabled\n", ""),
    Known(
        _NAMESPACES,
        "labels lose their quotes",
        "      labels:\n        <<- range $key, $value := inputs.labels >>\n        << $key | quote >>: << $value | quote >>",
        "      labels:\n        <<- range $key, $value := inputs.labels >>\n        << $key | quote >>: << $value >>",
    ),
    Known(
        _BINDINGS,
        "a changed role stalls",
        "        fluxcd.controlplane.io/force: enabled <</* roleRef cannot be changed in place: recreate */>>\n",
        "",
    ),
)
