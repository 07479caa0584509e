"""The import of a module or a file that a user named.

A file is imported as Python runs a script: its folder is searched for modules first. A file of a package is imported as
that module of the package, so that its relative imports work. What a module prints while it is imported goes to
standard error, since the output of a command may be read by `kubectl`. Of a traceback only the user's part is kept.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from itertools import chain, count
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TypeVar

from konverge.operators.loading.errors import LoadError
from konverge.runtime.importing import StartedWhileImported, importing
from konverge.suggestions import did_you_mean

_KONVERGE = str(Path(__file__).parents[2])
_OURS = (_KONVERGE, "<frozen importlib", str(Path(importlib.__file__).parent))
FILE_PREFIX = "konverge_file_"
"""Begins the module name of a file whose own name another module has."""
T = TypeVar("T")


def installed_module(name: str) -> ModuleType:
    """A module of an installed package, whatever the current folder has. Raises LoadError."""
    return attempt(f"the module {name}", lambda: importlib.import_module(name))


def module_named(name: str) -> ModuleType:
    """The module of that name, also one in the current folder. Raises LoadError."""
    _search_first(Path.cwd())
    try:
        return installed_module(name)
    except LoadError as error:
        missing = error.__cause__
        if isinstance(missing, ModuleNotFoundError) and _is_part_of(missing.name, name):
            file = Path(*name.split(".")).with_suffix(".py")
            hint = f"; there is the file {file}: name it so" if file.is_file() else did_you_mean(name, _neighbours())
            raise LoadError(f"there is no module {missing.name!r} here or installed{hint}") from missing
        raise


def module_of_file(path: Path) -> ModuleType:
    """The module that a file is. Raises LoadError."""
    if not path.exists():
        folder = str(path).removesuffix(path.name)
        near = did_you_mean(path.name, [file.name for file in path.parent.glob("*.py")], before=folder)
        raise LoadError(f"the file {path} does not exist{near}")
    if not path.is_file():
        raise LoadError(f"{path} is a folder; name a file in it, such as {path / 'operator.py'}")
    whole = path.resolve()
    root, parts = whole.parent, [whole.stem]
    while (root / "__init__.py").is_file():
        parts.insert(0, root.name)
        root = root.parent
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    _search_first(root)
    if len(parts) == 1:
        return attempt(str(path), lambda: _imported_from(whole))
    name = ".".join(parts)
    module = attempt(str(path), lambda: importlib.import_module(name))
    if Path(module.__file__ or "").resolve() != whole:
        raise LoadError(f"{path} is the module {name}, and another one of that name is loaded from {module.__file__}")
    return module


def attempt(what: str, work: Callable[[], T], *, failed: str = "cannot be imported") -> T:
    """Run code of a user that must only declare. Raises LoadError."""
    try:
        with importing(), redirect_stdout(sys.stderr):
            return work()
    except LoadError:
        raise
    except StartedWhileImported as error:
        text = f"{what} starts its operator when it is imported{_place(error)}: put that under"
        raise LoadError(f"{text} `if __name__ == '__main__':`", _user_part(error)) from error
    except SystemExit as error:
        raise LoadError(f"{what} ends the program when it is imported{_place(error)}", _user_part(error)) from error
    except Exception as error:
        text = f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
        raise LoadError(f"{what} {failed}{_place(error)}: {text}", _user_part(error)) from error


def _imported_from(file: Path) -> ModuleType:
    """Import a file that is no part of a package, under its own name unless that is taken."""
    name = _free_name(re.sub(r"\W", "_", file.stem), file)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise LoadError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _free_name(name: str, file: Path) -> str:
    """The name under which this file is imported already, or else the first that no other module has."""
    own = [name] if name.isidentifier() and name not in sys.stdlib_module_names else []
    numbered = (f"{FILE_PREFIX}{name}{number or ''}" for number in count())
    for candidate in chain(own, numbered):
        present = sys.modules.get(candidate)
        if present is None or getattr(present, "__file__", None) == str(file):
            return candidate
    raise AssertionError("there is no end to the numbers")


def _search_first(folder: Path) -> None:
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))


def _is_part_of(missing: str | None, name: str) -> bool:
    return missing is not None and (name == missing or name.startswith(f"{missing}."))


def _neighbours() -> list[str]:
    here = Path.cwd()
    return [file.stem for file in here.glob("*.py")] + [package.parent.name for package in here.glob("*/__init__.py")]


# ------------------------------------------------------------------ tracebacks


def _user_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames between our call and what we were called for."""
    frames = [*traceback.extract_tb(_from_user(error.__traceback__))]
    while frames and _is_ours(frames[-1].filename):
        frames.pop()
    return frames


def _from_user(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_ours(filename: str) -> bool:
    return filename.startswith(_OURS)


def _user_part(error: BaseException) -> str:
    frames = _user_frames(error)
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    if isinstance(error, Exception):
        lines += traceback.format_exception_only(error)
    return "".join(lines).rstrip()


def _place(error: BaseException) -> str:
    """Where the user's code went wrong, as ` (my_operator.py, line 3)`."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({Path(error.filename).name}, line {error.lineno})"
    frames = _user_frames(error)
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
