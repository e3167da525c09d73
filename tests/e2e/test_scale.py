"""Long lists and large answers arrive whole."""

from __future__ import annotations

from .home import DEMO, Home
from .kube import NAMESPACE, Kube


def add_namespaces(home: Home, prefix: str, count: int, annotation: str = "") -> set[str]:
    ids = [f"{prefix}-{number:04d}" for number in range(count)]
    document = {"annotations": {"note": annotation}} if annotation else {}
    create = [{"op": "create", "kind": "namespaces", "id": id, "document": document} for id in ids]
    assign = [{"op": "assign", "kind": "namespaces", "id": id, "clusters": [DEMO]} for id in ids]
    home.call("POST", "/batch", {"operations": [*create, *assign]})
    return set(ids)


def arrived(home: Home, kube: Kube, wanted: set[str]) -> None:
    def all_there() -> bool:
        return wanted <= {found["metadata"]["name"] for found in kube.find("namespaces")}

    kube.wait_for(all_there, f"{len(wanted)} namespaces")


def forget(home: Home, ids: set[str]) -> None:
    """Unassigned, the namespaces stay, but answers are small again for the tests that follow."""
    operations = [{"op": "unassign", "kind": "namespaces", "id": id, "clusters": [DEMO]} for id in sorted(ids)]
    home.call("POST", "/batch", {"operations": operations})


def test_more_inputs_than_the_default_limit_are_all_kept(home: Home, kube: Kube) -> None:
    ids = add_namespaces(home, "hundred", 101)
    arrived(home, kube, ids)
    provider = kube.wait_ready("resourcesetinputprovider", "namespaces")
    assert len(provider["status"]["exportedInputs"]) >= 101
    forget(home, ids)


def test_a_thousand_namespaces_arrive_and_none_is_lost(home: Home, kube: Kube) -> None:
    ids = add_namespaces(home, "thousand", 1000)
    arrived(home, kube, ids)
    kube.wait_for(lambda: len(home.inventory("namespaces")) >= 1000, "all of them in the inventory")
    forget(home, ids)
    kube.wait_for(lambda: len(home.inventory("namespaces")) < 1000, "the list is short again")


def test_an_answer_just_below_the_limit_is_taken_and_more_is_refused_by_the_api(home: Home, kube: Kube) -> None:
    note = "x" * 100_000
    ids = add_namespaces(home, "large", 9, note)
    assert 900_000 < len(home.answer(f"{DEMO}.k8s.example.com", "namespaces")) < 921_600
    arrived(home, kube, ids)
    kube.wait_ready("resourcesetinputprovider", "namespaces")
    home.call("POST", "/namespaces", {"id": "large-too-much", "annotations": {"note": note}})
    home.call("PUT", f"/clusters/{DEMO}/namespaces/large-too-much", {}, status=422)
    forget(home, ids)
    kube.wait_for(
        lambda: len(str((kube.get("resourcesetinputprovider", "namespaces", NAMESPACE) or {}).get("status"))) < 500_000,
        "the large inputs are gone",
    )
