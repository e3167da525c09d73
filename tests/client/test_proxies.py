"""The way to a server leads through the proxy that the environment names, and through no other."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

import live
from cli.command import Cli
from client import servers
from client.certificates import Authority
from flux_resourceset.client import Client, Unreachable, proxies

SECRET = "s3cret"


def asked(url: str, environment: Mapping[str, str], timeout: float = 10) -> object:
    client = Client(url, {"read": "token"}, timeout=timeout, environment=environment)
    try:
        first = client.get("/clusters").json()
        assert client.get("/clusters").json() == first  # also on the connection that was kept
        return first["request"]
    finally:
        client.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Path, Path]:
    """With the file to trust it, and the one of a server that it signed."""
    folder = tmp_path_factory.mktemp("certificates")
    made = Authority()
    (folder / "ca.pem").write_text(made.pem)
    return made, folder / "ca.pem", made.server(folder / "server.pem", "api.example.com", "127.0.0.1")


# TLS


def test_an_authority_of_the_environment_is_trusted(authority: tuple[Authority, Path, Path]) -> None:
    _, trusted, certificate = authority
    with servers.listening(servers.api(certificate)) as port:
        named = {"SSL_CERT_FILE": str(trusted), "SSL_CERT_DIR": str(trusted.parent)}
        assert asked(f"https://127.0.0.1:{port}", named) == "GET /clusters HTTP/1.1"
        with pytest.raises(Unreachable, match="certificate verify failed"):
            asked(f"https://127.0.0.1:{port}", {})
        with pytest.raises(Unreachable, match="certificate verify failed"):
            asked(f"https://localhost:{port}", {"SSL_CERT_FILE": str(trusted)})  # which the certificate does not name


@pytest.mark.parametrize(("content", "why"), [(None, "No such file"), ("no certificate\n", "SSL_CERT_FILE or SSL_CERT_DIR")])
def test_authorities_that_cannot_be_read_are_told(
    tmp_path: Path, authority: tuple[Authority, Path, Path], content: str | None, why: str
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with servers.listening(servers.api(authority[2])) as port, pytest.raises(Unreachable, match=why):
        asked(f"https://127.0.0.1:{port}", {"SSL_CERT_FILE": str(file)})


# Through a proxy


def test_https_goes_through_a_tunnel(authority: tuple[Authority, Path, Path]) -> None:
    _, trusted, certificate = authority
    with servers.listening(servers.api(certificate)) as port:
        proxy = servers.Proxy(port)
        with servers.listening(proxy) as through:
            environment = {"HTTPS_PROXY": f"http://127.0.0.1:{through}", "SSL_CERT_FILE": str(trusted)}
            assert asked("https://api.example.com", environment) == "GET /clusters HTTP/1.1"
    assert proxy.heads == [["CONNECT api.example.com:443 HTTP/1.1", "Host: api.example.com:443"]]


def test_what_a_tunnel_leads_to_is_verified(authority: tuple[Authority, Path, Path]) -> None:
    _, trusted, certificate = authority
    with servers.listening(servers.api(certificate)) as port, servers.listening(servers.Proxy(port)) as through:
        environment = {"HTTPS_PROXY": f"http://127.0.0.1:{through}", "SSL_CERT_FILE": str(trusted)}
        with pytest.raises(Unreachable, match=f"through the proxy 127.0.0.1:{through}: .*certificate"):
            asked("https://other.example.com", environment)


def test_http_is_asked_for_by_its_whole_url() -> None:
    with servers.listening(servers.api()) as port:
        proxy = servers.Proxy(port)
        with servers.listening(proxy) as through:
            got = asked("http://api.example.com:8080/base", {"http_proxy": f"127.0.0.1:{through}"})
    assert got == "GET /base/clusters HTTP/1.1"
    assert proxy.heads[0][:2] == ["GET http://api.example.com:8080/base/clusters HTTP/1.1", "Host: api.example.com:8080"]
    assert not any(line.startswith("Proxy-Authorization") for line in proxy.heads[0])


@pytest.mark.parametrize("secure", [True, False])
def test_user_and_password_are_for_the_proxy_alone(authority: tuple[Authority, Path, Path], secure: bool) -> None:
    _, trusted, certificate = authority
    with servers.listening(servers.api(certificate if secure else None)) as port:
        proxy = servers.Proxy(port, "Basic bWU6cEBzcw==")  # me:p@ss
        with servers.listening(proxy) as through:
            url = "https://api.example.com" if secure else "http://api.example.com"
            environment = {"ALL_PROXY": f"http://me:p%40ss@127.0.0.1:{through}/", "SSL_CERT_FILE": str(trusted)}
            asked(url, environment)
            for wrong in ("", f"me:{SECRET}@"):
                with pytest.raises(Unreachable, match="wants a user and a password") as refused:
                    asked(url, {**environment, "ALL_PROXY": f"http://{wrong}127.0.0.1:{through}"})
                assert SECRET not in str(refused.value)


def silent(connection: socket.socket) -> None:
    connection.recv(65536)
    connection.recv(65536)  # until the client goes


def saying(data: bytes) -> servers.Handler:
    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(data)

    return handle


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("behaves", "why"),
    [
        (silent, "in time"),
        (saying(b"SSH-2.0-OpenSSH\r\n\r\n"), "HTTP"),
        (saying(b""), "ended early"),
        (saying(servers.answer("<html>", "403 Forbidden", "text/html")), "it answered 403"),
        (saying(servers.answer("<html>", "502 Bad Gateway", "text/html")), "answered 502"),
    ],
    ids=["silent", "no HTTP", "ends", "refuses", "cannot"],
)
def test_a_proxy_that_fails_is_one_line_and_exit_5(tmp_path: Path, scheme: str, behaves: servers.Handler, why: str) -> None:
    with servers.listening(behaves) as through:
        address = f"http://me:{SECRET}@127.0.0.1:{through}"
        cli = Cli(tmp_path, f"{scheme}://api.example.com", ALL_PROXY=address)
        done = cli("cluster", "list", "--timeout", "1" if behaves is silent else "30", "--debug")
    assert (done.code, len(done.lines)) == (5, 1), done
    assert why in done.lines[0]
    assert f"through the proxy 127.0.0.1:{through}" in done.lines[0]
    assert SECRET not in done.err
    assert "Basic" not in done.err


def test_more_than_an_answer_before_the_tunnel_is_no_proxy() -> None:
    with (
        servers.listening(saying(b"HTTP/1.1 200 OK\r\n\r\n220 smtp.example.com\r\n")) as through,
        pytest.raises(Unreachable, match="does not answer as an HTTP proxy"),
    ):
        asked("https://api.example.com", {"https_proxy": f"http://127.0.0.1:{through}"})


def test_a_proxy_that_nobody_runs_is_named(tmp_path: Path) -> None:
    port = live.free_port()
    cli = Cli(tmp_path, "https://api.example.com", HTTPS_PROXY=f"http://127.0.0.1:{port}")
    assert cli.refused(5, "cluster", "list") == [
        f"cannot reach https://api.example.com through the proxy 127.0.0.1:{port}: Connection refused"
    ]


@pytest.mark.parametrize(
    "url", [f"socks5://me:{SECRET}@proxy:1080", f"http://me:{SECRET}@proxy:x", f"http://me:{SECRET}@", "http://a b"]
)
def test_a_proxy_that_cannot_be_meant_is_a_usage_error_without_its_password(tmp_path: Path, url: str) -> None:
    cli = Cli(tmp_path, "https://api.example.com", HTTPS_PROXY=url)
    (line,) = cli.refused(2, "cluster", "list")
    assert line.startswith("HTTPS_PROXY")
    assert SECRET not in line


def test_a_server_that_is_exempt_is_asked_directly(tmp_path: Path) -> None:
    with servers.listening(servers.api()) as port:
        nowhere = f"http://127.0.0.1:{live.free_port()}"
        assert asked(f"http://127.0.0.1:{port}", {"http_proxy": nowhere, "no_proxy": "example.com, 127.0.0.1"})


# Which proxy: pure


def chosen(environment: Mapping[str, str], secure: bool = True, host: str = "api.example.com", port: int = 443) -> str | None:
    found = proxies.proxy(secure, host, port, environment)
    return found.shown if found else None


@pytest.mark.parametrize(
    ("environment", "secure", "proxy"),
    [
        ({}, True, None),
        ({"HTTPS_PROXY": "http://a:1"}, True, "a:1"),
        ({"HTTPS_PROXY": "http://a:1"}, False, None),
        ({"HTTP_PROXY": "http://a:1"}, True, None),
        ({"HTTP_PROXY": "http://a:1"}, False, "a:1"),
        ({"HTTPS_PROXY": "http://a:1", "https_proxy": "http://b:2"}, True, "b:2"),
        ({"HTTPS_PROXY": "http://a:1", "https_proxy": ""}, True, "a:1"),
        ({"ALL_PROXY": "http://a:1"}, True, "a:1"),
        ({"all_proxy": "http://a:1", "HTTP_PROXY": "http://b:2"}, False, "b:2"),
        ({"HTTPS_PROXY": "proxy.example.com"}, True, "proxy.example.com:80"),
        ({"HTTPS_PROXY": "HTTP://u:p@proxy:3128/"}, True, "proxy:3128"),
        ({"HTTPS_PROXY": "http://[::1]:3128"}, True, "[::1]:3128"),
    ],
)
def test_the_proxy_is_chosen_by_scheme(environment: dict[str, str], secure: bool, proxy: str | None) -> None:
    assert chosen(environment, secure) == proxy


@pytest.mark.parametrize(
    ("exempt", "host", "is_exempt"),
    [
        ("*", "api.example.com", True),
        ("api.example.com", "api.example.com", True),
        ("API.Example.com.", "api.example.com", True),
        ("example.com", "api.example.com", True),
        (".example.com", "api.example.com", True),
        ("*.example.com", "api.example.com", True),
        (".example.com", "example.com", True),
        ("ample.com", "api.example.com", False),
        ("other.com, ,example.com", "api.example.com", True),
        ("other.com example.com", "api.example.com", True),
        ("api.example.com:443", "api.example.com", True),
        ("api.example.com:8443", "api.example.com", False),
        (".example.com:443", "api.example.com", True),
        ("", "api.example.com", False),
        (".", "api.example.com", False),
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1:443", "192.0.2.1", True),
        ("2.1", "192.0.2.1", False),
        ("192.0.2.0/24", "192.0.2.1", True),
        ("192.0.3.0/24", "192.0.2.1", False),
        ("192.0.2.0/24", "api.example.com", False),
        ("10.0.0.0/nonsense", "10.0.0.1", False),
        ("::1", "::1", True),
        ("[::1]:443", "::1", True),
        ("[::1]:8443", "::1", False),
        ("0:0::1", "::1", True),
        ("fd00::/8", "fd12::1", True),
        ("localhost", "127.0.0.1", False),
    ],
)
def test_servers_are_exempt_by_name_suffix_port_and_address(exempt: str, host: str, is_exempt: bool) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        assert (chosen({"HTTPS_PROXY": "http://a:1", name: exempt}, host=host) is None) == is_exempt


@pytest.mark.parametrize(
    ("credentials", "header"),
    [("me:p%40ss", "Basic bWU6cEBzcw=="), ("me", "Basic bWU6"), ("a:b%", "Basic YTpiJQ=="), ("a:%zz", "Basic YToleno=")],
)
def test_credentials_are_decoded(credentials: str, header: str) -> None:
    found = proxies.proxy(True, "x", 443, {"HTTPS_PROXY": f"http://{credentials}@proxy:1"})
    assert found
    assert found.authorization == header
