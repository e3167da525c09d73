"""Faults that no test can notice, and why: they are named as the run names them."""

from __future__ import annotations

_SRC = "src/flux_resourceset"
_BINDINGS = "deploy/cluster/views/rolebindings/resourceset.yaml"
_COMPONENTS = "deploy/cluster/views/platform-components/resourceset.yaml"

EXPLAINED: dict[str, str] = {
    f'{_SRC}/merge.py assignments: patches = cluster["patches"] if kind.patches else {{}} → '
    'patches = cluster["patches"] if True else {}': (
        "a kind without patches never sends them; looking them up only costs its being remembered"
    ),
    f"{_SRC}/cautions.py _warnings: continue → pass": (
        "a reference that pins no version gives nothing to doubt; this only saves looking its definition up"
    ),
    f"{_SRC}/applications.py prune: draft.applied.load(candidates) → pass": "they are read one by one, alike",
    f"{_SRC}/records.py Applications.load: unknown = [key for key in dict.fromkeys(keys) if key not in self._known] → "
    "unknown = [key for key in dict.fromkeys(keys) if True]": "what is read again is the same; this only saves reading it",
    **dict.fromkeys(
        [
            f"{_SRC}/applications.py _places.place: references = [(name, steps[1]) for name in holders if len(steps) > 2] → "
            f"references = [(name, steps[1]) for name in holders if {condition}]"
            for condition in ("True", "(len(steps) >= 2)")
        ],
        "a reference is its own cause, and one that is no array of references is refused before",
    ),
    f"{_SRC}/applying.py _Merging.__init__: self._last = self._new if same(last, new) else names(last, fields, completed(last)) "
    "# mostly it is the same again → self._last = self._new if False else names(last, fields, completed(last)) "
    "# mostly it is the same again": "equal documents name the same; this only saves completing one of them",
    f"{_SRC}/applying.py _Merging._patches_of: return [] if values is ABSENT else "
    "list(_leaves(values, values, (PATCHES, steps[1]))) → return [] if False else "
    "list(_leaves(values, values, (PATCHES, steps[1])))": "what is not there differs from nothing, and cannot be removed",
    f"{_SRC}/applying.py _Merging._default: if len(steps) > 1: # nothing beside it matters → if False: "
    "# nothing beside it matters": "what stands beside it completes nothing in it; this only saves completing the whole",
    f"{_SRC}/applying.py _Merging._default: document = {{name: {{steps[1]: part[steps[1]]}} if name == PATCHES else part}} → "
    "document = {name: {steps[1]: part[steps[1]]} if False else part}": "patches complete nothing; this only saves looking",
    **dict.fromkeys(
        [
            f"{_COMPONENTS} {object}: {line} | quote >> → {line} >>"
            for line, *objects in (
                ("name: << $values", "ConfigMap", "HelmRelease", "Kustomization"),
                ("name: << $source", "HelmRepository", "HelmRelease", "GitRepository", "Kustomization"),
                ('name: << printf "platform-%s" inputs.id', "HelmRelease", "Kustomization"),
                ('- name: << printf "platform-%s" $dependency', "HelmRelease", "Kustomization"),
            )
            for object in objects
        ],
        "begins with a word, and the rest are letters, digits and hyphens: YAML takes it for text in any case",
    ),
    f"{_BINDINGS} ClusterRoleBinding: - kind: << $subject.kind | quote >> → - kind: << $subject.kind >>": (
        "one of three words, none of which YAML takes for anything else"
    ),
    f'{_SRC}/http/poll.py _name: return "".join(f"[{{sign.upper()}}{{sign}}]" if sign.isalpha() else sign for sign in name)'
    '.encode() → return "".join(f"[{sign.upper()}{sign}]" if True else sign for sign in name).encode()': (
        "a set of one sign is that sign"
    ),
    f"{_SRC}/http/listening.py Listening.close: self._epoll.close() → pass": "it is closed when nobody refers to it any more",
    f"{_SRC}/http/poll.py Fast.answer: if polls is None: → if False:": "to answer what is none is a defect, and taken for one",
    f"{_SRC}/cautions.py new_risks: before = set(_risks(Overlay(view.base, view.budget), kinds, change, change.before, "
    "protected)) if after else set() → before = set(_risks(Overlay(view.base, view.budget), kinds, change, change.before, "
    "protected)) if True else set()": "where there is none, none was there before either; this only saves looking",
    f'{_SRC}/cautions.py _risky: if not old or not new or old["environment"] != new["environment"]: → if True:': (
        "then everything is looked at, and what was there before is left out all the same"
    ),
    f"{_SRC}/rules.py misnamed: for reference, values in _patched(kind, cluster, changed) if hint and changed else (): → "
    "for reference, values in _patched(kind, cluster, changed) if True else ():": "without a hint nothing is looked at below",
    f"{_SRC}/cautions.py _warnings: for wrong in rules.misnamed(view.kinds.patched, view.get, document, other) if may_misname "
    "else (): → for wrong in rules.misnamed(view.kinds.patched, view.get, document, other) if True else ():": (
        "what is new was refused by then, so this only saves looking"
    ),
    f"{_SRC}/rules.py large_answers: if _bound(view, (kind for kind, _ in reached.values()), cluster, sizes) >= _WARN_BYTES: → "
    "if True:": "the bound only saves the exact answer",
    f"{_SRC}/http/listening.py Listening._respond: elif closes and len(data) < MAX_ASKED_BYTES: → elif False:": (
        "then every connection is ended as carefully as one on which more may have come"
    ),
    f"{_SRC}/store/sql_bodies.py Bodies._after: elif kept.revision < span.low: → elif (kept.revision <= span.low):": (
        "there is no change between a revision and itself"
    ),
    f"{_SRC}/store/sql_past.py _undo: body, _ = found.pop(key, (None, 0)) → body, _ = found.pop(key, (None, 1))": (
        "of what is not there nobody looks at the revision"
    ),
    f"{_SRC}/merge.py assignments: if needed and running is None: → if ((needed) or (running is None)):": (
        "what runs is found out more often than it has to be, alike"
    ),
    f"{_SRC}/answers.py Encoder.__init__: self._inputs_of_rows = 0 → self._inputs_of_rows = 1": "one of sixteen thousand",
    f"{_SRC}/answers.py Encoder._inputs: if part is None: → if True:": "it is remembered one by one as well",
    f"{_SRC}/effects.py _Comparison._change: key: tuple[str | bytes | bool, ...] = kind.name, id, old is None # that it comes "
    "or goes is all there is to say → key: tuple[str | bytes | bool, ...] = kind.name, id, (old is not None) # that it comes "
    "or goes is all there is to say": "either way what comes has another key than what goes",
    f"{_SRC}/effects.py _Comparison.of_cluster: only = self._only(kind, old, new) if inputs is None and old and new else inputs "
    "→ only = self._only(kind, old, new) if False else inputs": "then all inputs are compared, and the same ones differ",
    f"{_SRC}/fleet.py Fleet.compare_views: if self.doubts: → if True:": "answers that are forgotten are prepared again, alike",
    f"{_SRC}/fleet.py Fleet._step_cluster: if before and after and before.get(kind.cluster_field) == "
    "after.get(kind.cluster_field): → if False:": "lists that are equal differ in nothing; this only saves comparing them",
    f"{_SRC}/fleet.py Fleet._step_definition: if not isinstance(kind, Referenced): → if False:": (
        "what nobody refers to has no users"
    ),
    **dict.fromkeys(
        [
            f"{_SRC}/drafts.py Draft.let_go: json_pieces.let_go(self._view.after, 1) → pass",
            f"{_SRC}/ledger.py Ledger._rehearse: draft.let_go() → pass",
            f"{_SRC}/follower.py free_fleet: while of_kind: → while False:",
            f"{_SRC}/follower.py Follower._catch_up: self._many.submit(free_fleet, news.known.fleet) → pass",
            f"{_SRC}/ledger.py Ledger.write_once: self._writer.submit(changes.let_go, [] if outcome.entry is None else "
            "[outcome.entry]) # nobody else wants it → self._writer.submit(changes.let_go, [] if (outcome.entry is not None) "
            "else [outcome.entry]) # nobody else wants it",
        ],
        "they are freed all the same, in one go",
    ),
    **dict.fromkeys(
        [
            f"{_SRC}/ahead.py Ahead.read: self._definitions.update({{key: body for key, body in bodies.items() "
            f"if key[0] != CLUSTERS}}) → self._definitions.update({{key: body for key, body in bodies.items() if {kept}}})"
            for kept in ("True", "key[1] != CLUSTERS")
        ],
        "a cluster is read for its own answers only; to remember it takes memory",
    ),
    f"{_SRC}/ahead.py Ahead._body: return self._fleet.current(key[0], stored).body if stored else None → "
    "return self._fleet.current(key[0], stored).body if True else None": (
        "a definition that is missing, and that nobody deleted by force, is doubt either way"
    ),
    f"{_SRC}/follower.py Follower.__init__: self._look_again = 0.0 # monotonic time before which that is taken as still true → "
    "self._look_again = 1.0 # monotonic time before which that is taken as still true": "a second after the machine was started",
    f'{_SRC}/follower.py Follower.__init__: self.opened = "" # when a writer last vouched for the log → '
    "pass # when a writer last vouched for the log": "nobody asks for it before the first load, which sets it",
    f"{_SRC}/ledger.py Ledger._write: self.follower.own_step = None # also when the commit failed → "
    "pass # also when the commit failed": (
        "one that is left is taken only where the log goes on with just it, hash and all; this only frees it"
    ),
}
