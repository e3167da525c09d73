"""Files that are written as a whole or not at all: whoever looks meanwhile, or after a crash, sees the old content or the new."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable  # whoever only writes a file is not to load that

Place = str | os.PathLike[str]

OWNER_ONLY = 0o600  # who may read and write; files hold tokens, or everything about a fleet
AS_USUAL = 0o666  # as the user's umask has it

_BINARY: int = getattr(os, "O_BINARY", 0)  # Windows would change the ends of lines


def replace(file: Place, content: bytes | Iterable[bytes], *, durable: bool = True, mode: int = OWNER_ONLY) -> None:
    """Put the content, as a whole or piece by piece, in the place of the file. `durable`: it survives a loss of power, too.

    A link stays a link, and what is no file, such as a pipe, is written to as it is.
    """
    pieces = [content] if isinstance(content, bytes) else content
    if os.path.exists(file) and not os.path.isfile(file):
        with open(file, "wb") as stream:
            stream.writelines(pieces)
        return
    target = os.path.realpath(file)
    draft = os.path.join(os.path.dirname(target), draft_name())
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
    try:
        with open(handle, "wb") as stream:  # closed before it gets its name: Windows moves no open file
            stream.writelines(pieces)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(draft, target)
    except BaseException:
        _remove(draft)
        raise
    if durable:
        sync_directory(os.path.dirname(target))


def draft_name() -> str:
    """Of its own for each writing, in any process, and as long whatever the file is called."""
    return f".flux-resourceset-{os.urandom(8).hex()}.part"


def is_draft(name: str) -> bool:
    """Whether a file was left by a process that was killed while it wrote."""
    return name.startswith(".flux-resourceset-") and name.endswith(".part")


def sync_directory(path: Place) -> None:
    """So that the names in it survive a loss of power, too. Windows has no such thing."""
    if os.name == "nt":
        return
    directory = os.open(path, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _remove(draft: str) -> None:
    try:
        os.unlink(draft)
    except OSError:
        pass  # what went wrong before it is what has to be told
