"""Macros: calls that are rewritten while parsing.

Upstream: cel-go parser/macro.go; ext/comprehensions.go, ext/lists.go and cel/library.go (optionals).
"""

from __future__ import annotations

from collections.abc import Callable

from konverge.apiserver.cel.nodes import Call, Fold, Ident, ListExpr, Literal, MapExpr, Node, Select

ACCU = "@result"
_OLD_ACCU = "__result__"
_SORT_INPUT = "@__sortBy_input__"


class MacroError(ValueError):
    def __init__(self, offset: int, message: str) -> None:
        super().__init__(message)
        self.offset = offset


def expand(offset: int, name: str, target: Node | None, args: list[Node], *, bindings: bool) -> Node | None:
    """The expansion of a macro call; None if it is an ordinary call. `bindings`: cel.bind() is one of them."""
    if target is None:
        return _has(offset, args[0]) if name == "has" and len(args) == 1 else None
    if bindings and name == "bind" and len(args) == 3 and isinstance(target, Ident) and target.name == "cel":
        return _named_bind(offset, *args)
    macro = _MACROS.get((name, len(args)))
    return macro(offset, target, args) if macro is not None else None


def _has(offset: int, arg: Node) -> Node:
    if not isinstance(arg, Select):
        raise MacroError(arg.offset, "invalid argument to has() macro")
    return Select(offset=offset, operand=arg.operand, field=arg.field, test=True)


def _call(offset: int, function: str, *args: Node) -> Call:
    return Call(offset=offset, function=function, args=list(args))


def _accu(offset: int) -> Ident:
    return Ident(offset=offset, name=ACCU)


def _simple(arg: Node, message: str) -> str:
    if not isinstance(arg, Ident):
        raise MacroError(arg.offset, message)
    if arg.name in (ACCU, _OLD_ACCU):
        raise MacroError(arg.offset, "iteration variable overwrites accumulator variable")
    return arg.name


def _variables(args: list[Node]) -> tuple[str, str]:
    """The names of one or two variables; the second is "" where there is one."""
    message = "argument must be a simple name"
    names: list[str] = []
    for arg in args:
        if not isinstance(arg, Ident):
            raise MacroError(arg.offset, message)
        if arg.name in names:
            raise MacroError(arg.offset, f"duplicate variable name: {arg.name}")
        names.append(arg.name)
    first, *second = (_simple(arg, message) for arg in args)
    return first, second[0] if second else ""


def _fold(
    at: int,
    target: Node,
    variables: tuple[str, str],
    macro: str,
    body: Node,
    *,
    init: Node,
    step: Node,
    condition: Node | None = None,
    result: Node | None = None,
    filters: list[Node] | None = None,
) -> Fold:
    if filters:
        step = _call(at, "_?_:_", filters[0], step, _accu(at))
    return Fold(
        offset=at,
        range=target,
        var=variables[0],
        var2=variables[1],
        accu=ACCU,
        init=init,
        condition=condition or Literal(offset=at, value=True),
        step=step,
        result=result or _accu(at),
        macro=macro,
        body=body,
        filter=filters[0] if filters else None,
    )


def _all(at: int, target: Node, args: list[Node]) -> Node:
    *names, body = args
    condition = _call(at, "@not_strictly_false", _accu(at))
    step, init = _call(at, "_&&_", _accu(at), body), Literal(offset=at, value=True)
    return _fold(at, target, _variables(names), "all", body, init=init, step=step, condition=condition)


def _exists(at: int, target: Node, args: list[Node]) -> Node:
    *names, body = args
    condition = _call(at, "@not_strictly_false", _call(at, "!_", _accu(at)))
    step, init = _call(at, "_||_", _accu(at), body), Literal(offset=at, value=False)
    return _fold(at, target, _variables(names), "exists", body, init=init, step=step, condition=condition)


def _exists_one(at: int, target: Node, args: list[Node]) -> Node:
    *names, body = args
    more = _call(at, "_+_", _accu(at), Literal(offset=at, value=1))
    step, init = _call(at, "_?_:_", body, more, _accu(at)), Literal(offset=at, value=0)
    result = _call(at, "_==_", _accu(at), Literal(offset=at, value=1))
    return _fold(at, target, _variables(names), "exists_one", body, init=init, step=step, result=result)


def _map(at: int, target: Node, args: list[Node]) -> Node:
    return _to_list(at, target, (_simple(args[0], "argument is not an identifier"), ""), args[1:])


