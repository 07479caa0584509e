"""Compiled expressions.

    program = compile_expression("self.min <= self.max", Environment({"self": type_of_schema}))
    program.evaluate({"self": {...}})

Compiling parses, checks types and builds closures; a CompileError has the message that the API server gives for the
same error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.apiserver.cel.cel_types import Type
from konverge.apiserver.cel.checker import Checked, Environment, check
from konverge.apiserver.cel.nesting import SHALLOW, nesting, room
from konverge.apiserver.cel.nodes import Call, Literal, Node, children
from konverge.apiserver.cel.parser import parse
from konverge.apiserver.cel.planner import Planner
from konverge.apiserver.cel.values import EvalError
from konverge.apiserver.go.regexp import RegexError, compile_pattern

CALL_LIMIT = 1_000_000
"""The cost of one evaluation: about a tenth of a second upstream. Upstream: PerCallLimit (apis/cel/config.go)."""


class Program:
    """An expression that can be evaluated."""

    __slots__ = ("_deep", "_evaluate", "_order", "_size", "checked")

    def __init__(self, checked: Checked, environment: Environment) -> None:
        planner = Planner(environment.variables)
        self._evaluate = planner.plan(checked.tree)
        self._size = planner.size
        self._order = planner.slots
        self._deep = nesting(checked.tree) > SHALLOW
        self.checked = checked

    @property
    def type(self) -> Type:
        return self.checked.type

    def names(self) -> set[str]:
        """The variables that the expression uses."""
        return self.checked.used

    def uses(self, name: str) -> bool:
        return name in self.checked.used

    def evaluate(self, variables: Mapping[str, Any], limit: int = CALL_LIMIT) -> Any:
        """The value; raises EvalError."""
        return self.measured(variables, limit)[0]

    def measured(self, variables: Mapping[str, Any], limit: int = CALL_LIMIT) -> tuple[Any, int]:
        """The value and its cost."""
        frame: list[Any] = [None] * self._size
        frame[0] = limit
        for name, value in variables.items():
            frame[self._order[name]] = value
        if self._deep:
            with room():
                value = self._evaluate(frame)
        else:
            value = self._evaluate(frame)
        return value, limit - frame[0] + 1


class InstantiationError(Exception):
    """A well-typed expression that cannot have a value: a constant that cannot be converted, a broken pattern."""


def compile_expression(text: str, environment: Environment) -> Program:
    """Raises CompileError, or InstantiationError."""
    source, tree = parse(text)
    with room():
        program = Program(check(source, tree, environment), environment)
        _check_constants(tree, set())
    return program


_CONVERSIONS = frozenset(("bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"))


def _check_constants(node: Node, seen: set[int]) -> None:  # upstream: OptOptimize (cel-go cel/options.go)
    """Conversions of constants, and constant patterns, fail here and not in an evaluation."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, Call) and node.args:
        try:
            if node.function in _CONVERSIONS and _is_constant(node.args[0]):
                Planner({}).plan(node)([CALL_LIMIT])
            elif node.function in ("find", "findAll") and isinstance(node.args[0], Literal):
                compile_pattern(node.args[0].value)
        except (EvalError, RegexError) as error:
            raise InstantiationError(str(error)) from None
    for child in children(node):
        _check_constants(child, seen)


def _is_constant(node: Node) -> bool:
    if isinstance(node, Call) and node.function in (*_CONVERSIONS, "dyn") and node.args:
        return _is_constant(node.args[0])
    return isinstance(node, Literal)
