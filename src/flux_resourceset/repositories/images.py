"""What the image rules of a policy ask of the images in Git: pinned, the same as before, there for long enough, signed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flux_resourceset.repositories import applied_objects, layout, manifests, tenants, trees
from flux_resourceset.repositories.policy import Cosign, ImageRule, Policy

OK, FAILED, NONE = "ok", "failed", "none"  # none: the rule does not ask for it, or it was not reached
BY_COSIGN = ("signature", "attestation")
CHECKS = ("pinned", "same", "soak", *BY_COSIGN)

# A reference as registries define it. What else Kubernetes might make of a text does not matter: cosign would not look at that.
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST = r"sha256:[0-9a-f]{64}"
_PINNED = re.compile(rf"(?P<repository>(?:{_HOST}/)?{_PART}(?:/{_PART})*)(?::{_TAG})?@(?P<digest>{_DIGEST})", re.ASCII)

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_NOTHING = object()  # differs from every value: there was no tenant, or Git did not hold its inputs


class Part(NamedTuple):
    """A place for an image in an object of base/ or flux/, identified by names."""

    cluster: layout.Cluster
    file: str  # the path from the root
    object: str
    field: str

    @property
    def where(self) -> layout.Cluster:
        return self.cluster

    @property
    def key(self) -> tuple[str, str]:
        return self.object, self.field

    def told(self) -> dict[str, str | None]:
        name = f"{self.file.removeprefix(self.cluster.folder + '/')}: {self.object}: {self.field}"
        return {"environment": self.cluster.environment, "cluster": self.cluster.name, "tenant": None, "object": name}


Place = layout.Tenant | Part


class Subject(NamedTuple):
    """An image that a rule is for."""

    rule: ImageRule
    place: Place
    image: Any  # None: there is none; anything but text is no image


class Source(NamedTuple):
    """What there is at the same place in a cluster of `same_as`."""

    place: Place
    image: Any
    flaw: str | None  # why nobody can tell which image it has


class Question(NamedTuple):
    """What cosign is asked."""

    by: Cosign
    image: str  # REPO@DIGEST: what a tag says does not count
    attestation: str | None  # the type of one, instead of a signature


class Answer(NamedTuple):
    ok: bool
    said: str = ""
    silent: bool = False  # it said nothing in time


class Check(NamedTuple):
    state: str
    why: str = ""


# What is judged


def subjects(
    policy: Policy, head: trees.Tree, before: Sequence[trees.Tree], changed: Collection[str] | None
) -> Iterator[Subject]:
    """The images that differ from any of the trees before, by rule; all of them if `changed`, the paths that differ, is None.

    Where the API holds the inputs, Git has no image. Raises tenants.Broken for what cannot be read: nobody would know its image.
    """
    for rule in policy.images:
        check_folders(head, rule.environment)
        for tenant in _candidates(policy, head, rule.environment, changed):
            inputs = tenants.inputs(head, tenant)
            if inputs.type != tenants.STATIC:
                continue
            image = inputs.values.get(rule.field)
            if changed is None or any(_differ(image, _value(tree, tenant, rule.field)) for tree in before):
                yield Subject(rule, tenant, image)
    for environment in policy.names:
        rules = rules_of_base(policy, environment)
        for part, image in _changed_parts(policy, head, before, changed, environment) if rules else ():
            yield from (Subject(rule, part, image) for rule in rules)


def _candidates(policy: Policy, head: trees.Tree, environment: str, changed: Collection[str] | None) -> Iterable[layout.Tenant]:
    """Those whose inputs may differ, in the order of names; a fleet has thousands of others."""
    if changed is None:
        return layout.tenants(head, policy, environment=environment)
    found = {tenant for path in changed if (tenant := layout.tenant_of(path)) and path == tenant.path(layout.INPUT)}
    return sorted(each for each in found if each.environment == environment and head.children(each.folder))


def check_folders(tree: trees.Tree, environment: str) -> None:
    """Refuses what has tenants for Flux, perhaps, and none for who reads the tree: a link in the place of a directory, or a name
    that Git cannot be asked for."""
    _check_folder("", environment, tree.children("").get(environment))
    for cluster, sort in tree.children(environment).items():
        folder = _check_folder(environment, cluster, sort)
        inside = _check_folder(folder, layout.TENANTS, tree.children(folder).get(layout.TENANTS))
        for name, each in tree.children(inside).items():
            _check_folder(inside, name, each)


def _check_folder(above: str, name: str, sort: trees.Sort | None) -> str:
    path = f"{above}/{name}" if above else name
    if sort in (trees.Sort.LINK, trees.Sort.OTHER):
        what = "a symlink" if sort is trees.Sort.LINK else "neither a file nor a directory"
        raise tenants.Broken(path, None, f"is {what}; put a directory there")
    if sort is trees.Sort.FOLDER and not name.isprintable():
        raise tenants.Broken(path, None, "has control characters in its name; rename it")
    return path


def _value(tree: trees.Tree, tenant: layout.Tenant, field: str) -> Any:
    try:
        inputs = tenants.inputs(tree, tenant)
    except tenants.Broken:
        return _NOTHING
    return inputs.values.get(field) if inputs.type == tenants.STATIC else _NOTHING


def _differ(one: Any, other: Any) -> bool:
    """As YAML has them, where 1 and true are two values."""
    return type(one) is not type(other) or bool(one != other)


# Images of base


def _changed_parts(
    policy: Policy, head: trees.Tree, before: Sequence[trees.Tree], changed: Collection[str] | None, environment: str
) -> Iterator[tuple[Part, str]]:
    """The images of objects in base/ that differ from any of the trees before; all of them if `changed` is None."""
    touched = {layout.cluster_of(path) for path in changed or () if _is_applied(path)}
    for cluster in layout.clusters(head, policy, environment):
        if changed is not None and cluster not in touched:
            continue
        _check_applied(head, cluster)
        known = [_by_key(tree, cluster) for tree in before]
        for part, image in parts(head, cluster):
            if changed is None or any(image not in each.get(part.key, ()) for each in known):
                yield part, image


def _is_applied(path: str) -> bool:
    """Whether Flux applies a file of a cluster that belongs to no tenant."""
    segments = path.split("/")
    return len(segments) > 2 and segments[2] in (layout.BASE, layout.FLUX)


def _check_applied(tree: trees.Tree, cluster: layout.Cluster) -> None:
    """Refuse files that bring images unseen. Raises tenants.Broken."""
    instance = tenants.readable(tree, cluster.path(layout.INSTANCE))
    own, _ = applied_objects.own_repository(document.data for document in instance)
    rules = applied_objects.Rules(own=own)  # sources are for lint to judge
    for folder in (layout.BASE, layout.FLUX):
        path = cluster.path(folder)
        _check_folder(cluster.folder, folder, tree.children(cluster.folder).get(folder))
        for name, sort in tree.children(path).items():
            if sort is not trees.Sort.FILE or not (name.endswith(".yaml") or name == layout.KEEP):
                raise tenants.Broken(f"{path}/{name}", None, "is not judged here; a file in it must end with .yaml")
            for document in tenants.readable(tree, f"{path}/{name}"):
                of_flux = folder == layout.FLUX and document.kind in ("GitRepository", "Kustomization")
                for fault in applied_objects.faults(document.data, name, rules, in_base=not of_flux):
                    if fault.rule == applied_objects.UNJUDGED:
                        raise tenants.Broken(f"{path}/{name}", document.line(*fault.steps), fault.message)
                if of_flux and document.kind == "Kustomization":
                    _check_sync(tree, cluster, f"{path}/{name}", document)


def _check_sync(tree: trees.Tree, cluster: layout.Cluster, path: str, document: manifests.Manifest) -> None:
    """A Kustomization in flux/ may apply the two folders whose files are judged."""
    root, folders = tree.children(""), [cluster.path(name) for name in (layout.BASE, layout.TENANTS)]
    if not any(applied_objects.leads_to(document.at("spec", "path"), folder, root) for folder in folders):
        message = f"Kustomization: spec.path must be {' or '.join(f'./{folder}' for folder in folders)}"
        raise tenants.Broken(path, document.line("spec", "path"), message)


def parts(tree: trees.Tree, cluster: layout.Cluster) -> Iterator[tuple[Part, str]]:
    """The images of objects in base/ and flux/. Raises tenants.Broken."""
    for folder in map(cluster.path, (layout.BASE, layout.FLUX)):
        for name, sort in tree.children(folder).items():
            if sort is trees.Sort.FILE and name.endswith(".yaml"):
                yield from _parts_of_file(tree, cluster, f"{folder}/{name}")


def _parts_of_file(tree: trees.Tree, cluster: layout.Cluster, path: str) -> Iterator[tuple[Part, str]]:
    for document in tenants.readable(tree, path):
        for identity, image in applied_objects.images(document.data):
            yield Part(cluster, path, identity, image.place), image.value


def _by_key(tree: trees.Tree, cluster: layout.Cluster) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    try:
        for part, image in parts(tree, cluster):
            found.setdefault(part.key, []).append(image)
    except tenants.Broken:
        return {}  # so that all of head is judged
    return found


def sources_of_part(tree: trees.Tree, policy: Policy, environment: str, part: Part) -> list[Source]:
    """The same place in the clusters of an environment that have it."""
    found: list[Source] = []
    for cluster in layout.clusters(tree, policy, environment):
        try:
            found += [Source(each, image, None) for each, image in parts(tree, cluster) if each.key == part.key]
        except tenants.Broken as exc:
            found.append(Source(part._replace(cluster=cluster), None, str(exc)))
    return found


def image_of_part(tree: trees.Tree, part: Part) -> Any:
    """What its file has there; a value that equals none if that is not known, or not one."""
    try:
        found = [image for each, image in _parts_of_file(tree, part.cluster, part.file) if each.key == part.key]
    except tenants.Broken:
        return _NOTHING
    return found[0] if len(found) == 1 else _NOTHING


def rules_of_base(policy: Policy, environment: str) -> list[ImageRule]:
    """The rules for images in base/, where no input has a name: those for the input `image`, or else all of the environment."""
    found = [rule for rule in policy.images if rule.environment == environment]
    return [rule for rule in found if rule.field == "image"] or found


# Pinned


def pinned(subject: Subject) -> Check:
    image = subject.image
    field = subject.rule.field if isinstance(subject.place, layout.Tenant) else "image"
    if image is None:
        return _failed(f"{field} is missing; it must be an image with its digest")
    if not isinstance(image, str):
        return _failed(f"{field} is no text; it must be an image with its digest")
    if image.startswith("-"):
        return _failed(f"{field} looks like an option")
    if any(character.isspace() or not character.isprintable() for character in image):
        return _failed(f"{field} holds white space or control characters")
    if reference(image) is None:
        is_pinned = re.search(rf"@{_DIGEST}\Z", image)
        return _failed(f"{field} is no reference of an image" if is_pinned else f"{field} must end with @sha256: and its digest")
    return Check(OK)


def reference(image: Any) -> str | None:
    """REPO@DIGEST of an image that is pinned, without its tag."""
    found = _PINNED.fullmatch(image) if isinstance(image, str) else None
    return f"{found['repository']}@{found['digest']}" if found else None


# The same as before


def by_name(tree: trees.Tree, policy: Policy, environment: str) -> dict[str, list[layout.Tenant]]:
    """Where the tenants of an environment are."""
    found: dict[str, list[layout.Tenant]] = {}
    for cluster in layout.clusters(tree, policy, environment):
        for name, sort in tree.children(cluster.path(layout.TENANTS)).items():
            if sort is trees.Sort.FOLDER:
                found.setdefault(name, []).append(layout.Tenant(*cluster, name))
    return found


def source(tree: trees.Tree, tenant: layout.Tenant, field: str) -> Source:
    try:
        inputs = tenants.inputs(tree, tenant)
    except tenants.Broken as exc:
        return Source(tenant, None, str(exc))
    if inputs.type != tenants.STATIC:
        return Source(
            tenant, None, f"the API holds the inputs in {tenant.where.folder}, so Git does not say which image is there"
        )
    return Source(tenant, inputs.values.get(field), None)


def same(subject: Subject, sources: Sequence[Source]) -> Check:
    rule = subject.rule
    if rule.same_as is None:
        return Check(NONE)
    if not sources:
        what = "the tenant" if isinstance(subject.place, layout.Tenant) else "an image at this place of such an object in base"
        return _failed(f"no cluster of {rule.same_as} has {what}")
    for each in sources:
        if each.flaw is not None:
            return _failed(each.flaw)
        if subject.image is None or _differ(subject.image, each.image):
            return _failed(f"{each.place.where.folder} has {_shown(each.image)}")
    return Check(OK)


def brought(image: Any, history: Iterator[tuple[Any, int]]) -> int | None:
    """When the newest of the values of a history came, by the time of its commit; they come newest first.

    A commit that changed the file and not the value did not bring it, nor did one before the value was another for a while.
    """
    since = None
    for value, moment in history:
        if _differ(value, image):
            break
        since = moment
    return since


def soak(rule: ImageRule, since: Mapping[Place, int | None], now: float) -> Check:
    if not since:
        return Check(NONE)
    for place, moment in since.items():
        if moment is None:
            return _failed(f"nobody can tell since when it has been in {place.where.folder}")
        if moment > now:
            return _failed(f"it came to {place.where.folder} in the future, as the commit and the clock have it")
        if now - moment < rule.soak:
            return _failed(
                f"it has been in {place.where.folder} for {span(int(now - moment))}, and must be for {span(rule.soak)}"
            )
    return Check(OK)


def span(seconds: int) -> str:
    """As the policy writes it: 1h30m."""
    parts = []
    for unit, size in _UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"


# Signed


def question(subject: Subject, check: str) -> Question | None:
    """What has to be asked of cosign for a check; an image that is not pinned is not asked for."""
    by, image = subject.rule.cosign, reference(subject.image)
    if by is None or image is None or (check == "attestation" and by.attestation is None):
        return None
    return Question(by, image, by.attestation if check == "attestation" else None)


def answered(asked: Question | None, answers: Mapping[Question, Answer]) -> Check:
    if asked is None:
        return Check(NONE)
    answer = answers[asked]
    return Check(OK) if answer.ok else _failed(answer.said)


def key_path(text: str) -> str | None:
    """The path of a key in the repository; None for one that leads out of it, or to where cosign would find keys elsewhere."""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if text.startswith("/") or ".." in parts or ":" in text or "\\" in text or not parts:
        return None
    return "/".join(parts)


# The answer


def row(subject: Subject, checks: Mapping[str, Check]) -> dict[str, Any]:
    image = subject.image if isinstance(subject.image, str) else None
    reasons = dict.fromkeys(checks[name].why for name in CHECKS if checks[name].why)  # both of cosign's may be one
    states = {name: checks[name].state for name in CHECKS}
    return {"object": None, **subject.place.told(), "image": image, **states, "message": "; ".join(reasons)}


def name(row: Mapping[str, Any]) -> str:
    """Where the image of a row is."""
    where = f"{row['environment']}/{row['cluster']}"
    return f"{where}/{row['tenant']}" if row["object"] is None else f"{where}/{row['object']}"


def refused(row: Mapping[str, Any]) -> bool:
    return any(row[name] == FAILED for name in CHECKS)


def _failed(why: str) -> Check:
    return Check(FAILED, why)


def _shown(value: Any) -> str:
    text = str(value) if value is not None else "none"
    return text if len(text) <= 200 else f"{text[:199]}…"  # a repository, a tag and a digest have room in that
