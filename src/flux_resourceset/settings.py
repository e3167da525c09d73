"""The environment, read once: every setting with its default, its meaning and its check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from flux_resourceset import errors, guards, names, tokens
from flux_resourceset.kinds.model import DEFAULT_ENVIRONMENTS
from flux_resourceset.store import opening


class Setting(NamedTuple):
    name: str
    default: str
    meaning: str


SETTINGS = (
    Setting("API_MODE", "read-only", "`read-only` serves Flux; `crud` serves Flux and the operators."),
    Setting(
        "STORE_BACKEND",
        "",
        "`sqlite` or `postgres`, as the scheme of `DATABASE_URL` says anyway; or `memory`, which forgets everything when it "
        "stops.",
    ),
    Setting(
        "DATABASE_URL",
        "sqlite://data/flux-resourceset.db?mode=rwc",
        "Where the SQLite file is: `sqlite://relative` or `sqlite:///absolute`, with `mode` `rwc` (create), `rw` or `ro`. "
        "A read-only server opens it read-only whatever the mode. "
        "Or a PostgreSQL database: `postgresql://user@host:port/database`, with the parameters of libpq; what it does not say, "
        "the `PG*` variables may. Its `mode` is `rw` (the default: open a fleet that is there) or `rwc` (for a first "
        "installation: also begin one in a database that has none).",
    ),
    Setting(
        "DATABASE_MODE",
        "",
        "The `mode` of a `DATABASE_URL` that has none, for a URL that comes whole from a Secret.",
    ),
    Setting(
        "DATABASE_PASSWORD_FILE",
        "",
        "File with the password for PostgreSQL. Read again for every new connection, so that it can be rotated.",
    ),
    Setting(
        "SNAPSHOT_FILE",
        "",
        "File for the last good state, written at most every 10 seconds: a server that starts while its database is away serves "
        "it. Not with `memory`.",
    ),
    Setting(
        "MAX_STALENESS",
        "0",
        "Seconds that the database may not have answered before polls and reads are 503 `stale`; `0` is no limit.",
    ),
    Setting("AUTH_TOKEN", "", "Token for reading, called `read`. Required unless `TOKENS_FILE` is set."),
    Setting(
        "CRUD_AUTH_TOKEN",
        "",
        "Token for writing, called `write`. Unset, `AUTH_TOKEN` can write too, and the server warns.",
    ),
    Setting(
        "TOKENS_FILE",
        "",
        "File of named tokens, a line each: `name role token`, role `read` or `write`, `#` for comments. "
        "A fourth word, the DNS name of a cluster, binds a `read` token to the views of that cluster. "
        "Re-read when it changes; refused when others can read it, or when its last line has no newline.",
    ),
    Setting(
        "SEED_FILE",
        "data/seed.json",
        "Documents for an empty store, loaded in one transaction by a writer. A missing default is passed over.",
    ),
    Setting(
        "OPENAPI_FILE",
        "",
        "File to serve at `/openapi.yaml`, and as JSON at `/openapi.json`, instead of the one made from the kinds.",
    ),
    Setting("OPENAPI_PUBLIC", "true", "`false` asks for a token at `/openapi.yaml` and `/openapi.json`."),
    Setting("LISTEN_ADDR", "0.0.0.0:8080", "Address and port to listen on; `[::]:8080` for IPv6."),
    Setting(
        "WORKERS",
        "1",
        "Serving processes on the one address and the one store, from `1` to `64`; more than one needs a store that is kept.",
    ),
    Setting("RESOURCES_DIR", "", "Directory with further kind files, and with files that extend kinds."),
    Setting("ENVIRONMENTS", ",".join(DEFAULT_ENVIRONMENTS), "The environments that clusters can belong to."),
    Setting(
        "ALLOW_SECRET_LIKE_KEYS", "", "Patch keys, exact and separated by commas, that may look like secrets."
    ),
    Setting(
        "GUARD_MAX_REMOVAL_CLUSTERS",
        "5",
        "A write that removes inputs from more clusters has to be confirmed; `0` switches this off.",
    ),
    Setting(
        "PROTECTED_ENVIRONMENTS", "", "Environments, separated by commas, in which every removal has to be confirmed."
    ),
    Setting(
        "GUARD_MAX_CLUSTERS", "0", "A write that changes the answers of more clusters has to be confirmed; `0` switches this off."
    ),
    Setting("PRODUCTION", "false", "`true` refuses to start in CRUD mode without a write token of its own."),
    Setting("LOG_LEVEL", "info", "`debug`, `info`, `warning`, `error` or `off`."),
    Setting("RUST_LOG", "", "The same, for compatibility: a level or directives; `LOG_LEVEL` wins."),
)  # fmt: skip

MAX_WORKERS = 64  # more than one per core is of no use

_DEFAULTS = {setting.name: setting.default for setting in SETTINGS}
_LEVELS = {"trace": 10, "debug": 10, "info": 20, "warn": 30, "warning": 30, "error": 40, "off": 100}


@dataclass(frozen=True)
class Settings:
    crud: bool
    store: opening.Location
    snapshot_file: Path | None
    max_staleness: int
    tokens: tuple[tokens.Token, ...]
    tokens_file: Path | None
    seed_file: Path
    seed_named: bool
    openapi_file: Path | None
    openapi_public: bool
    host: str
    port: int
    workers: int
    resources_dir: Path | None
    environments: tuple[str, ...]
    secret_keys_allowed: frozenset[str]
    limits: guards.Limits
    log_level: int
    warnings: tuple[str, ...]

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> Settings:
        def value(name: str) -> str:
            return environment.get(name) or _DEFAULTS[name]

        def path(name: str) -> Path | None:
            return Path(value(name)) if value(name) else None

        crud = _choice("API_MODE", value("API_MODE"), ("read-only", "crud")) == "crud"
        read, write = value("AUTH_TOKEN"), value("CRUD_AUTH_TOKEN")
        if not read and not value("TOKENS_FILE"):
            raise errors.StartupError("AUTH_TOKEN is not set; set it, or name a TOKENS_FILE")
        known = [tokens.Token.of("read", "read", read)] if read else []
        if crud and (write or read):
            known.append(tokens.Token.of("write", "write", write or read))
        shared = crud and bool(read) and write in ("", read)
        warnings = (
            ["CRUD_AUTH_TOKEN is not set or equals AUTH_TOKEN: every cluster's token can change the whole fleet"]
            if shared
            else []
        )
        used = {"AUTH_TOKEN": read, "CRUD_AUTH_TOKEN": write if crud else ""}
        warnings += [tokens.SHORT % name for name, secret in used.items() if secret and tokens.is_short(secret)]
        production = _flag("PRODUCTION", value("PRODUCTION"))
        if shared and production:
            raise errors.StartupError("CRUD_AUTH_TOKEN must be set and differ from AUTH_TOKEN when PRODUCTION=true")
        host, port = _address(value("LISTEN_ADDR"))
        backend = _choice("STORE_BACKEND", value("STORE_BACKEND"), ("", "sqlite", "postgres", "memory"))
        level, unknown_level = _level(environment)
        store = _store(
            backend,
            environment.get("DATABASE_URL") or "",
            path("DATABASE_PASSWORD_FILE"),
            environment.get("DATABASE_MODE") or "",
            crud,
        )
        return cls(
            crud=crud,
            store=store,
            snapshot_file=_snapshot_file(path("SNAPSHOT_FILE"), backend),
            max_staleness=_number("MAX_STALENESS", value("MAX_STALENESS")),
            tokens=tuple(known),
            tokens_file=path("TOKENS_FILE"),
            seed_file=Path(value("SEED_FILE")),
            seed_named=bool(environment.get("SEED_FILE")),
            openapi_file=path("OPENAPI_FILE"),
            openapi_public=_flag("OPENAPI_PUBLIC", value("OPENAPI_PUBLIC")),
            host=host,
            port=port,
            workers=_workers(value("WORKERS"), store),
            resources_dir=path("RESOURCES_DIR"),
            environments=_environments(value("ENVIRONMENTS")),
            secret_keys_allowed=frozenset(_words(value("ALLOW_SECRET_LIKE_KEYS"))),
            limits=guards.Limits(
                removal_clusters=_number("GUARD_MAX_REMOVAL_CLUSTERS", value("GUARD_MAX_REMOVAL_CLUSTERS")),
                clusters=_number("GUARD_MAX_CLUSTERS", value("GUARD_MAX_CLUSTERS")),
                protected=_protected(value("PROTECTED_ENVIRONMENTS"), _environments(value("ENVIRONMENTS"))),
            ),
            log_level=level,
            warnings=(*unknown_level, *warnings),
        )


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise errors.StartupError(f"{name} is {value!r}; it must be {' or '.join(filter(None, allowed))}")
    return value


def _flag(name: str, value: str) -> bool:
    return _choice(name, value.lower(), ("true", "false")) == "true"


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _environments(text: str) -> tuple[str, ...]:
    listed = tuple(dict.fromkeys(_words(text)))
    wrong = [name for name in listed if not names.is_dns_label(name)]
    if not listed or wrong:
        raise errors.StartupError(f"ENVIRONMENTS must be DNS-1123 labels separated by commas, not {text!r}")
    return listed


def _protected(text: str, environments: tuple[str, ...]) -> frozenset[str]:
    """A misspelled one would protect nothing, so it must be one that there is."""
    wrong = [name for name in _words(text) if name not in environments]
    if wrong:
        raise errors.StartupError(f"PROTECTED_ENVIRONMENTS names {wrong[0]!r}; there are {', '.join(environments)}")
    return frozenset(_words(text))


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise errors.StartupError(f"{name} is {text!r}; it must be a whole number, and 0 switches it off")
    return int(text)


def _workers(text: str, store: opening.Location) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= MAX_WORKERS:
        raise errors.StartupError(f"WORKERS is {text!r}; it must be a whole number from 1 to {MAX_WORKERS}")
    if int(text) > 1 and not store.is_kept:
        raise errors.StartupError(
            f"WORKERS is {text}, but with STORE_BACKEND=memory each has its own data; use sqlite, or WORKERS=1"
        )
    return int(text)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise errors.StartupError(f"LISTEN_ADDR is {text!r}; it must be host:port, as in 127.0.0.1:8080")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104  # the documented default


def _store(backend: str, url: str, password_file: Path | None, mode: str, crud: bool) -> opening.Location:
    if backend == "memory":
        return opening.location(opening.MEMORY)
    if url == opening.MEMORY:
        raise errors.StartupError("DATABASE_URL cannot be memory://; use STORE_BACKEND=memory")
    if backend == "postgres" and not url:
        raise errors.StartupError(
            "STORE_BACKEND is postgres; DATABASE_URL must be set: postgresql:// leaves all to PG* variables"
        )
    default = _DEFAULTS["DATABASE_URL"].partition("?")[0]  # its mode is the default anyway, and must not hide DATABASE_MODE
    database = opening.location(url or default, password_file, mode)
    if backend not in ("", database.scheme):
        raise errors.StartupError(f"STORE_BACKEND is {backend}, and DATABASE_URL names {database.scheme}; leave one of them out")
    if crud and database.mode == "ro":
        raise errors.StartupError("DATABASE_URL says mode=ro, but API_MODE=crud writes; use mode=rw or mode=rwc")
    return database


def _snapshot_file(path: Path | None, backend: str) -> Path | None:
    if path is not None and backend == "memory":
        raise errors.StartupError("SNAPSHOT_FILE does not go with STORE_BACKEND=memory, which forgets everything; unset one")
    return path


def _level(environment: Mapping[str, str]) -> tuple[int, tuple[str, ...]]:
    """Never a reason not to start."""
    for name in ("LOG_LEVEL", "RUST_LOG"):
        text = environment.get(name, "").strip().lower()
        if not text:
            continue
        # directives are `target=level` or a bare level, which is the one that counts for a single program
        directives = [part.strip().rpartition("=") for part in text.split(",")]
        known = [(target, _LEVELS[level.strip()]) for target, _, level in directives if level.strip() in _LEVELS]
        bare = [level for target, level in known if not target]
        if known:
            return (bare or [level for _, level in known])[0], ()
        return 20, (f"{name} is {text!r}, which is no log level; using info",)
    return 20, ()
