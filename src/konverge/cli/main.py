"""The dispatcher of the `konverge` command: each module of `COMMANDS` adds a command, or several.

A command's module is imported for its arguments only; what it does is imported when it runs, so that `konverge --help`
stays quick. This is also the boundary where exceptions end: people get one line that says what to do, and a traceback
only when they ask for it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from konverge.cli.arguments import konverge_version
from konverge.cli.exit import FAILED, USAGE, explain, innermost

COMMANDS = (
    "up",
    "status",
    "down",
    "demo",
    "run",
    "service",
    "new",
    "doctor",
    "store",
    "manifests",
    "sim",
    "control_plane",
    "completion",
)
"""Modules of this package, in the order of the help: first what is tried first."""

INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="konverge",
        description="A controller runtime, an embedded Kubernetes, and operators.",
        epilog="Begin with `konverge up`; `konverge COMMAND --help` has an example of each.",
    )
    made.add_argument("--debug", action="store_true", help="show a traceback when something fails")
    made.add_argument("--version", action="store_true", help="print the version and end")
    commands = made.add_subparsers(dest="command", metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"konverge.cli.{name}").add(commands)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    try:
        code = _main(argv)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`| head`). Nothing more can be said, also not when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return code


def _main(argv: Sequence[str] | None) -> int:
    whole = parser()
    arguments = whole.parse_args(argv)
    arguments.argv = list(sys.argv[1:] if argv is None else argv)
    if arguments.version:
        print(f"konverge {konverge_version()}")
        return 0
    if arguments.command is None:
        whole.print_help(sys.stderr)
        return USAGE
    try:
        code: int = arguments.run(arguments)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:  # the boundary: see the module's docstring
        if isinstance(innermost(error), BrokenPipeError):
            raise BrokenPipeError from error
        if arguments.debug:
            raise
        text, code = explain(error)
        if details := getattr(innermost(error), "details", ""):
            print(details, file=sys.stderr)
        print(f"konverge {arguments.command}: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
