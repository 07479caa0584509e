"""What the fixtures of the plugin do, apart from it so that a suite without them loads nothing."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge.sim import Cluster, VirtualLoop
from konverge.testing.loops import VIRTUAL_LIMIT, TestLoop
from konverge.testing.marks import Marks
from konverge.testing.real import RealCluster, serving


@contextmanager
def loop_of(request: pytest.FixtureRequest, seed: int) -> Iterator[TestLoop]:
    """The loop of a test: on real time where it uses `real_cluster` or says so in its mark."""
    values = Marks.of(request.node).values
    real = values.get("real", "real_cluster" in request.fixturenames)
    factory: Any = asyncio.new_event_loop if real else functools.partial(VirtualLoop, seed)
    with asyncio.Runner(loop_factory=factory) as runner:
        yield TestLoop(runner, limit=values.get("timeout", None if real else VIRTUAL_LIMIT))


@asynccontextmanager
async def cluster_of(request: pytest.FixtureRequest, seed: int) -> AsyncIterator[Cluster]:
    if "real_cluster" in request.fixturenames:
        raise pytest.UsageError(f"{request.node.nodeid}: a test has a `cluster` or a `real_cluster`, not both")
    marks = Marks.of(request.node)
    async with Cluster(seed=seed, faults=marks.faults(seed), **marks.cluster) as cluster:
        yield cluster


def real_cluster_of(
    request: pytest.FixtureRequest, loop: TestLoop, folder: Path
) -> AbstractContextManager[RealCluster]:
    marks = Marks.of(request.node)
    if loop.virtual:
        raise pytest.UsageError(
            f"{request.node.nodeid}: real_cluster needs the machine's clock: name it among the test's arguments, or "
            "mark the test with @pytest.mark.konverge(real=True)"
        )
    if marks.values.get("faults"):
        raise pytest.UsageError(f"{request.node.nodeid}: faults are for `cluster`; real_cluster has none")
    return serving(folder, tls=marks.values.get("tls", True), **marks.cluster)


def on_loop(function: Any, request: pytest.FixtureRequest, loop: TestLoop) -> Callable[..., Any]:
    """An async fixture as a plain function; without the attributes by which other plugins know it as theirs."""

    def bound() -> Any:
        """As a method of the test's own instance."""
        if inspect.ismethod(function) and type(function.__self__) is type(request.instance):
            return function.__func__.__get__(request.instance)
        return function

    if inspect.iscoroutinefunction(function):
        return lambda *args, **kwargs: loop.run(bound()(*args, **kwargs))

    def fixture(*args: Any, **kwargs: Any) -> Iterator[Any]:
        held = loop.enter(asynccontextmanager(bound())(*args, **kwargs))
        yield held.value
        held.leave()

    return fixture
