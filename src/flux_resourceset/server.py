"""The program flux-resourceset: wires settings, kinds, store, ledger and HTTP together, and runs them."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import logging
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from flux_resourceset import (
    __version__,
    atomic_files,
    copying,
    errors,
    guards,
    imports,
    logs,
    openapi,
    retirement,
    serving,
    settings,
    starting,
    strict_yaml,
    supervision,
    tokens,
    transfer,
    upkeep,
)
from flux_resourceset.http import workers
from flux_resourceset.ledger import Ledger

log = logging.getLogger("flux_resourceset.server")  # also when run as a module

GUARDED = 6  # the exit code of what a guard holds up, as of the command line


def main(argv: Sequence[str] | None = None) -> int:
    """Serve, or move a fleet; the exit code. A start-up error is one plain line, the last on stderr."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments, os.environ))
    except (errors.ConfirmationRequired, errors.Frozen) as exc:
        _tell(f"{exc.detail.partition('. ')[0]}. {_passing(exc)}")
        return GUARDED
    except errors.Error as exc:
        _tell(str(exc))
        return 2


def _tell(message: str) -> None:
    """What a file holds may stand in it, and must not reach the terminal as anything but text."""
    print("".join(sign if sign.isprintable() else " " for sign in f"flux-resourceset: {message}"), file=sys.stderr)


def _passing(refusal: errors.Refusal) -> str:
    """What has to be said to a command so that a guard lets it pass."""
    spellings = {
        guards.CONFIRM_REMOVALS: "--confirm-removals",
        guards.CONFIRM_CLUSTERS: "--confirm-clusters",
        guards.OVERRIDE_FREEZE: "--reason TEXT --override-freeze",
    }
    return "If it is meant, add " + " ".join(f"{spellings[name]} {value}" for name, value in refusal.extra["confirm"].items())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flux-resourceset",
        description="Without a command: serve the API, configured by the environment alone.",
    )
    parser.add_argument("--version", action="version", version=f"flux-resourceset {__version__}")
    _may_begin_anew(parser)
    parser.set_defaults(run=_serve)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    export = commands.add_parser("export", help="write the whole fleet to a file")
    export.add_argument("file", type=Path, help="the file to write; - for standard output")
    export.add_argument("--history", action="store_true", help="with the whole change log")
    export.set_defaults(run=_export)
    load = commands.add_parser("import", help="load a whole fleet from a file")
    load.add_argument("file", type=Path, help="a file that export wrote; - for standard input")
    load.add_argument("--replace", action="store_true", help="also into a store that is not empty, in the place of everything")
    load.add_argument(
        "--decommission-absent",
        action="store_true",
        help="with --replace: answer [] for clusters that are not in the file, so that Flux deletes what they run; otherwise 404",
    )
    load.add_argument("--yes", action="store_true", help="do not ask before anything is replaced")
    _may_pass_guards(load)
    _may_begin_anew(load)
    load.set_defaults(run=_import)
    retire = commands.add_parser("retire-kind", help="delete the documents of a kind, and what clusters say of them")
    retire.add_argument("name", help="the kind, known here or not")
    retire.add_argument("--yes", action="store_true", help="do it without asking")
    _may_pass_guards(retire)
    retire.set_defaults(run=_retire_kind, begin_anew=False)
    upkeep.add_commands(commands)
    copying.add_command(commands)
    return parser


