"""Kind files that no longer fit the documents of the store: no view loses its data because a file changed."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import live
from faults.stores import exit_line, inputs, poll, write

KIND = """\
kind: network_policies
apiVersion: v1
metadata:
  x-flux: {singular: network_policy, endpoint: network-policies, cluster_field: network_policies}
schema:
  type: array
  key: {name: id, schema: {type: string}}
  items:
    type: object
    required: [id]
    properties:
      id: {type: string}
"""
VIEW = "/api/v2/flux/clusters/one.example.com/network-policies"
OTHER = "/api/v2/flux/clusters/one.example.com/namespaces"
CLUSTER = {"id": "one", "cluster_name": "one", "cluster_dns": "one.example.com", "environment": "dev"}


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A store with a kind of its own, whose server has stopped."""
    (tmp_path / "kinds").mkdir()
    (tmp_path / "kinds" / "policies.yaml").write_text(KIND)
    with live.serving(tmp_path, RESOURCES_DIR=str(tmp_path / "kinds")) as writer:
        write(writer, "POST", "/network_policies", {"id": "deny"})
        write(writer, "POST", "/namespaces", {"id": "apps"})
        references = {"network_policies": [{"id": "deny"}], "namespaces": [{"id": "apps"}]}
        assert write(writer, "POST", "/clusters", {**CLUSTER, **references}) == 201
        assert inputs(writer, VIEW) == ["deny"]
        writer.stop()
    return tmp_path


def changed(fleet: Path, change: Callable[[str], str]) -> dict[str, str]:
    (fleet / "kinds" / "policies.yaml").write_text(change(KIND))
    return {"RESOURCES_DIR": str(fleet / "kinds")}


CHANGES = {
    "the kind is renamed": lambda text: text.replace("kind: network_policies", "kind: net_policies"),
    "its field is renamed": lambda text: text.replace("cluster_field: network_policies", "cluster_field: policies"),
    "another kind is on its endpoint": lambda text: text.replace("kind: network_policies", "kind: quotas").replace(
        "cluster_field: network_policies", "cluster_field: quotas"
    ),
    "another kind is in its field": lambda text: text.replace("kind: network_policies", "kind: quotas").replace(
        "endpoint: network-policies", "endpoint: quotas"
    ),
}


@pytest.mark.quick
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_writer_does_not_start(fleet: Path, change: Callable[[str], str]) -> None:
    code, line = exit_line(fleet, **changed(fleet, change))
    assert code == 2
    for word in ("network_policies", "1 cluster(s)", "give the old kind file back", "retire-kind network_policies"):
        assert word in line
    with live.serving(fleet, **changed(fleet, lambda text: text)) as writer:
        assert inputs(writer, VIEW) == ["deny"]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_on_a_reader_the_view_is_doubt_and_the_others_go_on(fleet: Path, change: Callable[[str], str]) -> None:
    with live.serving(fleet, API_MODE="read-only", **changed(fleet, change)) as reader:
        for path in (VIEW, VIEW.replace("network-policies", "quotas")):
            status, body = poll(reader, path)
            assert status in (503, 404), body  # 404: no such view, and Flux keeps what it has
        assert 503 in {poll(reader, path)[0] for path in (VIEW, VIEW.replace("network-policies", "quotas"))}
        assert inputs(reader, OTHER) == ["apps"]


def test_a_kind_that_is_away_takes_its_view_along_and_another_cannot_take_it_later(fleet: Path) -> None:
    with live.serving(fleet) as writer:  # without the file
        assert poll(writer, VIEW)[0] == 404
        assert inputs(writer, OTHER) == ["apps"]
        writer.stop()
    assert exit_line(fleet, **changed(fleet, CHANGES["another kind is on its endpoint"]))[0] == 2


def test_a_kind_nobody_refers_to_may_change_as_it_likes(fleet: Path) -> None:
    with live.serving(fleet, **changed(fleet, lambda text: text)) as writer:
        assert write(writer, "DELETE", "/clusters/one/network_policies/deny") == 200
        writer.stop()
    with live.serving(fleet, **changed(fleet, CHANGES["its field is renamed"])) as writer:
        assert inputs(writer, VIEW) == []  # emptied by its operator before


# Servers with other kind files, on one store


@pytest.fixture
def unused(fleet: Path) -> Path:
    """The same store, in which nobody refers to the kind."""
    with live.serving(fleet, **changed(fleet, lambda text: text)) as writer:
        assert write(writer, "DELETE", "/clusters/one/network_policies/deny") == 200
        writer.stop()
    return fleet


def other_kinds(fleet: Path, change: Callable[[str], str]) -> dict[str, str]:
    (fleet / "others").mkdir(exist_ok=True)
    (fleet / "others" / "policies.yaml").write_text(change(KIND))
    return {"RESOURCES_DIR": str(fleet / "others")}


