"""Sources alone: what ends or raises is started again."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.observe.metrics import ControllerNumbers
from konverge.runtime import Request, Source
from konverge.runtime.keys import checked
from konverge.runtime.sources import listen

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-23")]

A = Request("ns", "a")


async def heard(*script: tuple[float, BaseException | None], seconds: float) -> tuple[list[float], ControllerNumbers]:
    """When a source was started that runs for so long, gives a request, and then ends or raises."""

    async def requests() -> AsyncIterator[Request]:
        starts.append(asyncio.get_running_loop().time())
        lasts, error = lines.pop(0) if lines else (1e6, None)
        await asyncio.sleep(lasts)
        yield A
        if error is not None:
            raise error

    starts: list[float] = []
    given: list[Request] = []
    lines = list(script)
    numbers = ControllerNumbers("c")
    task = asyncio.create_task(listen(Source(name="s", requests=requests), given.append, numbers))
    await asyncio.sleep(seconds)
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert given == [A] * (len(script) - len(lines))
    return starts, numbers


async def test_an_end_and_an_error_are_the_same() -> None:
    for error in (None, OSError("away")):
        starts, numbers = await heard((5, error), (5, error), seconds=30)
        first, second, third = (start - starts[0] for start in starts)
        assert first == 0
        assert 6 <= second <= 6.2
        assert 7 <= third - second <= 7.4
        assert numbers.source_restarts == {"s": 2}
        assert numbers.sources_down == {}


async def test_while_it_is_down_the_cause_is_known() -> None:
    for error, cause in ((OSError("away"), "away"), (OSError(), "OSError"), (None, "it ended")):
        _, numbers = await heard((0, error), seconds=0.5)
        assert numbers.sources_down == {"s": cause}


async def test_the_delays_double_up_to_a_minute() -> None:
    starts, _ = await heard(*[(0, None)] * 12, seconds=2000)
    gaps = [after - before for before, after in itertools.pairwise(starts)]
    for gap, least in zip(gaps, [1, 2, 4, 8, 16, 32, *[60] * 6], strict=True):
        assert least <= gap <= least * 1.2
    assert len(set(gaps)) == len(gaps)


@pytest.mark.parametrize(("lasts", "least"), [(119, 4), (121, 1)])
async def test_after_two_minutes_it_counts_as_healthy(lasts: float, least: float) -> None:
    starts, _ = await heard((0, None), (0, None), (lasts, None), seconds=300)
    assert least <= starts[3] - starts[2] - lasts <= least * 1.2


def test_only_requests_pass() -> None:
    assert checked(A) is A
    for nonsense in ("a", None, ("ns", "a")):
        given: Any = nonsense
        with pytest.raises(TypeError, match="is not a Request"):
            checked(given)
