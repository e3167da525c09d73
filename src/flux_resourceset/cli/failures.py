"""How a command ends: the exit codes, and the failures that carry them."""

from __future__ import annotations

OK = 0
DIFFERENT = 1
USAGE = 2
REFUSED = 3
NOT_FOUND = 4
UNREACHABLE = 5
CONFLICT = 6
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
BROKEN_PIPE = 141  # 128 + SIGPIPE

MEANINGS = {
    OK: "done; also when there was nothing to do",
    DIFFERENT: "`diff` found a difference",
    USAGE: "the command line, a file or the configuration is wrong; for `diff`, any error",
    REFUSED: "refused: a document breaks its rules, or the token does not have the right",
    NOT_FOUND: "something that was named does not exist, or was compacted",
    UNREACHABLE: "the server cannot be reached, failed, or gave an answer that is not understood",
    CONFLICT: "conflict: it exists with other content, is in use, somebody else changed it, or a guard or a freeze blocks it",
}


class Failure(Exception):
    """The end of a command: an exit code and one line per thing that is wrong."""

    def __init__(self, code: int, *lines: str) -> None:
        super().__init__(*lines)
        self.code = code
        self.lines = lines


def usage(line: str) -> Failure:
    return Failure(USAGE, line)


def defect(exc: Exception) -> Failure:
    """What nobody thought of."""
    fault = f"{type(exc).__name__}: {exc}".splitlines()[0]
    return Failure(UNREACHABLE, f"a defect of this program: {fault}; --debug shows where")


def by_status(status: int) -> int:
    """The exit code for an HTTP status."""
    if status in (404, 410):
        return NOT_FOUND
    if status in (409, 412, 423, 428):
        return CONFLICT
    return UNREACHABLE if status >= 500 else REFUSED
