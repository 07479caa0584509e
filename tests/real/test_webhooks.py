"""Webhooks of a manager on the real kube-apiserver: the same contract as on the embedded one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from konverge.client import Client, load_config
from tests.runtime.webhooks import contract
from tools.control_plane import ControlPlane


@pytest.mark.spec("R-66", "R-67", "R-68", "R-71")
@pytest.mark.parametrize("promise", contract.ALL, ids=lambda promise: promise.__name__)
async def test_webhooks_keep_their_contract(
    real_server: ControlPlane, promise: Callable[[Client], Awaitable[None]]
) -> None:
    async with Client.connect(load_config(kubeconfig=real_server.kubeconfig)) as client:
        await promise(client)
