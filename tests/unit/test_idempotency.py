"""Writes under an idempotency key: carried out once, and answered alike."""

from __future__ import annotations

import asyncio
import datetime

import pytest

from flux_resourceset import drafts, errors
from flux_resourceset.kinds import kind_files
from flux_resourceset.ledger import Ledger
from flux_resourceset.outcomes import Idempotency, Outcome
from unit import samples
from unit.samples import ORIGIN, namespace

KNOWN = kind_files.load()
NAMESPACES = KNOWN.by_name["namespaces"]


def asked(own: Ledger, id: str, key: str = "k", digest: str = "d") -> bytes:
    """The answer to a request that makes a namespace; it tells the revision."""

    def work(draft: drafts.Draft) -> str:
        if draft.get("namespaces", id) is None:
            draft.create(NAMESPACES, namespace(id))
        return id

    def answer(outcome: Outcome[str]) -> bytes:
        return f"{outcome.result} at {outcome.revision if outcome.entry else 'no revision'}".encode()

    return asyncio.run(own.write_once(work, ORIGIN, Idempotency(key, digest, answer)))


def test_a_request_that_was_carried_out_gets_its_first_answer_again() -> None:
    own = samples.ledger_of(KNOWN)
    assert asked(own, "a") == b"a at 1"
    assert asked(own, "other", key="K") == b"other at 2"
    assert asked(own, "a") == b"a at 1"
    assert own.fleet.revision == 2


def test_an_answer_is_kept_also_when_nothing_changed() -> None:
    own = samples.ledger_of(KNOWN)
    samples.create(own, "namespaces", namespace("a"))
    assert asked(own, "a") == b"a at no revision"
    samples.write(own, lambda draft: draft.delete(NAMESPACES, "a"))
    assert asked(own, "a") == b"a at no revision"
    assert set(own.fleet.documents["namespaces"]) == set()


def test_a_key_is_for_one_request() -> None:
    own = samples.ledger_of(KNOWN)
    asked(own, "a")
    with pytest.raises(errors.KeyReused):
        asked(own, "b", digest="another")
    assert set(own.fleet.documents["namespaces"]) == {"a"}
    assert asked(own, "b", key="fresh") == b"b at 2"  # the refusal let the next one in


def test_a_refused_request_is_not_remembered() -> None:
    own = samples.ledger_of(KNOWN)
    with pytest.raises(errors.Invalid):
        asked(own, "Not An Id")
    assert asked(own, "a") == b"a at 1"


def test_an_answer_is_kept_for_a_day_and_no_longer() -> None:
    now = [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]
    own = samples.ledger_of(KNOWN, clock=lambda: now[0])
    assert asked(own, "a") == b"a at 1"
    now[0] += datetime.timedelta(hours=24)
    assert asked(own, "a") == b"a at 1"
    with pytest.raises(errors.KeyReused):
        asked(own, "b", digest="another")
    now[0] += datetime.timedelta(microseconds=1)
    assert asked(own, "a") == b"a at no revision"  # carried out anew, and it was there


def test_a_key_may_be_used_for_another_request_after_a_day() -> None:
    now = [datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)]
    own = samples.ledger_of(KNOWN, clock=lambda: now[0])
    asked(own, "a")
    now[0] += datetime.timedelta(hours=24, microseconds=1)
    assert asked(own, "b", digest="another") == b"b at 2"
    assert asked(own, "b", digest="another") == b"b at 2"  # and that is kept from now on
    now[0] += datetime.timedelta(hours=24)
    assert asked(own, "b", digest="another") == b"b at 2"
