"""Which form a reference has, and what it names."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.operators.catalog import SUMMARIES, Operator
from konverge.operators.loading.errors import LoadError
from konverge.operators.loading.modules import installed_module, module_named, module_of_file
from konverge.operators.loading.wrapping import as_operator
from konverge.runtime import Controller, Manager
from konverge.suggestions import did_you_mean

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "konverge.operators"
"""The entry point group by which a package makes its operators known."""
DEFAULT = "manager"
"""The attribute that is meant when none is named."""
_FILE = re.compile(r"(?P<file>.+\.py)(?::(?P<attribute>[\w.]+))?")
_MODULE = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*)(?::(?P<attribute>[\w.]+))?")


class Known(msgspec.Struct, frozen=True):
    """An operator that can be named: ours, or of an installed package."""

    name: str
    value: str
    """`module:attribute`"""
    package: str = ""
    version: str = ""
    about: str = ""


@cache
def _installed() -> dict[str, list[Known]]:
    """The operators of installed packages. Ours are known without: a checkout may not be installed."""
    from importlib.metadata import entry_points  # our own operators are found without

    found: dict[str, list[Known]] = {}
    for entry in entry_points(group=GROUP):
        if entry.name not in SUMMARIES:
            known = _known(entry)
            if known not in (same := found.setdefault(entry.name, [])):
                same.append(known)
    return found


def _known(entry: EntryPoint) -> Known:
    package = entry.dist
    if package is None:
        return Known(entry.name, entry.value)
    about = package.metadata["Summary"] or ""
    return Known(entry.name, entry.value, package.name, package.version, about)


def known_names() -> dict[str, str]:
    """The names of all operators that are installed, ours first, with a summary of each."""
    return {**SUMMARIES, **{name: known[0].about for name, known in sorted(_installed().items())}}


def load(reference: str) -> Operator:
    """The operator that a reference names. Raises LoadError.

    operator = load("my_operator.py:manager")
    """
    if reference in SUMMARIES:
        return load_attribute(installed_module(f"konverge.operators.{reference}.operator"), "OPERATOR", reference)
    if reference in _installed():
        return _load_installed(reference, _installed()[reference])
    if match := _FILE.fullmatch(reference):
        return _load_file(Path(match["file"]), match["attribute"] or "")
    match = _MODULE.fullmatch(reference)
    if Path("src", reference.replace("-", "_"), "__init__.py").is_file() and not _is_module(reference):
        raise LoadError(f"{reference} is not installed yet: `pip install -e .` here makes it known by that name")
    if match is None:
        near = did_you_mean(reference, known_names())
        raise LoadError(
            f"{reference!r} is not the name of an operator, a file that ends with .py, or module:attribute{near}"
        )
    if match["attribute"] is None and not _is_module(match["module"]):
        raise LoadError(_unknown(reference))
    attribute = match["attribute"] or ""
    operator = load_attribute(module_named(match["module"]), attribute, match["module"])
    return replace(operator, command=operator.command or ("konverge", "run", reference))


def _load_installed(name: str, known: list[Known]) -> Operator:
    if len(known) > 1:
        choices = ", ".join(f"{one.value} of {one.package}" for one in known)
        raise LoadError(f"several packages have an operator {name!r}: {choices}; name the one that you mean so")
    entry = known[0]
    module, _, attribute = entry.value.partition(":")
    operator = load_attribute(installed_module(module), attribute, module, name)
    operator = replace(_of_package(operator, entry), name=name)
    return replace(operator, command=operator.command or ("konverge", "run", name))


def as_installed(operator: Operator) -> Operator:
    """The operator with what its package says, where that registers it under the operator's name."""
    known = _installed().get(operator.name, [])
    return _of_package(operator, known[0]) if len(known) == 1 else operator


def _of_package(operator: Operator, known: Known) -> Operator:
    image = f"{known.name}:{known.version or 'latest'}"
    return replace(
        operator,
        about=known.about or operator.about,
        image=image if operator.image in ("", f"{operator.name}:latest") else operator.image,
        version=operator.version or known.version,
    )


def _load_file(path: Path, attribute: str) -> Operator:
    operator = load_attribute(module_of_file(path), attribute, str(path))
    inside = path if not path.is_absolute() and ".." not in path.parts else Path(path.name)
    reference = f"{inside.as_posix()}:{attribute}" if attribute else inside.as_posix()
    return replace(operator, command=operator.command or ("konverge", "run", reference))


def load_attribute(module: ModuleType, attribute: str, shown: str, name: str = "") -> Operator:
    """The operator that an attribute of a module declares; `manager` when none is named. Raises LoadError."""
    value: Any = module
    for part in (attribute or DEFAULT).split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise LoadError(_absent(module, attribute or DEFAULT, shown)) from None
    return as_operator(value, name=name, module=module, what=f"{shown}:{attribute or DEFAULT}")


def _absent(module: ModuleType, attribute: str, shown: str) -> str:
    has = candidates(module)
    if not has:
        return (
            f"{shown} has no `{attribute}`, and nothing else that declares an operator: give it a `manager = Manager()`"
        )
    from difflib import get_close_matches

    near = get_close_matches(attribute.lower(), has, n=1, cutoff=0.4) or has[:1]
    return f"{shown} has no `{attribute}`; it has {', '.join(has)}; did you mean `{shown}:{near[0]}`?"


def candidates(module: ModuleType) -> list[str]:
    """The names in a module that may declare an operator: managers and operators first, then lists, then functions."""
    ranked = ((_rank(module, name, value), name) for name, value in vars(module).items() if not name.startswith("_"))
    return [name for rank, name in sorted(ranked) if rank]


def _rank(module: ModuleType, name: str, value: Any) -> int:
    """How likely it is that a value declares an operator: 1 is certain, 0 is not at all."""
    if isinstance(value, Manager | Operator):
        return 1
    if isinstance(value, Controller) or _is_list(value):
        return 2
    if inspect.isfunction(value) and value.__module__ == module.__name__ and not inspect.iscoroutinefunction(value):
        if re.search(r"Manager|Controller|Operator", _returned_type(value)):
            return 3
        return 4 if re.search(r"manager|controllers|operator", name, re.IGNORECASE) else 0
    return 0


def _returned_type(function: FunctionType) -> str:
    try:
        return str(inspect.get_annotations(function).get("return", ""))
    except NameError:  # since Python 3.14 annotations are evaluated here; this one names what only type checkers import
        return ""


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(item, Controller) for item in value)


def _is_module(name: str) -> bool:
    """Whether a module of that name can be imported, from here or as installed."""
    here = Path.cwd() / Path(*name.split("."))
    if here.with_suffix(".py").is_file() or (here / "__init__.py").is_file() or "." in name:
        return True
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return False
    return spec is not None and spec.origin is not None  # and not just a folder of that name


def _unknown(reference: str) -> str:
    known = known_names()
    near = did_you_mean(reference, [*known, *(file.name for file in Path.cwd().glob("*.py"))])
    if near:
        return f"there is no operator {reference!r}{near}"
    own = "an operator of your own is a file (my_operator.py) or module:attribute"
    return f"there is no operator {reference!r}; known operators: {', '.join(known)}; {own}"
