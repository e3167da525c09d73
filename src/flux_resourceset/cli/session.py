"""One run of one command: what was asked, where to ask, and how to answer."""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from flux_resourceset.cli import config, conflicts, failures, known_kinds, last_writes, windows
from flux_resourceset.cli.known_kinds import Kind, Kinds, ReferencedKind
from flux_resourceset.cli.output import printing
from flux_resourceset.cli.output.terminal_text import printable
from flux_resourceset.cli.parsing import shared_options
from flux_resourceset.cli.parsing.grammar import Command
from flux_resourceset.cli.parsing.values import Values

if TYPE_CHECKING:
    from flux_resourceset.client import Answer, Client, Problem, Progress, Role


ACTOR = "FLUX_API_ACTOR"

# Commands whose output may be long, beside those for reading; others ask, or go on for long.
_PAGED = frozenset({"history", "why", "diff", "plan", "explain", "render", "bootstrap", "inputs", "export"})
_PATIENCE = 0.5  # seconds that help may take longer because nobody has asked this server for its kinds yet


class Session:
    def __init__(self, environment: Mapping[str, str], values: Values, words: Sequence[str] = ()) -> None:
        """Before the command is known: `values` are the global options, wherever they stand among the words."""
        self.environment = environment
        self.words = words
        self.values = values
        self.command = Command((), "", "")
        self.stdin: TextIO = sys.stdin
        self.output = printing.Output(sys.stdout, values.text("output"), environment, pager=not values.flag("no-pager"))
        self.messages = printing.Output(sys.stderr, "table", environment)
        self._kinds: Kinds | None = None
        self._warned: set[str] = set()
        self._stated: dict[str, str] = {}  # headers of every write; the client may be there before the command is known

    def begin(self, command: Command, values: Values) -> None:
        self.command, self.values = command, values
        if shared_options.ACTOR in command.options:  # where it is another option, nothing is written
            self._stated |= self._actor()
        self.output.settle(values, reading=command.is_reading)
        if values.flag("watch") or values.flag("follow"):
            self.output.release(self.messages)
        elif command.is_reading or command.words[-1] in _PAGED or values.flag("dry-run"):
            self.output.hold(self.messages)

    def end(self) -> None:
        """Show what was kept for a pager."""
        self.output.release(self.messages)

    @property
    def asks_help(self) -> bool:
        return self.values.flag("help")

    # Asking

    @functools.cached_property
    def target(self) -> config.Target:
        return config.target(self.environment, self.values.text("context"))

    @functools.cached_property
    def client(self) -> Client:
        """The server, with the tokens that the command needs; a missing one is told before anything is sent."""
        return self.connect()

    def connect(self, within: float | None = None) -> Client:
        """A connection of its own; `within` so many seconds everything must be over."""
        url = self.target.require(config.URL)
        tokens: dict[Role, str] = {"read": self._token(config.TOKEN)}
        if self.target.known.get(config.WRITE_TOKEN):
            tokens["write"] = self._token(config.WRITE_TOKEN)
        self.check_url(url, self.target.named(config.URL))
        return self.connect_to(url, tokens, within)

    def connect_to(self, url: str, tokens: Mapping[Role, str], within: float | None = None) -> Client:
        """A connection to any server, with the tokens that are for it."""
        from flux_resourceset import client

        self._stated |= self._reason()
        try:
            return client.Client(
                url,
                tokens,
                timeout=within or self._timeout(),
                deadline=within is not None,
                headers=self._stated,
                trace=self._trace if self.values.flag("debug") else None,
                progress=_progress(self.environment),
                environment=self.environment,
                last_write=last_writes.LastWrite(self.environment, url, self.warn),
            )
        except ValueError as exc:  # the URL is good, so it is that of a proxy
            raise failures.usage(str(exc)) from exc

    def _token(self, variable: str) -> str:
        return self.checked_token(self.target.require(variable), variable)

    @staticmethod
    def checked_token(token: str, where: str) -> str:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise failures.usage(f"{where} holds something that cannot be a token: blanks or characters beyond ASCII")
        return token

    @staticmethod
    def check_url(url: str, where: str) -> None:
        from flux_resourceset import client

        try:
            client.Client(url, {})
        except ValueError as exc:
            raise failures.usage(f"{where}: {exc}") from exc

    def _timeout(self) -> float:
        text = self.values.text("timeout")
        try:
            seconds = float(text or 60)
        except ValueError:
            seconds = 0
        if not 0 < seconds < 86400:
            raise failures.usage(f"--timeout is {text!r}; it must be a number of seconds")
        return seconds

    def _reason(self) -> dict[str, str]:
        reason = self.values.text("reason")
        if reason is None:
            return {}
        return {"X-Reason": _one_line(reason, "--reason")}

    def _actor(self) -> dict[str, str]:
        """For whom a write is; who shares a token says so once, in the environment."""
        given, usual = self.values.text("actor"), self.environment.get(ACTOR)
        if given is not None:
            return {"X-Actor": _one_line(given, shared_options.ACTOR.name)}
        return {"X-Actor": _one_line(usual, ACTOR)} if usual else {}

    def require_write_token(self) -> None:
        """So that a missing one is told before anything is read or asked; a dry run needs none."""
        if not self.values.flag("dry-run"):
            self._token(config.WRITE_TOKEN)

    def write_client(self) -> Client:
        """The server, for writing."""
        self.require_write_token()
        return self.client

    # Kinds

    @property
    def kinds(self) -> Kinds:
        """As the server tells them."""
        if self._kinds is None:
            self._kinds = known_kinds.from_server(self.client, self.environment)
        return self._kinds

    @functools.cached_property
    def likely_kinds(self) -> Kinds:
        """For help and completion: as the server told them last, or tells them at once, or else the built-in ones."""
        try:
            url = self.target.url
            cached = known_kinds.from_cache(self.environment, url) if url else None
            return cached or (self._kinds_at_once() if url else None) or Kinds(known_kinds.packaged())
        except failures.Failure:
            return Kinds(known_kinds.packaged())  # help does not need a good configuration

    def _kinds_at_once(self) -> Kinds | None:
        from flux_resourceset import client

        try:
            return known_kinds.from_server(self.connect(_PATIENCE), self.environment)
        except (client.Problem, client.Unreachable):
            return None

    @property
    def kind(self) -> Kind:
        """The kind whose group the command is in."""
        kind = self.kinds.find(self.command.kind)
        assert kind is not None
        return kind

    def named_kind(self) -> Kind | None:
        """The kind that --kind names, by any of its names."""
        word = self.values.text("kind")
        kind = self.kinds.find(word) if word is not None else None
        if word is not None and kind is None:
            raise failures.usage(f'kind "{word}" not found; there are {", ".join(kind.group for kind in self.kinds)}')
        return kind

    @property
    def at(self) -> dict[str, str]:
        """The query for the point of the log that --at names; none for now."""
        return {"at": self.values.required("at")} if "at" in self.values else {}

    @property
    def referenced_kind(self) -> ReferencedKind:
        """The same, for the commands that only kinds have that clusters refer to."""
        kind = self.kind
        assert isinstance(kind, ReferencedKind)
        return kind

    @property
    def id(self) -> str:
        """The id that the command names; without one, a path would mean all documents of the kind."""
        id = self.values.required("id")
        if not id:
            raise failures.usage("<id> must not be empty")
        return id

    @property
    def ids(self) -> list[str]:
        """Every id that the command names, once; each may have its kind in front, as -o name prints it."""
        ids = [self._bare_id(word) for word in self.values.many("id")]
        if not all(ids):
            raise failures.usage("<id> must not be empty")
        return list(dict.fromkeys(ids))

    def _bare_id(self, word: str) -> str:
        kind, slash, id = word.partition("/")
        if slash and kind not in self.kind.names():
            raise failures.usage(f"{word!r}: this is about {self.kind.name}; say one kind at a time")
        return id if slash else word

    # Answering

    @property
    def interactive(self) -> bool:
        """Whether somebody is there to answer a question."""
        return self.stdin.isatty() and sys.stderr.isatty()

    def say(self, text: str) -> None:
        try:
            self.messages.line(text)
        except OSError:
            pass  # nobody listens; what was done is done, and the exit code tells it

    def say_revision(self, answer: Answer) -> None:
        """Which revision a time meant; the question for now is its own answer."""
        revision = answer.headers.get("x-revision")
        if "at" in self.values and revision is not None:
            self.say(f"as of revision {revision}")

    def _trace(self, text: str) -> None:
        for line in text.split("\n"):
            self.say(line)

    def warn(self, text: str) -> None:
        """Once, though a plan and the write that follows it warn of the same."""
        if text not in self._warned:
            self._warned.add(text)
            self._mark("warning:", text)

    def fail(self, failure: failures.Failure) -> int:
        for line in failure.lines:
            self._mark("error:", line)
        return failures.USAGE if self.command.any_failure_is_usage else failure.code

    def _mark(self, word: str, line: str) -> None:
        self.say(f"{self.messages.coloured(word, word)} {line}")

    def has_to_ask(self, question: str) -> bool:
        """Whether somebody has to agree; without a terminal, that has to be said before."""
        if self.values.flag("yes") or self.values.flag("dry-run"):
            return False
        if not self.interactive:
            has_dry_run = any(option.name == "--dry-run" for option in self.command.options)
            raise failures.usage(
                f"{question} Say --yes to do it" + (", or --dry-run to see what it would do" if has_dry_run else "")
            )
        return True

    def ask(self, question: str) -> None:
        """Go on only if somebody agrees."""
        self.end()
        if not click.confirm(printable(question), err=True):
            raise failures.usage("nothing was changed, for it was not confirmed")

    def data(self, value: Any, *lines: str, name: str) -> None:
        self.output.value(value, lambda: lines, [name])


