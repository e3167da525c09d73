"""The table of commands: everything explained, everything there, and the reference page made from it."""

from __future__ import annotations

import pytest

import live
from flux_resourceset.cli import command_tree, known_kinds, reference_page
from flux_resourceset.cli.parsing import command_table
from flux_resourceset.cli.parsing.grammar import Command


def commands() -> list[Command]:
    return [command for group in command_table.groups(known_kinds.Kinds(known_kinds.packaged())) for command in group.commands]


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_every_command_is_explained_has_an_example_and_can_run(command: Command) -> None:
    assert command.summary.endswith(".")
    assert command.examples
    for option in command.options:
        assert option.help.endswith("."), option
    for argument in command.arguments:
        assert argument.help.endswith("."), argument
    assert callable(command_tree.function(command))


def test_no_option_of_a_command_is_spelled_like_another_of_it() -> None:
    for command in commands():
        spellings = [spelling for option in command.options for spelling in option.spellings]
        assert len(spellings) == len(set(spellings)), command.name


def test_the_reference_page_is_fresh() -> None:
    page = (live.ROOT / "docs" / "cli.md").read_text()
    assert page == reference_page.reference(known_kinds.packaged()), "docs/cli.md is stale; run make generate"


def test_the_reference_page_names_every_command_and_option() -> None:
    page = reference_page.reference(known_kinds.packaged())
    for command in commands():
        assert command.usage in page
        for option in command.options:
            assert f"`{option.shown}`" in page
