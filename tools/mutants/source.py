"""The mutants of a source file: where they are, how they read, and their code objects."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

from tools.mutants import mutations

_SKIPPED_FUNCTIONS = frozenset({"__repr__", "__str__"})
_NOT_OF_THE_BODY = frozenset({"decorator_list", "args", "returns", "annotation", "type_params"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """One changed function. `number` counts the mutants of the file; all other fields are for the reader."""

    file: str
    number: int
    function: str
    line: int
    operator: str
    change: str
    """What is replaced by what. Two equal changes in one function differ by a count at the end."""
    diff: tuple[str, str]

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What stays the same while lines move."""
        return (self.file, self.function, self.operator, self.change)

    def __str__(self) -> str:
        before, after = self.diff
        return f"{self.file}:{self.line} {self.function} ({self.operator})\n-{before}\n+{after}"


@dataclass(frozen=True)
class _Place:
    """A node of the tree, with the way to put another one there."""

    function: str
    first_line: int
    operator: str
    original: ast.AST
    replacement: ast.AST
    put: Callable[[ast.AST], None]


class SourceFile:
    """A parsed file. `path` is relative to `root`, as in the mutants that come out."""

    def __init__(self, root: Path, path: str) -> None:
        self.path = path
        self._full = root / path
        self._text = self._full.read_text(encoding="utf-8")
        self._tree = ast.parse(self._text)
        self._places = list(_places(self._tree))

    def mutants(self) -> list[Mutant]:
        counts: Counter[tuple[str, str, str]] = Counter()
        mutants = []
        for number, place in enumerate(self._places):
            change = f"{_header(place.original)} → {_after(place)}"
            counts[place.function, place.operator, change] += 1
            count = counts[place.function, place.operator, change]
            mutants.append(
                Mutant(
                    file=self.path,
                    number=number,
                    function=place.function,
                    line=_line(place.original),
                    operator=place.operator,
                    change=change if count == 1 else f"{change} #{count}",
                    diff=self._diff(place),
                )
            )
        return mutants

    def code(self, number: int) -> CodeType:
        """The code object of the mutated function. It has the qualified name and the first line of the original."""
        place = self._places[number]
        place.put(ast.fix_missing_locations(ast.copy_location(place.replacement, place.original)))
        try:
            return self._compiled(place)
        finally:
            place.put(place.original)

    def _compiled(self, place: _Place) -> CodeType:
        module = compile(self._tree, str(self._full), "exec", dont_inherit=True)
        for code in _all_code(module):
            if code.co_qualname == place.function and code.co_firstlineno == place.first_line:
                return code
        raise LookupError(f"{self.path}: no code for {place.function}")

    def _diff(self, place: _Place) -> tuple[str, str]:
        node: Any = place.original
        line = self._text.splitlines()[_line(node) - 1]
        start, end = getattr(node, "col_offset", None), getattr(node, "end_col_offset", None)
        if start is None or end is None or node.end_lineno != node.lineno or isinstance(node, ast.stmt):
            indent = line[: len(line) - len(line.lstrip())]
            return line, f"{indent}{_after(place)}"
        encoded = line.encode()
        return line, (encoded[:start] + _after(place).encode() + encoded[end:]).decode()


@lru_cache(maxsize=64)
def source_file(root: Path, path: str) -> SourceFile:
    return SourceFile(root, path)


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_code(constant)


def _line(node: Any) -> int:
    return int(node.target.lineno if isinstance(node, ast.comprehension) else node.lineno)


def _header(node: ast.AST) -> str:
    """The node as source text, of a compound statement its first line."""
    if isinstance(node, ast.comprehension):
        return ast.unparse(node).strip()
    return ast.unparse(node).partition("\n")[0]


def _after(place: _Place) -> str:
    if place.operator == "statement removed":
        return "(removed)"
    if place.operator == "error not handled":
        return f"{_header(place.original)} raise"
    return _header(ast.fix_missing_locations(place.replacement))


def _places(tree: ast.Module) -> Iterator[_Place]:
    for name, function in _functions(tree.body, ""):
        if function.name not in _SKIPPED_FUNCTIONS:
            yield from _Body(name, function).places()


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Function]]:
    for node in body:
        if isinstance(node, Function):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.If) and not _for_type_checker(node):
            yield from _functions([*node.body, *node.orelse], prefix)
        elif isinstance(node, ast.Try):
            yield from _functions([*node.body, *node.orelse, *node.finalbody], prefix)


class _Body:
    """Walks over the body of one outermost function."""

    def __init__(self, name: str, function: Function) -> None:
        self._name = name
        self._function = function
        self._first_line = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])

    def places(self) -> Iterator[_Place]:
        yield from self._children(self._function)

    def _children(self, node: ast.AST) -> Iterator[_Place]:
        for field, value in ast.iter_fields(node):
            if field in _NOT_OF_THE_BODY and not isinstance(node, ast.Call):
                continue
            if isinstance(value, list):
                for index, child in enumerate(value):
                    if isinstance(child, ast.AST) and not _ignored_argument(node, field, index):
                        yield from self._visit(child, node, field, _put_item(value, index))
            elif isinstance(value, ast.AST):
                yield from self._visit(value, node, field, _put_field(node, field))

    def _visit(self, node: ast.AST, parent: ast.AST, field: str, put: Callable[[ast.AST], None]) -> Iterator[_Place]:
        if _ignored(node):
            return
        for operator, replacement in self._mutations(node, parent, field):
            yield _Place(self._name, self._first_line, operator, node, replacement, put)
        if not isinstance(node, ast.JoinedStr):
            yield from self._children(node)

    def _mutations(self, node: ast.AST, parent: ast.AST, field: str) -> Iterator[mutations.Mutation]:
        if isinstance(node, ast.expr):
            yield from mutations.of_expression(node)
        elif isinstance(node, ast.stmt):
            only = isinstance(parent, ast.If) and field == "body" and len(parent.body) == 1 and not parent.orelse
            yield from mutations.of_statement(node, only)
        elif isinstance(node, ast.ExceptHandler):
            yield from mutations.of_handler(node)
        elif isinstance(node, ast.comprehension):
            yield from mutations.of_comprehension(node)


def _put_item(items: list[Any], index: int) -> Callable[[ast.AST], None]:
    def put(node: ast.AST) -> None:
        items[index] = node

    return put


def _put_field(parent: ast.AST, field: str) -> Callable[[ast.AST], None]:
    return lambda node: setattr(parent, field, node)


def _ignored(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert | ast.Import | ast.ImportFrom | ast.ClassDef) or mutations.is_logging(node):
        return True
    if isinstance(node, Function) and node.name in _SKIPPED_FUNCTIONS:
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring, or `...`
    return isinstance(node, ast.If) and _for_type_checker(node)


def _ignored_argument(node: ast.AST, field: str, index: int) -> bool:
    """The type in `cast("Pod", value)`, and the assertion in `zip(a, b, strict=True)`."""
    if not isinstance(node, ast.Call):
        return False
    if field == "keywords":
        return mutations.is_assertion(node, node.keywords[index])
    return field == "args" and index == 0 and _name(node.func) == "cast"


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _for_type_checker(node: ast.If) -> bool:
    return _name(node.test) == "TYPE_CHECKING"
