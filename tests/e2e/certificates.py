"""A throw-away certificate authority, made with the openssl program."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
_LEAF = "basicConstraints=critical,CA:FALSE"  # `req -x509` makes an authority otherwise


@dataclass(frozen=True)
class Pair:
    certificate: Path
    key: Path


def _openssl(*arguments: str | Path) -> None:
    command = ["openssl", *(str(argument) for argument in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Authority:
    directory: Path
    own: Pair

    @classmethod
    def create(cls, directory: Path, name: str = "e2e") -> Authority:
        directory.mkdir(parents=True, exist_ok=True)
        own = Pair(directory / "ca.crt", directory / "ca.key")
        _openssl("req", "-x509", *_KEY, "-keyout", own.key, "-out", own.certificate, "-subj", f"/CN={name}")
        return cls(directory, own)

    def server(self, name: str, names: Sequence[str]) -> Pair:
        """A serving certificate; names as openssl writes them: `IP:127.0.0.1`, `DNS:localhost`."""
        extensions = (f"subjectAltName={','.join(names)}", "extendedKeyUsage=serverAuth", _LEAF)
        return self._issue(name, f"/CN={name}", extensions)

    def client(self, name: str, *, organization: str | None = None) -> Pair:
        """A client certificate; Kubernetes reads the organization as the group."""
        subject = f"/O={organization}/CN={name}" if organization else f"/CN={name}"
        return self._issue(name, subject, ("extendedKeyUsage=clientAuth", _LEAF))

    def _issue(self, name: str, subject: str, extensions: Sequence[str]) -> Pair:
        pair = Pair(self.directory / f"{name}.crt", self.directory / f"{name}.key")
        signer = ("-CA", self.own.certificate, "-CAkey", self.own.key)
        added = [part for each in extensions for part in ("-addext", each)]
        _openssl(
            "req",
            "-x509",
            *signer,
            *_KEY,
            "-keyout",
            pair.key,
            "-out",
            pair.certificate,
            "-subj",
            subject,
            *added,
        )
        return pair


def rsa_key(path: Path) -> Path:
    """For service-account tokens: kube-apiserver reads a public key out of an RSA private key only."""
    _openssl("genrsa", "-out", path, "2048")
    return path
