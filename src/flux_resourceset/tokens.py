"""Who may call: tokens by name, role and cluster, kept hashed, re-read from their file when it changes."""

from __future__ import annotations

import enum
import hashlib
import hmac
import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from flux_resourceset import errors, names
from flux_resourceset.kinds import formats

log = logging.getLogger(__name__)

Role = Literal["read", "write"]

MIN_SECRET = 16  # characters: 64 bits when they are random hexadecimal digits, and fewer can be tried out in time
SHORT = f"%s has fewer than {MIN_SECRET} characters and can be guessed; use a longer one, as openssl rand -hex 32 makes it"

_RETRY_SECONDS = 1.0  # after a file that could not be taken: soon enough for a revocation, too rare to cost a poll anything
_TICK_SECONDS = 2.0  # file systems stamp changes no finer than this, the coarsest of them; two within one look alike
_NOTHING = ()  # equals no fingerprint


class Right(enum.Enum):
    """What a principal may do; none of them includes another."""

    VIEWS = "read the views of clusters"
    READ = "read everything else"
    WRITE = "change the fleet"


_RIGHTS: dict[Role, frozenset[Right]] = {
    "read": frozenset({Right.VIEWS, Right.READ}),
    "write": frozenset({Right.VIEWS, Right.READ, Right.WRITE}),
}
_RIGHTS_OF_BOUND = frozenset({Right.VIEWS})


class Principal(NamedTuple):
    """Whoever sends a known secret."""

    name: str
    rights: frozenset[Right]
    clusters: frozenset[str] | None = None  # the DNS names whose views it may read; None: those of every cluster

    @property
    def may_write(self) -> bool:
        return Right.WRITE in self.rights

    def may_view(self, cluster_dns: str) -> bool:
        return Right.VIEWS in self.rights and (self.clusters is None or cluster_dns in self.clusters)


class Token(NamedTuple):
    """One line of the file, or one variable of the environment."""

    name: str
    role: Role
    digest: bytes
    cluster: str | None = None  # the DNS name that it is bound to

    @classmethod
    def of(cls, name: str, role: Role, secret: str, cluster: str | None = None) -> Token:
        return cls(name, role, _digest(secret.encode(errors="surrogateescape")), cluster)


class Tokens:
    """The tokens of the environment and those of a file."""

    def __init__(self, fixed: Iterable[Token], path: Path | None = None, writable: bool = True) -> None:
        self.generation = 0  # grows when any token changed, so that others can drop what they derived
        self._fixed = tuple(fixed)
        self._path = path
        self._writable = writable
        self._in_force: object = _NOTHING  # fingerprint of the content in force
        self._tried: object = _NOTHING  # fingerprint of the file that was read last
        self._retry_at = 0.0  # monotonic time before which that file is not read again
        self._logged_failure: object = None  # what was wrong with it, once the log has it
        self._known = self._allowed(())
        self._principals = _principals(self._known)
        self._content = b""  # digest of the file's text, to see that it is the same
        if path is not None:
            self._take(path)

    def _allowed(self, from_file: Iterable[Token]) -> tuple[Token, ...]:
        # on a read-only server no write token exists, not even for reading
        return tuple(token for token in (*self._fixed, *from_file) if self._writable or token.role == "read")

    def __len__(self) -> int:
        return len(self._known)

    def reload(self) -> None:
        """Take the file's new content if it changed; a broken one leaves the last good one in force, and is read again."""
        if self._path is None:
            return
        fingerprint = _fingerprint(self._path)
        if fingerprint != self._in_force:
            self._try(self._path, fingerprint)

    def _try(self, path: Path, fingerprint: object) -> None:
        now = time.monotonic()
        if fingerprint == self._tried and now < self._retry_at:
            return
        self._tried, self._retry_at = fingerprint, now + _RETRY_SECONDS
        try:
            news = self._take(path)
        except errors.StartupError as exc:
            failure = fingerprint, str(exc)
            if failure != self._logged_failure:
                log.error("the tokens file is broken; the last good one stays in force", extra={"error": str(exc)})
                self._logged_failure = failure
            return
        if news:
            log.info("tokens re-read", extra={"file": str(path), "tokens": len(self._known)})

    def _take(self, path: Path) -> bool:
        """Put what the file says into force; whether that is news. One that changed a moment ago is read again and again."""
        file = _read(path)
        content = _digest(file.text.encode())
        lines = [] if content == self._content else list(_lines(path, file.text))
        self._in_force = file.fingerprint if file.settled else _NOTHING
        mended, self._logged_failure = self._logged_failure is not None, None
        if content == self._content:
            return mended
        self._content = content
        return self._accept(lines) or mended

    def _accept(self, lines: list[_Line]) -> bool:
        from_file = tuple(Token.of(*line) for line in lines)
        known = self._allowed(from_file)
        if known == self._known:
            return False
        self._known, self._principals = known, _principals(known)
        self.generation += 1
        if self._writable and all(token.role != "write" for token in known):
            log.warning("no token can write: set CRUD_AUTH_TOKEN, or add a line with the role write to TOKENS_FILE")
        for line in lines:
            if is_short(line.secret):
                log.warning(SHORT, f"token {line.name!r} of TOKENS_FILE")
        for sharing in _names_of_shared_secrets(self._fixed, from_file):
            log.warning("one secret has several names; take away all of them to revoke it", extra={"tokens": ", ".join(sharing)})
        return True

    def find(self, secret: bytes) -> Principal | None:
        """Whoever has this secret.

        How long it takes tells nothing of the secrets: what is looked up is a SHA-256, and nobody can choose what to send so
        that its digest comes nearer to a known one. The digests themselves are compared in constant time all the same.
        """
        digest = _digest(secret)
        known = self._principals.get(digest)
        return known[1] if known is not None and hmac.compare_digest(known[0], digest) else None


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def is_short(secret: str) -> bool:
    return len(secret) < MIN_SECRET


