"""The reference, read from the code: a page for each package with all its public names, and one of all commands.

Of a class it shows the signature, what the docstring says, every field and every method, inherited ones included.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from typing import Any, get_origin

import msgspec

from konverge.cli.main import parser

PACKAGES = (
    "konverge",
    "konverge.runtime",
    "konverge.client",
    "konverge.objects",
    "konverge.cache",
    "konverge.workqueue",
    "konverge.apiserver",
    "konverge.sim",
    "konverge.testing",
    "konverge.explain",
)
_ADDRESS = re.compile(r"<(?:function|class|object|bound method)?\s*'?([\w.<>]+?)'?(?: object)? at 0x[0-9a-f]+>")


def pages() -> dict[str, str]:
    """By file name."""
    made = {f"{package}.md": "\n".join(_package(package)) for package in PACKAGES}
    return {**made, "commands.md": "\n".join(_commands_page())}


def _package(package: str) -> Iterator[str]:
    module = importlib.import_module(package)
    yield f"# `{package}`\n"
    yield f"{_text(module)}\n"
    names = sorted(module.__all__, key=str.lower)
    classes = [name for name in names if inspect.isclass(getattr(module, name))]
    functions = [name for name in names if inspect.isroutine(getattr(module, name))]
    values = [name for name in names if name not in {*classes, *functions}]
    for title, group in (("Classes", classes), ("Functions", functions), ("Values", values)):
        if group:
            yield f"## {title}\n"
        for name in group:
            yield from _name(name, getattr(module, name))


def _name(name: str, value: Any) -> Iterator[str]:
    yield f"### `{name}`\n"
    if signature := _signature(value):
        yield f"```text\n{name}{signature}\n```\n"
    elif not inspect.isclass(value):
        yield f"```text\n{name} = {_plain(repr(value))}\n```\n"
    if inspect.isclass(value) or inspect.isroutine(value):
        yield f"{_text(value)}\n"
    if inspect.isclass(value):
        yield from _fields(value)
        yield from _methods(value)


# ------------------------------------------------------------------ classes


def _ours(value: type[Any]) -> list[type[Any]]:
    """The classes of this package that a class consists of, itself first."""
    return [base for base in value.__mro__ if base.__module__.startswith("konverge")]


def _fields(value: type[Any]) -> Iterator[str]:
    rows: dict[str, str] = {}
    for base in _ours(value):
        said = _attribute_docs(base)
        for name, annotation in vars(base).get("__annotations__", {}).items():
            if name.startswith("_") or name in rows or "ClassVar" in str(annotation):
                continue
            default = _default(value, name)
            about = said.get(name, "").replace("\n", " ").replace("|", "\\|")
            kind = f"`{_annotation(annotation)}`".replace("|", "\\|")
            rows[name] = f"| `{name}` | {kind} | {f'`{default}`' if default else ''} | {about} |"
    if rows:
        yield "| field | type | default | |\n|---|---|---|---|"
        yield from rows.values()
        yield ""


def _attribute_docs(value: type[Any]) -> dict[str, str]:
    """The strings that stand after the fields of a class: `name: type` and then `\"\"\"what it is\"\"\"`."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(value))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    if not isinstance(tree, ast.ClassDef):
        return {}
    said: dict[str, str] = {}
    for statement, following in zip(tree.body, tree.body[1:], strict=False):
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            said[statement.target.id] = inspect.cleandoc(str(following.value.value))
    return said


def _default(value: type[Any], name: str) -> str:
    """What a field is when it is not given; empty where it must be given, or where there is no saying."""
    if dataclasses.is_dataclass(value):
        field = next((field for field in dataclasses.fields(value) if field.name == name), None)
        given = dataclasses.MISSING if field is None else field.default
        return "" if given is dataclasses.MISSING else _plain(repr(given))
    if issubclass(value, msgspec.Struct):
        field_info = next((field for field in msgspec.structs.fields(value) if field.name == name), None)
        known = field_info is not None and field_info.default is not msgspec.NODEFAULT
        return _plain(repr(field_info.default)) if known and field_info is not None else ""
    return ""


