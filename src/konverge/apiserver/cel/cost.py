"""The estimated cost of an expression, before it is evaluated.

The API server refuses rules whose estimate is too high, so the estimate is part of its behaviour: this is the same
calculation, node by node. Sizes of strings, lists and maps come from the schema (`Sizes`); what has no bound there is
unbounded. Upstream: coster (cel-go checker/cost.go).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from konverge.apiserver.cel.call_costs import CallCost, library_cost, standard_cost
from konverge.apiserver.cel.cel_types import Type, is_optional
from konverge.apiserver.cel.cost_ranges import (
    LIST_COST,
    MAP_COST,
    MAX,
    ONE,
    STRUCT_COST,
    UNKNOWN,
    ZERO,
    Estimate,
    exactly,
)
from konverge.apiserver.cel.nesting import room
from konverge.apiserver.cel.nodes import Call, Fold, Ident, ListExpr, Literal, MapExpr, Node, Select, StructExpr

Path = tuple[str, ...]
Sizes = Callable[[Path], int | None]
"""The greatest size of the value at a path (`self`, `spec`, `@items`, …); None if the schema has no bound."""

_SCALARS = ("bool", "double", "duration", "int", "timestamp", "uint")


class Entries(msgspec.Struct):
    """Sizes of a container's keys and values."""

    kind: str
    key: Estimate
    value: Estimate

    def union(self, other: Entries) -> Entries:
        return Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


class Operand(msgspec.Struct):
    """An argument of a call whose cost is estimated. Upstream: AstNode."""

    node: Node
    path: Path
    size: Estimate | None
    sizes: Sizes

    @property
    def type(self) -> Type | None:
        return self.node.type

    def size_or_unknown(self) -> Estimate:
        return self.size if self.size is not None else UNKNOWN

    def estimate(self) -> Estimate:
        if self.size is not None:
            return self.size
        most = self.sizes(self.path) if self.path else None
        return UNKNOWN if most is None else Estimate(0, most)

    def item_size(self) -> tuple[Type, Estimate] | None:
        """Type and size of a list's items."""
        if self.type is None or not self.type.params:
            return None
        most = self.sizes((*self.path, "@items")) if self.path else None
        return self.type.params[0], UNKNOWN if most is None else Estimate(0, most)


class _Local(msgspec.Struct):
    path: Path
    size: Estimate | None
    entries: Entries | None


