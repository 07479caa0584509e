"""What the fixtures of the plugin do, apart from it so that a suite without them loads nothing."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from konverge.sim import Cluster, VirtualLoop
from konverge.testing.loops import VIRTUAL_LIMIT, TestLoop
from konverge.testing.marks import Marks
from konverge.testing.operators import RunOperator
from konverge.testing.real import RealCluster, serving
from konverge.testing.scene import SCENE, Scene


@contextmanager
def scene_of(request: pytest.FixtureRequest, seed: int) -> Iterator[Scene]:
    """The loop of a test: on real time where it uses `real_cluster` or says so in its mark."""
    values = Marks.of(request.node).values
    real = values.get("real", "real_cluster" in request.fixturenames)
    factory: Any = asyncio.new_event_loop if real else functools.partial(VirtualLoop, seed)
    with asyncio.Runner(loop_factory=factory) as runner:
        loop = TestLoop(runner, limit=values.get("timeout", None if real else VIRTUAL_LIMIT))
        scene = request.node.stash[SCENE] = Scene(request.node, seed, loop)
        yield scene
    del request.node.stash[SCENE]


@asynccontextmanager
async def cluster_of(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    if "real_cluster" in request.fixturenames:
        raise pytest.UsageError(f"{request.node.nodeid}: a test has a `cluster` or a `real_cluster`, not both")
    marks, scene = Marks.of(request.node), request.node.stash[SCENE]
    async with Cluster(seed=scene.seed, faults=marks.faults(scene.seed), **marks.cluster) as cluster:
        scene.cluster = cluster
        yield cluster


@contextmanager
def real_cluster_of(request: pytest.FixtureRequest, folder: Path) -> Iterator[RealCluster]:
    marks, scene = Marks.of(request.node), request.node.stash[SCENE]
    if scene.loop.virtual:
        raise pytest.UsageError(
            f"{request.node.nodeid}: real_cluster needs the machine's clock: name it among the test's arguments, or "
            "mark the test with @pytest.mark.konverge(real=True)"
        )
    if marks.values.get("faults"):
        raise pytest.UsageError(f"{request.node.nodeid}: faults are for `cluster`; real_cluster has none")
    with serving(folder, tls=marks.values.get("tls", True), **marks.cluster) as cluster:
        scene.cluster = cluster
        yield cluster
        scene.loop.run(cluster.client.aclose())


def operator_of(request: pytest.FixtureRequest) -> RunOperator:
    cluster = request.getfixturevalue("real_cluster" if "real_cluster" in request.fixturenames else "cluster")
    return RunOperator(cluster, on_start=lambda manager: request.node.stash[SCENE].stories.append(manager.story))


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