def _methods(value: type[Any]) -> Iterator[str]:
    shown: set[str] = set()
    for base in _ours(value):
        for name, member in vars(base).items():
            if name.startswith("_") or name in shown or not _is_method(member):
                continue
            shown.add(name)
            inherited = f" *(of {base.__name__})*" if base is not value else ""
            kind = "property " if isinstance(member, property) else "async " if _is_async(member) else ""
            yield f"#### `{kind}{value.__name__}.{name}`{inherited}\n"
            if signature := _signature(member):
                yield f"```text\n{name}{signature}\n```\n"
            yield f"{_text(member)}\n"


def _is_method(member: Any) -> bool:
    return inspect.isfunction(member) or isinstance(member, (property, classmethod, staticmethod))


def _is_async(member: Any) -> bool:
    return inspect.iscoroutinefunction(getattr(member, "__func__", member))


# ------------------------------------------------------------------ texts


def _text(value: Any) -> str:
    """A docstring as Markdown: its paragraphs that are code become blocks."""
    inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    paragraphs = (inspect.getdoc(inner) or "").split("\n\n")
    return "\n\n".join(_block(part) if _is_code(part) else part for part in paragraphs)


def _block(paragraph: str) -> str:
    return f"```python\n{textwrap.dedent(paragraph)}\n```"


def _is_code(paragraph: str) -> bool:
    """Whether a paragraph is an example: it starts as a prompt does, or it is Python and no sentence."""
    text = textwrap.dedent(paragraph).strip()
    if text.startswith(">>>"):
        return True
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return False
    plain = all(isinstance(node, ast.Expr) and isinstance(node.value, (ast.Name, ast.Constant)) for node in body)
    return bool(body) and not plain


def _signature(value: Any) -> str:
    """Arguments and result, one to a line where they are many."""
    inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    if not callable(inner):
        return ""
    try:
        signature = inspect.signature(inner)
    except (TypeError, ValueError):
        return ""
    if isinstance(value, property):
        return f" -> {_annotation(signature.return_annotation)}"
    parameters = [_parameter(parameter) for parameter in signature.parameters.values() if parameter.name != "self"]
    kinds = [parameter.kind for parameter in signature.parameters.values() if parameter.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        parameters.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    returned = signature.return_annotation
    result = "" if returned is inspect.Signature.empty or inspect.isclass(value) else f" -> {_annotation(returned)}"
    line = f"({', '.join(parameters)}){result}"
    if len(line) <= 90:
        return line
    return "(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){result}"


def _parameter(parameter: inspect.Parameter) -> str:
    one, two = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    stars = "*" if parameter.kind is one else "**" if parameter.kind is two else ""
    text = f"{stars}{parameter.name}"
    if parameter.annotation is not inspect.Parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not inspect.Parameter.empty:
        text += f" = {_plain(repr(parameter.default))}"
    return text


def _annotation(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    if inspect.isclass(annotation) and get_origin(annotation) is None:
        return annotation.__name__
    return re.sub(r"\b(?:konverge|typing|collections\.abc)\.(?:[a-z_0-9]+\.)*", "", str(annotation))


def _plain(text: str) -> str:
    """Without addresses in memory and without module names: the same code gives the same page."""
    named = _ADDRESS.sub(lambda match: match[1].rpartition(".")[2], text)
    named = re.sub(r"<(?:function|class) '?(?:[\w]+\.)*(\w+)'?(?: at 0x[0-9a-f]+)?>", r"\1", named)
    return named if len(named) <= 60 else "…"


# ------------------------------------------------------------------ the command line


def _commands_page() -> Iterator[str]:
    yield "# The command line\n"
    for name, command in _commands(parser()).items():
        yield f"## `konverge {name}`\n\n```text\n{command.format_help().rstrip()}\n```\n"


def _commands(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (commands,) = (action for action in top._actions if isinstance(action, argparse._SubParsersAction))
    return dict(commands.choices)