class _Coster(msgspec.Struct):
    sizes: Sizes
    paths: dict[int, Path] = msgspec.field(default_factory=dict)
    known: dict[int, Estimate] = msgspec.field(default_factory=dict)
    entries: dict[int, Entries] = msgspec.field(default_factory=dict)
    locals: dict[str, list[_Local]] = msgspec.field(default_factory=dict)

    # --- sizes

    def _local(self, name: str) -> _Local | None:
        stack = self.locals.get(name)
        return stack[-1] if stack else None

    def _path(self, node: Node) -> Path:
        if isinstance(node, Ident):
            local = self._local(node.name)
            if local is not None:
                return local.path
        return self.paths.get(id(node), ())

    def _size(self, node: Node) -> Estimate | None:
        size = self.known.get(id(node))
        if size is not None:
            return size
        size = _literal_size(node)
        if size is not None:
            return size
        path = self._path(node)
        most = self.sizes(path) if path else None
        if most is not None:
            self.known[id(node)] = Estimate(0, most)
            return self.known[id(node)]
        if node.type is not None and _is_scalar(node.type):
            return ONE
        if isinstance(node, Ident):
            local = self._local(node.name)
            return local.size if local is not None else None
        return None

    def size(self, node: Node) -> Estimate:
        return self._size(node) or UNKNOWN

    def _entry_sizes(self, node: Node) -> Entries | None:
        sizes = self.entries.get(id(node))
        if sizes is None and isinstance(node, Ident):
            local = self._local(node.name)
            return local.entries if local is not None else None
        return sizes

    # --- costs

    def cost(self, node: Node) -> Estimate:
        match node:
            case Literal():
                return ZERO
            case Ident():
                local = self._local(node.name)
                self.paths[id(node)] = local.path if local is not None else (node.name,)
                return ONE
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case ListExpr():
                return self._list(node)
            case MapExpr():
                return self._map(node)
            case StructExpr():
                return self._sum([init.value for init in node.fields]).plus(exactly(STRUCT_COST))
            case Fold():
                return self._bind(node) if node.macro == "bind" else self._fold(node)
        return ZERO

    def _sum(self, nodes: list[Node]) -> Estimate:
        total = ZERO
        for node in nodes:
            total = total.plus(self.cost(node))
        return total

    def _select(self, node: Select) -> Estimate:
        if node.ident:
            self.paths[id(node)] = (node.ident,)
            return ONE
        total = self.cost(node.operand)
        if node.test:
            return total
        if node.operand.type is not None and node.operand.type.kind in ("map", "struct", "param"):
            total = total.plus(ONE)
        self.paths[id(node)] = (*self._path(node.operand), node.field)
        return total

    def _list(self, node: ListExpr) -> Estimate:
        total = self._sum(node.items)
        value = _hull([self.size(item) for item in node.items])
        self.entries[id(node)] = Entries("list", ONE, value)
        return total.plus(exactly(LIST_COST))

    def _map(self, node: MapExpr) -> Estimate:
        total = ZERO
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
        keys = _hull([self.size(entry.key) for entry in node.entries])
        values = _hull([self.size(entry.value) for entry in node.entries])
        self.entries[id(node)] = Entries("map", keys, values)
        return total.plus(exactly(MAP_COST))

    def _fold(self, node: Fold) -> Estimate:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push(node.accu, self._path(node.init), self._size(node.init), self._entry_sizes(node.init))
        self._push_loop(node)
        rounds = self.cost(node.condition).plus(self.cost(node.step))
        for name in (node.var, node.var2):
            if name:
                self.locals[name].pop()
        total = total.plus(self.cost(node.result))
        self.locals[node.accu].pop()
        count = self.size(node.range)
        total = total.plus(count.times(rounds))
        if isinstance(node.init, Literal):
            size = self._size(node.init)
            if size is not None:
                self.known[id(node)] = size
        elif isinstance(node.init, (ListExpr, MapExpr)):
            self.known[id(node)] = count
            step = self._entry_sizes(node.step)
            if step is not None:
                self.entries[id(node)] = step
        return total

    def _push(self, name: str, path: Path, size: Estimate | None, entries: Entries | None = None) -> None:
        self.locals.setdefault(name, []).append(_Local(path, size, entries))

    def _push_loop(self, node: Fold) -> None:
        entries, path = self._entry_sizes(node.range), self._path(node.range)
        kind = entries.kind if entries is not None else node.range.type.kind if node.range.type is not None else ""
        is_list = kind == "list"
        key = entries.key if entries is not None else None
        value = entries.value if entries is not None else None
        if node.var2:
            self._push(node.var, (*path, "@indices" if is_list else "@keys"), key)
            self._push(node.var2, (*path, "@items" if is_list else "@values"), value)
        else:
            self._push(node.var, (*path, "@items" if is_list else "@keys"), value if is_list else key)

    def _bind(self, node: Fold) -> Estimate:
        total = self.cost(node.range).plus(self.cost(node.init))
        self._push(node.accu, self._path(node.init), self._size(node.init), self._entry_sizes(node.init))
        total = total.plus(self.cost(node.result))
        self._copy_sizes(node, node.result)
        self.locals[node.accu].pop()
        return total

    def _copy_sizes(self, to: Node, source: Node) -> None:
        size, entries = self._size(source), self._entry_sizes(source)
        if size is not None:
            self.known[id(to)] = size
        if entries is not None:
            self.entries[id(to)] = entries

    # --- calls

    def _operand(self, node: Node) -> Operand:
        path = self._path(node)
        if path and path[0] in ("@result", "__result__"):
            path = ()
        return Operand(node, path, self._size(node), self.sizes)

    def _call(self, node: Call) -> Estimate:
        if node.function == "dyn":
            total = self.cost(node.args[0]).plus(ONE)
            self._copy_sizes(node, node.args[0])
            return total
        costs = [self.cost(arg) for arg in node.args]
        operands = [self._operand(arg) for arg in node.args]
        if not node.overloads:
            return ZERO
        total = ZERO
        if node.target is not None:
            total = self.cost(node.target)
            operands.insert(0, self._operand(node.target))
        cheapest = Estimate(MAX, 0)
        result: Estimate | None = None
        for overload in node.overloads:
            call_cost = self._overload(node, overload, operands, costs)
            cheapest = cheapest.union(call_cost.cost)
            if call_cost.size is not None:
                result = call_cost.size if result is None else result.union(call_cost.size)
            result = self._indexed(node, overload, result)
            if result is None:
                result = self._size(node)
        if result is not None:
            self.known[id(node)] = result
        return total.plus(cheapest)

    def _indexed(self, node: Call, overload: str, result: Estimate | None) -> Estimate | None:
        step = {"index_list": "@items", "index_map": "@values"}.get(overload)
        if step is None:
            return result
        entries = self._entry_sizes(node.args[0])
        self.paths[id(node)] = (*self._path(node.args[0]), step)
        return entries.value if entries is not None else None

    def _overload(self, node: Call, overload: str, operands: list[Operand], costs: list[Estimate]) -> CallCost:
        given = ZERO
        for cost in costs:
            given = given.plus(cost)
        library = library_cost(node.function, overload, operands)
        if library is not None:
            return CallCost(library.cost.plus(given), library.size)
        if overload in ("logical_and", "logical_or"):
            return CallCost(Estimate(costs[0].low, costs[0].plus(costs[1]).high))
        if overload == "conditional":
            self._join_entries(node, node.args[1], node.args[2])
            size = operands[1].size_or_unknown().union(operands[2].size_or_unknown())
            return CallCost(costs[0].plus(costs[1].union(costs[2])), size)
        if overload in ("add_string", "add_bytes", "add_list"):
            self._join_entries(node, node.args[0], node.args[1])
        standard = standard_cost(overload, operands)
        return CallCost(standard.cost.plus(given), standard.size)

    def _join_entries(self, node: Node, left: Node, right: Node) -> None:
        first, second = self._entry_sizes(left), self._entry_sizes(right)
        if first is not None and second is not None:
            self.entries[id(node)] = first.union(second)


def _hull(sizes: list[Estimate]) -> Estimate:
    if not sizes:
        return ZERO
    return Estimate(min(size.low for size in sizes), max(size.high for size in sizes))


def _is_scalar(type_: Type) -> bool:
    return type_.kind in _SCALARS or (is_optional(type_) and _is_scalar(type_.params[0]))


def _literal_size(node: Node) -> Estimate | None:
    match node:
        case Literal():
            value: Any = node.value
            return exactly(len(value)) if isinstance(value, (str, bytes)) else ONE
        case ListExpr():
            return exactly(len(node.items))
        case MapExpr():
            return exactly(len(node.entries))
    return None


def estimate(tree: Node, sizes: Sizes) -> Estimate:
    """The least and the greatest cost of an expression."""
    with room():
        return _Coster(sizes).cost(tree)
