"""The small mistakes that a mutant makes: which changes of a function are tried.

A mutation replaces one node of a function's syntax tree by another. Left out is what no test should look at: logging,
texts for people (a string with a space in it), annotations, assertions (`zip(…, strict=True)` is one), `__repr__` and
`__str__`, code for the type checker; and what runs at import time (decorators, default values, class bodies), because a
mutant is put into modules that are loaded already.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

Mutation = tuple[str, ast.AST]
"""The name of the operator, and the node that replaces the original one."""

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_NEGATED = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list"}
_LOGGERS = frozenset({"log", "_log", "logger", "_logger", "logging", "warnings"})
_TEXTS = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)


def is_text(node: ast.AST) -> bool:
    """Whether this is a text for people, of which the exact words do not matter to a program."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and any(character.isspace() for character in node.value)
    return isinstance(node, ast.JoinedStr) and any(is_text(part) for part in node.values)


def is_logging(node: ast.AST) -> bool:
    """Whether this is the call of a logger (or a statement of nothing else)."""
    if isinstance(node, ast.Expr):
        return is_logging(node.value)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    name = owner.attr if isinstance(owner, ast.Attribute) else owner.id if isinstance(owner, ast.Name) else ""
    return name in _LOGGERS


def is_assertion(call: ast.Call, keyword: ast.keyword) -> bool:
    """Whether this is the `strict=True` of a `zip`."""
    return keyword.arg == "strict" and isinstance(call.func, ast.Name) and call.func.id == "zip"


def of_expression(node: ast.expr) -> Iterator[Mutation]:
    match node:
        case ast.Compare():
            yield from _compare(node)
        case ast.BoolOp():
            swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "and/or", ast.BoolOp(swapped, node.values)
            for number in range(len(node.values)):
                rest = node.values[:number] + node.values[number + 1 :]
                yield "operand dropped", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.UnaryOp(op=ast.Not()):
            yield "not dropped", node.operand
        case ast.IfExp() if not isinstance(node.test, ast.Compare | ast.UnaryOp):  # those have mutants of their own
            yield "condition negated", ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.BinOp():
            other = _ARITHMETIC.get(type(node.op))
            if other and not any(isinstance(side, _TEXTS) or _is_string(side) for side in (node.left, node.right)):
                yield "arithmetic", ast.BinOp(node.left, other(), node.right)
        case ast.Call():
            yield from _call(node)
        case ast.Constant():
            yield from _constant(node)
        case ast.JoinedStr() if not is_text(node):
            yield "string emptied", ast.Constant("")


def of_statement(node: ast.stmt, only: bool) -> Iterator[Mutation]:
    """`only`: it is the whole body of an `if` without `else`, whose condition is mutated in any case."""
    match node:
        case ast.If():
            for value in (True, False):
                yield f"condition {value}", ast.If(ast.Constant(value), node.body, node.orelse)
        case ast.While() if not isinstance(node.test, ast.Constant):
            yield "condition False", ast.While(ast.Constant(False), node.body, node.orelse)
        case ast.Return(value=None):
            if not only:
                yield "statement removed", _never(node)
        case ast.Return():
            yield from _return(node)
        case ast.Expr(value=ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom()):
            if not only:
                yield "statement removed", _never(node)
        case ast.Raise() | ast.Delete() | ast.AugAssign():
            if not only:
                yield "statement removed", _never(node)
            if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC and not _is_string(node.value):
                yield "arithmetic", ast.AugAssign(node.target, _ARITHMETIC[type(node.op)](), node.value)
        case ast.Assign() if not any(isinstance(target, ast.Name | ast.Tuple) for target in node.targets):
            if not only:
                yield "statement removed", _never(node)
        case ast.Break():
            yield "break/continue", ast.Continue()
        case ast.Continue():
            yield "break/continue", ast.Break()


def of_handler(node: ast.ExceptHandler) -> Iterator[Mutation]:
    if not isinstance(node.body[0], ast.Raise):
        yield "error not handled", ast.ExceptHandler(node.type, node.name, [ast.Raise()])


def of_comprehension(node: ast.comprehension) -> Iterator[Mutation]:
    for number in range(len(node.ifs)):
        rest = node.ifs[:number] + node.ifs[number + 1 :]
        yield "filter dropped", ast.comprehension(node.target, node.iter, rest, node.is_async)


def _never(node: ast.stmt) -> ast.If:
    """Without the statement, and with the same local and free variables, as the function's closures need them."""
    return ast.If(ast.Constant(False), [node], [])


def _compare(node: ast.Compare) -> Iterator[Mutation]:
    for number, operator in enumerate(node.ops):
        other = _COMPARE[type(operator)]()
        name = "comparison negated" if isinstance(operator, _NEGATED) else "comparison at the edge"
        yield name, ast.Compare(node.left, [*node.ops[:number], other, *node.ops[number + 1 :]], node.comparators)


def _call(node: ast.Call) -> Iterator[Mutation]:
    for number, keyword in enumerate(node.keywords):
        if keyword.arg is not None and not is_text(keyword.value) and not is_assertion(node, keyword):
            rest = node.keywords[:number] + node.keywords[number + 1 :]
            yield "keyword dropped", ast.Call(node.func, node.args, rest)
    if isinstance(node.func, ast.Name) and node.func.id in _OPPOSITE and node.args:
        keywords = [] if node.func.id == "sorted" else node.keywords
        yield "opposite function", ast.Call(ast.Name(_OPPOSITE[node.func.id], ast.Load()), node.args, keywords)


def _constant(node: ast.Constant) -> Iterator[Mutation]:
    value = node.value
    if isinstance(value, bool):
        yield "constant", ast.Constant(not value)
    elif isinstance(value, int | float):
        yield "constant", ast.Constant(value + 1)
        if value == 1:
            yield "constant", ast.Constant(value - 1)
    elif isinstance(value, str) and value and not is_text(node):
        yield "string emptied", ast.Constant("")


def _return(node: ast.Return) -> Iterator[Mutation]:
    value = node.value
    if isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool)):
        return  # a bool is swapped as a constant
    if isinstance(value, ast.Compare | ast.BoolOp) or (
        isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    ):
        for constant in (True, False):
            yield f"returns {constant}", ast.Return(ast.Constant(constant))
    else:
        yield "returns None", ast.Return(ast.Constant(None))


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
