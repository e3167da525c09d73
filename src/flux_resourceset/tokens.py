"""Who may call: tokens by name and role, kept hashed, re-read from their file when it changes."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

from flux_resourceset import errors

log = logging.getLogger(__name__)

Role = Literal["read", "write"]


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
        self._seen: object = None
        self._known = self._allowed(())
        if path is not None:
            self._seen = _fingerprint(path)
            self._known = self._allowed(_read(path))

    def _allowed(self, from_file: Iterable[Token]) -> tuple[Token, ...]:
        # on a read-only server no write token exists, not even for reading
        return tuple(token for token in (*self._fixed, *from_file) if self._writable or token.role == "read")

    def __len__(self) -> int:
        return len(self._known)

    def reload(self) -> None:
        """Take the file's new content if it changed; a broken one leaves the last good one in force."""
        if self._path is None:
            return
        found = _fingerprint(self._path)
        if found == self._seen:
            return
        self._seen = found
        try:
            self._known = self._allowed(_read(self._path))
            self.generation += 1
            log.info("tokens re-read", extra={"file": str(self._path), "tokens": len(self._known)})
        except errors.StartupError as exc:
            log.error("the tokens file is broken; the last good one stays in force", extra={"error": str(exc)})

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


def _fingerprint(path: Path) -> object:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode


def _read(path: Path) -> list[Token]:
    """Lines of `name role token`; # starts a comment."""
    try:
        # group access is left alone: that is how Kubernetes hands a mounted Secret to a process that is not root
        if stat.S_IMODE(os.stat(path).st_mode) & stat.S_IRWXO:
            raise errors.StartupError(f"TOKENS_FILE {path}: others can read it; run chmod o-rwx {path}")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise errors.StartupError(f"TOKENS_FILE {path}: cannot be read: {exc}") from exc
    if not text:  # more likely caught while being written than meant
        raise errors.StartupError(f"TOKENS_FILE {path}: is empty; a comment line will do if no token is meant")
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) > 3 and words[3].startswith("#"):
            del words[3:]
        if len(words) != 3 or words[1] not in ("read", "write"):
            raise errors.StartupError(f"TOKENS_FILE {path}:{number}: a line is `name role token`, role read or write")
        role: Role = "write" if words[1] == "write" else "read"
        found.append(Token.of(words[0], role, words[2]))
    return found
