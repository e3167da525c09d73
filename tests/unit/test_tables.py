"""Tables fit where they have to, and the important columns give way last."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flux_resourceset.cli.output.tables import Column, Layout, layout
from flux_resourceset.cli.output.terminal_text import columns, folded, padded, shortened

CLUSTERS = [Column("ID", 0, kept=True), Column("NAME", 4), Column("ENVIRONMENT", 2), Column("LABELS", 5)]


def taken(chosen: Layout) -> int:
    return sum(chosen.widths) + chosen.gap * (len(chosen.widths) - 1)


def test_without_a_room_everything_is_shown_as_a_whole() -> None:
    assert layout(CLUSTERS, [["x" * 100, "y" * 100, "dev", "-"]], None) == Layout([0, 1, 2, 3], [100, 100, 11, 6])


def test_columns_give_way_by_importance_and_the_id_last() -> None:
    row = ["i" * 20, "n" * 40, "production", "l" * 90]
    assert layout(CLUSTERS, [row], 80) == Layout([0, 1, 2, 3], [20, 31, 11, 12], 2, cuts=True)
    assert layout(CLUSTERS, [row], 55).places == [0, 1, 2]
    assert layout(CLUSTERS, [row], 40).places == [0, 2]
    assert layout(CLUSTERS, [row], 25) == Layout([0], [20], 2, cuts=True)
    assert layout(CLUSTERS, [row], 10) == Layout([0], [10], 2, cuts=True)


def test_keys_are_cut_and_never_left_out() -> None:
    heads = [Column("CLUSTER", 0, kept=True), Column("ID", 1, kept=True), Column("KIND", 9), Column("VALUE", 2, kept=True)]
    chosen = layout(heads, [["c" * 63, "i" * 63, "k" * 20, "v" * 300]], 80)
    assert chosen.places == [0, 1, 3]
    assert taken(chosen) <= 80
    assert chosen.widths[0] > chosen.widths[1]


def test_where_not_even_the_keys_fit_each_has_its_part() -> None:
    heads = [Column("CLUSTER", 0, kept=True), Column("ID", 1, kept=True), Column("VALUE", 2, kept=True)]
    for room in (12, 20, 30):
        chosen = layout(heads, [["c" * 63, "i" * 63, "v" * 300]], room)
        assert chosen.places == [0, 1, 2]
        assert taken(chosen) <= room
        assert min(chosen.widths) >= 2


def test_what_is_no_key_is_left_out_before_a_key_is_cut() -> None:
    heads = [Column("ID", 0, kept=True), Column("CLUSTER", 1, kept=True), Column("TAG", 2, kept=True), Column("PATH", 4)]
    row = ["velero", "c" * 50, "v1.2.3", "p" * 14]
    assert layout(heads, [row], 80) == Layout([0, 1, 2], [6, 50, 6], 2, cuts=True)
    elastic = [*heads[:1], heads[1]._replace(least=36), *heads[2:]]
    assert layout(elastic, [row], 80) == Layout([0, 1, 2, 3], [6, 48, 6, 14], 2, cuts=True)


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 120), st.integers(0, 5), st.booleans()), min_size=1, max_size=8),
    st.integers(40, 200),
)
def test_every_table_fits_its_room(shape: list[tuple[int, int, int, bool]], room: int) -> None:
    heads = [Column("H" * head, rank, kept) for head, _, rank, kept in shape]
    chosen = layout(heads, [["x" * cell for _, cell, _, _ in shape]], room)
    assert taken(chosen) <= room
    assert all(width > 0 for width in chosen.widths)
    assert chosen.places == sorted(chosen.places)


def test_a_character_may_take_two_columns_or_none() -> None:
    assert [columns(text) for text in ("abc", "é", "日本", "e\u0301")] == [3, 1, 4, 1]
    assert shortened("日本語", 5) == "日本…"
    assert shortened("日本語", 4) == "日…"
    assert shortened("plain", 5) == "plain"
    assert padded("日本", 6) == "日本  "


def test_a_text_is_folded_between_words_and_only_a_word_that_fits_no_line_is_cut() -> None:
    assert list(folded("- /a: [1, 2]", 80)) == ["- /a: [1, 2]"]
    assert list(folded("one two three four", 13)) == ["one two three", "      four"]
    assert list(folded(f"one {'x' * 30} two", 20)) == ["one", f"      {'x' * 13}…", "      two"]
    assert list(folded("  - kept  blanks", 20)) == ["  - kept  blanks"]


@given(st.text(max_size=40), st.integers(1, 30))
def test_a_shortened_text_fits(text: str, width: int) -> None:
    assert columns(shortened(text, width)) <= max(width, 1)
