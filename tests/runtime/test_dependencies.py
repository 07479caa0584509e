"""Waiting for addresses, over real sockets."""

from __future__ import annotations

import asyncio

import pytest

from konverge.client import Client
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Context, Controller, Manager, dependencies
from konverge.wire.message import Request, Response
from konverge.wire.server import Server


@pytest.mark.spec("R-26")
@pytest.mark.parametrize("scheme", ["tcp", "http"])
async def test_a_controller_waits_for_an_address_and_readiness_says_so(
    client: Client, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    async def nothing(ctx: Context[Secret]) -> None:
        """A reconciler that is content."""

    async def answer(request: Request) -> Response:
        return Response(200 if up.is_set() else 503)

    monkeypatch.setattr(dependencies, "RETRY", 0.001)
    up = asyncio.Event()
    async with Server(answer) as other:
        await other.start("127.0.0.1", 0)
        port = other.port
        if scheme == "tcp":
            await other.close()
        address = f"{scheme}://127.0.0.1:{port}"
        manager = Manager(client).add(Controller(Secret, nothing, depends_on=[address]))
        async with manager.running():
            while manager._unmet() != f"secret waits for {address}":
                await asyncio.sleep(0)
            assert manager._started == set()
            up.set()
            if scheme == "tcp":
                await other.start("127.0.0.1", port)
            while manager._started != {"secret"}:
                await asyncio.sleep(0)
            assert manager._unmet() == ""
