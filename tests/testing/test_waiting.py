"""`eventually` and `settled`."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from konverge.client import MergePatch, NotFound
from konverge.objects.kinds.core_v1 import Namespace
from konverge.objects.meta import Status
from konverge.sim import Cluster
from konverge.sim.cluster import Unsettled
from konverge.testing import eventually, settled


class Later:
    """Gives its values one after the other, then the last one for ever; errors are raised."""

    def __init__(self, *values: object) -> None:
        self.values = list(values)

    def __call__(self) -> object:
        value = self.values.pop(0) if len(self.values) > 1 else self.values[0]
        if isinstance(value, BaseException):
            raise value
        return value

    async def asynchronously(self) -> object:
        await asyncio.sleep(0)
        return self()


@pytest.mark.spec("O-45")
@pytest.mark.virtual
async def test_the_value_is_returned_when_it_holds() -> None:
    loop = asyncio.get_running_loop()
    assert await eventually(Later(None, False, AssertionError("no"), "yes")) == "yes"
    assert loop.time() == pytest.approx(0.3)
    assert await eventually(Later(None, 0).asynchronously) == 0, "only None and False mean: not yet"
    later = Later(False, [])
    assert await eventually(lambda: later.asynchronously(), interval=5) == []
    assert loop.time() == pytest.approx(5.4)


@pytest.mark.spec("O-45")
@pytest.mark.virtual
async def test_the_last_value_or_error_is_shown() -> None:
    with pytest.raises(AssertionError, match=r"^is it so does not hold after 60 s: the last value was False$"):
        await eventually(Later(False), message="is it so")
    assert asyncio.get_running_loop().time() == pytest.approx(60)
    with pytest.raises(AssertionError, match=r"after 7 s: the last error was AssertionError: 2 pods") as caught:
        await eventually(Later(AssertionError("1 pod"), AssertionError("2 pods")), timeout=7)
    assert isinstance(caught.value.__cause__, AssertionError)
    assert asyncio.get_running_loop().time() == pytest.approx(67)


@pytest.mark.spec("O-45")
@pytest.mark.virtual
async def test_an_object_that_is_not_there_may_come_and_other_errors_end_the_wait() -> None:
    missing = NotFound(Status(code=404, reason="NotFound", message='pods "a" not found'))
    assert await eventually(Later(missing, "here")) == "here"
    with pytest.raises(ZeroDivisionError):
        await eventually(Later(ZeroDivisionError()))


@pytest.mark.spec("O-45")
@pytest.mark.virtual
async def test_the_condition_is_asked_once_more_at_the_deadline() -> None:
    loop = asyncio.get_running_loop()
    assert await eventually(lambda: loop.time() >= 10, timeout=10, interval=3)
    assert loop.time() == 10


@pytest.mark.spec("O-45")
@pytest.mark.virtual
async def test_settled_waits_for_the_cluster() -> None:
    async with Cluster(controllers=False) as cluster:
        await settled(cluster)
        assert cluster.server.store.revision > 0
        writer = asyncio.create_task(_write_for_ever(cluster))
        with pytest.raises(Unsettled):
            await settled(cluster, timeout=20)
        writer.cancel()
        await asyncio.wait([writer])


async def _write_for_ever(cluster: Cluster) -> None:
    for number in itertools.count():
        body = MergePatch({"metadata": {"annotations": {"number": str(number)}}})
        await cluster.client.patch(Namespace, "default", body)
        await asyncio.sleep(0.5)
