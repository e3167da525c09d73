"""A change as it is kept fits the document that it was made of, and no other."""

from __future__ import annotations

import pytest

from flux_resourceset.store.sql_bodies import Damage, Kept

BODY = b'{"id":"a"}'
CREATED = Kept(1, "n", "a", "create", None, 0, 0, None, BODY)
DELETED = Kept(2, "n", "a", "delete", 1, 0, 0, BODY, None)


def test_what_was_created_or_deleted_can_be_undone_and_carried_out() -> None:
    assert (CREATED.applied(None), CREATED.undone(BODY)) == (BODY, None)
    assert (DELETED.applied(BODY), DELETED.undone(None)) == (None, BODY)


@pytest.mark.parametrize("body", [None, b'{"id":"b"}'])
def test_what_is_another_document_is_damage(body: bytes | None) -> None:
    with pytest.raises(Damage, match="does not fit"):
        CREATED.undone(body)
    with pytest.raises(Damage, match="does not fit"):
        DELETED.applied(body)


def test_what_is_there_already_or_still_is_damage() -> None:
    with pytest.raises(Damage, match="does not fit"):
        CREATED.applied(BODY)
    with pytest.raises(Damage, match="does not fit"):
        DELETED.undone(BODY)
