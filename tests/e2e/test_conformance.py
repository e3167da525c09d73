"""The cases of the operator's own tests, and those it lacks, as far as a correct server can show them."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import live

from . import faults
from .charts import Charts
from .home import VIEWS, Home
from .kube import NAMESPACE, Kube, Object, condition, ready

CLUSTER, DNS = "conformance", "conformance.example.com"
SECRET = "conformance-token"
LABEL = {"e2e": "conformance"}
MAX_INPUTS, MAX_BYTES = 10_000, 900 * 1024
LARGEST = 2**53 - 1

_numbers = itertools.count()

COMPONENT = {"component_path": "shown-values", "oci_url": "https://charts.example.com", "oci_tag": "1.0.0"}
SUBJECTS = [{"kind": "ServiceAccount", "name": "robot", "namespace": "a"}, {"kind": "User", "name": "ünï 😀"}]


@pytest.fixture(scope="module")
def api(kube: Kube, charts: Charts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A server of its own with one cluster. Providers ask for it here, and nothing is made of what they get."""
    directory = tmp_path_factory.mktemp("conformance")
    environment = live.environment(directory)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NAMESPACE, "labels": LABEL}}
    kube.apply([{**secret, "stringData": {"token": live.READ}}])
    server = live.Server(directory, environment)
    try:
        server.wait("/ready")
        with faults.proxying(server.address) as proxy:
            home = Home(server, proxy, kube, charts, directory, environment)
            fill(home)
            yield home
            server = home.server
    finally:
        server.stop()


@pytest.fixture(autouse=True)
def _no_provider_stays(kube: Kube) -> Iterator[None]:
    yield
    # without waiting: the next test's providers have other names
    kube.run("delete", "resourcesetinputproviders", "--namespace", NAMESPACE, "--selector=e2e=conformance", "--wait=false")


def fill(home: Home) -> None:
    home.call("POST", "/platform_components", {"id": "first", **COMPONENT})
    home.call("POST", "/platform_components", {"id": "second", **COMPONENT, "depends_on": ["first"]})
    home.call("POST", "/rolebindings", {"id": "robots", "role": "view", "subjects": SUBJECTS})
    ids = ("zebra", "aardvark", "monkey")  # in no order that a program would choose
    for id in ids:
        home.call("POST", "/namespaces", {"id": id, "labels": {"team": id}, "annotations": {"note": "a: b # c"}})
    patches = {"second": {"ui.color": "#fff", "largest": LARGEST, "smallest": -LARGEST, "text": "9007199254740993", "ratio": 0.1}}
    home.call("POST", "/clusters", {
        "id": CLUSTER, "cluster_name": CLUSTER, "cluster_dns": DNS, "environment": "prod", "patches": patches,
        "platform_components": [{"id": "second", "oci_tag": None}, {"id": "first", "enabled": False}],
        "namespaces": [{"id": id} for id in ids], "rolebindings": [{"id": "robots"}],
    })  # fmt: skip


def provider(url: str, path: str, limit: int = MAX_INPUTS, every: str = "1s", **spec: Any) -> Object:
    name = f"conformance-{next(_numbers)}"
    polls = {"fluxcd.controlplane.io/reconcileEvery": every}
    return {
        "apiVersion": "fluxcd.controlplane.io/v1",
        "kind": "ResourceSetInputProvider",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": polls, "labels": LABEL},
        "spec": {
            "type": "ExternalService", "url": url + path, "insecure": True, "secretRef": {"name": SECRET},
            "filter": {"limit": limit}, **spec,
        },
    }  # fmt: skip


def of_view(home: Home, view: str, **spec: Any) -> Object:
    return provider(home.proxy.url, f"/api/v2/flux/clusters/{DNS}/{view}", **spec)


def exported(kube: Kube, asking: Object, where: Callable[[list[Object]], object] = bool) -> Object:
    """The provider, once it is ready and has exported what is expected."""
    kube.apply([asking])

    def as_expected(found: Object) -> bool:
        return ready(found) and bool(where(found["status"].get("exportedInputs", [])))

    return kube.wait_for_object("resourcesetinputprovider", asking["metadata"]["name"], NAMESPACE, where=as_expected)