def _one_line(text: str, name: str) -> str:
    """What the log keeps with every write; the server takes no other."""
    if not text.strip() or not text.isprintable() or len(text) > 500:
        raise failures.usage(f"{name} must be one line of at most 500 characters")
    return text.strip()


def _progress(environment: Mapping[str, str]) -> Progress | None:
    if not sys.stderr.isatty() or not windows.takes_escapes(environment):
        return None
    from flux_resourceset.cli.output import progress  # not before: most commands end before there is any

    return progress.Bar(sys.stderr)


def failure(exc: Exception) -> failures.Failure | None:
    """The failure that an exception stands for; None if nobody expected it."""
    if isinstance(exc, failures.Failure):
        return exc
    from flux_resourceset import client  # not before: help does without it

    if isinstance(exc, client.Problem):
        return explained(exc)
    if isinstance(exc, client.Unreachable):
        return failures.Failure(failures.UNREACHABLE, str(exc))
    if isinstance(exc, RecursionError):
        return failures.usage("a file or an answer is nested too deeply to be read")
    if isinstance(exc, UnicodeEncodeError):
        return failures.Failure(failures.UNREACHABLE, "the server's answer holds half of a surrogate pair, which is no text")
    if isinstance(exc, OSError):  # a full disk under stdout, say
        return failures.Failure(failures.UNREACHABLE, exc.strerror or str(exc))
    return None


def explained(problem: Problem) -> failures.Failure:
    """A refusal of the server, a line for each thing that is wrong."""
    body, status = problem.body, problem.status
    code = failures.by_status(status)
    subject = f'{body["kind"]} "{body["id"]}"' if body.get("kind") and body.get("id") else None
    detail = str(body.get("detail", f"status {status}"))
    violations = [item for item in body.get("errors") or [] if isinstance(item, dict)]
    if violations:
        prefix = f"{subject}: " if subject else ""
        return failures.Failure(
            code, *(f"{prefix}{item.get('pointer') or 'document'} {item.get('message', '')}" for item in violations)
        )
    if in_conflict := conflicts.lines(body):
        return failures.Failure(code, *in_conflict)
    if status == 401:
        detail = f"the token was refused; check {config.TOKEN} and {config.WRITE_TOKEN}, or the context"
    elif status == 403:
        detail += f"; check {config.WRITE_TOKEN}, or the write-token of the context"
    elif status >= 500:
        detail = f"the server failed ({status}): {detail}"
    return failures.Failure(code, detail)
