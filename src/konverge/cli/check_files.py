"""The files that `konverge check` leaves. Their folders are tried before the search, which takes minutes.

What cannot be written all the same (the disk is full by then) is told, and keeps no other file from being written.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from konverge.cli.arguments import konverge_version
from konverge.cli.exit import UsageError, explain

if TYPE_CHECKING:
    from konverge.check.campaign import Outcome

FOLDER = Path("konverge-check")
"""Where the files of findings are written, unless --report names a folder."""


class Written(NamedTuple):
    """What has become of the files."""

    page: Path | None
    problems: list[str]
    """What could not be written, and why."""


def folder_of(arguments: argparse.Namespace) -> Path:
    return arguments.report or FOLDER


def try_places(arguments: argparse.Namespace) -> None:
    """Raises UsageError where a file could not be written."""
    folder = folder_of(arguments)
    _try(folder, _try_folder, "name a folder that can be written with --report")
    for option in ("json", "junit", "sarif"):
        path = getattr(arguments, option)
        if path is not None:
            _try(path, _try_file, f"name a file that can be written with --{option}")


def _try(path: Path, attempt: Callable[[Path], None], advice: str) -> None:
    try:
        attempt(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}; {advice}") from error


def _try_folder(folder: Path) -> None:
    """By a file without a name, in the nearest folder that is there: a check without findings leaves nothing."""
    import tempfile

    whole = folder.absolute()
    there = next(path for path in (whole, *whole.parents) if path.exists())
    with tempfile.TemporaryFile(dir=there, buffering=0) as file:
        file.write(b"x")


def _try_file(path: Path) -> None:
    """One that is there, which may be a pipe or a device, is left as it is."""
    if path.is_dir():
        raise IsADirectoryError(0, "it is a folder")
    if not path.exists():
        _try_folder(path.parent)
    elif not os.access(path, os.W_OK):
        raise PermissionError(0, "you may not write it")


def write(outcome: Outcome, arguments: argparse.Namespace) -> Written:
    """All files that were asked for, and one for each finding."""
    from konverge.check.report import files

    folder, version = folder_of(arguments), konverge_version()
    paths = files.paths_of(outcome, folder)
    problems: list[str] = []
    with _told(problems):
        files.write_findings(outcome, folder, version)
    page = None
    if arguments.report is not None:
        with _told(problems):
            page = files.write_page(outcome, paths, folder, version)
    if arguments.json is not None:
        with _told(problems):
            files.write_json(outcome, paths, arguments.json, version)
    if arguments.junit is not None:
        with _told(problems):
            files.write_junit(outcome, paths, arguments.junit)
    if arguments.sarif is not None:
        with _told(problems):
            files.write_sarif(outcome, paths, arguments.sarif, _location(arguments), version)
    return Written(page, problems)


@contextmanager
def _told(problems: list[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        problems.append(explain(error)[0])


def _location(arguments: argparse.Namespace) -> str:
    """The file that a reader of the report should open: of the sample, the definitions, or the operator."""
    given = [*arguments.sample, *arguments.crds, *arguments.target]
    return str(arguments.operator or (given[0] if given else "."))
