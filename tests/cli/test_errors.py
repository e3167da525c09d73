"""Errors: one line each, the right exit code, never a traceback."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import live
from cli.command import Cli
from flux_resourceset.cli import known_kinds


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("namespaec", "list"), "unknown command 'namespaec' (did you mean namespace?); see flux-resourceset-cli --help"),
        (("namespace", "lst"), "namespace has no command 'lst' (did you mean list?)"),
        (("namespace",), "say what to do with namespace: list, get"),
        (("get",), "say what to get: cluster, "),
        (("cluster", "assign", "x"), "cluster has no command 'assign'"),
        (("cluster", "erase", "x"), "cluster has no command 'erase'"),
        (("get", "clustr"), 'kind "clustr" not found (did you mean cluster?); there are cluster, '),
        (("delete", "cluster"), "<id> is missing"),
        (("delete",), "say which files: -f FILE, -f DIRECTORY or -f -; or which documents: delete KIND ID…"),
        (("describe", "cluster", "a", "b"), "unexpected argument 'b'"),
        (("cluster", "list", "--limt", "3"), "unknown option --limt (did you mean --limit?)"),
        (("cluster", "list", "-o", "xml"), "-o is 'xml'; it must be one of table, wide, json, yaml, name"),
        (("cluster", "get"), "<id> is missing"),
        (("cluster", "get", ""), "<id> must not be empty"),
        (("cluster", "history", "a", "b"), "unexpected argument 'b'"),
        (("namespace", "create", "x", "--label"), "--label needs a value"),
        (("namespace", "create", "x", "--allow-prune=yes"), "--allow-prune takes no value"),
        (("rolebinding", "create", "x", "--subject", "{"), "--subject '{': invalid JSON value"),
        (("cluster", "list", "--timeout", "soon"), "--timeout is 'soon'"),
        (("cluster", "list", "--reason", "two\nlines"), "--reason must be one line"),
        (("--nothing",), "unknown option --nothing"),
        (("help", "--nothing"), "unknown option --nothing"),
        (("namespace", "history", "x", "--", "-o"), "unexpected argument '-o'"),
        (("cluster", "list", "--limit", "0"), "--limit is '0'; it must be a whole number of at least 1"),
        (("changes", "--limit", "0"), "--limit is '0'"),
        (("overrides", "--limit", "²"), "--limit is '²'"),
        (("overrides", "--limit", "٣"), "--limit is '٣'"),
        (("cluster", "list", "--offset", "-1"), "--offset is '-1'"),
        (("changes", "--kind", "nothing"), 'kind "nothing" not found; there are cluster, '),
        (("explain", "nothing"), 'kind "nothing" not found; there are cluster, '),
        (("explain", "namespace.nothing"), 'field "nothing" of namespace not found; there are id, '),
        (("namespace", "update", "podinfo", "--clear", "nothing"), '--clear: field "nothing" not found; there are labels, '),
        (("namespace", "create", "x", "--label", "a=1", "--label", "b=1", "--label", "a=2"), 'duplicate key "a"'),
        (("namespace", "update", "podinfo", "--label", "a=1", "--label", "a-"), 'duplicate key "a"'),
        (("component", "patch", "podinfo", "--all", "--set", "a=1", "--set", "a=2"), 'duplicate key "a"'),
        (("component", "patch", "podinfo", "--all", "--set-json", "a=1", "--set-json", "a=1"), 'duplicate key "a"'),
        (("component", "patch", "podinfo", "--all", "--set", "a=1", "--set-json", "a=2"), 'duplicate key "a"'),
        (("component", "patch", "podinfo", "--all", "--set", "a=1", "--unset", "a"), 'duplicate key "a"'),
        (("cluster", "list", "--limit", "1", "--limit", "2"), "--limit is given twice"),
        (("completion", "tcsh"), "<shell> is 'tcsh'; it must be one of bash, zsh, fish"),
        (("overrides", "--cluster", "x", "--all"), "--cluster goes with none of --selector, --environment and --all"),
        (("apply", "-f", "-"), "-: there is no document in it"),
    ],
)
def test_a_mistake_on_the_command_line_is_told_in_one_line(cli: Cli, words: tuple[str, ...], line: str) -> None:
    (told,) = cli.refused(2, *words)
    assert told.startswith(line)


def test_every_violation_is_a_line_that_names_the_document_and_the_field(cli: Cli) -> None:
    assert cli.refused(3, "cluster", "create", "x", "--environment", "moon", "--cluster-name", "x") == [
        'clusters "x": /cluster_dns is required',
        'clusters "x": /environment must be one of dev, qa, uat, prod',
    ]
    assert cli.refused(3, "cluster", "update", "demo-cluster-01", "--node-count", "many") == [
        'clusters "demo-cluster-01": /node_count must be an integer'
    ]


def test_what_does_not_exist_has_its_own_exit_code(cli: Cli) -> None:
    assert cli.refused(4, "cluster", "get", "nowhere") == ['clusters "nowhere" not found']
    assert cli.refused(4, "namespace", "update", "nowhere", "--label", "a=b")
    assert cli.refused(4, "inputs", "demo-cluster-01.k8s.example.com", "nothing")


@pytest.mark.parametrize("variable", ["FLUX_API_URL", "FLUX_API_TOKEN", "FLUX_API_WRITE_TOKEN"])
def test_a_missing_variable_is_named_together_with_the_way_to_store_it(cli: Cli, variable: str) -> None:
    (line,) = cli.but(**{variable: None}).refused(2, "namespace", "create", "x")
    assert line.startswith(f"{variable} is not set")
    assert "config set-context" in line


def test_reading_does_not_need_the_token_for_writing(cli: Cli) -> None:
    assert cli.but(FLUX_API_WRITE_TOKEN=None).ok("cluster", "get", "demo-cluster-01", "-o", "json").data["environment"] == "dev"


def test_a_refused_token_is_told(cli: Cli) -> None:
    assert "FLUX_API_TOKEN" in cli.but(FLUX_API_TOKEN="wrong").refused(3, "cluster", "list")[0]
    assert "may only read" in cli.but(FLUX_API_WRITE_TOKEN=live.READ).refused(3, "namespace", "create", "x")[0]


@pytest.mark.parametrize("token", ["two words", "schlüssel", "a\tb"])
def test_what_cannot_be_a_token_is_not_sent(cli: Cli, token: str) -> None:
    (line,) = cli.but(FLUX_API_TOKEN=token).refused(2, "cluster", "list")
    assert line == "FLUX_API_TOKEN holds something that cannot be a token: blanks or characters beyond ASCII"


def test_a_server_that_cannot_be_reached_is_told(cli: Cli) -> None:
    nobody = cli.but(FLUX_API_URL=f"http://127.0.0.1:{live.free_port()}")
    assert nobody.refused(5, "cluster", "list")[0].startswith("cannot reach http://127.0.0.1:")
    assert cli.but(FLUX_API_URL="http://no.such.host.invalid").refused(5, "cluster", "list")
    for wrong in ("127.0.0.1:8080", "ftp://x", "http://", "http://x:y", "http://h/?q"):
        assert "no base URL" in cli.but(FLUX_API_URL=wrong).refused(2, "cluster", "list")[0]


def test_the_exchange_is_shown_without_tokens(cli: Cli) -> None:
    done = cli.ok("--debug", "namespace", "update", "podinfo", "--label", "app=podinfo")
    assert "> POST " in done.err
    assert '"operations"' in done.err
    assert "< 200" in done.err
    assert live.READ not in done.err
    assert live.WRITE not in done.err


def test_words_that_are_no_text_are_refused(cli: Cli) -> None:
    import subprocess

    from cli.command import PROGRAM

    done = subprocess.run([*PROGRAM, "cluster", "get", b"\xff\xfe"], env=cli.environment, capture_output=True)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


# Servers that are none


class Impostor:
    """Answers with these bytes in turn, and from then on with the last of them."""

    def __init__(self, *answers: bytes) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._answers = list(answers)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.recv(65536)
                connection.sendall(self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


def reply(status: str, body: str, kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return (head + body).encode()


PAGE = reply("200 OK", "<html>", "text/html")
KINDS = json.dumps(known_kinds.packaged())


@pytest.fixture(
    params=[
        PAGE,
        reply("404 Not Found", "<html>", "text/html"),
        reply("409 Conflict", "[]"),
        b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"<p>" * 300_000,
    ]
)
def impostor(request: pytest.FixtureRequest) -> Iterator[Impostor]:
    found = Impostor(request.param)
    yield found
    found.close()


def test_an_answer_that_is_not_the_apis_is_a_fault_of_the_server(cli: Cli, impostor: Impostor) -> None:
    assert len(cli.but(FLUX_API_URL=impostor.url).refused(5, "cluster", "list")) == 1


def test_a_refusal_of_a_proxy_is_about_the_token(cli: Cli) -> None:
    found = Impostor(reply("403 Forbidden", "<html>", "text/html"))
    try:
        assert "FLUX_API_WRITE_TOKEN" in cli.but(FLUX_API_URL=found.url).refused(3, "cluster", "list")[0]
    finally:
        found.close()


@pytest.mark.parametrize("body", ['{"a": 1}', "[1]", "null", "[]", '[{"kind": "clusters"}]', "1"])
def test_kinds_that_are_none_are_not_understood(cli: Cli, body: str) -> None:
    found = Impostor(reply("200 OK", body))
    try:
        mistaken = cli.but(FLUX_API_URL=found.url)
        assert "not understood" in mistaken.refused(5, "cluster", "list")[0]
        assert "not understood" in mistaken.refused(2, "diff", "-f", "-", stdin="kind: namespace\nid: x\n")[0]
        assert mistaken.ok("--help").err == ""
    finally:
        found.close()


@pytest.mark.parametrize(
    "change", [{"kind": "../up"}, {"endpoint": "A B"}, {"schema": {}}, {"schema": {"properties": {"id": 1}}}]
)
def test_kinds_with_names_or_schemas_that_no_kind_file_can_have_are_not_understood(cli: Cli, change: dict[str, Any]) -> None:
    clusters, *others = known_kinds.packaged()
    found = Impostor(reply("200 OK", json.dumps([clusters, {**others[0], **change}])))
    try:
        assert "these are no kinds" in cli.but(FLUX_API_URL=found.url).refused(5, "cluster", "list")[0]
    finally:
        found.close()


@pytest.mark.parametrize("body", ["{}", "[1]", "null"])
def test_a_list_that_is_none_is_not_understood(cli: Cli, body: str) -> None:
    found = Impostor(reply("200 OK", KINDS), reply("200 OK", body))
    try:
        assert "it is not the list that was due" in cli.but(FLUX_API_URL=found.url).refused(5, "cluster", "list")[0]
    finally:
        found.close()


def test_a_server_that_breaks_while_documents_are_looked_up_is_told(cli: Cli) -> None:
    found = Impostor(reply("200 OK", KINDS), reply("503 Service Unavailable", '{"detail": "no disk"}'))
    try:
        (line,) = cli.but(FLUX_API_URL=found.url).refused(5, "apply", "-f", "-", stdin="kind: namespace\nid: x\n")
        assert line == "the server failed (503): no disk"
    finally:
        found.close()


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_a_view_without_an_answer_is_not_rendered(cli: Cli, status: str) -> None:
    cluster = {"cluster_dns": "a.example.com", "cluster_name": "a", "environment": "dev"}
    empty = f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n".encode()
    found = Impostor(reply("200 OK", KINDS), reply("200 OK", json.dumps(cluster)), empty)
    try:
        (line,) = cli.but(FLUX_API_URL=found.url).refused(5, "render", "a", "--view", "namespaces", "--engine", "builtin")
        assert line == f"namespaces: the server answered {status[:3]}"
    finally:
        found.close()


def test_a_cluster_whose_name_is_no_dns_name_is_not_asked_for(cli: Cli) -> None:
    cluster = {"cluster_dns": "a/../b", "cluster_name": "a", "environment": "dev"}
    found = Impostor(reply("200 OK", KINDS), reply("200 OK", json.dumps(cluster)))
    try:
        (line,) = cli.but(FLUX_API_URL=found.url).refused(5, "render", "a", "--view", "namespaces", "--engine", "builtin")
        assert "its cluster_dns is no DNS name" in line
    finally:
        found.close()


def test_kinds_that_are_said_to_be_known_but_are_not_are_a_fault_of_the_server(cli: Cli) -> None:
    found = Impostor(b"HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n")
    try:
        assert "where JSON was due" in cli.but(FLUX_API_URL=found.url).refused(5, "cluster", "list")[0]
    finally:
        found.close()


def test_a_page_is_neither_printed_as_inputs_nor_stored_as_a_backup(cli: Cli, tmp_path: Path) -> None:
    backup = tmp_path / "backup.json"
    cli.ok("export", str(backup))
    good = backup.read_bytes()
    for answer in (PAGE, reply("200 OK", '{"documents": 1}')):
        found = Impostor(answer)
        try:
            mistaken = cli.but(FLUX_API_URL=found.url)
            for words in (("inputs", "x.example.com", "namespaces"), ("demo", "flux-namespaces", "x.example.com"), ("export",)):
                done = mistaken(*words)
                assert (done.code, done.out, len(done.lines)) == (5, "", 1)
            assert mistaken.refused(5, "export", str(backup))
        finally:
            found.close()
    assert backup.read_bytes() == good
    assert cli.refused(2, "export", str(tmp_path))
    assert list(tmp_path.parent.glob(f"{tmp_path.name}.*")) == []  # no draft is left


@pytest.mark.long
def test_following_waits_for_a_server_that_is_not_ready_and_ends_when_it_refuses(cli: Cli) -> None:
    entry = '[{"revision": 7, "time": "2026-01-31T12:00:00Z", "actor": "write", "changes": []}]'
    busy = reply("503 Service Unavailable", '{"detail": "not ready"}')
    none = reply("200 OK", "[]")  # an older server, which knows no streams
    found = Impostor(none, none, busy, reply("200 OK", entry), reply("401 Unauthorized", "{}"))
    try:
        done = cli.but(FLUX_API_URL=found.url)("changes", "--follow", "-o", "name")
    finally:
        found.close()
    assert (done.code, done.out) == (3, "7\n")
    assert "not ready; still trying" in done.err


@pytest.mark.long
def test_following_reads_a_stream_and_says_when_the_log_is_another_one(cli: Cli) -> None:
    def entry(revision: int) -> str:
        change = {"kind": "namespaces", "id": "n", "operation": "create", "before": None, "after": {"id": "n"}}
        return json.dumps({"revision": revision, "time": "2026-01-31T12:00:00Z", "actor": "write", "changes": [change]})

    def stream(*events: str) -> bytes:
        return reply("200 OK", "".join(f"{event}\n\n" for event in events), "text/event-stream")

    found = Impostor(
        stream(":\nid: e-6"),
        reply("200 OK", f"[{entry(6)}, {entry(5)}]"),
        stream(f"id: e-7\nevent: change\ndata: {entry(7)}"),
        stream('id: f-2\nevent: reset\ndata: {"revision": 2}', f"id: f-3\nevent: change\ndata: {entry(3)}"),
        reply("401 Unauthorized", "{}"),
    )
    try:
        done = cli.but(FLUX_API_URL=found.url)("changes", "--follow", "-o", "name")
    finally:
        found.close()
    assert (done.code, done.out.split()) == (3, ["5", "6", "7", "3"])
    assert "it goes on from now" in done.err


@pytest.mark.parametrize("event", ["id: x\nevent: change\ndata: {}", "id: e-1\nevent: change\ndata: []"])
def test_a_stream_that_is_not_understood_ends_the_command(cli: Cli, event: str) -> None:
    found = Impostor(reply("200 OK", f"{event}\n\n", "text/event-stream"), reply("200 OK", "[]"))
    try:
        assert "not understood" in cli.but(FLUX_API_URL=found.url).refused(5, "changes", "--follow", "-o", "name")[0]
    finally:
        found.close()


def test_a_read_only_server_is_told_apart(cli: Cli, server: live.Server, tmp_path: object) -> None:
    answer = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"
    found = Impostor(answer)
    try:
        assert "API_MODE=crud" in cli.but(FLUX_API_URL=found.url).refused(4, "cluster", "list")[0]
    finally:
        found.close()


def test_help_asks_the_server_for_a_kind_that_was_not_there_before(tmp_path: Path) -> None:
    known = known_kinds.packaged()
    more = [*known, {**known[-1], "kind": "gadgets", "singular": "gadget", "cluster_field": "gadgets", "endpoint": "gadgets"}]
    found = Impostor(*(reply("200 OK", json.dumps(each)) for each in (known, [], more)))
    try:
        asking = Cli(tmp_path, found.url)
        asking.ok("cluster", "list")
        assert "Usage: flux-resourceset-cli gadget <command>" in asking.ok("gadget", "--help").out
    finally:
        found.close()


def test_an_answer_that_is_nested_too_deeply_to_be_printed_is_told(cli: Cli) -> None:
    nested = f'{{"id": "x", "labels": {"[" * 500}{"]" * 500}}}'
    found = Impostor(reply("200 OK", KINDS), reply("200 OK", nested))
    try:
        done = cli.but(FLUX_API_URL=found.url)("cluster", "get", "x", "-o", "yaml")
        assert (done.code, done.lines) == (2, ["a file or an answer is nested too deeply to be read"])
    finally:
        found.close()
