"""Laws of CEL that hold for all values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.apiserver.cel import cel_types as t
from konverge.apiserver.cel.checker import Environment
from konverge.apiserver.cel.literals import UInt
from konverge.apiserver.cel.program import InstantiationError, Program, compile_expression
from konverge.apiserver.cel.source import CompileError
from konverge.apiserver.cel.values import EvalError
from tests.apiserver.cel.show import outcome

LOW, HIGH, UNSIGNED = -(2**63), 2**63 - 1, 2**64 - 1
INTS = st.integers(LOW, HIGH) | st.sampled_from([LOW, LOW + 1, -1, 0, 1, HIGH - 1, HIGH])
UINTS = st.integers(0, UNSIGNED).map(UInt)
DOUBLES = st.floats(allow_nan=False)
NUMBERS = INTS | UINTS | DOUBLES
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=3) | st.binary(max_size=3)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)
DYNAMIC = Environment({"a": t.DYN, "b": t.DYN})
TYPED = Environment({"a": t.INT, "b": t.INT})


def run(program: Program, a: Any, b: Any) -> Any:
    try:
        return program.evaluate({"a": a, "b": b})
    except EvalError as error:
        return str(error)


def truncated(a: int, b: int) -> int:
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a / b": truncated,
    "a % b": lambda a, b: a - truncated(a, b) * b,
}


@pytest.mark.spec("S-13")
@pytest.mark.parametrize("text", ARITHMETIC)
@settings(deadline=None)
@given(a=INTS, b=INTS)
def test_integers_are_exact_or_overflow(text: str, a: int, b: int) -> None:
    result = run(compile_expression(text, TYPED), a, b)
    if b == 0 and text[2] in "/%":
        assert result == ("division by zero" if text[2] == "/" else "modulus by zero")
        return
    exact = ARITHMETIC[text](a, b)
    overflows = not LOW <= exact <= HIGH or (text == "a % b" and (a, b) == (LOW, -1))
    assert result == ("integer overflow" if overflows else exact)


@pytest.mark.spec("S-13")
@settings(deadline=None)
@given(NUMBERS, NUMBERS)
def test_numbers_of_all_types_stand_on_one_line(a: Any, b: Any) -> None:
    below, above, equal = (compile_expression(f"a {sign} b", DYNAMIC) for sign in ("<", ">", "=="))
    assert [run(below, a, b), run(above, a, b), run(equal, a, b)].count(True) == 1
    assert run(below, a, b) == run(above, b, a)


@pytest.mark.spec("S-13")
@settings(deadline=None)
@given(VALUES, VALUES)
def test_equality_is_total_and_symmetric(a: Any, b: Any) -> None:
    equal, different = compile_expression("a == b", DYNAMIC), compile_expression("a != b", DYNAMIC)
    assert run(equal, a, a) is True
    assert run(equal, a, b) is run(equal, b, a)
    assert run(different, a, b) is (not run(equal, a, b))


@pytest.mark.spec("S-13")
def test_nothing_equals_not_a_number() -> None:
    assert run(compile_expression("a == a", DYNAMIC), math.nan, 0) is False


OPERANDS = st.sampled_from(["true", "false", "1 / 0 == 1", "d.zzz"])


@pytest.mark.spec("S-13")
@settings(deadline=None)
@given(OPERANDS, OPERANDS, st.sampled_from(["&&", "||"]))
def test_and_and_or_absorb_errors_from_either_side(left: str, right: str, sign: str) -> None:
    deciding = "false" if sign == "&&" else "true"
    result, mirrored = outcome(f"{left} {sign} {right}"), outcome(f"{right} {sign} {left}")
    if deciding in (left, right):
        assert result == mirrored == {"value": deciding}
    elif "true" not in (left, right) and "false" not in (left, right):
        assert "error" in result


SIGNS = (*"()[]{}.,:?!-+*/%<>é$'\n", "&&", "||", "==", "!=", "<=", "[?", ".?", '"""', "r'\\'", "0x", "1e", "2u", "1.5")
NAMES = ("'a'", "b'a'", "true", "null", "in", "for", "package", "x", "s", "li", "d", "all", "map", "has", "size")
WORDS = st.sampled_from(SIGNS) | st.sampled_from(NAMES)


def error(text: str) -> str:
    """What is wrong with a text as an expression."""
    try:
        compile_expression(text, Environment({"x": t.INT, "s": t.STRING, "li": t.list_of(t.INT), "d": t.DYN}))
    except CompileError as error:
        return str(error)
    except InstantiationError:
        return ""
    return ""


@pytest.mark.spec("S-13")
@settings(deadline=None)
@given(st.lists(WORDS, max_size=14).map(" ".join) | st.lists(WORDS, max_size=10).map("".join) | st.text(max_size=12))
def test_any_text_is_an_expression_or_refused_with_a_position(text: str) -> None:
    message = error(text)
    assert not message or message.startswith("ERROR: <input>:")


@pytest.mark.spec("S-13")
@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("(" * 249 + "1" + ")" * 249, ""),
        ("(" * 250 + "1" + ")" * 250, "expression recursion limit exceeded: 250"),
        ("[" * 250 + "]" * 250, ""),
        ("[" * 251 + "]" * 251, "expression recursion limit exceeded: 250"),
        ("1" + "+1" * 250, ""),
        ("1" + "+1" * 251, "max recursion depth exceeded"),
        ("1" + "+1" * 5000, "max recursion depth exceeded"),
        ("d" + ".a" * 251, "max recursion depth exceeded"),
        ("d" + "[0]" * 250, ""),
        ("true" + "&&true" * 5000, ""),
        ("!" * 5000 + "true", ""),
    ],
    ids=lambda text: str(text)[:10],
)
def test_the_depth_of_expressions_is_limited(text: str, wrong: str) -> None:
    assert error(text) == (f"ERROR: <input>:-1:0: {wrong}" if wrong else "")
    assert set(outcome(text)) <= ({"compile"} if wrong else {"value", "error"})
