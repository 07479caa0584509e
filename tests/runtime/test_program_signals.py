"""A program in this process: what signals and errors make of it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import types
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from konverge.cache.informer import CacheTooLarge
from konverge.client import ClientError, ConnectionFailed
from konverge.runtime.alongside import first_error
from konverge.runtime.caches import CacheNotSynced
from konverge.runtime.config import Configuration, ConfigurationError
from konverge.runtime.elector import LeadershipLost
from konverge.runtime.manager import MissingPermissions
from konverge.runtime.program import AT_ONCE, SIGNALS, fast_loop, run_program, run_until_signal, serve_until_signal
from konverge.wire.errors import WireError

pytestmark = pytest.mark.spec("R-01", "R-04")


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """Within how many seconds, and with which status, this process was to be ended."""
    ordered: list[tuple[float, int]] = []
    monkeypatch.setattr("konverge.runtime.program._end_process_within", lambda *limit: ordered.append(limit))
    return ordered


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class Serving:
    """What a program knows of a manager."""

    name = "shop"
    config = Configuration()

    def __init__(self, serve: Callable[[asyncio.Event], Awaitable[None]]) -> None:
        self.serve = serve
        self.dedicated = False


def program(serve: Callable[[asyncio.Event], Awaitable[None]]) -> Any:
    return Serving(serve)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


def test_an_interrupt_before_there_are_handlers_ends_as_shells_expect() -> None:
    async def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        run_until_signal(interrupted())
    assert ended.value.code == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_asks_for_an_orderly_end(number: signal.Signals) -> None:
    async def serve(stop: asyncio.Event) -> None:
        assert not stop.is_set()
        send(number)
        await stop.wait()
        ended.append(number)

    ended: list[signal.Signals] = []
    manager = program(serve)
    await serve_until_signal(manager)
    assert ended == [number]
    assert manager.dedicated


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("error", [None, RuntimeError("while it was cancelled")])
def test_the_second_signal_ends_it_at_once_with_its_status(
    number: signal.Signals, error: Exception | None, limits: list[tuple[float, int]]
) -> None:
    async def serve(stop: asyncio.Event) -> None:
        send(signal.SIGTERM)
        await stop.wait()
        send(number)
        try:
            await asyncio.Event().wait()
        finally:
            if error is not None:
                raise error

    with pytest.raises(SystemExit) as caught:
        run_program(program(serve))
    assert caught.value.code == 128 + number
    assert limits == [(AT_ONCE, 128 + number)]


def test_after_the_first_signal_an_end_in_order_is_no_error_and_another_signal_ends_the_process(
    limits: list[tuple[float, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def serve(stop: asyncio.Event) -> None:
        send(signal.SIGTERM)
        await stop.wait()

    run_program(program(serve))
    assert limits == []
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    send(signal.SIGTERM)
    send(signal.SIGINT)
    assert ended == [143, 130]


def raising(error: BaseException) -> Any:
    async def serve(stop: asyncio.Event) -> None:
        raise error

    return program(serve)


@pytest.mark.parametrize(
    "error",
    [
        ConnectionFailed("wrong"),
        ClientError("wrong"),
        WireError("wrong"),
        CacheNotSynced("wrong"),
        CacheTooLarge("wrong"),
        ConfigurationError("wrong"),
        LeadershipLost("wrong"),
        MissingPermissions("wrong"),
        ExceptionGroup("several", [LeadershipLost("wrong"), ClientError("because of it")]),
        ExceptionGroup("several", [ExceptionGroup("more", [MissingPermissions("wrong")])]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_a_user_can_mend_is_one_line(error: Exception) -> None:
    with pytest.raises(SystemExit) as caught:
        run_program(raising(error))
    assert caught.value.code == "shop: wrong"


def test_a_defect_is_raised_with_its_traceback() -> None:
    with pytest.raises(Exception, match=r".*") as caught:
        run_program(raising(ZeroDivisionError("a defect")))
    assert isinstance(first_error(caught.value), ZeroDivisionError)


def test_an_orderly_end_is_no_error() -> None:
    async def serve(stop: asyncio.Event) -> None:
        served.append(asyncio.get_running_loop())

    served: list[Any] = []
    run_program(program(serve))
    assert len(served) == 1
    assert served[0].is_closed()


def test_a_program_runs_on_the_fast_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(stop: asyncio.Event) -> None:
        served.append(asyncio.get_running_loop())

    served: list[Any] = []
    made: list[Any] = []

    def loop() -> Any:
        made.append(asyncio.new_event_loop())
        return made[0]

    monkeypatch.setattr("konverge.runtime.program.fast_loop", loop)
    run_program(program(serve))
    assert served == made


def test_the_loop_is_the_fast_one_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = object()
    module = types.ModuleType("uvloop")
    module.new_event_loop = lambda: made  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "uvloop", module)
    assert fast_loop() is made  # type: ignore[comparison-overlap]
    monkeypatch.setitem(sys.modules, "uvloop", None)
    loop = fast_loop()
    assert isinstance(loop, asyncio.SelectorEventLoop)
    loop.close()
