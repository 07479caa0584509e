"""The dispatcher of the `konverge` command: each command is a module with `add(subparsers)` and `run(args)`.

A command's module is imported for its arguments only; what it does is imported when it runs, so that `konverge --help`
stays quick.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = ("apiserver", "envtest", "sim", "up")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="konverge", description="A controller runtime and an embedded Kubernetes.")
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        import_module(f"konverge.cli.{name}").add(commands)
    return made


def main(argv: Sequence[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    code: int = arguments.run(arguments)
    return code


if __name__ == "__main__":
    sys.exit(main())
