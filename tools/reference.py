"""The reference, read from the code: every public name with its signature and what its docstring says, every command.

python -m tools.reference build/reference.md
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from konverge.cli.main import parser

PACKAGES = ("konverge", "konverge.objects", "konverge.client", "konverge.sim")


def main() -> None:
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("\n".join(reference()), encoding="utf-8")
    print(target)


def reference() -> Iterator[str]:
    yield "# Reference\n"
    yield f"Of konverge {importlib.metadata.version('konverge')}, made by `make docs`.\n"
    for package in PACKAGES:
        yield from _package(package)
    yield "## The command line\n"
    for name, command in _commands(parser()).items():
        yield f"### `konverge {name}`\n\n```text\n{command.format_help().rstrip()}\n```\n"


def _package(package: str) -> Iterator[str]:
    module = importlib.import_module(package)
    yield f"## `{package}`\n"
    yield f"{inspect.getdoc(module)}\n"
    for name in sorted(module.__all__, key=str.lower):
        yield from _name(f"{package}.{name}", getattr(module, name))


def _name(where: str, value: Any) -> Iterator[str]:
    yield f"### `{where}`\n"
    if signature := _signature(value):
        yield f"```text\n{where.rpartition('.')[2]}{signature}\n```\n"
    if inspect.isclass(value) or inspect.isroutine(value):
        yield f"{inspect.getdoc(value) or ''}\n"
    for name, member in _members(value):
        yield f"- `{name}{_signature(member)}`: {(inspect.getdoc(member) or '').split(chr(10))[0]}"
    yield ""


def _members(value: Any) -> list[tuple[str, Any]]:
    """The documented methods and properties that a class adds itself."""
    if not inspect.isclass(value):
        return []
    return [
        (name, member)
        for name, member in vars(value).items()
        if not name.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, (property, classmethod)))
        and inspect.getdoc(member)
    ]


def _signature(value: Any) -> str:
    if isinstance(value, classmethod):
        value = value.__func__
    if not callable(value):
        return ""
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""


def _commands(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (commands,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    return dict(commands.choices)


if __name__ == "__main__":
    main()
