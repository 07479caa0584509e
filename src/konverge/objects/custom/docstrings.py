"""Docstrings of fields: the text after a field in the source of its class.

    class WebAppSpec(Model):
        replicas: int = 1
        \"\"\"How many pods run.\"\"\"

Python drops such texts, so they are read from the source, and only when a definition is made: an import costs nothing.
A class without source (a zip file without it, a compiled program) has no such texts. A notebook and the interactive
prompt keep the source of each input for tracebacks (`linecache`), and it is found there.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Iterator
from typing import get_origin

Texts = dict[str, dict[str, str]]
"""Qualified name of a class -> name of a field -> text."""

_parsed: dict[str, tuple[list[str], Texts]] = {}
"""File -> its lines, and what was found in them: a file is parsed once for all its classes."""


def field_docstrings(cls: type) -> dict[str, str]:
    """The docstrings of the fields of a class and of its bases, which come last.

    A field that a class declares again without a docstring keeps that of the base.
    """
    texts: dict[str, str] = {}
    for base in reversed((get_origin(cls) or cls).__mro__):
        if base.__module__ not in ("builtins", "typing", "msgspec"):
            texts |= _of_class(base)
    return texts


def first_paragraph(text: str) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split())


def _of_class(cls: type) -> dict[str, str]:
    module = sys.modules.get(cls.__module__)
    if file := getattr(module, "__file__", None):
        return _texts(file, linecache.getlines(file, vars(module))).get(cls.__qualname__, {})
    # The latest input that defines it: earlier ones may have defined it differently.
    return next((found[cls.__qualname__] for found in _inputs() if cls.__qualname__ in found), {})


def _inputs() -> Iterator[Texts]:
    """The inputs of a notebook or a prompt, the latest first."""
    for name in reversed(list(linecache.cache)):
        if name.startswith("<") or "ipykernel" in name:
            yield _texts(name, linecache.getlines(name))


def _texts(file: str, lines: list[str]) -> Texts:
    known = _parsed.get(file)
    if known is None or known[0] != lines:
        try:
            texts = dict(_classes(ast.parse("".join(lines)), ""))
        except (SyntaxError, ValueError):  # not Python, or the file has changed since it was imported
            texts = {}
        known = _parsed[file] = (lines, texts)
    return known[1]


def _classes(node: ast.AST, prefix: str) -> Iterator[tuple[str, dict[str, str]]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield f"{prefix}{child.name}", dict(_fields(child))
            yield from _classes(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.stmt):  # a class may stand in an `if`, a `try` or a `with`
            yield from _classes(child, prefix)


def _fields(cls: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in zip(cls.body, cls.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield field.target.id, text
