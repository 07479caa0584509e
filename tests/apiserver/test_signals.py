"""A process that is asked to end, once or twice."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from konverge.apiserver.signals import SIGNALS, run_until_signal


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """As in a terminal: what starts the tests may ignore some, as nohup and a shell's background do."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def send(number: int) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.spec("R-04")
def test_the_first_signal_asks_and_the_second_cancels(number: signal.Signals) -> None:
    steps: list[str] = []

    async def serve(stopping: asyncio.Event) -> None:
        send(number)
        await stopping.wait()
        steps.append("asked")
        send(number)
        try:
            await asyncio.sleep(60)
        finally:
            steps.append("cancelled")

    with pytest.raises(SystemExit) as ended:
        run_until_signal(serve, cleanup=lambda: steps.append("clean"))
    assert ended.value.code == 128 + number
    assert steps == ["asked", "cancelled", "clean"]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.spec("R-04")
def test_a_signal_during_the_end_interrupts_nothing(number: signal.Signals) -> None:
    steps: list[str] = []
    before = [signal.getsignal(each) for each in SIGNALS]

    async def serve(stopping: asyncio.Event) -> None:
        send(number)
        await stopping.wait()
        steps.append("asked")

    def cleanup() -> None:
        send(number)
        steps.append("clean")

    run_until_signal(serve, cleanup=cleanup)
    assert steps == ["asked", "clean"]
    assert [signal.getsignal(each) for each in SIGNALS] == before
    assert not {*SIGNALS} & signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.spec("R-04")
def test_closing_the_terminal_ends_it_unless_that_is_ignored() -> None:
    seen: list[bool] = []

    async def serve(stopping: asyncio.Event) -> None:
        send(signal.SIGHUP)
        send(signal.SIGTERM)
        await stopping.wait()
        await asyncio.sleep(0)
        seen.append(True)

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        run_until_signal(serve)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert seen == [True], "as with nohup: only the other signal counted"
    assert signal.SIGHUP in SIGNALS


@pytest.mark.spec("R-04")
def test_what_goes_wrong_while_it_is_hurried_is_no_news_but_otherwise_it_is() -> None:
    async def fails(stopping: asyncio.Event) -> None:
        raise RuntimeError("broken")

    async def fails_when_hurried(stopping: asyncio.Event) -> None:
        send(signal.SIGTERM)
        await stopping.wait()
        send(signal.SIGTERM)
        try:
            await asyncio.sleep(60)
        finally:
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        run_until_signal(fails)
    with pytest.raises(SystemExit):
        run_until_signal(fails_when_hurried)
