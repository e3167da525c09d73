"""The environment, read once: defaults, every setting, and every refusal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flux_resourceset import errors, settings
from flux_resourceset.settings import Settings
from flux_resourceset.store.opening import Location

READ, WRITE = "r" * 16, "w" * 16


def read(**environment: str) -> Settings:
    return Settings.from_env({"AUTH_TOKEN": READ, **environment})


def test_one_token_is_all_that_is_needed() -> None:
    found = read()
    assert not found.crud
    assert found.store == Location("sqlite", Path("data/flux-resourceset.db"), "rwc")
    assert (found.host, found.port) == ("0.0.0.0", 8080)
    assert (found.seed_file, found.seed_named) == (Path("data/seed.json"), False)
    assert found.environments == ("dev", "qa", "uat", "prod")
    assert (found.resources_dir, found.tokens_file, found.openapi_file) == (None, None, None)
    assert found.openapi_public
    assert found.log_level == 20
    assert found.secret_keys_allowed == frozenset()
    assert [(token.name, token.role) for token in found.tokens] == [("read", "read")]
    assert found.warnings == ()


def test_every_setting_is_told_of_once() -> None:
    names = [setting.name for setting in settings.SETTINGS]
    assert len(set(names)) == len(names)
    assert all(setting.meaning.endswith(".") for setting in settings.SETTINGS)


def test_every_variable_that_is_read_is_told_of() -> None:
    source = Path(settings.__file__).read_text()
    used = set(re.findall(r'(?:value|path|get)\("([A-Z_]+)"\)', source))
    assert used <= {setting.name for setting in settings.SETTINGS}
    assert len(used) > 10


def test_an_empty_variable_is_an_unset_one() -> None:
    assert read(API_MODE="", LISTEN_ADDR="", SEED_FILE="") == read()


# Tokens


def test_without_any_token_it_does_not_start() -> None:
    for environment in ({}, {"AUTH_TOKEN": ""}, {"CRUD_AUTH_TOKEN": "w", "API_MODE": "crud"}):
        with pytest.raises(errors.StartupError, match="AUTH_TOKEN is not set"):
            Settings.from_env(environment)


def test_a_tokens_file_is_enough() -> None:
    assert Settings.from_env({"TOKENS_FILE": "tokens"}).tokens == ()


def test_two_tokens_are_called_read_and_write() -> None:
    found = read(API_MODE="crud", CRUD_AUTH_TOKEN=WRITE)
    assert [(token.name, token.role) for token in found.tokens] == [("read", "read"), ("write", "write")]
    assert found.warnings == ()


@pytest.mark.parametrize("write", ["", READ])
def test_a_shared_token_is_noticed_and_refused_in_production(write: str) -> None:
    (warning,) = read(API_MODE="crud", CRUD_AUTH_TOKEN=write).warnings
    assert "CRUD_AUTH_TOKEN is not set or equals AUTH_TOKEN" in warning
    with pytest.raises(errors.StartupError, match="CRUD_AUTH_TOKEN must be set and differ"):
        read(API_MODE="crud", CRUD_AUTH_TOKEN=write, PRODUCTION="true")
    assert read(CRUD_AUTH_TOKEN=write, PRODUCTION="true").warnings == ()


def test_a_short_token_is_warned_about_where_it_counts_and_never_shown() -> None:
    short = {"AUTH_TOKEN": "r3ad-secret-15c", "CRUD_AUTH_TOKEN": "wr1te-secret-15"}
    first, second = read(API_MODE="crud", **short).warnings
    assert first.startswith("AUTH_TOKEN has fewer than 16 characters")
    assert second.startswith("CRUD_AUTH_TOKEN has fewer than 16 characters")
    assert "secret" not in first + second
    assert [w.split()[0] for w in read(**short).warnings] == ["AUTH_TOKEN"]  # a read-only server has no use for the other


def test_a_tokens_file_alone_is_a_whole_set_up_and_beside_it_the_read_token_keeps_its_rule() -> None:
    for more in ({}, {"PRODUCTION": "true"}):
        assert Settings.from_env({"API_MODE": "crud", "TOKENS_FILE": "tokens", **more}).warnings == ()
    (warning,) = read(API_MODE="crud", TOKENS_FILE="tokens").warnings
    assert "CRUD_AUTH_TOKEN is not set or equals AUTH_TOKEN" in warning


@pytest.mark.parametrize("text", ["0", "-1", "65", "x", "1.5", "١", " 2"])
def test_a_number_of_workers_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(errors.StartupError, match=r"WORKERS is .*; it must be a whole number from 1 to 64"):
        read(WORKERS=text)


def test_several_workers_need_a_store_that_is_kept() -> None:
    assert (read().workers, read(WORKERS="2").workers, read(WORKERS="64").workers) == (1, 2, 64)
    assert read(WORKERS="1", STORE_BACKEND="memory").workers == 1
    with pytest.raises(errors.StartupError, match="WORKERS is 2, but with STORE_BACKEND=memory"):
        read(WORKERS="2", STORE_BACKEND="memory")


@pytest.mark.parametrize("slashes", ["///", "////", "/////"])
def test_an_absolute_path_may_begin_with_more_slashes_than_it_needs(slashes: str) -> None:
    assert read(DATABASE_URL=f"sqlite:{slashes}srv/fleet.db").store.path == Path("/srv/fleet.db")


def test_a_read_only_server_knows_no_write_token() -> None:
    assert [token.name for token in read(CRUD_AUTH_TOKEN=WRITE).tokens] == ["read"]


def test_tokens_are_kept_hashed() -> None:
    found = Settings.from_env({"AUTH_TOKEN": "very-secret", "API_MODE": "crud", "CRUD_AUTH_TOKEN": "more-secret"})
    assert "very-secret" not in repr(found)
    assert "more-secret" not in repr(found)


# The database


@pytest.mark.parametrize(
    ("url", "path", "mode"),
    [
        ("sqlite://fleet.db", "fleet.db", "rwc"),
        ("sqlite://data/x.db?mode=rwc", "data/x.db", "rwc"),
        ("sqlite:///var/lib/x.db?mode=ro", "/var/lib/x.db", "ro"),
        ("sqlite:///var/lib/x.db?mode=rw", "/var/lib/x.db", "rw"),
        ("sqlite://with%20space.db", "with space.db", "rwc"),
    ],
)
def test_a_database_is_relative_or_absolute_with_a_mode(url: str, path: str, mode: str) -> None:
    assert read(DATABASE_URL=url).store == Location("sqlite", Path(path), mode)


@pytest.mark.parametrize(
    "url",
    ["fleet.db", "sqlite:fleet.db", "sqlite://", "mysql://x", "sqlite://x?mode=rx", "sqlite://x?cache=shared", "sqlite://:memory:",
     "memory://"],
)  # fmt: skip
def test_any_other_database_is_refused(url: str) -> None:
    with pytest.raises(errors.StartupError, match="DATABASE_URL"):
        read(DATABASE_URL=url)


def test_a_writer_cannot_open_read_only() -> None:
    with pytest.raises(errors.StartupError, match="mode=ro"):
        read(API_MODE="crud", CRUD_AUTH_TOKEN="w", DATABASE_URL="sqlite://x?mode=ro")
    assert read(API_MODE="crud", CRUD_AUTH_TOKEN="w", STORE_BACKEND="memory", DATABASE_URL="sqlite://x?mode=ro").crud
    assert not read(STORE_BACKEND="memory").store.is_kept
    assert read(STORE_BACKEND="memory", DATABASE_URL="postgres://x?wrong=1").store.scheme == "memory"


# The rest


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_MODE", "readonly"),
        ("API_MODE", "CRUD"),
        ("STORE_BACKEND", "mysql"),
        ("OPENAPI_PUBLIC", "maybe"),
        ("LISTEN_ADDR", "8080"),
        ("LISTEN_ADDR", "localhost:http"),
        ("LISTEN_ADDR", "localhost:70000"),
        ("LISTEN_ADDR", "localhost:"),
        ("ENVIRONMENTS", ","),
        ("ENVIRONMENTS", "dev,Prod"),
        ("ENVIRONMENTS", "a b"),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(errors.StartupError, match=name):
        read(**{name: value})


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("127.0.0.1:9", "127.0.0.1", 9), ("[::]:8080", "::", 8080), (":80", "0.0.0.0", 80), ("localhost:0", "localhost", 0)],
)
def test_an_address_is_host_and_port(address: str, host: str, port: int) -> None:
    found = read(LISTEN_ADDR=address)
    assert (found.host, found.port) == (host, port)


def test_lists_are_separated_by_commas() -> None:
    found = read(ENVIRONMENTS=" lab , live,lab", ALLOW_SECRET_LIKE_KEYS="a.token, password,")
    assert found.environments == ("lab", "live")
    assert found.secret_keys_allowed == {"a.token", "password"}


def test_a_named_seed_is_known_to_be_named() -> None:
    assert read(SEED_FILE="data/seed.json").seed_named
    assert read(SEED_FILE="x.json").seed_file == Path("x.json")


def test_paths_are_taken() -> None:
    found = read(RESOURCES_DIR="kinds", TOKENS_FILE="tokens", OPENAPI_FILE="api.yaml", OPENAPI_PUBLIC="False")
    assert (found.resources_dir, found.tokens_file, found.openapi_file) == (Path("kinds"), Path("tokens"), Path("api.yaml"))
    assert not found.openapi_public


@pytest.mark.parametrize(
    ("environment", "level"),
    [
        ({"LOG_LEVEL": "debug"}, 10),
        ({"LOG_LEVEL": "WARN"}, 30),
        ({"LOG_LEVEL": "off"}, 100),
        ({"RUST_LOG": "error"}, 40),
        ({"RUST_LOG": "hyper=debug,warn"}, 30),
        ({"RUST_LOG": "flux_resourceset=trace"}, 10),
        ({"RUST_LOG": "debug", "LOG_LEVEL": "error"}, 40),
    ],
)
def test_the_log_level_is_a_level_or_directives(environment: dict[str, str], level: int) -> None:
    found = read(**environment)
    assert (found.log_level, found.warnings) == (level, ())


def test_a_log_level_is_never_a_reason_not_to_start() -> None:
    found = read(LOG_LEVEL="verbose")
    assert found.log_level == 20
    assert "LOG_LEVEL is 'verbose'" in found.warnings[0]


# PostgreSQL


@pytest.mark.parametrize("url", ["postgresql://u@h/d", "postgres://u@h/d", "postgresql://", "postgresql://a,b/d?sslmode=require"])
@pytest.mark.parametrize("backend", ["", "postgres"])
def test_the_scheme_chooses_postgresql(url: str, backend: str) -> None:
    found = read(DATABASE_URL=url, STORE_BACKEND=backend).store
    assert (found.scheme, found.is_kept) == ("postgres", True)


@pytest.mark.parametrize(
    ("backend", "url", "words"),
    [
        ("postgres", "sqlite://x", "STORE_BACKEND is postgres, and DATABASE_URL names sqlite"),
        ("sqlite", "postgresql://h/d", "STORE_BACKEND is sqlite, and DATABASE_URL names postgres"),
        ("postgres", "", "STORE_BACKEND is postgres; DATABASE_URL must be set"),
        ("", "postgresql://h/d?mod=rwc", "PostgreSQL knows no parameter 'mod'"),
        ("", "postgresql://h:0/d", "ports must be numbers"),
    ],
)
def test_backend_and_url_must_agree(backend: str, url: str, words: str) -> None:
    with pytest.raises(errors.StartupError, match=words):
        read(STORE_BACKEND=backend, DATABASE_URL=url)


@pytest.mark.parametrize(
    ("url", "variable", "mode"),
    [
        ("postgresql://h/d", "", "rw"),
        ("postgresql://h/d", "rwc", "rwc"),
        ("postgresql://h/d?mode=rwc", "", "rwc"),
        ("postgresql://h/d?sslmode=require&mode=rw&connect_timeout=5", "rwc", "rw"),
        ("postgresql://?m%6fde=rwc", "", "rwc"),
        ("sqlite://x.db", "rw", "rw"),
        ("sqlite://x.db?mode=rwc", "rw", "rwc"),
        ("sqlite://x.db", "", "rwc"),
        ("", "rw", "rw"),
        ("", "", "rwc"),
    ],
)
def test_the_mode_is_that_of_the_url_or_else_of_its_own_variable(url: str, variable: str, mode: str) -> None:
    assert read(DATABASE_URL=url, DATABASE_MODE=variable).store.mode == mode


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("postgresql://h/d?mode=ro", ""),
        ("postgresql://h/d", "create"),
        ("postgresql://h/d?mode=x", "rw"),
        ("sqlite://x", "x"),
        ("", "x"),
    ],
)
def test_an_unknown_mode_is_refused_with_those_that_there_are(url: str, variable: str) -> None:
    with pytest.raises(errors.StartupError, match="it must be one of rwc, rw"):
        read(DATABASE_URL=url, DATABASE_MODE=variable)


def test_settings_are_shown_without_a_password(tmp_path: Path) -> None:
    found = read(DATABASE_URL="postgresql://u:hush-hush@h/d?passfile=x", DATABASE_PASSWORD_FILE=str(tmp_path / "file"))
    assert "hush" not in repr(found)
    assert found.store.target == "postgresql://h:5432/d"