def is_refused(found: Object) -> bool:
    return condition(found, "Ready").get("status") == "False"


def answered(home: Home, view: str) -> list[Object]:
    inputs: list[Object] = json.loads(home.answer(DNS, view))["inputs"]
    return inputs


@pytest.mark.parametrize("view", VIEWS)
def test_nested_values_arrive_as_they_were_sent(view: str, api: Home, kube: Kube) -> None:
    wanted = answered(api, view)
    exported(kube, of_view(api, view), where=lambda inputs: inputs == wanted)
    assert wanted


def test_nothing_in_an_answer_is_null(api: Home) -> None:
    for view in VIEWS:
        body = api.answer(DNS, view)
        assert b"null" not in body
    overridden, _ = answered(api, "platform-components")
    assert overridden["source"]["oci_tag"] == COMPONENT["oci_tag"]


def test_default_values_fill_gaps_and_never_beat_an_answer(api: Home, kube: Kube) -> None:
    defaults = {"region": "eu", "role": "cluster-admin"}
    wanted = [{"region": "eu", **item} for item in answered(api, "rolebindings")]
    exported(kube, of_view(api, "rolebindings", defaultValues=defaults), where=lambda inputs: inputs == wanted)
    assert wanted[0]["role"] == "view"


def test_a_smaller_limit_keeps_the_first_of_the_clusters_own_order(api: Home, kube: Kube) -> None:
    def ids(*wanted: str) -> Callable[[list[Object]], bool]:
        return lambda inputs: [item["id"] for item in inputs] == list(wanted)

    exported(kube, of_view(api, "namespaces", limit=3), where=ids("zebra", "aardvark", "monkey"))
    exported(kube, of_view(api, "namespaces", limit=2), where=ids("zebra", "aardvark"))


def test_answers_are_packed_and_unpacked(api: Home, kube: Kube) -> None:
    passed: list[tuple[dict[str, str], bytes]] = []

    def noted(handler: Any) -> bool:
        status, headers, body = handler._pass_on()
        if handler.path.endswith("/namespaces"):
            passed.append(({name.lower(): value for name, value in headers.items()}, body))
        handler.answer(status, body, headers)
        return True

    wanted = answered(api, "namespaces")
    with api.proxy.failing(noted):
        exported(kube, of_view(api, "namespaces"), where=lambda inputs: inputs == wanted)
    headers, body = passed[-1]
    assert headers["content-encoding"] == "gzip"
    assert gzip.decompress(body) == api.answer(DNS, "namespaces")


def test_no_path_is_ever_answered_with_a_redirect(api: Home, kube: Kube) -> None:
    root = f"/api/v2/flux/clusters/{DNS}"
    odd = [
        "/namespaces/",
        "//namespaces",
        "/Namespaces",
        "/namespaces?x=1",
        "/./namespaces",
        "/namespaces%2F",
        "/",
        "",
        "/../namespaces",
    ]
    with api.server.client(live.READ) as known, api.server.client(None) as unknown:
        answers = [client.get(httpx.URL(root + path)) for path in odd for client in (known, unknown)]
    assert {answer.status_code for answer in answers} == {200, 401, 404}
    assert not any("location" in answer.headers for answer in answers)
    asking = of_view(api, "namespaces/")
    kube.apply([asking])
    said = kube.wait_for_object("resourcesetinputprovider", asking["metadata"]["name"], NAMESPACE, where=is_refused)
    assert "404" in condition(said, "Ready")["message"]


