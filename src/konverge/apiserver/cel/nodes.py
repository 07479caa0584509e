"""The syntax tree. Every node has its offset in the text; the checker adds its type and overloads.

Macros are expanded while parsing, as the language defines them: `all`, `map` and the others become a `Fold`. The
expansion is type checked, and its cost is estimated; for evaluation a fold also keeps the macro that it came from,
because a loop for one macro is much faster than the general fold. Upstream: cel-go common/ast.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge.apiserver.cel.cel_types import Type


@dataclass(slots=True, eq=False, kw_only=True)
class Node:
    offset: int
    type: Type | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Literal(Node):
    value: Any


@dataclass(slots=True, eq=False, kw_only=True)
class Ident(Node):
    name: str


@dataclass(slots=True, eq=False, kw_only=True)
class Select(Node):
    operand: Node
    field: str
    test: bool = False
    """has(operand.field)"""
    ident: str = ""
    """Set by the checker when the whole selection is the name of one variable."""


@dataclass(slots=True, eq=False, kw_only=True)
class Call(Node):
    function: str
    args: list[Node]
    target: Node | None = None
    overloads: list[str] = field(default_factory=list)
    """Ids of the overloads that may apply; filled in by the checker."""


@dataclass(slots=True, eq=False, kw_only=True)
class ListExpr(Node):
    items: list[Node]
    optional: set[int] = field(default_factory=set)


@dataclass(slots=True, eq=False, kw_only=True)
class Entry:
    offset: int
    key: Node
    value: Node
    optional: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class MapExpr(Node):
    entries: list[Entry]


@dataclass(slots=True, eq=False, kw_only=True)
class FieldInit:
    offset: int
    name: str
    value: Node
    optional: bool = False


@dataclass(slots=True, eq=False, kw_only=True)
class StructExpr(Node):
    name: str
    fields: list[FieldInit]


@dataclass(slots=True, eq=False, kw_only=True)
class Fold(Node):
    range: Node
    var: str
    var2: str = ""
    accu: str
    init: Node
    condition: Node
    step: Node
    result: Node
    macro: str = ""
    """all, exists, exists_one, map, filter, transform_map, transform_entry, bind"""
    body: Node | None = None
    """What the macro evaluates for each element: its predicate or its transformation."""
    filter: Node | None = None


class Failed(Node):
    """Takes the place of an expression with an error."""


def children(node: Node) -> list[Node]:
    match node:
        case Select():
            return [node.operand]
        case Call():
            return ([node.target] if node.target is not None else []) + node.args
        case ListExpr():
            return node.items
        case MapExpr():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case StructExpr():
            return [init.value for init in node.fields]
        case Fold():
            extra = [child for child in (node.body, node.filter) if child is not None]
            return [node.range, node.init, node.condition, node.step, node.result, *extra]
    return []
