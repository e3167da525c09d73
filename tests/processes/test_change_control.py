"""Plans, guards and reverts of many clients on two processes and one file: no lost update, no gap, no guard passed by a race."""

from __future__ import annotations

import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import live
from processes.test_sharing import assert_log_without_gaps

pytestmark = pytest.mark.long

CLUSTERS, CLIENTS, ROUNDS = 6, 6, 8
LIMIT = 1  # clusters that may lose inputs without a confirmation

Document = dict[str, Any]


def filled(api: httpx.Client) -> None:
    operations: list[Document] = [{"op": "create", "kind": "namespaces", "id": f"n{n}", "document": {}} for n in range(3)]
    for number in range(CLUSTERS):
        id = f"c{number}"
        document = {
            "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "dev",
            "namespaces": [{"id": "n0"}], "labels": {"count": "0"},
        }  # fmt: skip
        operations.append({"op": "create", "kind": "clusters", "id": id, "document": document})
    assert api.post("/batch", json={"operations": operations}).status_code == 200


class Client:
    """Someone who acts at random, and keeps count of what was acknowledged."""

    def __init__(self, server: live.Server, number: int) -> None:
        self.api = server.client()
        self.api.headers["X-Actor"] = f"client-{number}"
        self.random = random.Random(number)
        self.counted = 0  # increments that were acknowledged
        self.planned: list[tuple[int, int]] = []  # revision and removed inputs of what was carried out as planned

    def act(self) -> None:
        deeds = (self.count, self.count, self.spread, self.sweep, self.sweep_as_planned, self.revert)
        self.random.choice(deeds)()

    def cluster(self) -> str:
        return f"c{self.random.randrange(CLUSTERS)}"

    def count(self) -> None:
        """Read, add one, write back; again if somebody else was faster."""
        path = f"/clusters/{self.cluster()}"
        for _ in range(50):
            found = self.api.get(path)
            labels = {"labels": {"count": str(int(found.json()["labels"]["count"]) + 1)}}
            status = self.api.patch(path, json=labels, headers={"If-Match": found.headers["etag"]}).status_code
            assert status in (200, 412)
            if status == 200:
                self.counted += 1
                return

    def spread(self) -> None:
        name, cluster = f"n{self.random.randrange(3)}", self.cluster()
        assert self.api.put(f"/clusters/{cluster}/namespaces/{name}", json={}).status_code == 200

    def swept(self) -> Document:
        name = f"n{self.random.randrange(3)}"
        return {"operations": [{"op": "unassign", "kind": "namespaces", "id": name, "selector": ""}]}

    def sweep(self) -> None:
        """Take something away everywhere, without a confirmation: only where hardly anybody has it."""
        assert self.api.post("/batch", json=self.swept(), headers={"X-Reason": "unconfirmed"}).status_code in (200, 428)

    def sweep_as_planned(self) -> None:
        body = self.swept()
        plan = self.api.post("/plan", json=body).json()
        headers = {"If-Plan": f'"{plan["plan"]}"', "X-Confirm-Removals": str(plan["summary"]["removed"]), "X-Reason": "planned"}
        answer = self.api.post("/batch", json=body, headers=headers)
        assert answer.status_code in (200, 412), answer.text
        if answer.status_code == 200 and plan["summary"]["documents"]:
            self.planned.append((answer.json()["revision"], plan["summary"]["removed"]))

    def revert(self) -> None:
        newest = self.api.get("/changes?limit=1").json()[0]["revision"]
        revision = self.random.randint(max(2, newest - 5), newest)
        if not any("count" in str(change) and "labels" in str(change) for change in self.fields_of(revision)):
            answer = self.api.post(f"/changes/{revision}/revert", headers={"X-Reason": "reverted"})
            assert answer.status_code in (200, 409, 428), answer.text

    def fields_of(self, revision: int) -> list[Document]:
        """Of an entry: increments are not taken back, so that they can be counted."""
        entry = self.api.get(f"/changes/{revision}").json()
        return [
            change
            for change in entry["changes"]
            if (change["before"] or {}).get("labels") != (change["after"] or {}).get("labels")
        ]


def removals(entry: Document) -> tuple[int, int]:
    """How many clusters lost inputs by an entry, and how many inputs."""
    lost = [
        len({ref["id"] for ref in change["before"]["namespaces"]} - {ref["id"] for ref in change["after"]["namespaces"]})
        for change in entry["changes"]
        if change["kind"] == "clusters" and change["before"] and change["after"]
    ]
    return sum(map(bool, lost)), sum(lost)


def test_nothing_is_lost_and_no_guard_is_passed_by_a_race(tmp_path: Path) -> None:
    limits = {"GUARD_MAX_REMOVAL_CLUSTERS": str(LIMIT), "SEED_FILE": ""}
    with live.serving(tmp_path, **limits) as first, live.serving(tmp_path, **limits) as second:
        with first.client() as api, second.client() as other:
            filled(api)
            newest = api.get("/changes?limit=1").json()[0]["revision"]
            assert other.get("/clusters", headers={"X-Min-Revision": str(newest)}).status_code == 200
        clients = [Client((first, second)[number % 2], number) for number in range(CLIENTS)]

        def run(client: Client) -> None:
            with client.api:
                for _ in range(ROUNDS):
                    client.act()

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(run, clients))
        assert_log_without_gaps(first, second)
        with second.client() as api:
            entries = api.get("/changes?limit=1000&after=0").json()
            counts = sum(int(cluster["labels"]["count"]) for cluster in api.get("/clusters").json())
    assert counts == sum(client.counted for client in clients)
    by_revision = {entry["revision"]: entry for entry in entries}
    for entry in entries:
        if entry["reason"] in ("unconfirmed", "reverted"):
            assert removals(entry)[0] <= LIMIT, entry["revision"]
    for client in clients:
        for revision, removed in client.planned:
            assert removals(by_revision[revision])[1] == removed
    checked = subprocess.run(
        [*live.PROGRAM, "verify"], env=live.environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
