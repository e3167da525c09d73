"""Reads and writes objects through kubectl, and waits for them to become what a test expects."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Object = dict[str, Any]
T = TypeVar("T")

POLL_SECONDS = 0.2
PATIENCE_SECONDS = 240.0  # it only ends a test that hangs: beside other suites on two cores a minute was not always enough
NAMESPACE = "flux-system"
_SHOWN_ON_TIMEOUT = (
    "resourcesetinputproviders.fluxcd.controlplane.io,resourcesets.fluxcd.controlplane.io,"
    "helmrepositories.source.toolkit.fluxcd.io,ocirepositories.source.toolkit.fluxcd.io,"
    "helmcharts.source.toolkit.fluxcd.io,helmreleases.helm.toolkit.fluxcd.io,"
    "kustomizations.kustomize.toolkit.fluxcd.io"
)


class KubectlFailed(Exception):
    """kubectl ended with an error; the message is what it said."""


def ready(found: Object | None) -> bool:
    """Whether the controller has seen the object's present generation and calls it Ready."""
    if not found:
        return False
    status = found.get("status", {})
    seen = status.get("observedGeneration", found["metadata"].get("generation"))
    return seen == found["metadata"].get("generation") and condition(found, "Ready").get("status") == "True"


def condition(found: Object, kind: str) -> dict[str, str]:
    conditions = found.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


@dataclass(frozen=True)
class Kube:
    kubectl: Path
    kubeconfig: Path

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        # The discovery cache is keyed by address, and ports come again: one per control plane.
        cache = self.kubeconfig.with_name("kubectl-cache")
        command = [str(self.kubectl), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={cache}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        text = self.run("get", kind, name, *_in(namespace), "--ignore-not-found", "-o", "json")
        found: Object | None = json.loads(text) if text.strip() else None
        return found

    def find(self, kinds: str, namespace: str | None = None, *, selector: str | None = None) -> list[Object]:
        """All objects of the kinds (`configmaps,secrets`), in one namespace or in all."""
        scope = _in(namespace) or ("--all-namespaces",)
        chosen = (f"--selector={selector}",) if selector else ()
        items: list[Object] = json.loads(self.run("get", kinds, *scope, *chosen, "-o", "json"))["items"]
        return items

    def apply(self, manifests: str | Iterable[Mapping[str, Any]], *, dry_run: bool = False) -> str:
        """Applies server-side; a dry run only validates, against the real schemas and admission."""
        flags = ("--server-side", "--force-conflicts", *(("--dry-run=server",) if dry_run else ()))
        return self.run("apply", *flags, "-f", "-", stdin=_text(manifests))

    def delete(self, kind: str, name: str, namespace: str | None = None, *, wait: bool = True) -> None:
        self.run("delete", kind, name, *_in(namespace), "--ignore-not-found", f"--wait={str(wait).lower()}")

    def patch(self, kind: str, name: str, change: Mapping[str, Any], namespace: str | None = None) -> None:
        """A JSON merge patch: null removes."""
        self.run("patch", kind, name, *_in(namespace), "--type=merge", f"--patch={json.dumps(change)}")

    def annotate(
        self,
        kind: str,
        name: str,
        annotations: Mapping[str, str | None],
        namespace: str | None = None,
    ) -> None:
        self.patch(kind, name, {"metadata": {"annotations": dict(annotations)}}, namespace)

    def reconcile(self, kind: str, name: str, namespace: str = NAMESPACE) -> None:
        """Asks its controller to look at the object now."""
        self.annotate(kind, name, {"reconcile.fluxcd.io/requestedAt": str(time.time_ns())}, namespace)

    def wait_for(self, predicate: Callable[[], T], message: str) -> T:
        """Polls until the predicate answers something true, and returns it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = predicate()
            if answer:
                return answer
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {PATIENCE_SECONDS:g} s: {message}\n{self.state()}")
            time.sleep(POLL_SECONDS)

    def wait_for_object(
        self,
        kind: str,
        name: str,
        namespace: str | None = None,
        *,
        where: Callable[[Object], object] = bool,
    ) -> Object:
        """The object, once it is there and `where` is true of it."""

        def look() -> Object | None:
            found = self.get(kind, name, namespace)
            return found if found and where(found) else None

        found = self.wait_for(look, f"{kind} {namespace or ''}/{name} as expected")
        assert found
        return found

    def wait_gone(self, kind: str, name: str, namespace: str | None = None) -> None:
        self.wait_for(lambda: self.get(kind, name, namespace) is None, f"{kind} {name} deleted")

    def wait_ready(self, kind: str, name: str, namespace: str = NAMESPACE) -> Object:
        return self.wait_for_object(kind, name, namespace, where=ready)

    def stays(self, predicate: Callable[[], object], message: str, seconds: float) -> None:
        """Fails as soon as the predicate is false within the time: for `nothing is touched`."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert predicate(), f"did not last {seconds:g} s: {message}\n{self.state()}"
            time.sleep(POLL_SECONDS)

    def state(self) -> str:
        """What each Flux object says of itself, and the latest warnings: shown when an expectation fails."""
        lines = [_described(each) for each in self.find(_SHOWN_ON_TIMEOUT)]
        events = sorted(self.find("events"), key=lambda event: event["metadata"]["creationTimestamp"])
        lines += [_warning(event) for event in events if event.get("type") == "Warning"][-10:]
        return "\n".join(["the cluster says:", *lines])


def _in(namespace: str | None) -> tuple[str, ...]:
    return ("--namespace", namespace) if namespace else ()


def _text(manifests: str | Iterable[Mapping[str, Any]]) -> str:
    if isinstance(manifests, str):
        return manifests
    return "\n---\n".join(json.dumps(each) for each in manifests)  # JSON is YAML


def _named(kind: str, metadata: Mapping[str, str]) -> str:
    return f"{kind} {metadata.get('namespace', '')}/{metadata.get('name', '?')}"


def _described(found: Object) -> str:
    said = condition(found, "Ready")
    verdict = f"Ready={said.get('status', '?')} {said.get('reason', '')}: {said.get('message', '')[:500]}"
    return f"  {_named(found['kind'], found['metadata'])} {verdict}{_counted(found)}"


def _counted(found: Object) -> str:
    """What a provider hands on, what a ResourceSet holds, and whether an object is on its way out."""
    status = found.get("status", {})
    told = ""
    if "exportedInputs" in status:
        told += f"; inputs {[each.get('id') for each in status['exportedInputs']]}"
    if found["kind"] == "ResourceSet":
        told += f"; {len(status.get('inventory', {}).get('entries', []))} objects"
    return told + (f"; being deleted since {since}" if (since := found["metadata"].get("deletionTimestamp")) else "")


def _warning(event: Object) -> str:
    about = event["involvedObject"]
    return f"  warning from {_named(about.get('kind', '?'), about)}: {event.get('message', '')[:500]}"
