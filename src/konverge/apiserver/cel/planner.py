"""From a checked tree to closures.

A compiled expression is a function of one list: its first member is the cost that is left, the others are variables at
positions known when the expression is compiled. Types are known too, so most operators need not test their operands;
only where something is `dyn`, the overload is chosen at run time. Upstream: cel-go interpreter/planner.go.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from konverge.apiserver.cel import comprehensions
from konverge.apiserver.cel.cel_types import Type
from konverge.apiserver.cel.dispatch import dispatcher
from konverge.apiserver.cel.library import implementations
from konverge.apiserver.cel.library.standard import index_list, index_map
from konverge.apiserver.cel.nodes import Call, Fold, Ident, ListExpr, Literal, MapExpr, Node, Select, StructExpr
from konverge.apiserver.cel.runtime_cost import cost_of
from konverge.apiserver.cel.values import (
    NONE,
    CostExceeded,
    EvalError,
    Evaluate,
    Optional,
    TypeValue,
    equal,
    no_overload,
)

_SCALARS = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_TYPE_NAMES = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration", "null": "null_type"}


class Planner:
    """Compiles one expression; `slots` are the positions of its variables."""

    def __init__(self, variables: Mapping[str, Type]) -> None:
        self.slots = {name: index + 1 for index, name in enumerate(variables)}
        self.size = len(self.slots) + 1
        self._local: list[tuple[str, int]] = []

    def declare(self, name: str) -> int:
        """A position for a variable of a loop."""
        place = self.size
        self.size += 1
        self._local.append((name, place))
        return place

    def forget(self, count: int) -> None:
        del self._local[len(self._local) - count :]

    def plan(self, node: Node) -> Evaluate:
        return _PLANS[type(node)](self, node)

    def _variable(self, node: Node, name: str) -> Evaluate:
        bare = name.removeprefix(".")
        if bare == name:
            for known, place in reversed(self._local):
                if known == name:
                    return operator.itemgetter(place)
        if bare in self.slots:
            return operator.itemgetter(self.slots[bare])
        assert node.type is not None
        return _constant(_type_value(node.type.params[0], bare))

    def _select(self, node: Select) -> Evaluate:
        if node.ident:
            return self._variable(node, node.ident)
        operand, field = self.plan(node.operand), node.field
        kind = node.operand.type.kind if node.operand.type is not None else "dyn"
        if node.test:
            return _test(operand, field)
        if kind in ("struct", "map"):
            return _member(operand, field)
        return _any_member(operand, field)

    def _list(self, node: ListExpr) -> Evaluate:
        items = [self.plan(item) for item in node.items]
        if not node.optional:
            return lambda frame: [item(frame) for item in items]
        optional = node.optional

        def build(frame: list[Any]) -> list[Any]:
            result: list[Any] = []
            for index, item in enumerate(items):
                value = item(frame)
                if index not in optional:
                    result.append(value)
                elif value.present:
                    result.append(value.value())
            return result

        return build

    def _map(self, node: MapExpr) -> Evaluate:
        return _build_map([(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in node.entries])

    def _struct(self, node: StructExpr) -> Evaluate:
        fields = _build_map([(_constant(init.name), self.plan(init.value), init.optional) for init in node.fields])
        return lambda frame: Struct(node.name, fields(frame))

    def _call(self, node: Call) -> Evaluate:
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(self, node)
        operands = ([node.target] if node.target is not None else []) + node.args
        plans = [self.plan(operand) for operand in operands]
        types = [operand.type for operand in operands]
        function = _function(node, types)
        return _apply(function, plans, cost_of(node.function))

    # --- operators that evaluate their operands themselves

    def _equality(self, node: Call) -> Evaluate:
        left, right = (self.plan(arg) for arg in node.args)
        kinds = {arg.type.kind for arg in node.args if arg.type is not None}
        plain = len(kinds) == 1 and kinds <= set(_SCALARS)
        if node.function == "_==_":
            if plain:
                return lambda frame: left(frame) == right(frame)
            return lambda frame: equal(left(frame), right(frame))
        if plain:
            return lambda frame: left(frame) != right(frame)
        return lambda frame: not equal(left(frame), right(frame))

    def _logical(self, node: Call) -> Evaluate:
        """`&&` is decided by False, `||` by True: on either side, and whatever the other side is."""
        left, right = (self.plan(arg) for arg in node.args)
        decisive = node.function == "_||_"
        other = not decisive

        def evaluate(frame: list[Any]) -> Any:
            try:
                first = left(frame)
            except CostExceeded:
                raise
            except EvalError:
                if right(frame) is decisive:
                    return decisive
                raise
            if first is decisive:
                return decisive
            second = right(frame)
            if second is decisive:
                return decisive
            if first is other and second is other:
                return other
            raise no_overload()

        return evaluate

    def _not(self, node: Call) -> Evaluate:
        operand = self.plan(node.args[0])

        def negate(frame: list[Any]) -> bool:
            value = operand(frame)
            if value is True:
                return False
            if value is False:
                return True
            raise no_overload()

        return negate

    def _conditional(self, node: Call) -> Evaluate:
        condition, yes, no = (self.plan(arg) for arg in node.args)

        def choose(frame: list[Any]) -> Any:
            chosen = condition(frame)
            if chosen is True:
                return yes(frame)
            if chosen is False:
                return no(frame)
            raise no_overload()

        return choose

    def _index(self, node: Call) -> Evaluate:
        container, index = (self.plan(arg) for arg in node.args)
        kind = node.args[0].type.kind if node.args[0].type is not None else "dyn"
        if kind == "map":
            return lambda frame: index_map(container(frame), index(frame))
        if kind == "list":
            return lambda frame: index_list(container(frame), index(frame))
        return lambda frame: _index_any(container(frame), index(frame))

    def _optional_select(self, node: Call) -> Evaluate:
        operand, name = self.plan(node.args[0]), node.args[1]
        assert isinstance(name, Literal)
        return lambda frame: _optional_member(operand(frame), name.value)

    def _or_value(self, node: Call) -> Evaluate:
        assert node.target is not None
        optional, other = self.plan(node.target), self.plan(node.args[0])

        def choose(frame: list[Any]) -> Any:
            value = optional(frame)
            if not isinstance(value, Optional):
                raise no_overload()
            if value.present:
                return value.value() if node.function == "orValue" else value
            return other(frame)

        return choose


_PLANS: dict[type[Node], Callable[[Planner, Any], Evaluate]] = {
    Literal: lambda planner, node: _constant(node.value),
    Ident: lambda planner, node: planner._variable(node, node.name),
    Select: Planner._select,
    Call: Planner._call,
    ListExpr: Planner._list,
    MapExpr: Planner._map,
    StructExpr: Planner._struct,
    Fold: comprehensions.plan,
}
_SPECIAL: dict[str, Callable[[Planner, Call], Evaluate]] = {
    "_==_": Planner._equality,
    "_!=_": Planner._equality,
    "_&&_": Planner._logical,
    "_||_": Planner._logical,
    "!_": Planner._not,
    "_?_:_": Planner._conditional,
    "_[_]": Planner._index,
    "_?._": Planner._optional_select,
    "or": Planner._or_value,
    "orValue": Planner._or_value,
}


class Struct(dict[str, Any]):
    """A message constructed by an expression: `Object{…}`, `JSONPatch{…}`."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.name = name


