"""GET /changes as a stream: what is sent, from where, to whom, and what is refused."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import live
from api.fleets import SEED, assert_problem, fresh, make
from api.streams import MEDIA_TYPE, Event, Followed
from contract import folding

STREAM = {"Accept": MEDIA_TYPE}


def newest(api: httpx.Client) -> int:
    return int(api.get("/changes?limit=1").json()[0]["revision"])


def test_every_change_is_an_event_with_the_entry_as_the_list_shows_it(server: live.Server, api: httpx.Client) -> None:
    with Followed(server).opened() as followed:
        assert followed.response.headers["content-type"] == MEDIA_TYPE
        assert followed.response.headers["cache-control"] == "no-store"
        assert followed.response.headers["x-accel-buffering"] == "no"
        made = [make(api, "namespaces")["id"] for _ in range(3)]
        found = followed.events(3)
    assert [event.name for event in found] == ["change"] * 3
    assert [event.data["changes"][0]["id"] for event in found] == made
    for event in found:
        assert event.data == api.get(f"/changes/{event.revision}").json()
        assert re.fullmatch(rf"[0-9a-f]{{32}}-{event.data['revision']}", event.id)


def test_a_stream_begins_with_its_place_so_that_whoever_comes_back_before_the_first_event_loses_nothing(
    server: live.Server, api: httpx.Client
) -> None:
    with Followed(server) as followed:
        assert followed.block() == [":", f"id: {fresh_place(server)}"]
        place = fresh_place(server)
    id = make(api, "namespaces")["id"]
    with Followed(server, last=place) as followed:
        assert followed.events(1)[0].data["changes"][0]["id"] == id


def fresh_place(server: live.Server) -> str:
    with Followed(server) as followed:
        lines = followed.block()
        assert lines
        return lines[1].removeprefix("id: ")


def test_a_stream_goes_on_after_the_last_event_or_after_a_revision(server: live.Server, api: httpx.Client) -> None:
    before = newest(api)
    for _ in range(4):
        make(api, "namespaces")
    wanted = list(range(before + 1, before + 5))
    with Followed(server, f"?since_revision={before}") as followed:
        found = followed.events(4)
        assert [event.revision for event in found] == wanted
    with Followed(server, last=found[1].id) as followed:
        assert [event.revision for event in followed.events(2)] == wanted[2:]
    with Followed(server, "?since_revision=0", last=found[2].id) as followed:  # what was there first comes along again
        assert [event.revision for event in followed.events(1)] == wanted[3:]
        make(api, "namespaces")
        assert followed.events(1)[0].revision == wanted[3] + 1


@pytest.mark.long
def test_a_whole_log_can_be_read_from_its_beginning(server: live.Server, api: httpx.Client) -> None:
    for _ in range(120):  # more than is read at a time
        make(api, "namespaces")
    end = newest(api)
    with Followed(server, "?since_revision=0") as followed:
        assert [event.revision for event in followed.events(end)] == list(range(1, end + 1))


@pytest.mark.parametrize("place", ["0123abcd-1", "0123abcd-999999"])
def test_a_place_in_another_log_is_a_reset_and_the_stream_goes_on_from_the_present(
    server: live.Server, api: httpx.Client, place: str
) -> None:
    with Followed(server, "?since_revision=0", last=place) as followed:
        reset = followed.events(1)[0]
        assert (reset.name, reset.data) == ("reset", {"revision": newest(api)})
        id = make(api, "namespaces")["id"]
        event = followed.events(1)[0]
        assert (event.revision, event.data["changes"][0]["id"]) == (reset.revision + 1, id)
    with Followed(server, last=reset.id) as followed:  # the id of a reset is a place like any other
        assert followed.events(1)[0] == event


def test_a_revision_that_is_not_yet_is_a_reset(server: live.Server, api: httpx.Client) -> None:
    place = fresh_place(server).partition("-")[0]
    for followed in (Followed(server, "?since_revision=99999999"), Followed(server, last=f"{place}-99999999")):
        with followed:
            assert followed.events(1)[0].data == {"revision": newest(api)}


def test_a_stream_can_be_narrowed_as_a_list_can(server: live.Server, api: httpx.Client) -> None:
    before, ids = newest(api), [fresh("narrow") for _ in range(2)]
    queries = [f"kind=namespaces&id={ids[0]}", f"id={ids[1]}", "kind=rolebindings", "actor=write", "actor=nobody&kind=clusters"]
    with contextlib.ExitStack() as stack:
        now = [stack.enter_context(Followed(server, f"?{query}").opened()) for query in queries]
        for id in ids:
            make(api, "namespaces", id)
            make(api, "rolebindings", id)
        old = [stack.enter_context(Followed(server, f"?since_revision={before}&{query}")) for query in queries]
        for streams in (now, old):
            assert streams[0].events(1)[0].revision == before + 1
            assert [event.revision for event in streams[1].events(2)] == [before + 3, before + 4]
            assert [event.revision for event in streams[2].events(2)] == [before + 2, before + 4]
            assert [event.revision for event in streams[3].events(4)] == list(range(before + 1, before + 5))


@pytest.mark.parametrize(
    ("path", "headers", "code"),
    [
        ("/changes?since_revision=1", {}, "bad-query"),
        ("/changes?since_revision=x", STREAM, "bad-query"),
        ("/changes?since_revision=-1", STREAM, "bad-query"),
        ("/changes?after=1", STREAM, "bad-query"),
        ("/changes?limit=1", STREAM, "bad-query"),
        ("/changes", {**STREAM, "Last-Event-ID": "nonsense"}, "bad-request"),
        ("/changes", {**STREAM, "Last-Event-ID": "abc-1x"}, "bad-request"),
        ("/changes", {**STREAM, "Last-Event-ID": "-1"}, "bad-request"),
    ],
)
def test_what_is_no_place_is_refused(api: httpx.Client, path: str, headers: dict[str, str], code: str) -> None:
    assert_problem(api.get(path, headers=headers), 400, code)


@pytest.mark.parametrize(
    ("accept", "is_stream"),
    [
        (MEDIA_TYPE, True),
        ("Text/Event-Stream ; q=0.5", True),
        ("text/event-stream, */*;q=0.1", True),
        ("application/json, text/event-stream;q=0.9", False),
        ("text/event-stream;q=0", False),
        ("text/*", False),
        ("*/*", False),
        ("text/event-stream;q=x", True),
        ("", False),
    ],
)
def test_accept_decides(api: httpx.Client, accept: str, is_stream: bool) -> None:
    with api.stream("GET", "/changes?kind=clusters", headers={"Accept": accept}) as answer:
        assert answer.status_code == 200
        assert (answer.headers["content-type"] == MEDIA_TYPE) is is_stream


def test_head_opens_nothing(server: live.Server, api: httpx.Client) -> None:
    answer = api.head("/changes", headers=STREAM)
    assert (answer.status_code, answer.headers["content-type"], answer.content) == (200, MEDIA_TYPE, b"")
    live.until(lambda: open_streams(api) == 0)  # of the tests before


def test_a_stream_needs_a_token_and_chunks(server: live.Server) -> None:
    with Followed(server, token="wrong") as followed:
        assert followed.status == 401
    with socket.create_connection(server.address, timeout=20) as connection:
        head = f"GET /changes HTTP/1.0\r\nAuthorization: Bearer {live.READ}\r\nAccept: {MEDIA_TYPE}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")


def test_a_token_that_is_bound_to_a_cluster_may_not_follow(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("bound read bound-token one.example.com\n")
    (tmp_path / "tokens").chmod(0o600)
    with live.serving(tmp_path, TOKENS_FILE="tokens") as server, Followed(server, token="bound-token") as followed:
        assert (followed.status, followed.problem()["code"]) == (403, "forbidden")


def test_a_token_that_is_taken_away_ends_its_stream(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("first read first-token\nsecond read second-token\n")
    tokens.chmod(0o600)
    with live.serving(tmp_path, TOKENS_FILE="tokens") as server, Followed(server, token="first-token").opened() as followed:
        tokens.write_text("second read second-token\n")
        assert followed.event() is None
        with Followed(server, token="first-token") as refused:
            assert refused.status == 401
        with Followed(server, token="second-token").opened() as other, server.client() as api:
            id = make(api, "namespaces")["id"]
            assert other.events(1)[0].data["changes"][0]["id"] == id


def test_open_streams_are_counted_until_their_client_goes(server: live.Server, api: httpx.Client) -> None:
    with Followed(server).opened():
        assert open_streams(api) >= 1
    live.until(lambda: open_streams(api) == 0)
    assert "Traceback" not in server.log.read_text()


def open_streams(api: httpx.Client) -> int:
    found = re.search(r"^flux_resourceset_streams (\d+)", api.get("/metrics").text, re.MULTILINE)
    assert found
    return int(found[1])


@pytest.mark.long
def test_a_large_event_reaches_whoever_reads_and_others_meanwhile(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, server.client() as api:
        with Followed(server).opened() as followed, Followed(server, "?since_revision=0") as from_the_start:
            large = [
                {"op": "create", "kind": "namespaces", "id": f"n{n}", "document": {"annotations": {"a": "x" * 200_000}}}
                for n in range(60)
            ]
            assert api.post("/batch", json={"operations": large}).status_code == 200
            make(api, "namespaces", "small")
            entries = api.get("/changes?after=1").json()
            assert [event.data for event in followed.events(2)] == entries
            assert [event.data for event in from_the_start.events(3)[1:]] == entries
        with Followed(server, "?since_revision=1") as later:
            assert [event.data for event in later.events(2)] == entries
        assert "Traceback" not in server.log.read_text()


@pytest.mark.long
def test_no_more_than_five_hundred_streams(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, contextlib.ExitStack() as stack, server.client() as api:
        streams = [stack.enter_context(Followed(server).opened()) for _ in range(500)]
        with Followed(server) as one_too_many:
            assert (one_too_many.status, one_too_many.problem()["code"]) == (503, "unavailable")
            assert int(one_too_many.response.headers["retry-after"]) > 0
        assert api.get("/changes?limit=1").status_code == 200
        id = make(api, "namespaces")["id"]
        assert {followed.events(1)[0].data["changes"][0]["id"] for followed in streams} == {id}
        streams.pop().close()

        def is_open() -> bool:
            with Followed(server) as another:
                return another.status == 200

        live.until(is_open)


@pytest.mark.long
def test_a_log_that_is_replaced_is_a_reset_for_whoever_follows_and_for_whoever_comes_back(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, server.client() as api, Followed(server).opened() as followed:
        make(api, "namespaces", "before")
        last = followed.events(1)[0]
        (tmp_path / "export.json").write_bytes(api.get("/export?history=true").content)
        command = [sys.executable, "-m", "flux_resourceset.server", "import", "export.json", "--replace", "--yes"]
        subprocess.run(command, cwd=tmp_path, env=live.environment(tmp_path), check=True, capture_output=True)
        reset = followed.events(1)[0]
        assert reset == Event(reset.id, "reset", {"revision": newest(api)})
        assert reset.id.partition("-")[0] != last.id.partition("-")[0]
        make(api, "namespaces", "after")
        assert followed.events(1)[0].data["changes"][0]["id"] == "after"
        with Followed(server, last=last.id) as again:
            assert again.events(1)[0].name == "reset"


def test_a_place_that_was_folded_away_is_a_reset_and_whoever_is_beyond_it_notices_nothing(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, server.client() as api, Followed(server).opened() as followed:
        for _ in range(5):
            make(api, "namespaces")
        early = followed.events(5)[0]
        with contextlib.closing(live.opened_store(tmp_path)) as store:
            folding.fold(store, 4)
        for stream in (Followed(server, "?since_revision=3"), Followed(server, last=early.id)):
            with stream:
                assert stream.events(1)[0] == Event(stream.place, "reset", {"revision": 6})
        make(api, "namespaces")
        assert followed.events(1)[0].revision == 7
        with Followed(server, "?since_revision=4") as later:
            assert [event.revision for event in later.events(3)] == [5, 6, 7]


@pytest.mark.sqlite
def test_a_store_in_doubt_ends_the_stream(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, Followed(server).opened() as followed:
        (tmp_path / "fleet.db").rename(tmp_path / "elsewhere.db")
        assert followed.event() is None
        with Followed(server) as refused:
            assert refused.status == 503
        assert "Traceback" not in server.log.read_text()


@pytest.mark.long
def test_streams_do_not_hold_up_the_end(tmp_path: Path) -> None:
    with live.serving(tmp_path, SEED_FILE=str(SEED)) as server, server.client() as api, contextlib.ExitStack() as stack:
        idle = stack.enter_context(Followed(server).opened())
        stack.enter_context(Followed(server, buffer=4096).opened())  # and nobody reads it
        make(api, "namespaces", "large")
        for number in range(8):
            patch = {"annotations": {"a": str(number) * 200_000}}
            assert api.patch("/namespaces/large", json=patch).status_code == 200
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(5) == 0  # long before the time to finish requests is over
        while idle.event():
            pass
        assert "Traceback" not in server.log.read_text()
        assert "Cancel" not in server.log.read_text()
