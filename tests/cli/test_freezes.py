"""Freezes as documents: made with one reason, listed, changed and deleted like those of every kind."""

from __future__ import annotations

import httpx

from cli.command import Cli


def newest(api: httpx.Client) -> tuple[str, str]:
    entry = api.get("/changes?limit=1").json()[0]
    return entry["changes"][0]["id"], entry["reason"]


def test_one_reason_is_that_of_the_document_and_of_the_log(cli: Cli, api: httpx.Client) -> None:
    words = ("--environment", "uat", "--selector", "zone=nowhere", "--until", "2030-01-07T06:00:00+01:00")
    made = cli.ok("freeze", "create", "year-end", "--reason", "year-end closing", *words).data
    assert made == {
        "id": "year-end", "environment": "uat", "selector": "zone=nowhere", "reason": "year-end closing",
        "until": "2030-01-07T06:00:00+01:00",
    }  # fmt: skip
    assert newest(api) == ("year-end", "year-end closing")
    assert cli.ok("freeze", "update", "year-end", "--reason", "a late closing").data["reason"] == "a late closing"
    assert newest(api) == ("year-end", "a late closing")
    assert cli.ok("--reason", "said first", "freeze", "update", "year-end").data["reason"] == "said first"
    assert cli.ok("freeze", "list", "--environment", "uat", "-o", "name").out == "freezes/year-end\n"
    assert cli.ok("freeze", "get", "year-end", "-o", "json").data["reason"] == "said first"
    row = cli.ok("freeze", "list", "-o", "table").out.splitlines()[-1]
    assert ("zone=nowhere" in row, "2030-01-07T06:00:00+01:00" in row) == (True, True), row
    cli.ok("freeze", "delete", "year-end", "--yes", "--reason", "it is over")
    assert newest(api) == ("year-end", "it is over")


def test_what_is_missing_or_wrong_is_named(cli: Cli) -> None:
    assert cli.refused(3, "freeze", "create", "bare", "--environment", "uat") == ['freezes "bare": /reason is required']
    (line,) = cli.refused(3, "freeze", "create", "nowhere", "--reason", "x")
    assert line == 'freezes "nowhere": document needs at least one of environment, selector'
    (line,) = cli.refused(3, "freeze", "create", "timeless", "--environment", "uat", "--reason", "x", "--until", "tomorrow")
    assert line.startswith('freezes "timeless": /until ')
    assert cli.refused(2, "freeze", "create", "long", "--environment", "uat", "--reason", "x" * 501) == [
        "--reason must be one line of at most 500 characters"
    ]


def test_help_shows_one_reason_and_completion_offers_freezes(cli: Cli) -> None:
    shown = cli.ok("freeze", "create", "--help").out
    assert "--field-reason" not in shown
    assert "freeze create year-end --environment prod --reason 'year-end closing'" in shown
    cli.ok("freeze", "create", "offered", "--selector", "zone=nowhere", "--reason", "x")
    words = ("component", "update", "podinfo", "--override-freeze", "")
    assert "offered" in cli.ok("__complete", *words).out.split()
    cli.ok("freeze", "delete", "offered", "--yes")
