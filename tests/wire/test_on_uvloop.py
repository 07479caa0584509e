"""The tests over real sockets once more, on uvloop; of long tables of inputs only some rows."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from . import (
    test_connection,
    test_pool,
    test_proxy,
    test_server,
    test_server_connection,
    test_socks,
    test_stream,
    test_tls,
)

uvloop = pytest.importorskip("uvloop")

_MODULES = (
    test_connection,
    test_pool,
    test_proxy,
    test_server,
    test_server_connection,
    test_socks,
    test_stream,
    test_tls,
)


def _is_virtual(function: Any) -> bool:
    return any(mark.name == "virtual" for mark in getattr(function, "pytestmark", []))


def _cases() -> Iterator[Any]:
    for module in _MODULES:
        for name, function in vars(module).items():
            if name.startswith("test_") and inspect.iscoroutinefunction(function) and not _is_virtual(function):
                for number, arguments in enumerate(_parameters(function)):
                    yield pytest.param(
                        function, arguments, id=f"{module.__name__.rpartition('.')[2]}-{name[5:]}-{number}"
                    )


def _parameters(function: Any) -> Iterator[dict[str, Any]]:
    """Every combination of a test's parametrize marks."""
    marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == "parametrize"]
    for row in itertools.product(*(_some(list(mark.args[1])) for mark in marks)):
        arguments: dict[str, Any] = {}
        for mark, values in zip(marks, row, strict=True):
            names = mark.args[0]
            arguments |= {names: values} if isinstance(names, str) else dict(zip(names, values, strict=True))
        yield arguments


def _some(values: list[Any]) -> list[Any]:
    return values if len(values) <= 4 else values[::4]


@pytest.mark.parametrize(("function", "arguments"), list(_cases()))
def test_on_uvloop(function: Any, arguments: dict[str, Any], request: pytest.FixtureRequest) -> None:
    wanted = inspect.signature(function).parameters
    fixtures = {name: request.getfixturevalue(name) for name in wanted if name not in arguments}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop, debug=True) as runner:
        runner.get_loop().slow_callback_duration = 10.0
        runner.run(function(**arguments, **fixtures))
        left = asyncio.all_tasks(runner.get_loop())
    assert not left
