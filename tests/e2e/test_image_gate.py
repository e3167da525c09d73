"""`fleet check-image` with the real cosign and the policy that `fleet init` writes: which images may reach production."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from cli.fleets import Fleet

from . import signatures
from .signatures import KeyPair, Signer

TENANT = "payment-app"
SOAKED_SECONDS = 2 * 3600  # the policy asks for one hour


class Parties(NamedTuple):
    """A registry with cosign, the key that the policy trusts, and that of somebody else."""

    signer: Signer
    trusted: KeyPair
    other: KeyPair


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parties]:
    directory: Path = tmp_path_factory.mktemp("signatures")
    with signatures.signing(directory) as signer:
        yield Parties(signer, signer.key_pair(), signer.key_pair("other"))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory, parties: Parties) -> Path:
    """As `init` makes it, with the public key where its policy looks for it."""
    fleet = Fleet(tmp_path_factory.mktemp("fleet"))
    fleet.cli.ok("fleet", "init", str(fleet.folder))
    fleet.write("keys/cosign.pub", parties.trusted.public.read_text())
    fleet.commit("The key of the pipeline")
    return fleet.folder


@pytest.fixture
def fleet(sample: Path, tmp_path: Path, parties: Parties) -> Fleet:
    shutil.copytree(sample, tmp_path / "fleet", symlinks=True)
    found = Fleet(tmp_path / "fleet")
    found.cli = found.cli.but(**parties.signer.environment)
    return found


def promoted(fleet: Fleet, image: str) -> None:
    """The image has been in staging for a while, and a branch brings it to production."""
    fleet.ok("set", TENANT, "--environment", "staging", "--set", f"image={image}")
    moment = f"{int(time.time()) - SOAKED_SECONDS} +0000"
    fleet.commit("Staging", GIT_AUTHOR_DATE=moment, GIT_COMMITTER_DATE=moment)
    fleet.ok("promote", TENANT, "--to", "prod", "--branch", "change")


def judged(fleet: Fleet, code: int) -> dict[str, Any]:
    done = fleet("check-image", "--base", "main", "--head", "change")
    assert done.code == code, done
    assert bool(done.lines) is bool(code)
    (row,) = done.data
    assert (row["environment"], row["cluster"], row["tenant"]) == ("prod", "prod-use1-01", TENANT)
    assert (row["pinned"], row["same"], row["soak"]) == ("ok", "ok", "ok"), row
    found: dict[str, Any] = row
    return found


def tagged(image: str, tag: str) -> str:
    """With the tag as well, as pipelines write it; the digest is what counts."""
    return image.replace("@", f":{tag}@")


def test_a_signed_and_tested_image_may_be_promoted(fleet: Fleet, parties: Parties) -> None:
    image = parties.signer.image(tag="good")
    parties.signer.sign(image, parties.trusted)
    parties.signer.attest(image, parties.trusted)
    promoted(fleet, tagged(image, "good"))
    row = judged(fleet, 0)
    assert (row["image"], row["signature"], row["attestation"]) == (tagged(image, "good"), "ok", "ok")


def unsigned(parties: Parties) -> str:
    return parties.signer.image(tag="unsigned")


def signed_by_another(parties: Parties) -> str:
    image = parties.signer.image(tag="by-another")
    parties.signer.sign(image, parties.other)
    parties.signer.attest(image, parties.other)
    return image


def signed_for_another_digest(parties: Parties) -> str:
    good, image = parties.signer.image(tag="good-one"), parties.signer.image(tag="forged")
    parties.signer.sign(good, parties.trusted)
    parties.signer.attest(good, parties.trusted)
    parties.signer.hang_on(good, image)
    return image


def not_attested(parties: Parties) -> str:
    image = parties.signer.image(tag="signed")
    parties.signer.sign(image, parties.trusted)
    return image


def signed_in_the_format_before(parties: Parties) -> str:
    image = parties.signer.image(tag="before")
    parties.signer.sign_as_before(image, parties.trusted)
    return image


def attested_as_something_else(parties: Parties) -> str:
    image = parties.signer.image(tag="scanned")
    parties.signer.sign(image, parties.trusted)
    parties.signer.attest(image, parties.trusted, "https://acme.example/scanned")
    return image


def attested_only(parties: Parties) -> str:
    image = parties.signer.image(tag="attested")
    parties.signer.attest(image, parties.trusted)
    assert parties.signer.verified(image, parties.trusted).code == 0  # cosign itself takes it, which is why this is a case
    return image


@pytest.mark.parametrize(
    ("made", "signature", "attestation"),
    [
        (unsigned, "failed", "failed"),
        (signed_by_another, "failed", "failed"),
        (signed_for_another_digest, "failed", "failed"),
        (not_attested, "ok", "failed"),
        (signed_in_the_format_before, "ok", "failed"),
        (attested_as_something_else, "ok", "failed"),
        (attested_only, "failed", "ok"),
    ],
)
def test_an_image_is_refused_that_is(
    fleet: Fleet, parties: Parties, made: Callable[[Parties], str], signature: str, attestation: str
) -> None:
    promoted(fleet, made(parties))
    row = judged(fleet, 3)
    assert (row["signature"], row["attestation"]) == (signature, attestation)
    assert row["message"]


def test_a_key_that_comes_with_the_change_proves_nothing(fleet: Fleet, parties: Parties) -> None:
    promoted(fleet, signed_by_another(parties))
    fleet.git("checkout", "-q", "change")
    fleet.write("keys/cosign.pub", parties.other.public.read_text())
    fleet.commit("Another key")
    row = judged(fleet, 3)
    assert (row["signature"], row["attestation"]) == ("failed", "failed")
