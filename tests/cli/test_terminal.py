"""On a terminal: tables, colours, questions."""

from __future__ import annotations

import contextlib
import socket

import httpx

from cli.command import Cli

RED, GREEN = "\x1b[31m", "\x1b[32m"


def test_data_is_a_coloured_table_on_a_terminal_and_json_elsewhere(cli: Cli) -> None:
    shown = cli.on_terminal("namespace", "get", "traefik").out
    assert "\x1b[1mID" in shown
    assert f"{RED}false" in shown
    assert cli.ok("namespace", "get", "traefik", "-o", "json").data["id"] == "traefik"


def test_colours_can_be_switched_off(cli: Cli) -> None:
    shown = cli.but(NO_COLOR="1").on_terminal("namespace", "get", "traefik").out
    assert "\x1b[" not in shown
    head, row = shown.splitlines()
    assert head.index("LABELS") == row.index("app=traefik")


def test_an_empty_cell_is_dim_and_data_is_plain_whatever_it_says(cli: Cli) -> None:
    cli.ok("namespace", "create", "green")
    shown = cli.on_terminal("namespace", "get", "green").out
    assert "\x1b[2m-" in shown
    assert f"{RED}-" not in shown
    assert f"{GREEN}green" not in shown


def test_errors_are_coloured_only_on_a_terminal(cli: Cli) -> None:
    assert f"{RED}error:" in cli.on_terminal("cluster", "get", "nowhere").out
    assert "\x1b[" not in cli("cluster", "get", "nowhere").err


def test_deleting_asks_and_takes_no_for_an_answer(cli: Cli, api: httpx.Client) -> None:
    cli.ok("namespace", "create", "asked")
    refused = cli.on_terminal("namespace", "delete", "asked", answers="n\n")
    assert 'delete namespaces "asked"? [y/N]' in refused.out
    assert refused.code == 2
    assert api.get("/namespaces/asked").status_code == 200
    done = cli.on_terminal("namespace", "delete", "asked", answers="y\n")
    assert done.code == 0
    assert "deleted" in done.out
    assert api.get("/namespaces/asked").status_code == 404


def test_a_question_is_asked_again_until_it_is_answered_and_can_be_left(cli: Cli, api: httpx.Client) -> None:
    cli.ok("namespace", "create", "left")
    left = cli.on_terminal("namespace", "delete", "left", answers="perhaps\n\x04")
    assert left.out.count("[y/N]") == 2
    assert left.code == 130
    assert api.get("/namespaces/left").status_code == 200


def test_several_clusters_are_asked_about_and_one_is_not(cli: Cli, api: httpx.Client) -> None:
    for name in ("asked-a", "asked-b"):
        body = {"id": name, "cluster_name": name, "cluster_dns": f"{name}.example.com", "environment": "uat"}
        api.post("/clusters", json={**body, "labels": {"asked": "yes"}})
    both = cli.on_terminal("namespace", "assign", "podinfo", "-l", "asked", answers="yes\n")
    assert "on 2 clusters? [y/N]" in both.out
    one = cli.on_terminal("namespace", "unassign", "podinfo", "--cluster", "asked-a")
    assert "[y/N]" not in one.out
    assert one.code == 0
    rehearsed = cli.on_terminal("namespace", "assign", "podinfo", "-l", "asked", "--dry-run")
    assert "[y/N]" not in rehearsed.out
    assert "would be updated" in rehearsed.out


def test_an_empty_list_is_told(cli: Cli) -> None:
    assert "no clusters found" in cli.on_terminal("cluster", "list", "-l", "nothing=here").out


def test_a_long_wait_shows_a_sign_of_life_on_a_terminal_only(cli: Cli) -> None:
    """Both are answered when the terminal shows it, and the one without a terminal has waited for longer by then."""
    with socket.create_server(("127.0.0.1", 0)) as listener, contextlib.ExitStack() as stack:
        listener.settimeout(60)
        late = cli.but(FLUX_API_URL=f"http://127.0.0.1:{listener.getsockname()[1]}")
        without = stack.enter_context(late.start("cluster", "list", "--timeout", "20"))
        waiting = [stack.enter_context(listener.accept()[0])]
        assert waiting[0].recv(65536)

        def answer(shown: str) -> None:
            if "waiting …" in shown and len(waiting) == 1:
                waiting.append(stack.enter_context(listener.accept()[0]))
                for connection in waiting:
                    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

        assert "waiting …" in late.on_terminal("cluster", "list", "--timeout", "20", watch=answer).out
        _, said = without.communicate(timeout=60)
        assert "error:" in said
        assert "waiting" not in said
