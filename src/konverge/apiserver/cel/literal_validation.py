"""Validation of literals beyond their types: mixed lists, bad durations, bad patterns, bad format strings.

Upstream: cel-go cel/validator.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from konverge.apiserver.cel import formatting
from konverge.apiserver.cel.cel_types import Type
from konverge.apiserver.cel.nodes import Call, ListExpr, Literal, MapExpr, Node, children
from konverge.apiserver.cel.source import Problem
from konverge.apiserver.cel.timestamps import parse_duration, parse_timestamp
from konverge.apiserver.go.regexp import RegexError, compile_pattern


def check(tree: Node) -> list[Problem]:
    problems: list[Problem] = []
    seen: set[int] = set()
    _walk(tree, problems, seen, exempt=False)
    return problems


def _walk(node: Node, problems: list[Problem], seen: set[int], *, exempt: bool) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    match node:
        case ListExpr() if not exempt:
            problems += _list(node)
        case MapExpr() if not exempt:
            problems += _map(node)
        case Call():
            problems += _call(node)
    inner = exempt or (isinstance(node, Call) and node.function == "format")
    for child in children(node):
        _walk(child, problems, seen, exempt=inner)


def _type(node: Node, *, optional: bool = False) -> Type:
    assert node.type is not None
    return node.type.params[0] if optional and node.type.params else node.type


def _mismatch(node: Node, wanted: Type, given: Type) -> Problem:
    return Problem(node.offset, f"expected type '{wanted}' but found '{given}'")


def _list(node: ListExpr) -> Iterator[Problem]:
    wanted: Type | None = None
    for index, item in enumerate(node.items):
        given = _type(item, optional=index in node.optional)
        if wanted is None:
            wanted = given
        elif given != wanted:
            yield _mismatch(item, wanted, given)
            return


def _map(node: MapExpr) -> Iterator[Problem]:
    wanted: tuple[Type, Type] | None = None
    for entry in node.entries:
        given = _type(entry.key), _type(entry.value, optional=entry.optional)
        if wanted is None:
            wanted = given
            continue
        if given[0] != wanted[0]:
            yield _mismatch(entry.key, wanted[0], given[0])
        if given[1] != wanted[1]:
            yield _mismatch(entry.value, wanted[1], given[1])


def _call(node: Call) -> Iterator[Problem]:
    first = node.args[0] if node.args else None
    if isinstance(first, Literal) and isinstance(first.value, str):
        wrong = {"duration": _bad_duration, "timestamp": _bad_timestamp, "matches": _bad_pattern}.get(node.function)
        if wrong is not None and wrong(first.value):
            yield Problem(first.offset, f"invalid {node.function} argument")
    if node.function == "format" and isinstance(node.target, Literal) and isinstance(first, ListExpr):
        yield from formatting.check(node, node.target.value, first)


def _bad_duration(text: str) -> bool:
    return parse_duration(text) is None


def _bad_timestamp(text: str) -> bool:
    return parse_timestamp(text) is None


def _bad_pattern(text: str) -> bool:
    try:
        compile_pattern(text)
    except RegexError:
        return True
    return False
