"""`list -w` and `get -w`: what is there, then a row for every change."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from cli.command import Cli
from cli.test_errors import KINDS, Impostor, reply


@contextmanager
def watching(cli: Cli, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = cli.start(*words)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)  # as people end it; it tells how far it came, too
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().rstrip("\n")


def cluster(api: httpx.Client, id: str, **labels: str) -> None:
    body = {"id": id, "cluster_name": id, "cluster_dns": f"{id}.example.com", "environment": "qa", "labels": labels}
    assert api.post("/clusters", json=body).status_code == 201


def test_a_list_goes_on_with_a_row_for_every_change_that_its_filters_let_through(cli: Cli, api: httpx.Client) -> None:
    cluster(api, "watched-a", watched="yes")
    with watching(cli, "cluster", "list", "-l", "watched=yes", "--environment", "qa", "-w") as process:
        assert line(process).split()[-1] == "CHANGE"
        assert line(process).split()[0] == "watched-a"
        cluster(api, "watched-other")
        api.patch("/namespaces/podinfo", json={"annotations": {"another": "kind"}})
        cluster(api, "watched-b", watched="yes")
        assert (row := line(process).split())[0] == "watched-b"
        assert row[-1] == "created"
        api.patch("/clusters/watched-a", json={"labels": {"more": "x"}})
        row = line(process).split()
        assert (row[0], row[-1]) == ("watched-a", "updated")
        assert "more=x" in row[4]
        api.patch("/clusters/watched-b", json={"labels": {"watched": "no"}})
        api.delete("/clusters/watched-a")
        gone = [line(process).split() for _ in range(2)]
        assert [(row[0], row[-1]) for row in gone] == [("watched-b", "deleted"), ("watched-a", "deleted")]


def test_one_document_is_watched_until_it_is_gone_and_comes_back(cli: Cli, api: httpx.Client) -> None:
    api.post("/namespaces", json={"id": "watched"})
    with watching(cli, "namespace", "get", "watched", "--watch", "-o", "json") as process:
        first = json.loads(line(process))
        assert (first["change"], first["document"]["id"]) == ("exists", "watched")
        api.post("/namespaces", json={"id": "watched-not"})
        api.delete("/namespaces/watched")
        api.post("/namespaces", json={"id": "watched", "labels": {"a": "b"}})
        assert json.loads(line(process))["change"] == "deleted"
        back = json.loads(line(process))
        assert (back["change"], back["document"]["labels"]) == ("created", {"a": "b"})
    api.delete("/namespaces/watched")


def test_names_and_templates_are_printed_for_each(cli: Cli, api: httpx.Client) -> None:
    api.post("/namespaces", json={"id": "watched-name"})
    with watching(cli, "namespace", "get", "watched-name", "-w", "-o", "name") as process:
        assert line(process) == "namespaces/watched-name"
        api.delete("/namespaces/watched-name")
        assert line(process) == "namespaces/watched-name deleted"
    api.post("/namespaces", json={"id": "watched-name"})
    with watching(cli, "namespace", "get", "watched-name", "-w", "-o", "custom-columns=ID:.id,A:.labels.a") as process:
        assert line(process).split() == ["ID", "A"]
        assert line(process).split() == ["watched-name", "<none>"]
        api.patch("/namespaces/watched-name", json={"labels": {"a": "b"}})
        assert line(process).split() == ["watched-name", "b"]
    api.delete("/namespaces/watched-name")


def test_what_cannot_be_watched_is_refused(cli: Cli) -> None:
    for option in (("--limit", "1"), ("--offset", "1"), ("--at", "1")):
        assert option[0] in cli.refused(2, "namespace", "list", "-w", *option)[0]
    assert cli.refused(4, "namespace", "get", "watched-nowhere", "-w")
    assert cli.refused(3, "cluster", "list", "-w", "-l", "a==b==c")


@pytest.mark.long
def test_a_server_without_a_stream_is_asked_again_and_again(cli: Cli) -> None:
    no_stream, busy = reply("200 OK", "[]"), reply("503 Service Unavailable", '{"detail": "not ready"}')
    lists = [[{"id": "a"}], [{"id": "a", "labels": {"x": "y"}}, {"id": "b"}], [{"id": "b"}]]
    first, second, third = (reply("200 OK", json.dumps(documents)) for documents in lists)
    found = Impostor(reply("200 OK", KINDS), no_stream, first, second, busy, third, reply("401 Unauthorized", "{}"))
    try:
        done = cli.but(FLUX_API_URL=found.url)("namespace", "list", "-w", "-o", "json")
    finally:
        found.close()
    told = [(line["change"], line["document"]["id"]) for line in map(json.loads, done.out.splitlines())]
    assert told == [("exists", "a"), ("updated", "a"), ("created", "b"), ("deleted", "a")]
    assert "not ready; still trying" in done.err
    assert done.code == 3


@pytest.mark.long
def test_a_log_that_is_another_one_is_read_anew(cli: Cli) -> None:
    def stream(*events: str) -> bytes:
        return reply("200 OK", "".join(f"{event}\n\n" for event in events), "text/event-stream")

    found = Impostor(
        reply("200 OK", KINDS),
        stream(":\nid: e-6"),
        reply("200 OK", '[{"id": "a"}]'),
        stream('id: f-2\nevent: reset\ndata: {"revision": 2}'),
        reply("200 OK", '[{"id": "b"}]'),
        stream("id: f-3\nevent: change\ndata: {}"),
    )
    try:
        done = cli.but(FLUX_API_URL=found.url)("namespace", "list", "-w", "-o", "name")
    finally:
        found.close()
    assert done.out.splitlines() == ["namespaces/a", "namespaces/b", "namespaces/a deleted"]
    assert "not understood" in done.err
    assert done.code == 5
