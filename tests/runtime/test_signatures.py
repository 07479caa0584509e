"""The functions of a declaration are checked where they are given."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.runtime.signatures import require_arguments, takes


class Asynchronous:
    async def __call__(self, one: Any) -> None: ...


class Silent:
    """Says nothing of its arguments, as some functions in C."""

    __signature__ = "none"

    def __call__(self, one: Any) -> None: ...


async def asynchronous(one: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "counts"),
    [
        (lambda: None, [0]),
        (lambda one: None, [1]),
        (lambda one, two=2: None, [1, 2]),
        (lambda *all_: None, [0, 1, 2, 3]),
        (lambda one, *, named: None, []),
        (Silent(), [0, 1, 2, 3]),
        (iter, [0, 1, 2, 3]),
    ],
)
def test_how_many_arguments_a_function_takes(function: Any, counts: list[int]) -> None:
    assert [count for count in range(4) if takes(function, count)] == counts


@pytest.mark.parametrize(
    ("function", "count", "text"),
    [
        (5, 1, "when is 5, which cannot be called: write when=lambda pod: …"),
        (asynchronous, 1, "when is asynchronous, and events do not wait: write when=lambda pod: …, without async"),
        (Asynchronous(), 1, "when is asynchronous, and events do not wait: write when=lambda pod: …, without async"),
        (lambda: None, 1, "when cannot be called with one argument: write when=lambda pod: …"),
        (lambda one: None, 2, "when cannot be called with 2 arguments: write when=lambda pod: …"),
    ],
)
def test_what_cannot_be_called_so_is_refused_with_an_example(function: Any, count: int, text: str) -> None:
    with pytest.raises(TypeError) as refused:
        require_arguments(function, count, "when", "when=lambda pod: …")
    assert str(refused.value) == text


def test_what_can_be_called_is_accepted() -> None:
    require_arguments(lambda one: None, 1, "when", "")
    require_arguments(str, 1, "when", "")