def test_a_restart_changes_no_byte_no_order_and_no_revision(api: Home, kube: Kube) -> None:
    asking = {view: of_view(api, view) for view in VIEWS}
    before = {view: exported(kube, each)["status"]["lastExportedRevision"] for view, each in asking.items()}
    bytes_before = {view: api.answer(DNS, view) for view in VIEWS}
    api.restart(while_down=lambda: None)
    assert {view: api.answer(DNS, view) for view in VIEWS} == bytes_before
    asked = api.proxy.asked_for("/namespaces")
    kube.wait_for(lambda: api.proxy.asked_for("/namespaces") >= asked + 2, "polls after the restart")
    after = {view: exported(kube, each)["status"]["lastExportedRevision"] for view, each in asking.items()}
    assert after == before


def test_the_largest_safe_integers_keep_every_digit_and_larger_ones_are_refused(api: Home, kube: Kube) -> None:
    def patches(inputs: list[Object]) -> Object:
        found: Object = next(item["patches"] for item in inputs if item["id"] == "second")
        return found

    found = exported(kube, of_view(api, "platform-components"), where=patches)
    kept = patches(found["status"]["exportedInputs"])
    assert (kept["largest"], kept["smallest"], kept["ratio"]) == (LARGEST, -LARGEST, 0.1)
    assert kept["text"] == "9007199254740993"  # as a number it would end in 2
    for number in (LARGEST + 1, -LARGEST - 1, 1e300):
        api.call("PATCH", f"/clusters/{CLUSTER}/patches/second", {"largest": number}, status=422)


def test_the_longest_answer_is_taken_and_one_byte_more_is_refused_by_the_api(api: Home, kube: Kube) -> None:
    def pad(length: int, status: int = 200) -> None:
        api.call("PATCH", "/namespaces/monkey", {"annotations": {"pad": "x" * length}}, status=status)

    for number in range(4):  # Kubernetes takes up to 256 KiB of annotations for each
        api.call("POST", "/namespaces", {"id": f"pad-{number}", "annotations": {"pad": "x" * 200_000}})
        api.call("PUT", f"/clusters/{CLUSTER}/namespaces/pad-{number}", {})
    pad(1)
    room = MAX_BYTES - 1 - len(api.answer(DNS, "namespaces"))
    pad(1 + room)
    assert len(api.answer(DNS, "namespaces")) == MAX_BYTES - 1
    wanted = answered(api, "namespaces")
    exported(kube, of_view(api, "namespaces"), where=lambda inputs: inputs == wanted)
    pad(2 + room, status=422)
    assert answered(api, "namespaces") == wanted
    for number in range(4):
        api.call("DELETE", f"/clusters/{CLUSTER}/namespaces/pad-{number}")


def test_ten_thousand_inputs_are_taken_and_one_more_is_an_error_not_a_shorter_list(
    kube: Kube, api: Home, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of clusters, because so many inputs of any other view would be longer than the longest answer."""

    def cluster(number: int) -> Object:
        return {"id": f"c{number:05}", "cluster_name": "c", "cluster_dns": f"c{number:05}", "environment": "dev"}

    directory = tmp_path_factory.mktemp("ten-thousand")
    (directory / "seed.json").write_text(json.dumps({"clusters": [cluster(number) for number in range(MAX_INPUTS)]}))
    with (
        live.serving(directory, SEED_FILE=str(directory / "seed.json"), STORE_BACKEND="memory") as server,
        server.client() as client,
    ):
        asking = provider(server.url, "/api/v2/flux/clusters", every="1h")  # its status is large, and a poll of it not cheap
        name = asking["metadata"]["name"]
        whole = exported(kube, asking, where=lambda inputs: len(inputs) == MAX_INPUTS)
        assert whole["status"]["exportedInputs"][-1]["id"] == f"c{MAX_INPUTS - 1:05}"
        assert client.post("/clusters", json=cluster(MAX_INPUTS)).status_code == 201
        assert client.get("/api/v2/flux/clusters").status_code == 422
        kube.reconcile("resourcesetinputprovider", name)
        failed = kube.wait_for_object("resourcesetinputprovider", name, NAMESPACE, where=is_refused)
        assert len(failed["status"]["exportedInputs"]) == MAX_INPUTS