def answers(server: live.Server) -> list[tuple[int, object]]:
    return [poll(server, path) for path in (VIEW, VIEW.replace("network-policies", "quotas"))]


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("mode", ["read-only", "crud"])
def test_a_view_is_doubt_as_soon_as_clusters_refer_to_what_it_does_not_know(
    unused: Path, change: Callable[[str], str], mode: str
) -> None:
    right, wrong = changed(unused, lambda text: text), other_kinds(unused, change)
    with live.serving(unused, **right) as writer, live.serving(unused, API_MODE=mode, **wrong) as other:
        assert {status for status, _ in answers(other)} == {200, 404}  # nobody loses anything
        assert write(writer, "PUT", "/clusters/one/network_policies/deny", {}) == 200
        for _ in range(2):
            assert {status for status, _ in answers(other)} <= {503, 404}
            assert inputs(writer, VIEW) == ["deny"]
            assert inputs(other, OTHER) == ["apps"]
            assert write(other, "POST", "/namespaces", {"id": "late"}) == (503 if mode == "crud" else 401)
            assert write(writer, "PATCH", "/clusters/one", {"labels": {"a": "b"}}) == 200
        writer.stop()
        other.stop()
    assert exit_line(unused, **wrong)[0] == 2  # the store remembers what was written last
    with live.serving(unused, **right) as writer:
        assert inputs(writer, VIEW) == ["deny"]


def test_a_kind_that_was_retired_under_a_writer_is_remembered_with_its_next_documents(fleet: Path) -> None:
    kinds = changed(fleet, lambda text: text)
    with live.serving(fleet, **kinds) as writer:
        assert run(fleet, "retire-kind", "network_policies", "--yes", **kinds)[0] == 0
        assert inputs(writer, VIEW) == []
        assert write(writer, "POST", "/network_policies", {"id": "deny"}) == 201
        assert write(writer, "PUT", "/clusters/one/network_policies/deny", {}) == 200
        writer.stop()
    for change in CHANGES.values():
        assert exit_line(fleet, **other_kinds(fleet, change))[0] == 2


def run(fleet: Path, *arguments: str, **overrides: str) -> tuple[int, str]:
    program = (*live.PROGRAM, *arguments)
    server = live.Server(fleet, live.environment(fleet, **overrides), program)
    return server.process.wait(30), server.log.read_text()


def test_a_kind_is_retired_by_a_plan_that_was_confirmed(fleet: Path) -> None:
    renamed = changed(fleet, CHANGES["the kind is renamed"])
    code, said = run(fleet, "retire-kind", "network_policies", **renamed)
    assert code == 2  # nobody to ask, and no --yes
    for word in ("1 document(s)", "1 cluster(s) lose 1 input(s) of network-policies", "one loses 1", "--yes"):
        assert word in said
    assert exit_line(fleet, **renamed)[0] == 2  # nothing was done
    assert run(fleet, "retire-kind", "network_policies", "--yes", **renamed)[0] == 0
    with live.serving(fleet, **renamed) as writer:
        assert poll(writer, VIEW) == (200, {"inputs": []})
        assert inputs(writer, OTHER) == ["apps"]
        (entry,) = poll(writer, "/changes?limit=1")[1]
        assert (entry["actor"], entry["forced"]) == ("retire-kind", True)
        assert {(change["kind"], change["operation"]) for change in entry["changes"]} == {
            ("clusters", "update"),
            ("network_policies", "delete"),
        }


def test_an_unknown_kind_cannot_be_retired(fleet: Path) -> None:
    for name in ("ghosts", "clusters"):
        code, said = run(fleet, "retire-kind", name, "--yes")
        assert code == 2
        assert name in said.splitlines()[-1]


# Definitions


def execute(fleet: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(fleet / "fleet.db")) as database:
        database.execute(statement)
        database.commit()


@pytest.mark.quick
def test_definitions_missing_from_the_database_are_doubt(fleet: Path) -> None:
    execute(fleet, "DELETE FROM documents WHERE kind = 'namespaces'")
    assert exit_line(fleet, **changed(fleet, lambda text: text))[0] == 2
    with live.serving(fleet, "/health", API_MODE="read-only") as reader:
        assert poll(reader, OTHER)[0] == 503
        assert poll(reader, "/ready")[0] == 503


def test_a_reference_is_left_out_only_when_the_log_says_that_its_definition_was_deleted_by_force(fleet: Path) -> None:
    kinds = changed(fleet, lambda text: text)
    with live.serving(fleet, **kinds) as writer:
        assert write(writer, "DELETE", "/namespaces/apps?force=true") == 200
        assert inputs(writer, OTHER) == []
        writer.stop()
    for mode in ("crud", "read-only"):  # what the log says is known after a restart, too
        with live.serving(fleet, API_MODE=mode, **kinds) as server:
            assert inputs(server, OTHER) == []
            server.stop()
    execute(fleet, "DELETE FROM forgone")
    with live.serving(fleet, API_MODE="read-only", **kinds) as reader:
        status, problem = poll(reader, OTHER)
        assert status == 503
        assert '"apps"' in problem["detail"]
        assert inputs(reader, VIEW) == ["deny"]


# The schema


def test_a_schema_that_moved_on_is_noticed_with_the_next_change(fleet: Path) -> None:
    kinds = changed(fleet, lambda text: text)
    with live.serving(fleet, **kinds) as writer, live.serving(fleet, API_MODE="read-only", **kinds) as reader:
        assert inputs(writer, VIEW) == inputs(reader, VIEW) == ["deny"]
        execute(fleet, "PRAGMA user_version = 99")
        assert write(writer, "POST", "/namespaces", {"id": "late"}) == 503
        for server in (writer, reader):
            status, problem = poll(server, VIEW)
            assert status == 503
            assert "schema 99" in problem["detail"]
    with contextlib.closing(sqlite3.connect(fleet / "fleet.db")) as database:
        assert not database.execute("SELECT 1 FROM documents WHERE id = 'late'").fetchall()
