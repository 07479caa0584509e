"""Where a program of this package ends: a command is parsed and run, and what it raises becomes one line and a status.

People get a traceback only when they ask for it, or when it is one of their own code.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from konverge.cli.exit import FAILED, USAGE, explain, innermost
from konverge.cli.parsing import Parser, parse

INTERRUPTED = 130


def add_common(parser: argparse.ArgumentParser) -> None:
    """What may stand before every command."""
    parser.add_argument("--debug", action="store_true", help="show a traceback when something fails")
    parser.add_argument("--version", action="store_true", help="print the version and end")


def run_program(make: Callable[[], Parser], version: Callable[[], str], argv: Sequence[str] | None) -> int:
    """The exit status of the command that was typed."""
    try:
        try:
            code = _run(make(), version, argv)
        finally:
            sys.stdout.flush()  # also when argparse ends the program after its help
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`| head`). Nothing more can be said, also not when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return code


def _run(whole: Parser, version: Callable[[], str], argv: Sequence[str] | None) -> int:
    arguments = parse(whole, argv)
    arguments.argv = list(sys.argv[1:] if argv is None else argv)
    if arguments.version:
        print(f"{whole.prog} {version()}")
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
        text, code = explain(error, whole.prog)
        if details := getattr(innermost(error), "details", ""):
            print(details, file=sys.stderr)
        print(f"{whole.prog} {arguments.command}: {text}", file=sys.stderr)
    return code