def _constant(value: Any) -> Evaluate:
    return lambda frame: value


def _build_map(entries: list[tuple[Evaluate, Evaluate, bool]]) -> Evaluate:
    """Keys, values, and whether the value is an optional that may be absent."""

    def build(frame: list[Any]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, value, optional in entries:
            made = value(frame)
            if not optional:
                result[key(frame)] = made
            elif made.present:
                result[key(frame)] = made.value()
        return result

    return build


def _type_value(type_: Type, name: str) -> TypeValue:
    shown = type_.name or _TYPE_NAMES.get(type_.kind, type_.kind)
    return TypeValue(shown if shown != "param" else name)


def _member(operand: Evaluate, field: str) -> Evaluate:
    def get(frame: list[Any]) -> Any:
        value = operand(frame)
        try:
            return value[field]
        except (KeyError, TypeError, IndexError):
            raise EvalError(f"no such key: {field}") from None

    return get


def _any_member(operand: Evaluate, field: str) -> Evaluate:
    def get(frame: list[Any]) -> Any:
        value = operand(frame)
        if isinstance(value, dict) and field in value:
            return value[field]
        if isinstance(value, Optional):
            return _optional_member(value, field)
        raise EvalError(f"no such key: {field}")

    return get


def _test(operand: Evaluate, field: str) -> Evaluate:
    def has(frame: list[Any]) -> bool:
        value = operand(frame)
        if isinstance(value, Optional):
            value = value.value() if value.present else None
        return isinstance(value, dict) and field in value

    return has


def _optional_member(value: Any, field: str) -> Optional:
    if isinstance(value, Optional):
        if not value.present:
            return NONE
        value = value.value()
    if not isinstance(value, dict):
        raise EvalError(f"no such key: {field}")
    return Optional(value[field]) if field in value else NONE


def _index_any(container: Any, index: Any) -> Any:
    if isinstance(container, list):
        if isinstance(index, float) and index.is_integer():
            index = int(index)
        if not isinstance(index, int) or isinstance(index, bool):
            raise EvalError(f"unsupported index type '{type(index).__name__}' in list")
        return index_list(container, index)
    if isinstance(container, dict):
        return index_map(container, index)
    if isinstance(container, Optional):
        return NONE if not container.present else Optional(_index_any(container.value(), index))
    raise EvalError(f"no such key: {index}")


def _function(node: Call, types: list[Type | None]) -> Callable[..., Any]:
    if len(node.overloads) == 1 and not any(type_ is None or type_.kind in ("dyn", "error") for type_ in types):
        return implementations()[node.overloads[0]]
    return dispatcher(node.function, member=node.target is not None)


def _apply(function: Callable[..., Any], plans: list[Evaluate], cost: Callable[..., int] | None) -> Evaluate:
    if cost is not None:
        return _counted(function, plans, cost)
    if len(plans) == 1:
        only = plans[0]
        return lambda frame: function(only(frame))
    if len(plans) == 2:
        first, second = plans
        return lambda frame: function(first(frame), second(frame))
    return lambda frame: function(*[plan(frame) for plan in plans])


def _counted(function: Callable[..., Any], plans: list[Evaluate], cost: Callable[..., int]) -> Evaluate:
    """A function whose cost grows with its arguments."""

    def call(frame: list[Any]) -> Any:
        args = [plan(frame) for plan in plans]
        frame[0] -= cost(*args)
        if frame[0] < 0:
            raise CostExceeded
        return function(*args)

    return call