# One secret on several lines


def _principals(tokens: Iterable[Token]) -> dict[bytes, tuple[bytes, Principal]]:
    """By digest, which stands in the value as well, to be compared."""
    return {digest: (digest, _principal(lines)) for digest, lines in _by_digest(tokens).items()}


def _by_digest(tokens: Iterable[Token]) -> dict[bytes, list[Token]]:
    groups: dict[bytes, list[Token]] = {}
    for token in tokens:
        groups.setdefault(token.digest, []).append(token)
    return groups


def _principal(lines: list[Token]) -> Principal:
    """The strongest line of a secret counts, the first of equal ones; bound to several clusters, it reads the views of each."""
    strongest = lines[0] if len(lines) == 1 else max(lines, key=lambda token: (token.role == "write", token.cluster is None))
    if strongest.cluster is None:
        return Principal(strongest.name, _RIGHTS[strongest.role])
    return Principal(strongest.name, _RIGHTS_OF_BOUND, frozenset(token.cluster for token in lines if token.cluster))


def _names_of_shared_secrets(fixed: tuple[Token, ...], from_file: tuple[Token, ...]) -> Iterator[list[str]]:
    """Names of the file that stand for one secret, be it one of the environment."""
    groups = _by_digest((*fixed, *from_file))
    for digest in dict.fromkeys(token.digest for token in from_file):
        names = dict.fromkeys(token.name for token in groups[digest])
        if len(names) > 1:
            yield list(names)


# The file


class _File(NamedTuple):
    """What a file held, and the fingerprint of just that."""

    fingerprint: object
    settled: bool  # a change from now on would show in the fingerprint
    text: str


def _fingerprint(path: Path) -> object:
    try:
        return _stamps(os.stat(path))
    except OSError:
        return None


def _stamps(status: os.stat_result) -> object:
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_mode


def _read(path: Path) -> _File:
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise errors.StartupError(f"TOKENS_FILE {path}: is no regular file")
            # group access is left alone: that is how Kubernetes hands a mounted Secret to a process that is not root
            if stat.S_IMODE(status.st_mode) & stat.S_IRWXO:
                raise errors.StartupError(f"TOKENS_FILE {path}: others can read it; run chmod o-rwx {path}")
            text = file.read().decode()
    except (OSError, UnicodeDecodeError) as exc:
        raise errors.StartupError(f"TOKENS_FILE {path}: cannot be read: {exc}") from exc
    if not text:  # more likely caught while being written than meant
        raise errors.StartupError(f"TOKENS_FILE {path}: is empty; a comment line will do if no token is meant")
    if not text.endswith("\n"):  # likewise: half a secret must not become a token
        raise errors.StartupError(f"TOKENS_FILE {path}: its last line has no end; finish it with a newline if it is complete")
    return _File(_stamps(status), abs(time.time() - status.st_ctime) > _TICK_SECONDS, text)


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe that nobody fills would hold up every request


class _Line(NamedTuple):
    """`name role token`, or `name read token dns`; # starts a comment."""

    name: str
    role: Role
    secret: str
    cluster: str | None


def _lines(path: Path, text: str) -> Iterator[_Line]:
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            yield _line(words)
        except ValueError as exc:
            raise errors.StartupError(f"TOKENS_FILE {path}:{number}: {exc}") from exc


def _line(words: list[str]) -> _Line:
    """What is wrong is told without any word of the line: each of them may be a secret in the wrong place."""
    for place in range(3, len(words)):
        if words[place].startswith("#"):
            words = words[:place]
            break
    if len(words) not in (3, 4) or words[1] not in ("read", "write"):
        raise ValueError("a line is `name role token`, role read or write, and may end in the DNS name of a cluster")
    cluster = words[3] if len(words) == 4 else None
    if cluster is not None and words[1] == "write":
        raise ValueError("a token with the DNS name of a cluster only reads; make its role read, or take its fourth word away")
    if cluster is not None and not names.is_dns_name(cluster):
        raise ValueError(f"the fourth word is the DNS name of a cluster, and {formats.FORMATS['dns-name'].message}")
    return _Line(words[0], "write" if words[1] == "write" else "read", words[2], cluster)
