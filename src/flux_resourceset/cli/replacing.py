"""Files that are replaced as a whole: whoever looks meanwhile sees the old content or the new."""

from __future__ import annotations

import os


def replace(file: str, content: bytes, *, durable: bool = True) -> None:
    """Readable by the owner only; `durable` if losing it in a crash would hurt. After a failure nothing is left behind."""
    target = os.path.realpath(file)  # a link stays one
    draft = f"{target}.{os.getpid()}"
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
            stream.write(content)
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        os.replace(draft, target)
    except BaseException:
        try:
            os.unlink(draft)
        except OSError:
            pass  # it was never made
        raise
