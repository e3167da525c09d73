"""Structured logs on stderr: JSON for machines, plain lines on a terminal."""

from __future__ import annotations

import datetime
import json
import logging
import sys
from typing import TextIO

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "color_message"}


def fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD and value is not None}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.datetime.fromtimestamp(record.created, datetime.UTC)
        line: dict[str, object] = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class PlainLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        extra = " ".join(f"{name}={value}" for name, value in fields(record).items())
        text = f"{time} {record.levelname.lower():7} {record.getMessage()}" + (f"  {extra}" if extra else "")
        return text + ("\n" + self.formatException(record.exc_info) if record.exc_info else "")


def configure(level: int, stream: TextIO = sys.stderr, worker: int | None = None) -> None:
    """`worker`: the number that each line says, if this is one of several processes."""

    def named(record: logging.LogRecord) -> bool:
        record.worker = worker
        return True

    handler = logging.StreamHandler(stream)
    handler.setFormatter(PlainLines() if stream.isatty() else JsonLines())
    if worker is not None:
        handler.addFilter(named)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(max(level, logging.WARNING))  # we say ourselves what happens
