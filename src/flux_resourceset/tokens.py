"""Who may call: tokens by name and role, kept hashed, re-read from their file when it changes."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from flux_resourceset import errors

log = logging.getLogger(__name__)

Role = Literal["read", "write"]

MIN_SECRET = 16  # characters: 64 bits when they are random hexadecimal digits, and fewer can be tried out in time
SHORT = f"%s has fewer than {MIN_SECRET} characters and can be guessed; use a longer one, as openssl rand -hex 32 makes it"

_AGAIN_SECONDS = 1.0  # after a look at the same file that failed: soon enough for a revocation, too rare to cost a poll anything
_TICK_SECONDS = 2.0  # file systems stamp changes no finer than this, the coarsest of them; two within one look alike
_NOTHING = ()  # equals no fingerprint


class Token(NamedTuple):
    name: str
    role: Role
    digest: bytes

    @classmethod
    def of(cls, name: str, role: Role, secret: str) -> Token:
        return cls(name, role, _digest(secret.encode(errors="surrogateescape")))


class Tokens:
    """The tokens of the environment and those of a file."""

    def __init__(self, fixed: Iterable[Token], path: Path | None = None, writable: bool = True) -> None:
        self.generation = 0  # grows when any token changed, so that others can drop what they derived
        self._fixed = tuple(fixed)
        self._path = path
        self._writable = writable
        self._held: object = _NOTHING  # fingerprint of the content in force
        self._tried: object = _NOTHING  # the one that was looked into last
        self._again = 0.0  # monotonic time before which that is not done again
        self._told: object = None  # what was wrong with it, once the log has it
        self._known = self._allowed(())
        if path is not None:
            self._take(_read(path))

    def _allowed(self, from_file: Iterable[Token]) -> tuple[Token, ...]:
        # on a read-only server no write token exists, not even for reading
        return tuple(token for token in (*self._fixed, *from_file) if self._writable or token.role == "read")

    def __len__(self) -> int:
        return len(self._known)

    def reload(self) -> None:
        """Take the file's new content if it changed; a broken one leaves the last good one in force, and is looked at again."""
        if self._path is None:
            return
        found = _fingerprint(self._path)
        if found != self._held:
            self._look(self._path, found)

    def _look(self, path: Path, found: object) -> None:
        now = time.monotonic()
        if found == self._tried and now < self._again:
            return
        self._tried, self._again = found, now + _AGAIN_SECONDS
        try:
            content = _read(path)
        except errors.StartupError as exc:
            if (found, str(exc)) != self._told:
                log.error("the tokens file is broken; the last good one stays in force", extra={"error": str(exc)})
                self._told = found, str(exc)
            return
        if self._take(content):
            log.info("tokens re-read", extra={"file": str(path), "tokens": len(self._known)})

    def _take(self, content: _Content) -> bool:
        """Whether that is news."""
        self._held = content.fingerprint if content.settled else _NOTHING
        known, mended = self._allowed(content.tokens), self._told is not None
        self._told = None
        if known == self._known:
            return mended
        self._known = known
        self.generation += 1
        for name in content.short:
            log.warning(SHORT, f"token {name!r} of TOKENS_FILE")
        for names in _shared(self._fixed, content.tokens):
            log.warning("one secret has several names; take away all of them to revoke it", extra={"tokens": ", ".join(names)})
        return True

    def find(self, secret: bytes) -> Token | None:
        """The token with this secret, in constant time; the stronger role if it has two names."""
        digest = _digest(secret)
        found = None
        for token in self._known:
            if hmac.compare_digest(token.digest, digest) and (found is None or token.role == "write"):
                found = token
        return found


def _digest(secret: bytes) -> bytes:
    return hashlib.sha256(secret).digest()


def is_short(secret: str) -> bool:
    return len(secret) < MIN_SECRET


def _shared(fixed: tuple[Token, ...], from_file: tuple[Token, ...]) -> Iterator[list[str]]:
    """Names of the file that stand for one secret, be it one of the environment."""
    for digest in dict.fromkeys(token.digest for token in from_file):
        names = {token.name: None for token in (*fixed, *from_file) if token.digest == digest}
        if len(names) > 1:
            yield list(names)


class _Content(NamedTuple):
    """What a file held, and the fingerprint of just that."""

    fingerprint: object
    settled: bool  # a change from now on would show in the fingerprint
    tokens: tuple[Token, ...]
    short: tuple[str, ...]  # names of the tokens that are easy to guess


def _fingerprint(path: Path) -> object:
    try:
        return _told_apart(os.stat(path))
    except OSError:
        return None


def _told_apart(found: os.stat_result) -> object:
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode


def _read(path: Path) -> _Content:
    """Lines of `name role token`; # starts a comment."""
    try:
        with open(path, "rb", opener=_opened_at_once) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise errors.StartupError(f"TOKENS_FILE {path}: is no regular file")
            # group access is left alone: that is how Kubernetes hands a mounted Secret to a process that is not root
            if stat.S_IMODE(found.st_mode) & stat.S_IRWXO:
                raise errors.StartupError(f"TOKENS_FILE {path}: others can read it; run chmod o-rwx {path}")
            text = file.read().decode()
    except (OSError, UnicodeDecodeError) as exc:
        raise errors.StartupError(f"TOKENS_FILE {path}: cannot be read: {exc}") from exc
    if not text:  # more likely caught while being written than meant
        raise errors.StartupError(f"TOKENS_FILE {path}: is empty; a comment line will do if no token is meant")
    if not text.endswith("\n"):  # likewise: half a secret must not become a token
        raise errors.StartupError(f"TOKENS_FILE {path}: its last line has no end; finish it with a newline if it is complete")
    lines = list(_lines(path, text))
    return _Content(
        fingerprint=_told_apart(found),
        settled=abs(time.time() - found.st_ctime) > _TICK_SECONDS,
        tokens=tuple(Token.of(*line) for line in lines),
        short=tuple(name for name, _, secret in lines if is_short(secret)),
    )


def _opened_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # a pipe that nobody fills would hold up every request


def _lines(path: Path, text: str) -> Iterator[tuple[str, Role, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 3 and words[3].startswith("#"):
            del words[3:]
        if len(words) != 3 or words[1] not in ("read", "write"):
            raise errors.StartupError(f"TOKENS_FILE {path}:{number}: a line is `name role token`, role read or write")
        yield words[0], "write" if words[1] == "write" else "read", words[2]
