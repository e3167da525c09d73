"""The words of a command line, read by click: what dashes mean."""

from __future__ import annotations

import click
import pytest

from flux_resourceset.cli import failures
from flux_resourceset.cli.parsing import word_reading
from flux_resourceset.cli.parsing.grammar import Option
from flux_resourceset.cli.parsing.values import Given

OUTPUT = Option("--output", "How to print.", "FORMAT", short="-o", choices=("json", "yaml"))
LABEL = Option("--label", "A label.", "KEY=VALUE", many=True, aliases=("--labels",))
FOLLOW = Option("--follow", "Go on.", short="-F")
PRUNE = Option("--prune", "Whether it may go.", negatable=True)
OPTIONS = (OUTPUT, LABEL, FOLLOW, PRUNE)


def read(*words: str, options: tuple[Option, ...] = OPTIONS) -> tuple[list[Given], list[str]]:
    command = click.Command("thing do", params=word_reading.params(options), add_help_option=False)
    return word_reading.read(command, click.Context(command), words)


def refused(*words: str) -> str:
    with pytest.raises(failures.Failure) as refusal:
        read(*words)
    assert refusal.value.code == failures.USAGE
    (line,) = refusal.value.lines
    return line


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
    assert read(*words, "x") == ([Given(OUTPUT, name, "json")], ["x"])


@pytest.mark.parametrize("word", ["--help", "--", "-o", "-", "", "--output=yaml"])
def test_an_option_takes_the_next_word_whatever_it_is(word: str) -> None:
    assert read("--label", word) == ([Given(LABEL, "--label", word)], [])


def test_a_value_begins_after_the_first_equals_sign() -> None:
    assert [each.value for each in read("--label=a=b", "--label=")[0]] == ["a=b", ""]


def test_every_spelling_is_the_option_and_all_are_told_in_the_order_in_which_they_were_typed() -> None:
    given, _ = read("--labels", "a", "--label", "b", "-F", "--labels=c")
    assert given == [
        Given(LABEL, "--labels", "a"),
        Given(LABEL, "--label", "b"),
        Given(FOLLOW, "-F"),
        Given(LABEL, "--labels", "c"),
    ]


def test_a_switch_takes_no_word_and_may_be_negated() -> None:
    assert read("--follow", "x", "--prune", "--no-prune") == (
        [Given(FOLLOW, "--follow"), Given(PRUNE, "--prune"), Given(PRUNE, "--no-prune", switch=False)],
        ["x"],
    )
    assert refused("--follow=yes") == "--follow takes no value; see flux-resourceset-cli thing do --help"
    assert refused("--no-follow").startswith("unknown option --no-follow"), "only what is negatable can be negated"


def test_short_switches_may_be_taken_together() -> None:
    assert read("-Fojson") == ([Given(FOLLOW, "-F"), Given(OUTPUT, "-o", "json")], [])


def test_what_does_not_fit_is_refused_as_it_was_typed() -> None:
    assert refused("--lable", "x") == "unknown option --lable (did you mean --label?); see flux-resourceset-cli thing do --help"
    assert refused("x", "-o") == "-o needs a value: -o, --output FORMAT"


def test_after_two_dashes_no_word_is_an_option() -> None:
    assert read("a", "--", "--follow", "--", "-o") == ([], ["a", "--follow", "--", "-o"])


def test_one_dash_is_a_word_for_it_stands_for_stdin() -> None:
    assert read("-", "") == ([], ["-", ""])


def test_an_option_of_a_command_may_take_the_spelling_of_a_global_one() -> None:
    folder = Option("--output-dir", "Where to.", "DIR", short="-o")
    given, _ = read("-o", "x", "--output", "json", options=(folder,))
    assert [(each.option.name, each.value) for each in given] == [("--output-dir", "x"), ("--output", "json")]


@pytest.mark.parametrize(
    "words",
    [
        ("--context", "far", "thing", "do"),
        ("thing", "--context=far", "do", "--unknown", "x"),
        ("thing", "do", "-lhome", "-x", "--other=-h", "--context", "far"),
        ("thing", "--context", "far", "--", "--context", "near", "-h"),
        ("thing", "-o", "folder", "--context", "far", "--timeout"),
    ],
)
def test_global_options_are_found_wherever_they_stand_and_mistakes_are_left_for_later(words: tuple[str, ...]) -> None:
    values = word_reading.global_values(words)
    assert values.text("context") == "far"
    assert not values.flag("help")
    assert values.text("output") is None


def test_help_is_found_wherever_it_stands() -> None:
    for words in (("-h",), ("thing", "--help", "do"), ("thing", "--lable", "-h")):
        assert word_reading.global_values(words).flag("help")
