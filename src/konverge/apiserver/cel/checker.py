"""Type checking: every node gets its type, every call the overloads that may apply.

What compiles upstream compiles here, and what does not is refused with the same message at the same position.
Upstream: cel-go checker/checker.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel import literal_validation
from konverge.apiserver.cel.cel_types import Bindings, Type
from konverge.apiserver.cel.declarations import Overload, functions
from konverge.apiserver.cel.literals import UInt
from konverge.apiserver.cel.nodes import (
    Call,
    Failed,
    Fold,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
    children,
)
from konverge.apiserver.cel.source import CompileError, Problem, Source

# Names that stand for a type itself: `type(x) == int`.
_TYPE_NAMES = {name: Type(name) for name in ("bool", "int", "uint", "double", "string", "bytes")} | {
    "list": t.list_of(t.DYN),
    "map": t.map_of(t.DYN, t.DYN),
    "null_type": t.NULL,
    "type": Type("type"),
    "google.protobuf.Timestamp": t.TIMESTAMP,
    "google.protobuf.Duration": t.DURATION,
    "optional_type": t.optional_of(t.param("V")),
    "net.IP": t.opaque("net.IP"),
    "net.CIDR": t.opaque("net.CIDR"),
    "kubernetes.Quantity": t.struct("kubernetes.Quantity"),
    "kubernetes.URL": t.struct("kubernetes.URL"),
}


class Environment(msgspec.Struct, frozen=True):
    """The variables of an expression, and the structs that it may construct (`Object{…}`)."""

    variables: Mapping[str, Type]
    structs: Mapping[str, Type] = msgspec.field(default_factory=dict)
    patches: bool = False
    """Expressions of a mutating policy, which have functions of their own."""


class Checked(msgspec.Struct):
    """An expression whose nodes have types."""

    source: Source
    tree: Node
    type: Type
    used: set[str]
    """Variables of the environment that the expression refers to."""


def check(source: Source, tree: Node, environment: Environment) -> Checked:
    checker = _Checker(environment)
    checker.check(tree)
    if checker.problems:
        raise CompileError(source, checker.problems)
    checker.settle(tree)
    assert tree.type is not None
    problems = literal_validation.check(tree)
    if problems:
        raise CompileError(source, problems)
    return Checked(source, tree, tree.type, checker.used)


class _Checker:
    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._scopes: list[dict[str, Type]] = []
        self._bindings = Bindings()
        self._fresh = 0
        self.problems: list[Problem] = []
        self.used: set[str] = set()
        self._settled: set[int] = set()

    # --- helpers

    def _problem(self, offset: int, message: str) -> None:
        self.problems.append(Problem(offset, message))

    def _assignable(self, left: Type, right: Type) -> bool:
        attempt = self._bindings.copy()
        if attempt.assignable(left, right):
            self._bindings = attempt
            return True
        return False

    def _variable(self) -> Type:
        self._fresh += 1
        return t.param(f"_var{self._fresh - 1}")

    def _now(self, type_: Type) -> Type:
        return self._bindings.substitute(type_)

    def _lookup(self, name: str) -> Type | None:
        bare = name.removeprefix(".")
        if bare == name:
            for scope in reversed(self._scopes):
                if name in scope:
                    return scope[name]
        variable = self._environment.variables.get(bare)
        if variable is not None:
            self.used.add(bare)
            return variable
        known = _TYPE_NAMES.get(bare) or self._environment.structs.get(bare)
        return t.type_of(known) if known is not None else None

    # --- nodes

    def check(self, node: Node) -> Type:
        node.type = type_ = _CHECKS[type(node)](self, node)
        return type_

    def _ident(self, node: Ident) -> Type:
        type_ = self._lookup(node.name)
        if type_ is None:
            self._undeclared(node.offset, node.name)
            return t.ERROR
        return type_

    def _undeclared(self, offset: int, name: str) -> None:
        self._problem(offset, f"undeclared reference to '{name}' (in container '')")

    def _select(self, node: Select) -> Type:
        qualified = _qualified(node) if not node.test else None
        if qualified is not None and not self._is_local(qualified.partition(".")[0]):
            variable = self._lookup(qualified) if "." in qualified else None
            if variable is not None:
                node.ident = qualified
                return variable
        result = self._field(node.offset, node.operand, node.field, optional=False)
        return t.BOOL if node.test else self._now(result)

    def _is_local(self, name: str) -> bool:
        return any(name in scope for scope in self._scopes)

    def _field(self, offset: int, operand: Node, name: str, *, optional: bool) -> Type:
        target, was_optional = t.unwrap(self._now(self.check(operand)))
        result = t.ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct" and target.fields is not None:
            declared = target.fields.get(name)
            if declared is None:
                self._problem(offset, f"undefined field '{name}'")
            else:
                result = declared
        elif target.kind == "struct":
            self._problem(offset, f"unexpected failed resolution of '{target.name}'")
        elif target.kind == "param":
            self._assignable(t.DYN, target)
            result = t.DYN
        else:
            if target.kind not in ("dyn", "error"):
                self._problem(offset, f"type '{target}' does not support field selection")
            result = t.DYN
        return t.optional_of(result) if optional or was_optional else result

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            name = node.args[1]
            assert isinstance(name, Literal)
            selected = self._now(self._field(node.offset, node.args[0], name.value, optional=True))
            name.type = t.STRING
            node.overloads = ["select_optional_field"]
            return selected
        for arg in node.args:
            self.check(arg)
        if node.target is not None:
            qualified = _qualified(node.target)
            if qualified is not None and f"{qualified}.{node.function}" in functions():
                node.function, node.target = f"{qualified}.{node.function}", None
            else:
                self.check(node.target)
        declared = functions().get(node.function.removeprefix("."))
        if declared is None or (node.function == "jsonpatch.escapeKey" and not self._environment.patches):
            self._undeclared(node.offset, node.function)
            return t.ERROR
        node.function = node.function.removeprefix(".")
        return self._resolve(node, declared)

    def _resolve(self, node: Call, declared: list[Overload]) -> Type:  # upstream: resolveOverload
        if node.function in ("_&&_", "_||_"):
            return self._logical(node)
        given = tuple(arg.type or t.ERROR for arg in ([node.target] if node.target is not None else []) + node.args)
        result: Type | None = None
        for overload in declared:
            if overload.member != (node.target is not None):
                continue
            types, returned = self._instance(overload)
            attempt = self._bindings.copy()
            if not attempt.assignable_all(given, types):
                continue
            self._bindings = attempt
            node.overloads.append(overload.id)
            candidate = self._now(returned)
            if result is None:
                result = candidate
            elif result.kind != "dyn" and candidate != result:
                result = t.DYN
        if result is None:
            shown = [self._bindings.substitute(type_, free_is_dyn=True) for type_ in given]
            signature = _signature(shown, member=node.target is not None)
            self._problem(node.offset, f"found no matching overload for '{node.function}' applied to '{signature}'")
            return t.ERROR
        return result

    def _instance(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """The overload with fresh type variables."""
        if not overload.variables:
            return overload.args, overload.result
        fresh = Bindings({variable: self._variable() for variable in overload.variables})
        return tuple(fresh.substitute(arg) for arg in overload.args), fresh.substitute(overload.result)

    def _logical(self, node: Call) -> Type:
        node.overloads = ["logical_and" if node.function == "_&&_" else "logical_or"]
        good = True
        for arg in node.args:
            assert arg.type is not None
            if not self._assignable(arg.type, t.BOOL):
                self._problem(arg.offset, f"expected type 'bool' but found '{arg.type}'")
                good = False
        return t.BOOL if good else t.ERROR

    def _join(self, before: Type | None, type_: Type) -> Type:
        """The common type of the elements of a literal; that they have one is checked later (`literal_validation`)."""
        if before is None:
            return type_
        return t.most_general(before, type_) if self._assignable(before, type_) else t.DYN

    def _element(self, node: Node, *, optional: bool) -> Type:
        type_ = self.check(node)
        if not optional:
            return type_
        inner, was_optional = t.unwrap(type_)
        if not was_optional and inner.kind != "dyn":
            self._problem(node.offset, f"expected type '{t.optional_of(inner)}' but found '{inner}'")
        return inner

    def _list(self, node: ListExpr) -> Type:
        common: Type | None = None
        for index, item in enumerate(node.items):
            common = self._join(common, self._element(item, optional=index in node.optional))
        return t.list_of(common if common is not None else self._variable())

    def _map(self, node: MapExpr) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            keys = self._join(keys, self.check(entry.key))
            values = self._join(values, self._element(entry.value, optional=entry.optional))
        if keys is None or values is None:
            return t.map_of(self._variable(), self._variable())
        return t.map_of(keys, values)

    def _struct(self, node: StructExpr) -> Type:
        struct = self._environment.structs.get(node.name)
        if struct is None:
            self._undeclared(node.offset, node.name)
            return t.ERROR
        for init in node.fields:
            given = self._element(init.value, optional=init.optional)
            declared = (struct.fields or {}).get(init.name)
            if declared is None:
                self._problem(init.offset, f"undefined field '{init.name}'")
            elif not self._assignable(declared, given):
                message = f"expected type of field '{init.name}' is '{declared}' but provided type is '{given}'"
                self._problem(init.offset, message)
        return struct

    def _fold(self, node: Fold) -> Type:  # upstream: checkComprehension
        self.check(node.range)
        accu = self.check(node.init)
        assert node.range.type is not None
        over = self._now(node.range.type)
        first, second = self._iterated(node, over)
        self._scopes.append({node.accu: accu})
        self._scopes.append({node.var: first, **({node.var2: second} if node.var2 else {})})
        self._assert(node.condition, t.BOOL)
        self._assert(node.step, accu)
        self._scopes.pop()
        result = self.check(node.result)
        self._scopes.pop()
        return self._now(result)

    def _assert(self, node: Node, wanted: Type) -> None:
        type_ = self.check(node)
        if not self._assignable(wanted, type_):
            self._problem(node.offset, f"expected type '{wanted}' but found '{type_}'")

    def _iterated(self, node: Fold, over: Type) -> tuple[Type, Type]:
        """The types of the loop's variables."""
        if over.kind == "list":
            return (t.INT, over.params[0]) if node.var2 else (over.params[0], t.ERROR)
        if over.kind == "map":
            return over.params[0], over.params[1]
        if over.kind in ("dyn", "error", "param"):
            self._assignable(t.DYN, over)
            return t.DYN, t.DYN
        message = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._problem(node.range.offset, message)
        return t.ERROR, t.ERROR

    # --- after the check

    def settle(self, node: Node) -> None:
        """Replace type variables by their types; those without one are dyn."""
        if id(node) in self._settled:
            return
        self._settled.add(id(node))
        if node.type is not None:
            node.type = self._bindings.substitute(node.type, free_is_dyn=True)
        for inner in children(node):
            self.settle(inner)


_CHECKS: dict[type[Node], Callable[[_Checker, Any], Type]] = {
    Literal: lambda checker, node: _literal(node.value),
    Ident: _Checker._ident,
    Select: _Checker._select,
    Call: _Checker._call,
    ListExpr: _Checker._list,
    MapExpr: _Checker._map,
    StructExpr: _Checker._struct,
    Fold: _Checker._fold,
    Failed: lambda checker, node: t.ERROR,
}


def _literal(value: object) -> Type:
    if isinstance(value, bool):
        return t.BOOL
    if isinstance(value, UInt):
        return t.UINT
    return {int: t.INT, float: t.DOUBLE, str: t.STRING, bytes: t.BYTES}.get(type(value), t.NULL)


def _qualified(node: Node) -> str | None:
    """`a.b.c` as a name, if it is one."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        inner = _qualified(node.operand)
        return f"{inner}.{node.field}" if inner is not None else None
    return None


def _signature(types: list[Type], *, member: bool) -> str:
    head = f"{types[0]}." if member else ""
    return f"{head}({', '.join(map(str, types[1:] if member else types))})"
