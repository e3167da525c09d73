"""What we rely on inside uvicorn, name by name, so that an upgrade that changes it fails here and says what.

`http/ordinary.py` overrides its protocol, `http/listening.py` listens in its place, `serving.py` overrides its server.
pyproject.toml pins the minor release; when this passes with the next one, the pin may go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import signal
import socket
import tomllib
from importlib import metadata
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

import live
from unit.connections import Transport, at_once, never, with_protocol

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


def test_the_release_is_the_one_that_is_pinned() -> None:
    project = tomllib.loads((live.ROOT / "pyproject.toml").read_text())["project"]
    (pin,) = [line for line in project["optional-dependencies"]["server"] if line.startswith("uvicorn")]
    major, minor, *_ = map(int, metadata.version("uvicorn").split("."))
    assert pin == f"uvicorn>={major}.{minor},<{major}.{minor + 1}", "uvicorn is pinned to one minor release"


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        # overridden in http/ordinary.py
        (HttpToolsProtocol, "__init__", ["config", "server_state", "app_state", "_loop"]),
        (HttpToolsProtocol, "connection_made", ["transport"]),
        (HttpToolsProtocol, "connection_lost", ["exc"]),
        (HttpToolsProtocol, "data_received", ["data"]),
        (HttpToolsProtocol, "eof_received", []),
        (HttpToolsProtocol, "on_message_begin", []),
        (HttpToolsProtocol, "on_headers_complete", []),
        (HttpToolsProtocol, "on_body", ["body"]),
        (HttpToolsProtocol, "on_message_complete", []),
        (HttpToolsProtocol, "on_response_complete", []),
        (HttpToolsProtocol, "send_400_response", ["msg"]),
        (HttpToolsProtocol, "_start_asgi_task", ["cycle", "app"]),
        (FlowControl, "__init__", ["transport"]),
        (HttpToolsProtocol, "_unset_keepalive_if_required", []),
        (HttpToolsProtocol, "timeout_keep_alive_handler", []),
        # overridden or called in http/listening.py and serving.py
        (uvicorn.Server, "__init__", ["config"]),
        (uvicorn.Server, "startup", ["sockets"]),
        (uvicorn.Server, "serve", ["sockets"]),
        (uvicorn.Server, "shutdown", ["sockets"]),
        (uvicorn.Server, "capture_signals", []),
    ],
    ids=lambda value: getattr(value, "__name__", None) if not isinstance(value, str) else value,
)
def test_what_is_overridden_takes_these_arguments(owner: type, name: str, parameters: list[str]) -> None:
    method = getattr(owner, name, None)
    assert method is not None, f"uvicorn's {owner.__name__} has no {name} any more"
    assert list(inspect.signature(method).parameters)[1:] == parameters, f"{owner.__name__}.{name} has other parameters"


def test_the_protocol_keeps_what_we_look_at() -> None:
    def check(protocol: Any, transport: Transport) -> None:
        protocol.data_received(REQUEST)
        for name in ("loop", "transport", "flow", "url", "headers", "cycle", "pipeline", "server_state"):
            assert getattr(protocol, name, None) is not None, f"HttpToolsProtocol has no {name} any more"
        assert protocol.transport is transport
        assert (protocol.url, protocol.headers) == (b"/", [(b"host", b"x")])
        assert isinstance(protocol.server_state.default_headers, list)
        assert isinstance(protocol.flow, FlowControl)
        assert protocol.flow.write_paused is False
        assert (protocol.timeout_keep_alive, protocol.timeout_keep_alive_task) == (5, None)
        for name in ("response_started", "response_complete", "disconnected"):
            assert getattr(protocol.cycle, name, None) is False, f"RequestResponseCycle has no {name} any more"
        assert protocol.cycle.more_body is False  # the request is complete
        assert isinstance(protocol.cycle.message_event, asyncio.Event)

    with_protocol(never, check)


def test_a_status_line_is_known_for_every_refusal() -> None:
    assert httptools_impl.STATUS_LINE[408] == b"HTTP/1.1 408 Request Timeout\r\n"


def test_the_newest_request_of_a_pipeline_is_at_its_left_and_is_the_cycle() -> None:
    def check(protocol: Any, transport: Transport) -> None:
        started: list[RequestResponseCycle] = []
        begin = protocol._start_asgi_task
        protocol._start_asgi_task = lambda cycle, app: (started.append(cycle), begin(cycle, app))  # type: ignore[func-returns-value]
        protocol.data_received(REQUEST)
        protocol.data_received(REQUEST)
        second = protocol.cycle
        protocol.data_received(REQUEST)
        assert [cycle for cycle, _ in protocol.pipeline] == [protocol.cycle, second]
        assert len(started) == 1, "a request of a pipeline is started before the one before it is answered"
        assert transport.paused == [True], "uvicorn pauses reading once for a pipeline"
        assert protocol.flow.read_paused

    with_protocol(never, check)


def test_an_answer_is_told_when_it_is_complete() -> None:
    async def check(protocol: Any, transport: Transport) -> None:
        protocol.data_received(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")
        told: list[bool] = []
        cycle = protocol.cycle
        assert cycle.more_body
        whole = cycle.on_response
        cycle.on_response = lambda: (told.append(cycle.response_complete), whole())  # type: ignore[func-returns-value]
        for _ in range(3):
            await asyncio.sleep(0)
        assert told == [True], "on_response_complete is called when response_complete is set, once"
        assert cycle.response_started
        assert transport.written.startswith(b"HTTP/1.1 200 OK\r\n")

    with_protocol(at_once, check)


@pytest.mark.parametrize("raised", [False, True], ids=["not HTTP", "an exception in a callback"])
def test_what_the_parser_refuses_goes_to_send_400_response(raised: bool) -> None:
    told: list[str] = []

    class Protocol(HttpToolsProtocol):
        def send_400_response(self, msg: str) -> None:
            told.append(msg)

        def on_headers_complete(self) -> None:
            raise ValueError("the head is too large")

    with_protocol(never, lambda protocol, _: protocol.data_received(REQUEST if raised else b"nonsense\r\n\r\n"), Protocol)
    assert len(told) == 1


def test_a_connection_that_ends_tells_the_newest_request_only() -> None:
    def check(protocol: Any, transport: Transport) -> None:
        protocol.data_received(REQUEST)
        first = protocol.cycle
        protocol.data_received(REQUEST)
        protocol.connection_lost(None)
        assert protocol.cycle.disconnected
        assert not first.disconnected, "uvicorn tells all requests by now; OrdinaryProtocol.connection_lost need not"

    with_protocol(never, check)


def test_flow_control_only_pauses_and_resumes_its_transport() -> None:
    class Narrow:
        said: list[str] = []  # noqa: RUF012  # one test, one list

        def pause_reading(self) -> None:
            self.said.append("pause")

        def resume_reading(self) -> None:
            self.said.append("resume")

    async def run() -> None:
        flow = FlowControl(Narrow())  # type: ignore[arg-type]
        assert flow.read_paused is False
        flow.pause_reading()
        flow.pause_reading()
        assert flow.read_paused is True
        flow.resume_reading()
        assert Narrow.said == ["pause", "resume"]

    asyncio.run(run())


def test_the_server_makes_protocols_with_these_arguments_and_stops_by_its_flags() -> None:
    made: list[dict[str, Any]] = []

    class Server(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Any:
            yield

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            assert sockets == [listener]
            await super().shutdown(sockets)

    def connect(**arguments: Any) -> asyncio.Protocol:
        made.append(arguments)
        server.should_exit = True
        return asyncio.Protocol()

    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        never, http=connect, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,  # type: ignore[arg-type]
        timeout_keep_alive=5, timeout_graceful_shutdown=8,
    )  # fmt: skip
    server = Server(config)
    assert (server.should_exit, server.force_exit) == (False, False)
    before = signal.getsignal(signal.SIGTERM)

    async def run() -> None:
        socket.create_connection(listener.getsockname()).close()  # it waits until the server takes it
        await asyncio.wait_for(server.serve(sockets=[listener]), 10)

    with listener:
        asyncio.run(run())
    assert {"config", "server_state", "app_state"} <= set(made[0]), "ordinary.protocol_class takes these by name"
    assert signal.getsignal(signal.SIGTERM) is before, "only capture_signals may touch signal handlers"
