"""Throw-away certificates, with nothing but Python: an authority and what it signs (X.509, ECDSA on P-256, DER by hand)."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import secrets
import ssl
from pathlib import Path
from typing import NamedTuple

# The curve of FIPS 186: y² = x³ - 3x + b modulo P, and its generator of order N.
P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
Point = tuple[int, int]


def _sum(one: Point | None, other: Point | None) -> Point | None:
    if one is None or other is None:
        return one or other
    if one[0] == other[0]:
        if (one[1] + other[1]) % P == 0:
            return None
        slope = (3 * one[0] ** 2 - 3) * pow(2 * one[1], -1, P)
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, P)
    x = (slope**2 - one[0] - other[0]) % P
    return x, (slope * (one[0] - x) - one[1]) % P


def _multiple(number: int, point: Point) -> Point:
    result, power = None, point
    while number:
        if number & 1:
            result = _sum(result, power)
        doubled = _sum(power, power)
        assert doubled is not None
        number, power = number >> 1, doubled
    assert result is not None
    return result


# DER


def _der(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    if size < 128:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def _sequence(*parts: bytes) -> bytes:
    return _der(0x30, *parts)


def _integer(number: int) -> bytes:
    return _der(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _oid(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    found = bytearray([40 * first + second])
    for number in rest:
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(0x80 | (number & 0x7F))
        found += bytes(reversed(digits))
    return _der(6, bytes(found))


_SIGNED = _sequence(_oid("1.2.840.10045.4.3.2"))  # ECDSA with SHA-256
_EC = _sequence(_oid("1.2.840.10045.2.1"), _oid("1.2.840.10045.3.1.7"))  # a key on P-256


def _name(text: str) -> bytes:
    return _sequence(_der(0x31, _sequence(_oid("2.5.4.3"), _der(0x0C, text.encode()))))


def _extension(oid: str, value: bytes, critical: bool = False) -> bytes:
    return _sequence(_oid(oid), *([_der(1, b"\xff")] if critical else []), _der(4, value))


def _alternative(name: str) -> bytes:
    try:
        return _der(0x87, ipaddress.ip_address(name).packed)
    except ValueError:
        return _der(0x82, name.encode())


# Keys and certificates


class Key(NamedTuple):
    secret: int
    public: bytes

    @classmethod
    def make(cls) -> Key:
        secret = secrets.randbelow(N - 1) + 1
        x, y = _multiple(secret, G)
        return cls(secret, b"\4" + x.to_bytes(32, "big") + y.to_bytes(32, "big"))

    @property
    def identifier(self) -> bytes:
        return hashlib.sha1(self.public, usedforsecurity=False).digest()  # as RFC 5280 makes them

    def signature(self, message: bytes) -> bytes:
        digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
        nonce = secrets.randbelow(N - 1) + 1
        r = _multiple(nonce, G)[0] % N
        return _sequence(_integer(r), _integer(pow(nonce, -1, N) * (digest + r * self.secret) % N))

    @property
    def pem(self) -> str:
        point = _der(0xA1, _der(3, b"\0" + self.public))
        inner = _sequence(_integer(1), _der(4, self.secret.to_bytes(32, "big")), point)
        return ssl.DER_cert_to_PEM_cert(_sequence(_integer(0), _EC, _der(4, inner))).replace("CERTIFICATE", "PRIVATE KEY")


class Authority:
    def __init__(self, name: str = "an authority of a test") -> None:
        self._name = name
        self._key = Key.make()
        is_authority = _extension("2.5.29.19", _sequence(_der(1, b"\xff")), critical=True)
        signs_certificates = _extension("2.5.29.15", _der(3, b"\x01\x06"), critical=True)  # without it Python 3.13 refuses them
        self.pem = self._certificate(name, self._key, is_authority, signs_certificates)

    def server(self, file: Path, *names: str) -> Path:
        """A file with key and certificate of a server with these names or addresses."""
        key = Key.make()
        alternatives = _extension("2.5.29.17", _sequence(*map(_alternative, names)))
        file.write_text(key.pem + self._certificate(names[0], key, alternatives))
        return file

    def _certificate(self, name: str, key: Key, *extensions: bytes) -> str:
        now = datetime.datetime.now(datetime.UTC)
        valid = [_der(0x17, f"{now + datetime.timedelta(days=days):%y%m%d%H%M%SZ}".encode()) for days in (-1, 1)]
        identifiers = (
            _extension("2.5.29.14", _der(4, key.identifier)),
            _extension("2.5.29.35", _sequence(_der(0x80, self._key.identifier))),
        )
        body = _sequence(
            _der(0xA0, _integer(2)), _integer(secrets.randbits(64)), _SIGNED, _name(self._name), _sequence(*valid), _name(name),
            _sequence(_EC, _der(3, b"\0" + key.public)), _der(0xA3, _sequence(*extensions, *identifiers)),
        )  # fmt: skip
        return ssl.DER_cert_to_PEM_cert(_sequence(body, _SIGNED, _der(3, b"\0" + self._key.signature(body))))
