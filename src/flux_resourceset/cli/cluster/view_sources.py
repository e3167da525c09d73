"""The views of a cluster as commands see them: their templates, their inputs, and what renders them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flux_resourceset import client, cluster_bundle, flux_limits, names, render
from flux_resourceset.cli import failures
from flux_resourceset.render import dialect

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session

Input = Mapping[str, Any]
Engine = Callable[[render.Manifest, Sequence[Input]], list[render.Manifest]]

FLUX_OPERATOR = "flux-operator"
_LONGEST = 2**63 / 1e9  # seconds; Go counts nanoseconds in 63 bits, and so does the clock here
_PATIENCE = 120.0  # seconds for one run of its CLI; ten thousand inputs take it less than ten
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Unusable(Exception):
    """An answer that Flux would not take; it keeps what it has."""


class View(NamedTuple):
    name: str  # the last part of the Flux URL
    text: str | None  # its ResourceSet, if it has one

    @property
    def template(self) -> render.Manifest | None:
        return None if self.text is None else resourceset(self.text, f"the ResourceSet of {self.name}")


def of_server(session: Session, only: Sequence[str] = ()) -> list[View]:
    """Every view the server knows; or those that were named, which must be among them."""
    views = [View(kind.endpoint, _template(kind.data, kind.endpoint)) for kind in session.kinds if kind.endpoint]
    known = [view.name for view in views]
    for name in only:
        if name not in known:
            raise failures.Failure(failures.NOT_FOUND, f'view "{name}" not found; the server has {", ".join(known)}')
    return [view for view in views if not only or view.name in only]


def _template(kind: Mapping[str, Any], endpoint: str) -> str | None:
    """What stands beside the kind's file, or else what the package ships."""
    return kind.get("resourceset") or cluster_bundle.resourceset(endpoint)


def resourceset(text: str, where: str) -> render.Manifest:
    """The one ResourceSet of a file."""
    try:
        documents = [document for _, document in dialect.documents(text)]
    except render.TemplateError as exc:
        raise failures.usage(f"{where}: {exc}") from exc
    if len(documents) != 1 or not isinstance(documents[0], dict) or documents[0].get("kind") != "ResourceSet":
        raise failures.usage(f"{where}: it must hold one object, a ResourceSet")
    template: render.Manifest = documents[0]
    wrong = next(_misshapen(template), None)
    if wrong is not None:
        raise failures.usage(f"{where}: {wrong}")
    return template


_OBJECTS = ("dependsOn", "inputsFrom", "resources", "steps")


def _misshapen(template: render.Manifest) -> Iterator[str]:
    """What a ResourceSet must be for anything here to read it; the rest is for Kubernetes to judge."""
    metadata, spec = template.get("metadata"), template.get("spec") or {}
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        yield "its metadata must hold a name"
    if isinstance(spec, dict):
        yield from _misshapen_spec(spec)
    else:
        yield "its spec must be an object"


def _misshapen_spec(spec: Mapping[str, Any]) -> Iterator[str]:
    for step in (spec, *(spec["steps"] if _is_objects(spec.get("steps")) else ())):
        yield from (f"{name} must be a list of objects" for name in _OBJECTS if step.get(name) and not _is_objects(step[name]))
        if not isinstance(step.get("resourcesTemplate") or "", str):
            yield "resourcesTemplate must be text"
    common = spec.get("commonMetadata") or {}
    if not isinstance(common, dict) or not all(isinstance(value or {}, dict) for value in common.values()):
        yield "commonMetadata must be an object of objects"


def _is_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def provider_name(template: render.Manifest) -> str | None:
    """The view that a template names as the source of its inputs."""
    sources = (template.get("spec") or {}).get("inputsFrom") or []
    name = sources[0].get("name") if sources and isinstance(sources[0], dict) else None
    return str(name) if name else None


# Clusters and inputs


def cluster(session: Session, id: str) -> dict[str, Any]:
    document = session.client.get(client.path("clusters", id)).object(cluster_dns=str, cluster_name=str, environment=str)
    if not names.is_dns_name(document["cluster_dns"]):  # it becomes part of URLs, and of what a ResourceSet waits for
        raise client.not_understood("its cluster_dns is no DNS name")
    return document


def dns(session: Session, id: str) -> str:
    """The DNS name of a cluster; one that was decommissioned is known by it alone."""
    try:
        return str(cluster(session, id)["cluster_dns"])
    except client.Problem as problem:
        if problem.status == 404 and "." in id:
            return id
        raise