def _may_pass_guards(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--confirm-removals", type=int, metavar="N", help="it is known and meant that N inputs are removed")
    parser.add_argument(
        "--confirm-clusters", type=int, metavar="N", help="it is known and meant that N clusters get other answers"
    )
    parser.add_argument("--override-freeze", action="append", default=[], metavar="ID", help="pass this freeze; needs --reason")
    parser.add_argument("--reason", metavar="TEXT", help="why, for the log")


def _may_begin_anew(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--begin-anew",
        action="store_true",
        help="create a new store where a marker says that one was lost; what was in it is given up",
    )


# Serving


def _serve(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    configured = settings.Settings.from_env(environment)
    logs.configure(configured.log_level)
    for warning in configured.warnings:
        log.warning(warning)
    known = tokens.Tokens(configured.tokens, configured.tokens_file, configured.crud)
    if not len(known):
        raise errors.StartupError("no token is known; set AUTH_TOKEN or add one to TOKENS_FILE")
    document = _openapi_file(configured)
    with contextlib.closing(serving.listen(configured.host, configured.port)) as listener:
        if configured.workers == 1:
            _work(configured, known, document, arguments.begin_anew, listener)
        elif (worker := supervision.supervise(listener, configured.workers)) is not None:  # in one of several processes
            logs.configure(configured.log_level, worker=worker.number)
            if worker.follows_another and configured.store.mode == "rwc":  # a store that vanished must be restored
                configured = dataclasses.replace(configured, store=configured.store._replace(mode="rw"))
            _work(configured, known, document, arguments.begin_anew and worker.is_first, worker.listener, worker)
    log.info("stopped")
    return 0


def _work(
    configured: settings.Settings,
    known: tokens.Tokens,
    document: bytes | None,
    begin_anew: bool,
    listener: socket.socket,
    worker: workers.Worker | None = None,
) -> None:
    serving.prepare()
    ledger = starting.open_ledger(configured, begin_anew)
    serving.run(configured, ledger, known, document, listener, worker)
    ledger.close()


def _openapi_file(configured: settings.Settings) -> bytes | None:
    """The document that is served in the place of the one made from the kinds."""
    if configured.openapi_file is None:
        return None
    try:
        document = configured.openapi_file.read_bytes()
        openapi.as_json(document)  # which is served, too
    except OSError as exc:
        raise errors.StartupError(f"OPENAPI_FILE {configured.openapi_file}: {exc.strerror}") from exc
    except (*strict_yaml.ERRORS, TypeError) as exc:  # TypeError: what JSON has no word for
        line, why = strict_yaml.reason(exc)
        raise errors.StartupError(f"OPENAPI_FILE {configured.openapi_file}:{line or 1}: {why}") from exc
    return document


# Moving a fleet


def _moving(environment: Mapping[str, str], *, writing: bool, begin_anew: bool = False) -> Ledger:
    """The ledger of a command: no token is needed, and no seed is loaded."""
    mode = {"API_MODE": "crud" if writing else "read-only", "AUTH_TOKEN": "unused"}
    configured = settings.Settings.from_env({**environment, **mode})
    logs.configure(max(configured.log_level, logging.ERROR if writing else logging.WARNING))  # an import tells by itself
    if not configured.store.is_kept:
        raise errors.StartupError("STORE_BACKEND=memory holds nothing to move; name a DATABASE_URL instead")
    ledger = Ledger(starting.follower(configured, begin_anew), limits=configured.limits)
    ledger.follower.refresh()
    return ledger


def _export(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    with contextlib.closing(_moving(environment, writing=False)) as ledger:
        content = transfer.export_now(ledger.follower, arguments.history)
        if str(arguments.file) == "-":
            sys.stdout.buffer.write(content)
            return 0
        try:
            atomic_files.replace(arguments.file, content)
        except OSError as exc:
            raise errors.StartupError(f"{arguments.file}: cannot be written: {exc.strerror}") from exc
        print(f"exported revision {ledger.fleet.revision} to {arguments.file}", file=sys.stderr)
    return 0


def _import(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    if arguments.decommission_absent and not arguments.replace:
        raise errors.StartupError("--decommission-absent goes with --replace")
    with contextlib.closing(_moving(environment, writing=True, begin_anew=arguments.begin_anew)) as ledger:
        ledger.take_charge()
        outcome = transfer.import_file(
            ledger,
            arguments.file,
            arguments.replace,
            decommission_absent=arguments.decommission_absent,
            consent=_consent(arguments),
            reason=arguments.reason,
            agree=lambda plan: _agree(plan, arguments),
        )
        print(f"imported {outcome.result} documents; the fleet is at revision {outcome.revision}", file=sys.stderr)
    return 0


def _consent(arguments: argparse.Namespace) -> guards.Consent:
    if arguments.override_freeze and not arguments.reason:
        raise errors.StartupError("--override-freeze needs --reason: it is kept in the log")
    freezes = frozenset(id for ids in arguments.override_freeze for id in ids.split(",") if id)
    return guards.Consent(removals=arguments.confirm_removals, clusters=arguments.confirm_clusters, freezes=freezes)


def _agree(plan: imports.Plan, arguments: argparse.Namespace) -> None:
    """Show what an import does, and have it confirmed if it takes something away; no yes passes a guard."""
    for line in [f"warning: {text}" for text in plan.warnings] + ([] if plan.into_empty else plan.lines()):
        print(line, file=sys.stderr)
    plan.outcome.guards.check(_consent(arguments))
    if not plan.into_empty:
        _confirm("put the file in the place of everything", arguments.yes, taken=str(arguments.file) == "-")


def _retire_kind(arguments: argparse.Namespace, environment: Mapping[str, str]) -> int:
    with contextlib.closing(_moving(environment, writing=True)) as ledger:
        plan = retirement.planned(ledger, arguments.name)
        print("\n".join(plan.lines()), file=sys.stderr)
        _confirm(f"give up {arguments.name}", arguments.yes)
        outcome = retirement.retire(ledger, plan, _consent(arguments))
        print(f"retired {arguments.name}; the fleet is at revision {outcome.revision}", file=sys.stderr)
    return 0


def _confirm(deed: str, yes: bool, taken: bool = False) -> None:
    """Ask whoever sits at the terminal, unless the input is taken; where nobody sits, --yes must have been said."""
    if yes:
        return
    if taken or sys.stdin is None or not sys.stdin.isatty():
        raise errors.StartupError(f"nothing was changed; say --yes to {deed}")
    print(f"type yes to {deed}: ", end="", file=sys.stderr, flush=True)
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    if answer.strip() != "yes":
        raise errors.StartupError("nothing was changed")


if __name__ == "__main__":
    sys.exit(main())
