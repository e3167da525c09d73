"""How `fleet check-image` asks cosign, and what it makes of answers: a stand-in notes questions; tests/e2e has the real one."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import live
from cli.gated import DIGESTS, HOUR, SIGNED, V1, V2, V3, Gated
from flux_resourceset.cli import failures
from flux_resourceset.cli.repositories import cosign
from flux_resourceset.repositories.images import Answer, Question
from flux_resourceset.repositories.policy import Cosign

pytestmark = pytest.mark.long

TESTED = "https://acme.example/tested"
KEY = {"key": "keys/cosign.pub", "transparency_log": False, "attestation": TESTED}
KEYLESS = {"identity": "https://ci.acme.example/build", "issuer": "https://token.acme.example"}
IMAGE = f"registry.acme.com/payment@{DIGESTS[2]}"
BY_KEY = Cosign("keys/cosign.pub", None, None, True, None)
SIGNATURE, ATTESTATION = Question(BY_KEY, IMAGE, None), Question(BY_KEY, IMAGE, TESTED)


@pytest.fixture
def fleet(tmp_path: Path) -> Gated:
    """A change brings version 2 into prod, where images must be signed."""
    return signing(Gated(tmp_path), KEY)


def signing(fleet: Gated, *by: dict[str, Any]) -> Gated:
    fleet.policy(images=[{"environment": "prod", "cosign": each} for each in by])
    fleet.write("keys/cosign.pub", "key of base\n")
    fleet.input("prod-1", image=V1)
    fleet.commit(ago=HOUR)
    fleet.branch("change")
    fleet.input("prod-1", image=V2)
    fleet.commit()
    return fleet


def base(fleet: Gated, path: str) -> Path:
    """A file to change in the base, to which the change is moved afterwards."""
    fleet.on("main")
    return fleet.root / path


def moved(fleet: Gated) -> None:
    fleet.commit("base", ago=60)
    fleet.branch("change")
    fleet.input("prod-1", image=V2)
    fleet.commit()


def states(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["signature"], row["attestation"]) for row in rows]


# Questions


def test_a_signature_and_an_attestation_are_asked_for_with_the_key_of_base(fleet: Gated) -> None:
    fleet.cosign()
    assert states(fleet.rows(0)) == [("ok", "ok")]
    (*verify, image), attested = fleet.asked
    assert (verify[:2], verify[3:], image) == (["verify", "--key"], ["--insecure-ignore-tlog=true", "--output", "json"], IMAGE)
    assert attested == ["verify-attestation", *verify[1:], "--type", TESTED, IMAGE]
    assert fleet.keys == "key of base\n" * 2
    assert not Path(verify[2]).exists(), "the copy of the key is gone"


def test_an_identity_is_asked_for_with_its_issuer_and_in_the_log(tmp_path: Path) -> None:
    fleet = signing(Gated(tmp_path), KEYLESS)
    fleet.cosign()
    assert states(fleet.rows(0)) == [("ok", "none")]
    identity, issuer = KEYLESS["identity"], KEYLESS["issuer"]
    words = ["--certificate-identity", identity, "--certificate-oidc-issuer", issuer, "--output", "json"]
    assert fleet.asked == [["verify", *words, IMAGE]]


def test_one_image_is_asked_for_once_however_many_have_it(fleet: Gated) -> None:
    fleet.cosign()
    for number in range(2, 12):
        fleet.input(f"prod-{number}", image=V2)
    fleet.input("prod-12", image=V3)
    fleet.commit()
    assert states(fleet.rows(0)) == [("ok", "ok")] * 12
    assert [words[0] for words in fleet.asked] == ["verify"] * 2 + ["verify-attestation"] * 2


def test_two_rules_ask_two_questions(tmp_path: Path) -> None:
    fleet = signing(Gated(tmp_path), KEY, {"key": "keys/other.pub"})
    base(fleet, "keys/other.pub").write_text("other key\n")
    moved(fleet)
    fleet.cosign(f'grep -q other "$3" && exit 1; {SIGNED}')
    assert states(fleet.rows(3)) == [("ok", "ok"), ("failed", "none")]


# The program


def test_a_missing_cosign_is_told_where_it_is_needed(fleet: Gated) -> None:
    fleet.no_cosign()
    assert "cosign is not on the PATH" in fleet.refused(2, "check-image", "--base", "main")


def test_a_cosign_that_was_killed_is_silent(fleet: Gated) -> None:
    fleet.cosign("kill -9 $$")
    (row,) = fleet.rows(5)
    assert (row["signature"], row["attestation"], row["message"]) == ("failed", "failed", "cosign was ended by signal 9")


def test_a_cosign_that_cannot_be_started_is_silent(fleet: Gated) -> None:
    fleet.cosign()
    (fleet.folder / "bin" / "cosign").write_bytes(b"\x7fELF no program")
    (row,) = fleet.rows(5)
    assert row["message"].startswith("cosign cannot be started: ")


# Keys


def test_a_key_that_base_lacks_is_refused_though_the_change_has_it(fleet: Gated) -> None:
    fleet.cosign()
    base(fleet, "keys/cosign.pub").unlink()
    moved(fleet)
    fleet.write("keys/cosign.pub", "key of the change\n")
    fleet.commit()
    assert "keys/cosign.pub is not in the base" in fleet.refused(2, "check-image", "--base", "main")
    assert fleet.asked == []


@pytest.mark.parametrize("folder", [False, True])
def test_a_symlink_is_no_key(fleet: Gated, folder: bool) -> None:
    fleet.cosign()
    (fleet.folder / "elsewhere").mkdir()
    (fleet.folder / "elsewhere" / "cosign.pub").write_text("not of base\n")
    key = base(fleet, "keys/cosign.pub")
    key.unlink()
    if folder:
        key.parent.rmdir()
        key.parent.symlink_to("../elsewhere")
    else:
        key.symlink_to("../../elsewhere/cosign.pub")
    moved(fleet)
    assert "keys/cosign.pub" in fleet.refused(2, "check-image", "--base", "main")
    assert fleet.asked == []


@pytest.mark.parametrize(
    "name", ["../elsewhere.pub", "/etc/hostname", "env://HOME", "k8s://ns/key", "https://x.example/k", "pkcs11:token=x", "keys"]
)
def test_a_key_outside_of_the_repository_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "elsewhere.pub").write_text("not of base\n")
    fleet = signing(Gated(tmp_path), {"key": name})
    fleet.cosign()
    assert name in fleet.refused(2, "check-image", "--base", "main")
    assert fleet.asked == []


def test_a_key_that_is_no_key_goes_to_cosign_as_it_is(fleet: Gated) -> None:
    fleet.cosign()
    base(fleet, "keys/cosign.pub").write_bytes(b"")
    moved(fleet)
    assert states(fleet.rows(0)) == [("ok", "ok")]
    assert fleet.keys == ""


# Answers


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ("echo 'Error: no signatures found' >&2; exit 10", "cosign: no signatures found"),
        (
            "echo 'WARNING: insecure' >&2; echo 'Error: no' >&2; echo 'error during command execution: no' >&2; exit 1",
            "cosign: no",
        ),
        ("echo 'asking' >&2; echo 'Error: no' >&2; exit 1", "cosign: no"),
        ("echo >&2; echo WARNING: insecure >&2; echo something else >&2; exit 7", "cosign: something else"),
        ("exit 1", "cosign: it refuses, and does not say why"),
        ("printf '\\377\\376\\n' >&2; exit 1", "cosign: ��"),
        ("printf '\\033[2J\\n' >&2; exit 1", "cosign: \x1b[2J"),
    ],
)
def test_a_refusal_is_told_by_its_first_useful_line(fleet: Gated, says: str, message: str) -> None:
    fleet.cosign(says)
    done = fleet("check-image", "--base", "main")
    (row,) = done.data
    assert (done.code, row["signature"], row["attestation"], row["message"]) == (3, "failed", "failed", message)
    assert "\x1b" not in done.out + done.err


def test_an_image_with_a_signature_and_no_attestation_is_refused(fleet: Gated) -> None:
    fleet.cosign('[ "$1" = verify ] || { echo "Error: no matching attestations" >&2; exit 1; }' + f"\n{SIGNED}")
    (row,) = fleet.rows(3)
    assert (row["signature"], row["attestation"], row["message"]) == ("ok", "failed", "cosign: no matching attestations")


FOUND = '{"critical": {"image": {}, "type": "%s"}, "optional": {}}'
OLD, NEW = FOUND % "cosign container image signature", FOUND % "https://sigstore.dev/cosign/sign/v1"
OTHER = FOUND % "https://acme.example/failed"


@pytest.mark.parametrize(
    ("out", "state"),
    [
        (f"[{OLD}]", "ok"),
        (f"[{NEW}]", "ok"),
        (f"[{OTHER},{NEW}]", "ok"),
        (f"[{OTHER}]", "failed"),  # attested, for good or bad, and not signed
        (f"[{OTHER},{OTHER}]", "failed"),
        ("[]", "failed"),
    ],
)
def test_an_attestation_is_no_signature(fleet: Gated, out: str, state: str) -> None:
    (fleet.folder / "out").write_text(out)
    fleet.cosign(f'[ "$1" = verify ] && exec cat "{fleet.folder}/out"\n{SIGNED}')
    (row,) = fleet.rows(3 if state == "failed" else 0)
    assert (row["signature"], row["attestation"]) == (state, "ok")


@pytest.mark.parametrize(
    "out", ["", "null", "[{}]", "garbage", f"[{OLD}", "[" * 100_000, f"[{FOUND % 'x'}]".replace('"x"', "[]")]
)
def test_an_answer_that_is_not_the_json_asked_for_is_refused(fleet: Gated, out: str) -> None:
    (fleet.folder / "out").write_text(out)
    fleet.cosign(f'cat "{fleet.folder}/out"')
    (row,) = fleet.rows(5)
    assert (row["signature"], row["attestation"]) == ("failed", "failed")
    command = "the answer of cosign {} is not understood".format
    assert row["message"] == f"{command('verify')}; {command('verify-attestation')}"


@pytest.mark.parametrize("out", ["", "null", "[]", "garbage"])
def test_an_answer_without_an_attestation_is_refused(fleet: Gated, out: str) -> None:
    fleet.cosign(f'[ "$1" = verify-attestation ] && {{ echo "{out}"; exit 0; }}\n{SIGNED}')
    (row,) = fleet.rows(5)
    assert (row["signature"], row["attestation"]) == ("ok", "failed")
    assert row["message"] == "the answer of cosign verify-attestation is not understood"


def test_an_attestation_that_is_longer_than_what_is_kept_counts(tmp_path: Path) -> None:
    long = "printf '{\"payload\": \"'; head -c 3000000 /dev/zero | tr '\\0' x; echo '\"}'"
    assert ask(ATTESTATION, environment=standing_in(tmp_path, long)) == {ATTESTATION: Answer(True)}


# Alone


def standing_in(folder: Path, script: str) -> dict[str, str]:
    program = folder / "cosign"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "COSIGN_REPOSITORY": "passed on"}


def ask(*questions: Question, environment: dict[str, str], timeout: float = 60.0) -> dict[Question, Answer]:
    return cosign.ask(questions, lambda name: name.encode(), environment, timeout)


def test_nothing_is_asked_where_there_is_no_question() -> None:
    assert ask(environment={"PATH": ""}) == {}


def test_the_environment_is_passed_on(tmp_path: Path) -> None:
    answers = ask(SIGNATURE, environment=standing_in(tmp_path, 'echo "$COSIGN_REPOSITORY" >&2; exit 1'))
    assert answers == {SIGNATURE: Answer(False, "cosign: passed on")}


@pytest.mark.parametrize("script", ["sleep 600", "trap '' TERM INT; sleep 600", "exec sleep 600", "sleep 600 & wait"])
def test_a_cosign_that_does_not_answer_in_time_is_ended_with_all_that_it_started(tmp_path: Path, script: str) -> None:
    """A pipe ends when nobody is left who could write into it."""
    os.mkfifo(tmp_path / "pipe")
    with open(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK), "rb") as pipe:
        environment = standing_in(tmp_path, f'exec 9>"{tmp_path}/pipe"; {script}')
        answers = ask(SIGNATURE, environment=environment, timeout=0.2)
        assert answers == {SIGNATURE: Answer(False, "cosign did not answer within 0.2 s", silent=True)}
        live.until(lambda: pipe.read() == b"")


@pytest.mark.long
def test_an_answer_counts_though_something_that_it_started_goes_on(tmp_path: Path) -> None:
    environment = standing_in(tmp_path, f'sleep 600 & echo $! > "{tmp_path}/left"; echo "Error: no" >&2; exit 1')
    try:
        assert ask(SIGNATURE, environment=environment) == {SIGNATURE: Answer(False, "cosign: no")}
    finally:
        os.kill(int((tmp_path / "left").read_text()), signal.SIGKILL)


def test_what_it_says_without_end_is_taken_and_not_kept(tmp_path: Path) -> None:
    noise = "head -c 3000000 /dev/zero | tr '\\0' x"
    environment = standing_in(tmp_path, f'{noise} >&2; {noise}; [ "$1" = verify ]')
    answers = ask(SIGNATURE, ATTESTATION, environment=environment)
    assert not answers[SIGNATURE].ok, "what is that long cannot be looked through for a signature"
    assert answers[ATTESTATION] == Answer(False, "cosign: " + "x" * 300)


def test_questions_are_asked_side_by_side(tmp_path: Path) -> None:
    """Each of two waits until the other has begun."""
    both = f'touch "{tmp_path}/$1"; until [ -e "{tmp_path}/verify" ] && [ -e "{tmp_path}/verify-attestation" ]; do :; done'
    both = f"{both}; {SIGNED}"
    answers = ask(SIGNATURE, ATTESTATION, SIGNATURE, environment=standing_in(tmp_path, both))
    assert answers == {SIGNATURE: Answer(True), ATTESTATION: Answer(True)}


def test_a_key_that_cannot_be_read_stops_everything_before_cosign_runs(tmp_path: Path) -> None:
    def key(name: str) -> bytes:
        raise failures.usage(name)

    environment = standing_in(tmp_path, f'touch "{tmp_path}/ran"')
    with pytest.raises(failures.Failure, match=r"keys/cosign\.pub"):
        cosign.ask([SIGNATURE], key, environment)
    assert not (tmp_path / "ran").exists()


def test_an_interruption_ends_what_runs_and_starts_nothing_more(tmp_path: Path) -> None:
    environment = standing_in(tmp_path, f'echo x >> "{tmp_path}/running"; sleep 3; touch "{tmp_path}/through"')
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        while not (tmp_path / "running").exists():
            pass
        signal.pthread_kill(main, signal.SIGINT)  # as a terminal does it

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        ask(*(SIGNATURE._replace(image=f"registry.acme.com/payment@{digest}") for digest in DIGESTS), environment=environment)
    thread.join()
    assert len((tmp_path / "running").read_text().splitlines()) <= 4
    assert not (tmp_path / "through").exists()


def test_arguments_are_those_of_the_documentation() -> None:
    files = {"keys/cosign.pub": "/tmp/0.pub"}
    assert cosign.arguments(SIGNATURE, files) == ["verify", "--key", "/tmp/0.pub", "--output", "json", IMAGE]
    assert json.dumps(cosign.arguments(ATTESTATION, files)[-3:]) == json.dumps(["--type", TESTED, IMAGE])