def poll(server: client.Client, dns: str, view: str) -> list[Input]:
    """What Flux would take over; anything that it would refuse is Unusable."""
    try:
        answer = server.get(client.path("api", "v2", "flux", "clusters", dns, view))
        if answer.status != 200:
            raise Unusable(f"the server answered {answer.status}")
        if len(answer.body) > flux_limits.MAX_BODY_BYTES:
            raise Unusable(f"the answer has {len(answer.body)} bytes, and Flux takes no more than {flux_limits.MAX_BODY_BYTES}")
        # a list alone is no answer: Flux would refuse it, and an empty one would delete everything here
        return listed(answer.object(inputs=list)["inputs"], "the answer")
    except client.Problem as problem:
        raise Unusable(f"the server answered {problem.status}: {problem}") from problem
    except client.Unreachable as exc:
        raise Unusable(str(exc)) from exc


def listed(value: Any, where: str) -> list[Input]:
    """Inputs as Flux takes them: a list, each with an id of its own."""
    if not isinstance(value, list):
        raise Unusable(f"{where} holds no list of inputs")
    try:
        dialect.check_levels(value)
    except render.TemplateError as exc:
        raise Unusable(f"{where} is {exc}") from exc
    ids = [item.get("id") if isinstance(item, dict) else None for item in value]
    if not all(isinstance(id, str) for id in ids) or len(set(ids)) != len(ids):
        raise Unusable(f"{where} holds inputs without an id of their own")
    return value


def seconds(text: str, option: str) -> float:
    """A duration as Go writes it."""
    if not re.fullmatch(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h))+", text):
        raise failures.usage(f"{option} is {text!r}; write it as in 30s or 5m")
    total = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(r"([0-9.]+)(ms|s|m|h)", text))
    if not 0 < total < _LONGEST:
        raise failures.usage(f"{option} is {text!r}; it must be more than nothing and less than 292 years")
    return total


# Engines


def engine(session: Session) -> Engine:
    chosen = session.values.text("engine") or "auto"
    program_path = None if chosen == "builtin" else shutil.which(FLUX_OPERATOR, path=session.environment.get("PATH"))
    if chosen == FLUX_OPERATOR and program_path is None:
        raise failures.usage(f"the {FLUX_OPERATOR} CLI is not on the PATH; --engine builtin needs nothing")
    if program_path is None:
        return render.resourceset
    program, environment = program_path, session.environment
    return lambda template, inputs: by_flux_operator(program, template, inputs, environment)


def by_flux_operator(
    program: str, template: render.Manifest, inputs: Sequence[Input], environment: Mapping[str, str]
) -> list[render.Manifest]:
    """The same by Flux Operator's own code."""
    if not inputs and provider_name(template):
        return []  # its CLI takes that for a mistake; in a cluster it means no objects
    with tempfile.TemporaryDirectory(prefix="flux-resourceset-") as folder:
        paths = [os.path.join(folder, name) for name in ("resourceset.json", "inputs.json")]
        for path, value in zip(paths, (template, list(inputs)), strict=True):
            with open(path, "w", encoding="utf-8") as file:
                file.write(dialect.json_text(value))
        command = [program, "build", "rset", "-f", paths[0], "--inputs-from", paths[1]]
        try:
            done = subprocess.run(  # noqa: S603  # no shell
                command, capture_output=True, encoding="utf-8", check=False, timeout=_PATIENCE, env=dict(environment)
            )
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise render.TemplateError(f"{program} failed: {exc}") from exc
    if done.returncode < 0:
        raise render.TemplateError(f"{FLUX_OPERATOR} was ended by signal {-done.returncode}")
    if done.returncode:
        if "no objects were generated" in done.stderr:
            return []  # all of them are switched off
        raise render.TemplateError(_last_words(done.stderr))
    made = [document for _, document in dialect.documents(done.stdout)]
    if not made:  # it fails if a template makes nothing, so its answer is lost
        raise render.TemplateError(f"{FLUX_OPERATOR} printed no objects, and did not say why")
    return made


def _last_words(text: str) -> str:
    lines = [line.strip(" ✗") for line in text.splitlines() if line.strip()]
    return f"{FLUX_OPERATOR}: {lines[0] if lines else 'failed without a word'}"


def read(session: Session, name: str) -> str:
    """The text of a file, or of stdin."""
    try:
        if name == "-":
            return session.stdin.read()
        with open(name, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as exc:
        raise failures.usage(f"{name} cannot be read: {getattr(exc, 'strerror', None) or exc}") from exc


def read_inputs(session: Session, name: str) -> list[Input]:
    """A list, or the envelope that Flux gets."""
    value = _value(read(session, name), name)
    try:
        return listed(value.get("inputs") if isinstance(value, dict) else value, name)
    except Unusable as exc:
        raise failures.usage(str(exc)) from exc


def _value(text: str, name: str) -> Any:
    """What a file says in JSON or, the slow way, in YAML."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        documents = [document for _, document in dialect.documents(text)]
    except render.TemplateError as exc:
        raise failures.usage(f"{name}: {exc}") from exc
    return documents[0] if len(documents) == 1 else None
