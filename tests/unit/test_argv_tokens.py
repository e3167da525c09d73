"""The words of a command line as tokens."""

from __future__ import annotations

import pytest

from flux_resourceset.cli.parsing import argv_tokens
from flux_resourceset.cli.parsing.argv_tokens import Token
from flux_resourceset.cli.parsing.grammar import Option

OUTPUT = Option("--output", "How to print.", "FORMAT", short="-o", choices=("json", "yaml"))
LABEL = Option("--label", "A label.", "KEY=VALUE", many=True, aliases=("--labels",))
DEBUG = Option("--debug", "Tell more.", short="-d")
PRUNE = Option("--prune", "Whether it may go.", negatable=True)
OPTIONS = (OUTPUT, LABEL, DEBUG, PRUNE)


def read(*words: str) -> list[Token]:
    return argv_tokens.tokens(words, OPTIONS)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("--output", "json"), "--output"),
        (("--output=json",), "--output"),
        (("-o", "json"), "-o"),
        (("-o=json",), "-o"),
        (("-ojson",), "-o"),
    ],
)
def test_a_value_may_be_given_in_every_usual_way(words: tuple[str, ...], name: str) -> None:
    assert read(*words, "x") == [Token(0, name, True, OUTPUT, "json"), Token(len(words), "x")]


@pytest.mark.parametrize("word", ["--help", "--", "-o", "-", "", "--output=yaml"])
def test_an_option_takes_the_next_word_whatever_it_is(word: str) -> None:
    assert read("--label", word) == [Token(0, "--label", True, LABEL, word)]


def test_a_value_begins_after_the_first_equals_sign() -> None:
    assert read("--label=a=b", "--label=")[0].value == "a=b"
    assert read("--label=")[0] == Token(0, "--label", True, LABEL, "")


def test_aliases_are_the_option_and_are_told_as_they_were_typed() -> None:
    assert read("--labels", "a=b") == [Token(0, "--labels", True, LABEL, "a=b")]


def test_a_switch_takes_no_word_and_may_be_negated() -> None:
    assert read("--debug", "x", "--prune", "--no-prune") == [
        Token(0, "--debug", True, DEBUG),
        Token(1, "x"),
        Token(2, "--prune", True, PRUNE),
        Token(3, "--no-prune", True, PRUNE, switch=False),
    ]
    assert read("--no-debug")[0].is_unknown, "only what is negatable can be negated"


def test_a_value_for_a_switch_is_told_so_that_it_can_be_refused() -> None:
    assert read("--debug=yes") == [Token(0, "--debug", True, DEBUG, "yes")]


def test_short_switches_are_not_taken_together() -> None:
    assert read("-dx")[0].is_unknown
    assert read("-dx")[0].word == "-dx"


def test_an_unknown_option_is_one_word_and_keeps_what_it_was_given() -> None:
    assert read("--limt", "3", "--limt=3") == [
        Token(0, "--limt", True),
        Token(1, "3"),
        Token(2, "--limt", True, value="3"),
    ]
    assert [token.is_unknown for token in read("--limt", "3")] == [True, False]


def test_after_two_dashes_no_word_is_an_option() -> None:
    assert read("a", "--", "--debug", "--", "-o") == [Token(0, "a"), Token(2, "--debug"), Token(3, "--"), Token(4, "-o")]


def test_one_dash_is_a_word_for_it_stands_for_stdin() -> None:
    assert read("-", "") == [Token(0, "-"), Token(1, "")]


def test_only_an_option_at_the_end_that_needs_a_value_is_unfinished() -> None:
    assert [token.is_unfinished for token in read("-o", "json", "--label")] == [False, True]
    for words in (("--debug",), ("--limt",), ("--label=",), ("x",), ("--", "--label")):
        assert not read(*words)[-1].is_unfinished


@pytest.mark.parametrize(
    ("before", "word", "begins"),
    [
        ((), "-", True),
        ((), "--", True),
        ((), "--lab", True),
        ((), "--output", True),
        ((), "", False),
        ((), "x", False),
        (("--",), "-", False),
        (("x", "--", "y"), "--", False),
        (("-o", "--"), "--", True),  # its value
    ],
)
def test_an_unfinished_word_begins_an_option_unless_options_have_ended(before: tuple[str, ...], word: str, begins: bool) -> None:
    assert argv_tokens.begins_option(before, word, OPTIONS) is begins


def test_of_two_options_with_one_spelling_the_later_counts() -> None:
    folder = Option("--output-dir", "Where to.", "DIR", short="-o")
    (token,) = argv_tokens.tokens(["-o", "x"], (OUTPUT, folder))
    assert token.option == folder
    (token,) = argv_tokens.tokens(["--output", "x"], (OUTPUT, folder))
    assert token.option == OUTPUT


def test_every_word_belongs_to_one_token_and_places_tell_which() -> None:
    words = ["--debug", "a", "-o", "json", "--label=x=y", "b", "--limt", "--", "-c"]
    places = [token.place for token in read(*words)]
    assert places == [0, 1, 2, 4, 5, 6, 8], "3 is the value of 2, and 7 ends the options"
