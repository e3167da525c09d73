"""The marker beside a database: says that there was a store with documents, also when the database is lost."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from flux_resourceset import atomic_files, errors


def place(database: Path) -> Path:
    return Path(f"{database}.store")


class Marker(msgspec.Struct, omit_defaults=True):
    store: str  # the name of the database file, for whoever finds the marker alone
    epoch: str
    filling: bool = False  # while the first document is on its way: only then may the store still be empty


def read(database: Path) -> Marker | None:
    """Of the store that was here; None if there was none. One that cannot be read stands for a store all the same."""
    try:
        return msgspec.json.decode(place(database).read_bytes(), type=Marker)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, msgspec.DecodeError):
        return Marker("", "")


def write(database: Path, epoch: str, *, filling: bool = False) -> None:
    """Durably, before the first document is."""
    content = msgspec.json.encode(Marker(database.name, epoch, filling)) + b"\n"
    try:
        atomic_files.replace(place(database), content)
    except OSError as exc:
        raise errors.Doubt(
            f"{place(database)} cannot be written ({exc.strerror}), and no document goes into a store without its marker; "
            "make its directory writable"
        ) from exc


def fill(database: Path, epoch: str) -> None:
    """Say that this store has documents, unless it is said already."""
    if read(database) != Marker(database.name, epoch):
        write(database, epoch)


def remove(database: Path) -> None:
    place(database).unlink(missing_ok=True)
    atomic_files.sync_directory(Path(os.path.dirname(database) or "."))
