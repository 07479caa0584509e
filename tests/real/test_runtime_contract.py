"""The same contract of the runtime, on the real kube-apiserver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from konverge.client import Client, load_config
from tests.runtime import contract
from tools.control_plane import ControlPlane


@pytest.mark.spec("R-21", "R-25", "R-27")
@pytest.mark.parametrize("promise", contract.ALL, ids=lambda promise: promise.__name__)
async def test_the_runtime_keeps_its_contract(
    real_server: ControlPlane, promise: Callable[[Client, str], Awaitable[None]]
) -> None:
    async with Client.connect(load_config(kubeconfig=real_server.kubeconfig)) as client:
        await promise(client, promise.__name__.replace("_", "-"))