def _filter(at: int, target: Node, args: list[Node]) -> Node:
    variables = (_simple(args[0], "argument is not an identifier"), "")
    return _to_list(at, target, variables, [args[1], args[0]], "filter")


def _transform_list(at: int, target: Node, args: list[Node]) -> Node:
    return _to_list(at, target, _variables(args[:2]), args[2:])


def _to_list(at: int, target: Node, variables: tuple[str, str], rest: list[Node], macro: str = "map") -> Fold:
    *filters, body = rest
    step, init = _call(at, "_+_", _accu(at), ListExpr(offset=at, items=[body])), ListExpr(offset=at, items=[])
    return _fold(at, target, variables, macro, body, init=init, step=step, filters=filters)


def _transform_map(at: int, target: Node, args: list[Node]) -> Node:
    variables = _variables(args[:2])
    return _to_map(at, target, variables, args[2:], "transform_map", Ident(offset=at, name=variables[0]))


def _transform_entry(at: int, target: Node, args: list[Node]) -> Node:
    return _to_map(at, target, _variables(args[:2]), args[2:], "transform_entry")


def _to_map(at: int, target: Node, variables: tuple[str, str], rest: list[Node], macro: str, *key: Node) -> Fold:
    *filters, body = rest
    step, init = _call(at, "cel.@mapInsert", _accu(at), *key, body), MapExpr(offset=at, entries=[])
    return _fold(at, target, variables, macro, body, init=init, step=step, filters=filters)


def _bind(at: int, name: str, value: Node, body: Node) -> Fold:
    """`body` with a local variable: a fold over an empty list."""
    return Fold(
        offset=at,
        range=ListExpr(offset=at, items=[]),
        var="#unused",
        accu=name,
        init=value,
        condition=Literal(offset=at, value=False),
        step=Ident(offset=at, name=name),
        result=body,
        macro="bind",
    )


def _named_bind(at: int, variable: Node, value: Node, body: Node) -> Node:
    """`cel.bind(variable, value, body)`. Upstream: ext.Bindings (cel-go)."""
    if not isinstance(variable, Ident):
        raise MacroError(variable.offset, "cel.bind() variable names must be simple identifiers")
    return _bind(at, variable.name, value, body)


def _optional_map(flat: bool) -> Macro:
    def expand_optional(at: int, target: Node, args: list[Node]) -> Node:
        if not isinstance(args[0], Ident):
            name = "optFlatMap" if flat else "optMap"
            raise MacroError(args[0].offset, f"{name}() variable name must be a simple identifier")
        present = Call(offset=at, function="hasValue", args=[], target=target)
        value = Call(offset=at, function="value", args=[], target=target)
        mapped: Node = _bind(at, args[0].name, value, args[1])
        if not flat:
            mapped = _call(at, "optional.of", mapped)
        return _call(at, "_?_:_", present, mapped, _call(at, "optional.none"))

    return expand_optional


def _sort_by(at: int, target: Node, args: list[Node]) -> Node:
    if isinstance(target, (Literal, MapExpr)):
        message = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(target.offset, message)
    keys = _map(at, Ident(offset=at, name=_SORT_INPUT), args)
    values = Ident(offset=at, name=_SORT_INPUT)
    call = Call(offset=at, function="@sortByAssociatedKeys", args=[keys], target=values)
    return _bind(at, _SORT_INPUT, target, call)


Macro = Callable[[int, Node, list[Node]], Node]
_MACROS: dict[tuple[str, int], Macro] = {
    ("all", 2): _all,
    ("all", 3): _all,
    ("exists", 2): _exists,
    ("exists", 3): _exists,
    ("exists_one", 2): _exists_one,
    ("exists_one", 3): _exists_one,
    ("existsOne", 3): _exists_one,
    ("map", 2): _map,
    ("map", 3): _map,
    ("filter", 2): _filter,
    ("transformList", 3): _transform_list,
    ("transformList", 4): _transform_list,
    ("transformMap", 3): _transform_map,
    ("transformMap", 4): _transform_map,
    ("transformMapEntry", 3): _transform_entry,
    ("transformMapEntry", 4): _transform_entry,
    ("optMap", 2): _optional_map(flat=False),
    ("optFlatMap", 2): _optional_map(flat=True),
    ("sortBy", 2): _sort_by,
}
