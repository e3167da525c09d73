"""A delta leads from one text to the other and back, exactly, and to nothing from any other text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flux_resourceset.store import deltas

texts = st.text("abü", max_size=12).map(str.encode) | st.binary(max_size=40)


@given(texts, texts)
def test_a_delta_leads_there_and_back(before: bytes, after: bytes) -> None:
    delta = deltas.between(before, after)
    assert delta.applied(before) == after
    assert delta.undone(after) == before


@given(texts, texts)
@example(b"a", b"ab")
@example(b"b", b"ab")
@example(b"aba", b"a")
def test_nothing_that_both_begin_or_end_with_is_in_it(before: bytes, after: bytes) -> None:
    delta = deltas.between(before, after)
    assert not (delta.before and delta.after and delta.before[0] == delta.after[0])
    assert not (delta.before and delta.after and delta.before[-1] == delta.after[-1])
    assert delta.lead + delta.trail + len(delta.before) == len(before)
    assert delta.lead + delta.trail + len(delta.after) == len(after)


@given(texts, texts, texts)
def test_another_text_either_fits_or_is_refused(before: bytes, after: bytes, other: bytes) -> None:
    delta = deltas.between(before, after)
    try:
        made = delta.applied(other)
    except deltas.Misfit:
        assert other != before
    else:
        assert delta.undone(made) == other


@given(texts, st.integers(-3, 60), st.integers(-3, 60))
def test_a_delta_that_goes_beyond_a_text_is_refused(text: bytes, lead: int, trail: int) -> None:
    delta = deltas.Delta(lead, trail, b"", b"x")
    if lead < 0 or trail < 0 or lead + trail != len(text):
        with pytest.raises(deltas.Misfit):
            delta.applied(text)
    else:
        assert delta.undone(delta.applied(text)) == text


def test_one_value_of_a_large_document_is_small() -> None:
    before = b'{"id":"a","text":"' + b"x" * 100_000 + b'","tag":"1.0.0","more":"' + b"y" * 100_000 + b'"}'
    delta = deltas.between(before, before.replace(b"1.0.0", b"1.0.1"))
    assert delta == (before.index(b"1.0.0") + 4, len(before) - before.index(b"1.0.0") - 5, b"0", b"1")
