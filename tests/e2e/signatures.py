"""Signs and attests images with the real cosign, offline: a key pair, a loopback registry, no log and no authority.

with signatures.signing(tmp_path) as signer:      # or signatures.Signer(tmp_path, oci.Registry(control_plane.registry))
    key = signer.key_pair()
    image = signer.image()                        # 127.0.0.1:PORT/acme/app@sha256:…
    signer.sign(image, key)
    signer.attest(image, key)
    assert signer.verified(image, key).code == 0
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from . import control_plane, oci, processes
from .tools import build, upstreams

TESTED = "https://acme.example/tested"  # the type of attestation that the sample's policy asks for
SIGNATURE = "https://sigstore.dev/cosign/sign/v1"  # as cosign calls a signature among attestations
SECONDS = 60.0  # it only ends a cosign that hangs
NEEDED = ("registry", "cosign")

# Neither names a log, a timestamp authority or a certificate authority. Without them cosign would ask the public ones.
_SIGNING_CONFIG = {"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json", "rekorTlogConfig": {}, "tsaConfig": {}}
_TRUSTED_ROOT = {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}
_NOBODY = "http://127.0.0.1:9"  # a proxy that is not there: whatever asks beyond loopback fails at once
_INDEX = "application/vnd.oci.image.index.v1+json"


class CosignFailed(Exception):
    """cosign could not sign; the message is what it said."""


@dataclass(frozen=True)
class KeyPair:
    private: Path
    public: Path


@dataclass(frozen=True)
class Verdict:
    """How cosign judged: 0 is yes, everything else no."""

    code: int
    output: str
    error: str

    @property
    def types(self) -> set[str]:
        """What `verify` found to be signed with the key: signatures and, in the format of version 3, attestations too."""
        found = json.loads(self.output) if self.output.strip() else []
        return {each["critical"]["type"] for each in found}


@dataclass(frozen=True)
class Signer:
    """A registry, and cosign with a directory for its keys and its home."""

    directory: Path
    registry: oci.Registry

    @property
    def bin(self) -> Path:
        return build.home(os.environ) / "bin"

    @property
    def environment(self) -> dict[str, str]:
        """For whoever runs cosign: it is on the PATH, knows the empty password, and reaches nothing but loopback."""
        return {
            "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", "HOME": str(self.directory), "COSIGN_PASSWORD": "",
            "HTTP_PROXY": _NOBODY, "HTTPS_PROXY": _NOBODY,
        }  # fmt: skip

    def key_pair(self, name: str = "cosign") -> KeyPair:
        """A new pair, NAME.key and NAME.pub."""
        self._done("generate-key-pair", f"--output-key-prefix={name}")
        return KeyPair(self.directory / f"{name}.key", self.directory / f"{name}.pub")

    def image(self, repository: str = "acme/app", tag: str = "v1") -> str:
        """Pushes something tiny and answers REPOSITORY@DIGEST; another tag has another digest.

        It is an artifact and no image that would run: what cosign signs is a digest, whatever is behind it.
        """
        digest = self.registry.push_files(repository, tag, {"tag": tag})
        return f"{self.registry.address}/{repository}@{digest}"

    def sign(self, image: str, key: KeyPair) -> None:
        self._done("sign", *self._offline(key), image)

    def sign_as_before(self, image: str, key: KeyPair) -> None:
        """In the format of cosign 2, which most registries still hold."""
        old = ("--new-bundle-format=false", "--use-signing-config=false", "--tlog-upload=false")
        self._done("sign", f"--key={key.private}", "--yes", *old, image)

    def attest(self, image: str, key: KeyPair, type: str = TESTED, predicate: Mapping[str, object] | None = None) -> None:
        """States the predicate about the image; by default that its tests have passed."""
        stated = self.directory / "predicate.json"
        stated.write_text(json.dumps(predicate if predicate is not None else {"passed": True}), encoding="utf-8")
        self._done("attest", *self._offline(key), f"--predicate={stated}", f"--type={type}", image)

    def hang_on(self, image: str, other: str) -> None:
        """Gives another image of the repository the signatures of this one, as a forger with access to the registry can."""
        held = self._kept_at(image)
        with urllib.request.urlopen(held, timeout=10) as answer:
            index = answer.read()
        moved = urllib.request.Request(self._kept_at(other), index, {"Content-Type": _INDEX}, method="PUT")
        urllib.request.urlopen(moved, timeout=10).close()

    def verified(self, image: str, key: KeyPair) -> Verdict:
        """As `check-image` asks where the policy wants no transparency log."""
        return self._run("verify", *_asking(key), image)

    def attested(self, image: str, key: KeyPair, type: str = TESTED) -> Verdict:
        """The same about an attestation of the type."""
        return self._run("verify-attestation", *_asking(key), "--type", type, image)

    def _offline(self, key: KeyPair) -> list[str]:
        files = {"--signing-config": _SIGNING_CONFIG, "--trusted-root": _TRUSTED_ROOT}
        flags = [f"--key={key.private}", "--yes"]
        for flag, content in files.items():
            path = self.directory / f"{flag.strip('-')}.json"
            path.write_text(json.dumps(content), encoding="utf-8")
            flags.append(f"{flag}={path}")
        return flags

    def _kept_at(self, image: str) -> str:
        """The tag that lists the signatures of a digest, where a registry cannot list them itself."""
        repository, _, digest = image.partition("/")[2].partition("@")
        return f"http://{self.registry.address}/v2/{repository}/manifests/{digest.replace(':', '-')}"

    def _done(self, *arguments: str) -> None:
        verdict = self._run(*arguments)
        if verdict.code:
            raise CosignFailed(f"cosign {' '.join(arguments)}: exit {verdict.code}: {verdict.error}")

    def _run(self, *arguments: str) -> Verdict:
        done = subprocess.run(
            [str(self.bin / "cosign"), *arguments], cwd=self.directory, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        return Verdict(done.returncode, done.stdout, done.stderr)


def _asking(key: KeyPair) -> tuple[str, ...]:
    return "--key", str(key.public), "--insecure-ignore-tlog=true", "--output", "json"


@contextlib.contextmanager
def signing(directory: Path) -> Iterator[Signer]:
    """A registry of its own, without Kubernetes around it, for as long as the context lasts."""
    cache = build.home(os.environ)
    missing = [each.name for each in upstreams.BINARIES if each.name in NEEDED and not build.is_built(each, cache)]
    if missing:
        raise control_plane.ToolsMissing(f"not built: {', '.join(missing)}; run tests/e2e/tools/build.sh {' '.join(missing)}")
    (port,) = processes.free_ports(1)
    with processes.Processes(directory) as started:
        signer = Signer(directory, oci.Registry(f"127.0.0.1:{port}"))
        registry = started.start("registry", signer.bin / "registry", "-port", str(port))
        registry.wait_until(lambda: _answers(signer.registry))
        yield signer


def _answers(registry: oci.Registry) -> bool:
    with (
        contextlib.suppress(urllib.error.URLError),
        urllib.request.urlopen(f"http://{registry.address}/v2/", timeout=2) as answer,
    ):
        return bool(answer.status == 200)
    return False
