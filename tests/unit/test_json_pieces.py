"""JSON in pieces is the JSON that msgspec writes in one go."""

from __future__ import annotations

import msgspec
import pytest

from flux_resourceset import json_pieces
from flux_resourceset.changes import Change, Decommissioned, Entry, Forgone

CHANGE = Change("n", "a", "create", None, {"id": "a", "b": [1, {"c": None}]})
PLAIN = Entry(1, "t", "jane", None, None, None, False, (CHANGE,))
WHOLE = Entry(2, "t", "jane", "o", "r", "why", True, (), (Decommissioned("d.example.com", "d"),), ("v",), (Forgone("n", "z"),))


@pytest.mark.parametrize("value", [PLAIN, WHOLE, [PLAIN, WHOLE], {"b": [PLAIN], "a": {}}, [], {}])
@pytest.mark.parametrize("levels", range(5))
def test_pieces_add_up_to_the_whole(value: object, levels: int) -> None:
    assert b"".join(json_pieces.pieces(value, levels)) == msgspec.json.encode(value)
    ordered = msgspec.json.encode(value, order="sorted")
    assert b"".join(json_pieces.pieces(value, levels, ordered=True)) == ordered


def test_the_log_keeps_the_name_that_it_has_for_names_decommissioned_elsewhere() -> None:
    assert b'"retired":[{"dns":"d.example.com","id":"d"}]' in b"".join(json_pieces.pieces(WHOLE, 2))
