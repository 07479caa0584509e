"""Waiting for addresses, over real sockets."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

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
            while manager.readiness.unmet() != f"secret waits for {address}":
                await asyncio.sleep(0)
            assert manager.readiness.started == set()
            up.set()
            if scheme == "tcp":
                await other.start("127.0.0.1", port)
            while manager.readiness.started != {"secret"}:
                await asyncio.sleep(0)
            assert manager.readiness.unmet() == ""


@pytest.mark.spec("R-26")
@pytest.mark.parametrize("status", [200, 204, 302, 399, 400, 404, 503])
async def test_an_address_answers_when_its_status_is_no_error(status: int) -> None:
    targets: list[tuple[str, str]] = []

    async def answer(request: Request) -> Response:
        targets.append((request.method, request.target))
        return Response(status)

    async with Server(answer) as other:
        await other.start("127.0.0.1", 0)
        address = f"http://127.0.0.1:{other.port}"
        for path in ("", "/", "/ready", "/ready?deep=1"):
            assert await dependencies._is_ready(address + path, lambda name: False) is (status < 400)
    assert targets == [("GET", "/"), ("GET", "/"), ("GET", "/ready"), ("GET", "/ready?deep=1")]


@pytest.mark.spec("R-26")
async def test_an_address_that_is_away_or_says_nothing_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(request: Request) -> Response:
        await asked_enough.wait()
        return Response(200)

    asked_enough = asyncio.Event()
    async with Server(silent) as other:
        await other.start("127.0.0.1", 0)
        port = other.port
        assert await dependencies._is_ready(f"tcp://127.0.0.1:{port}", lambda name: False)
        monkeypatch.setattr(dependencies, "ATTEMPT", 0.05)
        assert not await dependencies._is_ready(f"http://127.0.0.1:{port}", lambda name: True)
        asked_enough.set()
    monkeypatch.undo()
    assert not await dependencies._is_ready(f"tcp://127.0.0.1:{port}", lambda name: True)
    assert not await dependencies._is_ready(f"http://127.0.0.1:{port}", lambda name: True)


@pytest.mark.spec("R-26")
@pytest.mark.virtual
async def test_a_controller_is_asked_for_about_every_second_until_it_is_ready() -> None:
    asked: list[float] = []

    def ready(name: str) -> bool:
        assert name == "other"
        asked.append(asyncio.get_running_loop().time())
        return len(asked) == 10

    await dependencies.wait_for("other", ready)
    assert len(asked) == 10
    assert asked[0] == 0
    assert all(1.0 <= after - before <= 1.2 for before, after in itertools.pairwise(asked))
    await dependencies.wait_for("other", lambda name: True)
    assert asyncio.get_running_loop().time() == asked[-1]


@pytest.mark.spec("R-26")
def test_dependencies_that_can_be_met_are_accepted() -> None:
    addresses = ["tcp://db:3306", "http://db/ready", "https://db/ready"]
    dependencies.check_names("mine", [*addresses, "other"], {"mine", "other"})
    for wrong in ("udp://db:53", "mine", "absent"):
        with pytest.raises(dependencies.DependencyError, match="mine depends on"):
            dependencies.check_names("mine", [*addresses, "other", wrong], {"mine", "other"})


@pytest.mark.spec("R-26")
async def test_the_connection_that_was_tried_is_closed_before_the_controller_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[asyncio.StreamWriter] = []
    connect = asyncio.open_connection

    async def noted(*args: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await connect(*args)
        opened.append(writer)
        return reader, writer

    async def answer(request: Request) -> Response:
        return Response(200)

    monkeypatch.setattr(asyncio, "open_connection", noted)
    async with Server(answer) as other:
        await other.start("127.0.0.1", 0)
        await dependencies.wait_for(f"tcp://127.0.0.1:{other.port}", lambda name: False)
        assert [writer.get_extra_info("socket").fileno() for writer in opened] == [-1]
