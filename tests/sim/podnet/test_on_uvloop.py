"""Sockets of other networks once more, on uvloop, which `konverge up` runs on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.sim.podnet import test_network, test_proxies
from tests.sim.podnet.support import possible

uvloop = pytest.importorskip("uvloop")
pytestmark = [pytest.mark.spec("S-53"), possible]

_TESTS = [
    function
    for module in (test_network, test_proxies)
    for name, function in vars(module).items()
    if name.startswith("test_") and inspect.iscoroutinefunction(function) and not inspect.signature(function).parameters
]


@pytest.mark.parametrize("test", _TESTS, ids=lambda test: test.__name__.removeprefix("test_"))
def test_on_uvloop(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test())
