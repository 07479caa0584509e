"""CEL values as text, the way the recordings were made, and the variables that the recorded expressions see."""

from __future__ import annotations

import json
from typing import Any

from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel.checker import Environment
from konverge.apiserver.cel.library.standard import double_text
from konverge.apiserver.cel.literals import UInt
from konverge.apiserver.cel.program import InstantiationError, compile_expression
from konverge.apiserver.cel.source import CompileError
from konverge.apiserver.cel.values import EvalError, Optional, type_name

ENVIRONMENT = Environment(
    {
        "x": t.INT,
        "s": t.STRING,
        "d": t.DYN,
        "li": t.list_of(t.INT),
        "ls": t.list_of(t.STRING),
        "m": t.map_of(t.STRING, t.INT),
        "b": t.BOOL,
        "f": t.DOUBLE,
    }
)
VARIABLES = {
    "x": 7,
    "s": "hello",
    "d": {"a": 1, "b": [1, "two", 3.5, None, True]},
    "li": [3, 1, 2],
    "ls": ["b", "a"],
    "m": {"k": 5},
    "b": True,
    "f": 2.5,
}


def outcome(expression: str) -> dict[str, str]:
    """What becomes of an expression: a value, an error of its evaluation, or one of its compilation."""
    try:
        return {"value": show(compile_expression(expression, ENVIRONMENT).evaluate(VARIABLES))}
    except CompileError as error:
        return {"compile": str(error)}
    except (EvalError, InstantiationError) as error:
        return {"error": str(error)}


def show(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, UInt):
        return f"{int(value)}u"
    if isinstance(value, float):
        return f"double({double_text(value)})"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return "b" + json.dumps(value.decode(), ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ", ".join(map(show, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{show(key)}: {show(item)}" for key, item in value.items())) + "}"
    if isinstance(value, Optional):
        return f"optional.of({show(value.value())})" if value.present else "optional.none()"
    name = type_name(value)
    return f"{name}({value})" if name.startswith("google.") else str(value)
