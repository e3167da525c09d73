"""cosign itself, asked as `check-image` asks it: which images it takes, and which it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import oci, signatures
from .signatures import SIGNATURE, TESTED, KeyPair, Signer

NO_SIGNATURE, NO_MATCH, REFUSED = 10, 12, 1  # the exit codes of cosign; 1 is everything that has none of its own


@pytest.fixture(scope="module")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signer]:
    directory: Path = tmp_path_factory.mktemp("signatures")
    with signatures.signing(directory) as running:
        yield running


@pytest.fixture(scope="module")
def key(signer: Signer) -> KeyPair:
    return signer.key_pair()


@pytest.fixture(scope="module")
def other_key(signer: Signer) -> KeyPair:
    return signer.key_pair("other")


@pytest.fixture(scope="module")
def signed(signer: Signer, key: KeyPair) -> str:
    image = signer.image(tag="signed")
    signer.sign(image, key)
    return image


@pytest.fixture(scope="module")
def attested(signer: Signer, key: KeyPair) -> str:
    """Signed and attested, as what reaches production."""
    image = signer.image(tag="attested")
    signer.sign(image, key)
    signer.attest(image, key)
    return image


def test_a_signed_image_is_taken(signer: Signer, key: KeyPair, signed: str) -> None:
    verdict = signer.verified(signed, key)
    assert verdict.code == 0, verdict.error
    (found,) = json.loads(verdict.output)
    assert found["critical"]["image"] == {"docker-manifest-digest": signed.rpartition("@")[2]}
    assert verdict.types == {SIGNATURE}


def test_a_signature_of_the_format_before_is_taken_and_another_key_refused(
    signer: Signer, key: KeyPair, other_key: KeyPair
) -> None:
    image = signer.image(tag="before")
    signer.sign_as_before(image, key)
    verdict = signer.verified(image, key)
    assert (verdict.code, verdict.types) == (0, {"cosign container image signature"})
    assert signer.verified(image, other_key).code == NO_MATCH


def test_an_unsigned_image_is_refused(signer: Signer, key: KeyPair) -> None:
    verdict = signer.verified(signer.image(tag="unsigned"), key)
    assert (verdict.code, verdict.output) == (NO_SIGNATURE, "")
    assert "no signatures found" in verdict.error


def test_a_signature_of_another_key_is_refused(signer: Signer, other_key: KeyPair, signed: str) -> None:
    verdict = signer.verified(signed, other_key)
    assert (verdict.code, verdict.output) == (REFUSED, "")
    assert "could not verify" in verdict.error


def test_the_signature_of_one_digest_is_none_of_another(signer: Signer, key: KeyPair, signed: str) -> None:
    other = signer.image(tag="other-digest")
    assert signer.verified(other, key).code == NO_SIGNATURE
    signer.hang_on(signed, other)
    verdict = signer.verified(other, key)
    assert (verdict.code, verdict.output) == (REFUSED, "")
    assert "digest" in verdict.error


def test_a_digest_that_is_not_in_the_registry_is_refused(signer: Signer, key: KeyPair, signed: str) -> None:
    nothing = f"{signed.rpartition('@')[0]}@sha256:{'0' * 64}"
    assert signer.verified(nothing, key).code == NO_SIGNATURE


def test_an_attested_image_is_taken_for_that_type_alone(signer: Signer, key: KeyPair, attested: str) -> None:
    verdict = signer.attested(attested, key)
    assert verdict.code == 0, verdict.error
    assert json.loads(verdict.output)["payloadType"] == "application/vnd.in-toto+json"
    other_type = signer.attested(attested, key, "https://acme.example/scanned")
    assert (other_type.code, other_type.output) == (REFUSED, "")
    assert "none of the attestations matched the predicate type" in other_type.error


def test_an_image_without_attestation_is_refused_signed_or_not(signer: Signer, key: KeyPair, signed: str) -> None:
    assert signer.attested(signed, key).code == REFUSED
    verdict = signer.attested(signer.image(tag="bare"), key)
    assert (verdict.code, verdict.output) == (REFUSED, "")
    assert "no matching attestations" in verdict.error


def test_an_attestation_of_another_key_is_refused(signer: Signer, other_key: KeyPair, attested: str) -> None:
    assert signer.attested(attested, other_key).code == REFUSED


def test_verify_takes_an_attestation_for_a_signature_and_only_its_answer_tells(signer: Signer, key: KeyPair) -> None:
    """Whoever asks for a signature has to read which types were found: the exit code says yes."""
    image = signer.image(tag="attested-only")
    signer.attest(image, key, predicate={"passed": False})
    verdict = signer.verified(image, key)
    assert (verdict.code, verdict.types) == (0, {TESTED})


def test_a_registry_that_is_away_cannot_be_told_from_a_refusal(signer: Signer, key: KeyPair, signed: str) -> None:
    nowhere = signed.replace(signer.registry.address, "127.0.0.1:9")
    verdict = signer.verified(nowhere, key)
    assert (verdict.code, verdict.output) == (REFUSED, "")
    assert "connection refused" in verdict.error


def test_signing_needs_a_registry_that_answers(signer: Signer, key: KeyPair) -> None:
    away = Signer(signer.directory, oci.Registry("127.0.0.1:9"))
    with pytest.raises(signatures.CosignFailed, match="connection refused"):
        away.sign(f"127.0.0.1:9/acme/app@sha256:{'0' * 64}", key)
