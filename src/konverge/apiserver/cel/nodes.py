"""The syntax tree. Every node has its offset in the text; the checker adds its type and overloads.

Macros are expanded while parsing, as the language defines them: `all`, `map` and the others become a `Fold`. The
expansion is type checked, and its cost is estimated; for evaluation a fold also keeps the macro that it came from,
because a loop for one macro is much faster than the general fold. Upstream: cel-go common/ast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from konverge.apiserver.cel.cel_types import Type


class Node(msgspec.Struct, eq=False, kw_only=True):
    offset: int
    type: Type | None = None


class Literal(Node, eq=False, kw_only=True):
    value: Any


class Ident(Node, eq=False, kw_only=True):
    name: str


class Select(Node, eq=False, kw_only=True):
    operand: Node
    field: str
    test: bool = False
    """has(operand.field)"""
    ident: str = ""
    """Set by the checker when the whole selection is the name of one variable."""


class Call(Node, eq=False, kw_only=True):
    function: str
    args: list[Node]
    target: Node | None = None
    overloads: list[str] = msgspec.field(default_factory=list)
    """Ids of the overloads that may apply; filled in by the checker."""


class ListExpr(Node, eq=False, kw_only=True):
    items: list[Node]
    optional: set[int] = msgspec.field(default_factory=set)


class Entry(msgspec.Struct, eq=False, kw_only=True):
    offset: int
    key: Node
    value: Node
    optional: bool = False


class MapExpr(Node, eq=False, kw_only=True):
    entries: list[Entry]


class FieldInit(msgspec.Struct, eq=False, kw_only=True):
    offset: int
    name: str
    value: Node
    optional: bool = False


class StructExpr(Node, eq=False, kw_only=True):
    name: str
    fields: list[FieldInit]


class Fold(Node, eq=False, kw_only=True):
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
