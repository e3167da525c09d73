"""When the API is away or in doubt, clusters keep what they have; when it is back, they follow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import faults
from .home import DEMO, VIEWS, Home
from .kube import NAMESPACE, Kube, condition

QUIET_SECONDS = 4  # several polls at one a second


@pytest.fixture(autouse=True)
def _settled(home: Home) -> Iterator[None]:
    """Start from a cluster that follows, and leave one that does."""
    home.providers_ready()
    yield
    for view in VIEWS:
        home.kube.reconcile("resourcesetinputprovider", view)
    home.providers_ready()


def provider_fails(kube: Kube, view: str) -> None:
    kube.wait_for_object(
        "resourcesetinputprovider", view, NAMESPACE, where=lambda found: condition(found, "Ready").get("status") == "False"
    )


FAULTS = {
    "500": faults.status(500),
    "503": faults.status(503),
    "429": faults.status(429),
    "404": faults.status(404),
    "204": faults.status(204),
    "304": faults.status(304),
    "no JSON": faults.body("<html>"),
    "no inputs": faults.body("{}"),
    "null inputs": faults.body('{"inputs": null}'),
    "an input without id": faults.body('{"inputs": [{"name": "x"}]}'),
    "an id that is a number": faults.body('{"inputs": [{"id": 1}]}'),
    "two equal ids": faults.body('{"inputs": [{"id": "a"}, {"id": "a"}]}'),
    "too large": faults.body('{"inputs": [{"id": "a", "x": "' + "x" * 921_600 + '"}]}'),
    "hangs up": faults.hang_up,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_nothing_is_touched_when_the_answer_is(fault: faults.Fault, home: Home, kube: Kube) -> None:
    before = home.inventory("namespaces")
    assert before
    with home.proxy.failing(fault):
        kube.reconcile("resourcesetinputprovider", "namespaces")
        provider_fails(kube, "namespaces")
        kube.stays(lambda: home.inventory("namespaces") == before, "the namespaces stay", 1.5)


def test_a_slow_answer_is_waited_for(home: Home, kube: Kube) -> None:
    before = home.everything()
    with home.proxy.failing(faults.slow(2.5)):
        kube.stays(lambda: home.everything() == before, "everything stays", QUIET_SECONDS)


def test_a_connection_that_breaks_is_tried_again_within_the_poll(home: Home, kube: Kube) -> None:
    asked = len(home.proxy.requests)
    with home.proxy.failing(faults.times(2, faults.hang_up)):
        kube.wait_for(lambda: len(home.proxy.requests) >= asked + 4, "requests come again")
    kube.wait_ready("resourcesetinputprovider", "namespaces")


def test_a_killed_server_leaves_everything_and_drift_is_still_repaired(home: Home, kube: Kube) -> None:
    before = home.everything()
    home.restart(while_down=lambda: _drifts_back(home, kube, before))
    home.call("PATCH", "/namespaces/podinfo", {"labels": {"after": "outage"}})
    kube.wait_for_object("namespace", "podinfo", where=lambda found: found["metadata"]["labels"].get("after") == "outage")


def _drifts_back(home: Home, kube: Kube, before: dict[str, set[str]]) -> None:
    provider_fails(kube, "namespaces")
    kube.patch("namespace", "traefik", {"metadata": {"labels": {"app": "drifted"}}})
    kube.delete("clusterrolebinding", "dev-readers")
    for view in ("namespaces", "rolebindings"):
        kube.reconcile("resourceset", view)
    kube.wait_for_object("namespace", "traefik", where=lambda found: found["metadata"]["labels"]["app"] == "traefik")
    kube.wait_for_object("clusterrolebinding", "dev-readers")
    kube.stays(lambda: home.everything() == before, "everything stays", QUIET_SECONDS)


def test_a_provider_recreated_during_an_outage_deletes_nothing(home: Home, kube: Kube) -> None:
    before = home.inventory("rolebindings")
    provider = kube.get("resourcesetinputprovider", "rolebindings", NAMESPACE)
    assert provider is not None
    for field in ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"):
        provider["metadata"].pop(field, None)
    provider.pop("status", None)
    with home.proxy.failing(faults.status(503)):
        kube.delete("resourcesetinputprovider", "rolebindings", NAMESPACE)
        kube.apply([provider])
        kube.reconcile("resourceset", "rolebindings")
        kube.stays(lambda: kube.get("clusterrolebinding", "platform-admins") is not None, "the binding stays", QUIET_SECONDS)
        assert home.inventory("rolebindings") == before


def test_a_store_that_breaks_freezes_the_cluster(home: Home, kube: Kube) -> None:
    before = home.everything()
    database = home.directory / "fleet.db"
    hidden = database.with_suffix(".hidden")
    database.rename(hidden)
    try:
        provider_fails(kube, "namespaces")
        kube.stays(lambda: home.everything() == before, "everything stays", QUIET_SECONDS)
    finally:
        hidden.rename(database)
    kube.reconcile("resourcesetinputprovider", "namespaces")
    kube.wait_ready("resourcesetinputprovider", "namespaces")


def test_one_failing_view_leaves_the_others_working(home: Home, kube: Kube) -> None:
    def only_rolebindings(handler: object) -> bool:
        path: str = getattr(handler, "path", "")
        return path.endswith("/rolebindings") and faults.status(500)(handler)  # type: ignore[arg-type]  # a Handler

    with home.proxy.failing(only_rolebindings):
        kube.reconcile("resourcesetinputprovider", "rolebindings")
        provider_fails(kube, "rolebindings")
        home.call("PATCH", "/namespaces/traefik", {"annotations": {"still": "works"}})
        kube.wait_for_object("namespace", "traefik", where=lambda f: f["metadata"]["annotations"].get("still") == "works")


def test_an_unknown_cluster_touches_nothing(home: Home, kube: Kube) -> None:
    before = home.inventory("namespaces")
    found = kube.get("resourcesetinputprovider", "namespaces", NAMESPACE) or {}
    url = found["spec"]["url"]
    kube.patch("resourcesetinputprovider", "namespaces", {"spec": {"url": url.replace(DEMO, "stranger")}}, NAMESPACE)
    try:
        provider_fails(kube, "namespaces")
        kube.stays(lambda: home.inventory("namespaces") == before, "the namespaces stay", 3)
    finally:
        kube.patch("resourcesetinputprovider", "namespaces", {"spec": {"url": url}}, NAMESPACE)
