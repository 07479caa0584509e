"""The dispatcher of the `konverge` command: each module of `COMMANDS` adds a command, or several.

A command's module is imported for its arguments only; what it does is imported when it runs, so that `konverge --help`
stays quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from konverge.cli.arguments import konverge_version
from konverge.cli.boundary import add_common, run_program
from konverge.cli.parsing import Parser

COMMANDS = (
    "up",
    "status",
    "console",
    "down",
    "top",
    "shell",
    "demo",
    "run",
    "service",
    "new",
    "doctor",
    "why",
    "logs",
    "events",
    "store",
    "manifests",
    "sim",
    "check",
    "control_plane",
    "completion",
)
"""Modules of this package, in the order of the help: first what is tried first."""


_ALONE = frozenset(COMMANDS) - {"control_plane"}
"""Modules that add one command, of their own name."""


def parser(typed: str = "") -> Parser:
    """Of all commands, or of the one that was typed: the others' arguments take as long as a short command."""
    made = Parser(
        prog="konverge",
        description="A controller runtime, an embedded Kubernetes, and operators.",
        epilog="Begin with `konverge up`; `konverge COMMAND --help` has an example of each.",
    )
    add_common(made)
    commands = made.add_subparsers(dest="command", metavar="COMMAND")
    for name in (typed,) if typed in _ALONE else COMMANDS:
        import_module(f"konverge.cli.{name}").add(commands)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    return run_program(partial(parser, words[0] if words else ""), konverge_version, argv)


if __name__ == "__main__":
    sys.exit(main())
