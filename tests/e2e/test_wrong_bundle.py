"""A bundle acts in its own cluster only: applied in another, it deletes nothing, and the right one finds all as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

import pytest
import yaml

import live

from . import faults
from .charts import Charts
from .home import DEMO, VIEWS, Home
from .kube import NAMESPACE, Kube, KubectlFailed, Object, condition

QUIET_SECONDS = 4  # dependencies are looked at every second here
OTHERS = ("another", "vacant")  # one with a state of its own, and one for which every view is an empty list
MADE = "namespaces,clusterrolebindings,configmaps,helmreleases,helmrepositories,kustomizations,ocirepositories"
OWNED = "resourceset.fluxcd.controlplane.io/name"


@pytest.fixture(scope="module", autouse=True)
def _others(home: Home) -> None:
    home.call("POST", "/namespaces", {"id": "only-another"})
    for id in OTHERS:
        home.call("POST", "/clusters", {"id": id, "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "prod"})
    home.call("PUT", "/clusters/another/namespaces/only-another", {})


@pytest.fixture(autouse=True)
def _at_home(home: Home) -> Iterator[None]:
    home.providers_ready()
    for view in VIEWS:
        home.kube.wait_for(lambda view=view: bool(home.inventory(view)), f"{view} are there")  # type: ignore[misc]  # mypy cannot type a default of a lambda
    yield
    home.join(DEMO)
    home.providers_ready()


def made(kube: Kube) -> set[tuple[str, str, str]]:
    """All that ResourceSets made and that is still there: an object that was deleted and made again has another uid."""
    return {
        (each["kind"], each["metadata"]["name"], each["metadata"]["uid"])
        for each in kube.find(MADE, selector=OWNED)
        if "deletionTimestamp" not in each["metadata"]
    }


def applied(kube: Kube, bundle: str, *options: str) -> None:
    """As a person does it; kubectl goes on after an error."""
    kube.run("apply", *options, "-f", "-", stdin=bundle)


def applied_wrongly(kube: Kube, bundle: str, *options: str) -> None:
    with pytest.raises(KubectlFailed, match="immutable"):
        applied(kube, bundle, *options)


def asks_for(kube: Kube, id: str) -> None:
    """Wait until every provider has an answer for that cluster."""
    for view in VIEWS:
        provider = kube.wait_ready("resourcesetinputprovider", view)
        assert f"/clusters/{id}.example.com/" in provider["spec"]["url"]


def waits(kube: Kube, view: str, word: str) -> None:
    def is_waiting(resourceset: Object) -> bool:
        ready = condition(resourceset, "Ready")
        return ready.get("reason") == "DependencyNotReady" and word in ready.get("message", "")

    kube.wait_for_object("resourceset", view, NAMESPACE, where=is_waiting)


def follows(home: Home, value: str) -> None:
    """What is changed at home arrives."""
    home.providers_ready()
    home.call("PATCH", "/namespaces/podinfo", {"labels": {"follows": value}})
    home.kube.wait_for_object(
        "namespace", "podinfo", where=lambda namespace: namespace["metadata"]["labels"].get("follows") == value
    )


SIDES: Mapping[str, tuple[str, ...]] = {"client": (), "server": ("--server-side", "--force-conflicts")}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("other", OTHERS)
def test_the_bundle_of_another_cluster_deletes_nothing_and_the_right_one_finds_all_as_it_was(
    other: str, side: str, home: Home, kube: Kube
) -> None:
    before, held = made(kube), home.everything()
    applied_wrongly(kube, home.bundle(other), *SIDES[side])
    asks_for(kube, other)
    for view in VIEWS:
        waits(kube, view, "cluster-identity")
    kube.stays(lambda: made(kube) == before and home.everything() == held, "everything stays", QUIET_SECONDS)
    assert kube.get("namespace", "only-another") is None
    applied(kube, home.bundle(DEMO), *SIDES[side])
    follows(home, f"{other}-{side}")
    assert made(kube) == before
    assert home.everything() == held


def test_bundles_in_quick_turns_delete_nothing(home: Home, kube: Kube) -> None:
    """The right ResourceSets meet inputs of other clusters, which their providers asked for a moment ago."""
    before = made(kube)
    bundles = {id: home.bundle(id) for id in (*OTHERS, DEMO)}
    for turn in range(12):
        applied_wrongly(kube, bundles[OTHERS[turn % 2]], *SIDES["server"])
        if turn % 3:
            asks_for(kube, OTHERS[turn % 2])
        applied(kube, bundles[DEMO], *SIDES["server"])
        assert made(kube) == before
    follows(home, "turns")
    assert made(kube) == before


@pytest.mark.parametrize("other", OTHERS)
def test_a_provider_that_asks_for_another_cluster_feeds_nobody(other: str, home: Home, kube: Kube) -> None:
    """The ResourceSets are still the right ones: half a bundle was applied."""
    before = made(kube)
    parts = [each for each in yaml.safe_load_all(home.bundle(other)) if each["kind"] == "ResourceSetInputProvider"]
    kube.apply(parts)
    asks_for(kube, other)
    for view in VIEWS:
        kube.reconcile("resourceset", view)
        waits(kube, view, "ResourceSetInputProvider")
    kube.stays(lambda: made(kube) == before, "everything stays", QUIET_SECONDS)


@pytest.mark.parametrize("other", OTHERS)
def test_inputs_of_another_cluster_do_not_count_while_the_api_is_away(other: str, home: Home, kube: Kube) -> None:
    """The right bundle is back, but its providers still hold what the wrong ones got."""
    before = made(kube)
    applied_wrongly(kube, home.bundle(other))
    asks_for(kube, other)
    right = home.bundle(DEMO)
    with home.proxy.failing(faults.status(503)):
        applied(kube, right)
        for view in VIEWS:
            waits(kube, view, "ResourceSetInputProvider")
        kube.stays(lambda: made(kube) == before, "everything stays", QUIET_SECONDS)
    follows(home, f"away-{other}")
    assert made(kube) == before


# The delivery by artifact


def shipped_views() -> dict[str, dict[str, str]]:
    views = live.ROOT / "deploy" / "cluster" / "views"
    return {
        f"views/{view}": {name: (views / view / name).read_text() for name in ("provider.yaml", "resourceset.yaml")}
        for view in VIEWS
    }


def delivery(home: Home, charts: Charts) -> list[Object]:
    """What ships, with the registry and the API of this suite, which have no TLS."""
    source, kustomization = yaml.safe_load_all((live.ROOT / "deploy" / "cluster" / "delivery.yaml").read_text())
    url = charts.push_kustomization("flux-resourceset/cluster", source["spec"]["ref"]["tag"], shipped_views())
    source["spec"] |= {"url": url, "insecure": True}
    insecure = {"op": "add", "path": "/spec/insecure", "value": True}
    every = {"op": "replace", "path": "/metadata/annotations/fluxcd.controlplane.io~1reconcileEvery", "value": "1s"}
    target = {"kind": "ResourceSetInputProvider"}
    kustomization["spec"]["patches"] = [{"target": target, "patch": yaml.safe_dump([insecure, every])}]
    return [source, kustomization]


@pytest.fixture
def delivered(home: Home, charts: Charts, kube: Kube) -> Iterator[None]:
    kube.apply(delivery(home, charts))
    kube.wait_ready("kustomization", "flux-resourceset")
    yield
    for kind in ("kustomization", "ocirepository"):
        with contextlib.suppress(KubectlFailed):
            kube.delete(kind, "flux-resourceset", NAMESPACE)


@pytest.mark.usefixtures("delivered")
@pytest.mark.parametrize("other", OTHERS)
def test_views_that_come_by_artifact_are_as_safe(other: str, home: Home, kube: Kube) -> None:
    for view in VIEWS:
        resourceset = kube.wait_ready("resourceset", view)
        assert f'"{DEMO}.k8s.example.com"' in resourceset["spec"]["dependsOn"][0]["readyExpr"]
        shipped = yaml.safe_load(shipped_views()[f"views/{view}"]["resourceset.yaml"])
        assert resourceset["spec"]["resourcesTemplate"] == shipped["spec"]["resourcesTemplate"]
    before = made(kube)
    applied_wrongly(kube, home.bundle(other), *SIDES["server"])
    asks_for(kube, other)
    kube.stays(lambda: made(kube) == before, "everything stays", QUIET_SECONDS)
    kube.reconcile("kustomization", "flux-resourceset")
    for view in VIEWS:
        kube.wait_for_object(
            "resourcesetinputprovider", view, NAMESPACE, where=lambda each: f"/clusters/{DEMO}.k8s." in each["spec"]["url"]
        )
    follows(home, f"artifact-{other}")
    assert made(kube) == before
