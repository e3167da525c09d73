"""The program flux-resourceset-cli.

__main__        python -m flux_resourceset.cli
program         from the words of a command line to an exit code
command_tree    the table of commands as groups and commands of click
reference_page  docs/cli.md
completion      what could stand in a place of a command line
repositories/   fleet: two repositories, on Git checkouts
commands/       what commands do, a module per group of them
cluster/        bootstrap, render and simulate: the cluster's side of the API
session         one run of one command: what was asked, where to ask, how to answer
config          where the server is, and which tokens to use
document_files  documents in files
output/         what is printed: data, messages, help
parsing/        the tables of commands, and what words say of their options
known_kinds     the kinds, as a server describes them
builtin_kinds   the built-in ones, for when there is no server: made by `make generate`
last_writes     the revision of the last write to a server, for some minutes
conflicts       what an apply and others both changed
failures        exit codes, and what goes wrong
windows         what differs there

Each knows only what stands below it, which the linter checks. Much is imported in functions, where it is needed: help has to come
within a few times what Python itself takes to start.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn


def main() -> NoReturn:
    gc.disable()  # until the command begins: nothing that is imported is garbage, and to look for it takes a tenth of help
    from flux_resourceset.cli import program

    # at once, for its streams are written out: Python would first take every module apart, which takes another tenth
    os._exit(program.run(sys.argv[1:], os.environ))
