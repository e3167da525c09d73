"""`simulate`: polls, renders and applies as Flux would in a cluster, with a directory in the cluster's place."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from flux_resourceset import render
from flux_resourceset.cli import failures
from flux_resourceset.cli.cluster import manifest_files, view_sources
from flux_resourceset.cli.cluster.simulated_state import MEANINGS, Change, State
from flux_resourceset.cli.cluster.view_sources import Engine, View
from flux_resourceset.cli.output.terminal_text import printable

if TYPE_CHECKING:
    from types import FrameType

    from flux_resourceset.cli.session import Session

DEFAULT_INTERVAL = "2s"
_WORDS = {**MEANINGS, "=": "kept"}


def simulate(session: Session) -> int:
    values = session.values
    seconds = view_sources.seconds(values.text("interval") or DEFAULT_INTERVAL, "--interval")
    id = values.required("cluster")
    engine = view_sources.engine(session)
    views = [view for view in view_sources.of_server(session) if view.template is not None]
    dns = view_sources.dns(session, id)
    root = Path(values.text("directory") or Path("simulated") / manifest_files.plain(id))
    simulation = _Simulation(session, dns, views, engine, root)
    session.say(f"{dns} is simulated in {root}")
    if values.flag("once"):
        return simulation.turn()
    stop = _Stop()
    try:
        while not stop.asked:
            simulation.turn()
            time.sleep(0 if stop.asked else seconds)
    except KeyboardInterrupt:
        pass
    session.say(f"stopped; the state stays in {root}")
    return failures.OK


class _Stop:
    """Ctrl-C, or SIGTERM from whoever started it in the background: at once, and at the end of the turn where Python loses the
    exception, as it does in the midst of a finalizer."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        raise KeyboardInterrupt


class _Simulation:
    def __init__(self, session: Session, dns: str, views: list[View], engine: Engine, root: Path) -> None:
        self._session = session
        self._dns = dns
        self._views = views
        self._engine = engine
        self._state = State(root)
        self._troubles: dict[str, str] = {}

    def turn(self) -> int:
        """Poll every view once; one that fails keeps its last state and does not hinder the others."""
        worst = failures.OK
        for view in self._views:
            try:
                changes = self._view(view)
            except view_sources.Unusable as exc:
                self._trouble(view, str(exc))
                worst = failures.UNREACHABLE
            except render.TemplateError as exc:
                self._trouble(view, f"cannot be rendered: {exc}")
                worst = worst or failures.REFUSED
            else:
                if self._troubles.pop(view.name, None) is not None:
                    self._session.say(f"! {view.name}: back again")
                self._tell(changes)
        return worst

    def _view(self, view: View) -> Iterable[Change]:
        inputs = view_sources.poll(self._session.client, self._dns, view.name)
        template = view.template
        assert template is not None
        # all of it before anything is touched: one bad input stalls the whole ResourceSet
        objects = self._engine(template, inputs)
        return self._state.apply(template["metadata"]["name"], objects)

    def _trouble(self, view: View, reason: str) -> None:
        """Told once, not at every poll."""
        if self._troubles.get(view.name) != reason:
            self._troubles[view.name] = reason
            self._session.say(f"! {view.name}: {reason}; the last state is kept")

    def _tell(self, changes: Iterable[Change]) -> None:
        out, form = self._session.output, self._session.values.text("output")
        for change in changes:
            if form is not None:
                self._print(change, form)
                continue
            out.line(f"{out.coloured(change.sign, MEANINGS[change.sign])} {printable(str(change))}")
            for field in change.fields:
                out.line(f"    {printable(field)}")
        sys.stdout.flush()  # a pipe would keep the news to itself

    def _print(self, change: Change, form: str) -> None:
        out, (group, kind, namespace, name) = self._session.output, change.identity
        told = {"change": _WORDS[change.sign], "group": group, "kind": kind, "namespace": namespace, "name": name}
        if form == "json":
            out.json_line({**told, "fields": list(change.fields)})
        elif form == "yaml":
            out.line("---")
            out.yaml([{**told, "fields": list(change.fields)}])
        else:
            out.line(manifest_files.name(change.identity))
