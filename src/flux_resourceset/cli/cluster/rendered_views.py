"""`render`: the manifests that a cluster would apply, from live data or from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from flux_resourceset import client, cluster_bundle, render
from flux_resourceset.cli import failures
from flux_resourceset.cli.cluster import manifest_files, view_sources
from flux_resourceset.cli.cluster.view_sources import Input, View

if TYPE_CHECKING:
    from flux_resourceset.cli.session import Session


def render_views(session: Session) -> int:
    engine = view_sources.engine(session)
    objects: list[render.Manifest] = []
    for view, inputs in _work(session):
        if view.template is None:
            session.say(f"note: {view.name} has no ResourceSet, so nothing comes of it")
            continue
        try:
            objects += engine(view.template, inputs)
        except render.TemplateError as exc:
            raise failures.Failure(failures.REFUSED, f"{view.name}: {exc}") from exc
    _deliver(session, objects)
    return failures.OK


def _work(session: Session) -> Iterator[tuple[View, list[Input]]]:
    """Each view that was asked for, with its inputs."""
    file = session.values.text("inputs")
    if file is not None:
        if "at" in session.values:
            raise failures.usage("--inputs are those of a file, --at those of the server: say one of them")
        view = _single(session)
        yield view, view_sources.read_inputs(session, file)
        return
    id = session.values.text("cluster")
    if id is None:
        raise failures.usage("say which cluster to render, or give --inputs")
    views = _chosen(session)
    inputs = _inputs_then(session, id) if "at" in session.values else _inputs_now(session, id)
    for view in views:
        try:
            yield view, inputs(view.name)
        except view_sources.Unusable as exc:
            raise failures.Failure(failures.UNREACHABLE, f"{view.name}: {exc}") from exc


def _inputs_now(session: Session, id: str) -> Callable[[str], list[Input]]:
    dns = view_sources.dns(session, id)
    return lambda view: view_sources.poll(session.client, dns, view)


def _inputs_then(session: Session, id: str) -> Callable[[str], list[Input]]:
    """All of them at one revision: a time may come to mean another while we ask."""
    at: dict[str, str] = {}

    def inputs(view: str) -> list[Input]:
        answer = session.client.get(client.path("clusters", id, "inputs", view), at or session.at)
        if not at:
            session.say_revision(answer)
            at.update({"at": answer.headers["x-revision"]} if "x-revision" in answer.headers else {})
        return view_sources.listed(answer.object(inputs=list)["inputs"], "the answer")

    return inputs


def _template_file(session: Session) -> View | None:
    """The template that was given, under the name of the view it is for."""
    file = session.values.text("filename")
    if file is None:
        return None
    text = view_sources.read(session, file)
    template = view_sources.resourceset(text, file)
    named = session.values.many("view")
    if len(named) > 1:
        raise failures.usage("-f renders one view; name one --view")
    name = named[0] if named else view_sources.provider_name(template)
    if name is None:
        raise failures.usage(f"{file} names no provider in spec.inputsFrom; say its --view")
    return View(name, text)


def _chosen(session: Session) -> list[View]:
    given = _template_file(session)
    if given is None:
        return view_sources.of_server(session, session.values.many("view"))
    view_sources.of_server(session, [given.name])  # a view that the server does not know has no inputs
    return [given]


def _single(session: Session) -> View:
    """With inputs from a file no server is needed, unless the template is one of its own."""
    given = _template_file(session)
    if given is not None:
        return given
    named = session.values.many("view")
    if len(named) != 1:
        raise failures.usage("--inputs are those of one view: name its --view, or its template with -f")
    shipped = cluster_bundle.resourceset(named[0])
    return View(named[0], shipped) if shipped is not None else view_sources.of_server(session, named)[0]


def _deliver(session: Session, objects: list[render.Manifest]) -> None:
    folder = session.values.text("directory")
    if folder is None:
        manifest_files.show(session.output, session.values.text("output"), objects)
    else:
        with manifest_files.writing(folder):
            Path(folder).mkdir(parents=True, exist_ok=True)
            for manifest in objects:
                manifest_files.write(Path(folder), manifest)
    where = f" in {folder}" if folder else ""
    session.say(f"{len(objects)} object{'' if len(objects) == 1 else 's'}{where}")
