"""Which proxy leads to a server, as the variables HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY say. Pure."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping
from typing import NamedTuple


class Proxy(NamedTuple):
    host: str
    port: int
    authorization: str | None  # what a header says of user and password; never shown to anybody

    @property
    def shown(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def proxy(secure: bool, host: str, port: int, environment: Mapping[str, str]) -> Proxy | None:
    """None if the server is asked directly. Names in lower case win, as they do for curl."""
    for name in ("https_proxy" if secure else "http_proxy", "all_proxy"):
        for spelled in (name, name.upper()):
            if url := environment.get(spelled, "").strip():
                exempt = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
                return None if _is_exempt(host, port, exempt) else _parsed(spelled, url)
    return None


def _parsed(variable: str, url: str) -> Proxy:
    """The URL may hold a password, so no message repeats it."""
    scheme, _, rest = url.rpartition("://")
    if scheme.lower() not in ("", "http"):
        raise ValueError(f"{variable}: only a proxy that is spoken to by http:// is supported")
    credentials, at, authority = rest.partition("/")[0].rpartition("@")
    host, port = _host_and_port(authority)
    number = port or "80"
    usable = number.isascii() and number.isdigit() and 0 < int(number) < 65536
    if not host or not usable or not url.isprintable() or set(authority) & set("?# "):
        raise ValueError(f"{variable} is no URL of a proxy; write it as in http://proxy.example.com:3128")
    return Proxy(host, int(number), _basic(credentials) if at else None)


def _basic(credentials: str) -> str:
    user, _, password = credentials.partition(":")
    return "Basic " + b2a_base64(_unquoted(user) + b":" + _unquoted(password), newline=False).decode()


def _unquoted(text: str) -> bytes:
    """Without urllib, whose import takes longer than all the rest of a request."""
    first, *parts = text.encode().split(b"%")
    decoded = [first]
    for part in parts:
        try:
            decoded.append(bytes.fromhex(part[:2].decode("ascii")) + part[2:] if len(part) > 1 else b"%" + part)
        except ValueError:
            decoded.append(b"%" + part)
    return b"".join(decoded)


def _host_and_port(text: str) -> tuple[str, str]:
    """As in `host`, `host:port`, `[::1]:port` and `::1`; without a port it is empty."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest.removeprefix(":")
    host, colon, port = text.rpartition(":")
    return (host, port) if colon and ":" not in host else (text, "")


# Exemptions


def _is_exempt(host: str, port: int, exempt: str) -> bool:
    host = host.lower().rstrip(".")
    return any(_matches(host, port, entry.lower()) for entry in exempt.replace(",", " ").split())


def _matches(host: str, port: int, entry: str) -> bool:
    """An entry is `*`, a host, a domain with or without `.` or `*.` before it, an address, or a network such as 10.0.0.0/8."""
    if entry == "*":
        return True
    if "/" in entry:
        return _is_within(host, entry)
    name, only = _host_and_port(entry)
    name = name.removeprefix("*").strip(".")
    if not name or (only and only != str(port)):
        return False
    return host == name or (host.endswith("." + name) and not _is_address(host)) or _is_same_address(host, name)


def _is_address(text: str) -> bool:
    return ":" in text or text.replace(".", "").isdigit()


def _is_same_address(one: str, other: str) -> bool:
    """Of IPv6, which has many spellings."""
    return ":" in one and ":" in other and _is_within(one, other)


def _is_within(host: str, network: str) -> bool:
    if not _is_address(host):
        return False
    import ipaddress  # seldom needed, and slow to import

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
