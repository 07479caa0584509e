"""Any number of candidates for one Lease, on a server that misbehaves."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch, RetryPolicy, Static, TokenBucket
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.runtime.elector import Fenced, LeaderElector, LeadershipLost
from konverge.sim.loop import VirtualLoop
from konverge.wire.errors import ConnectionLost
from konverge.wire.message import Headers, Request, Response, Stream, Transport
from tests.runtime.objects import config_map
from tests.sizes import examples

pytestmark = pytest.mark.spec("R-27")


class Unreliable:
    """A transport that delays, and loses requests before or after they took effect."""

    def __init__(self, inner: Transport, trouble: float) -> None:
        self._inner = inner
        self._trouble = trouble
        self.away = False

    async def send(self, request: Request) -> Response:
        rng = clock.rng()
        if self.away:
            raise ConnectionLost("away")
        if rng.random() < self._trouble:
            await asyncio.sleep(rng.choice([0.1, 3, 9, 20]))
        if rng.random() < self._trouble:
            raise ConnectionLost("before")
        response = await self._inner.send(request)
        if rng.random() < self._trouble:
            await asyncio.sleep(rng.choice([0.1, 3, 9, 20]))
        if rng.random() < self._trouble:
            raise ConnectionLost("after")
        return response

    async def stream(self, request: Request) -> Stream:
        return await self._inner.stream(request)


def candidate(server: ApiServer, name: str, trouble: float = 0.0) -> tuple[LeaderElector, Unreliable]:
    wire = Unreliable(server.transport, trouble)
    client = Client(wire, credentials=Static.bearer(server.token), retry=RetryPolicy(retries=0))
    return LeaderElector(client, "op", "default", identity=name), wire


@settings(max_examples=examples(1 / 5))
@given(st.integers(0, 10**6), st.integers(2, 4), st.sampled_from([0.0, 0.1, 0.4]))
def test_there_are_never_two_leaders(seed: int, count: int, trouble: float) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        terms = 0
        async with ApiServer() as server:
            candidates = [candidate(server, f"c{number}", trouble) for number in range(count)]

            async def campaign(elector: LeaderElector) -> None:
                nonlocal terms
                while True:
                    async with elector.leading() as lost:
                        terms += 1
                        try:
                            async with asyncio.timeout(loop.rng.choice([5, 60, 3600])):
                                await lost.wait()
                        except TimeoutError:
                            pass  # it resigns

            tasks = [asyncio.create_task(campaign(elector)) for elector, _ in candidates]
            for _ in range(600):
                await asyncio.sleep(0.5)
                leaders = [elector.election.identity for elector, _ in candidates if elector.is_leader]
                assert len(leaders) <= 1, leaders
                if loop.rng.random() < 0.02:
                    loop.jump_wall_clock(loop.rng.choice([-3600, 3600]))
                for _, wire in candidates:
                    wire.away = loop.rng.random() < (0.9 if wire.away else 0.01)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        assert terms >= 1 or trouble

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        runner.run(main())


@pytest.mark.virtual
async def test_the_lease_looks_as_client_go_writes_it(server: ApiServer, client: Client) -> None:
    elector = LeaderElector(client, "op", "default", identity="me")
    async with elector.leading():
        lease = await client.get(Lease, "op", "default")
        assert lease.spec.holder_identity == "me"
        assert lease.spec.lease_duration_seconds == 15
        assert lease.spec.lease_transitions == 0
        assert lease.spec.renew_time == lease.spec.acquire_time
        assert len(lease.spec.renew_time or "") == len("2026-01-01T00:00:00.000000Z")
    released = await client.get(Lease, "op", "default")
    assert released.spec.holder_identity in (None, "")
    assert released.spec.lease_duration_seconds == 1


@pytest.mark.virtual
async def test_a_released_lease_is_taken_at_once_and_a_lost_one_after_its_duration(server: ApiServer) -> None:
    loop = asyncio.get_running_loop()
    first, _ = candidate(server, "first")
    async with first.leading():
        pass
    second, wire = candidate(server, "second")
    async with second.leading() as lost:
        assert loop.time() < 3
        wire.away = True
        began = loop.time()
        await lost.wait()
        assert loop.time() - began <= 10.1
        third, _ = candidate(server, "third")
        async with third.leading():
            assert not second.is_leader
            assert loop.time() - began >= 15 - 2.4


@pytest.mark.virtual
async def test_a_client_that_does_not_lead_cannot_write(server: ApiServer, client: Client) -> None:
    elector, wire = candidate(server, "me")
    fenced = Fenced(client, elector)
    with pytest.raises(LeadershipLost, match="not the leader of default/op"):
        await fenced.create(config_map("a"))
    async with elector.leading() as lost:
        await fenced.create(config_map("a"))
        wire.away = True
        await lost.wait()
        with pytest.raises(LeadershipLost):
            await fenced.create(config_map("b"))


@pytest.mark.virtual
async def test_a_client_that_does_not_lead_does_not_even_wait(server: ApiServer) -> None:
    elector, _ = candidate(server, "me")
    bucket = TokenBucket(qps=0.01, burst=1)
    fenced = Fenced(Client(server.transport, credentials=Static.bearer(server.token), rate_limit=bucket), elector)
    for _ in range(2):
        with pytest.raises(LeadershipLost):
            await fenced.create(config_map("a"))
    assert bucket.try_take(clock.monotonic())


class Busy:
    """A transport that answers the first patch with 429: to be tried again in a second."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.patches = 0

    async def send(self, request: Request) -> Response:
        if request.method != "PATCH":
            return await self._inner.send(request)
        self.patches += 1
        if self.patches == 1:
            return Response(429, Headers.of({"Retry-After": "1"}), b"busy")
        return Response(200, Headers.of({"Content-Type": "application/json"}), b'{"metadata":{"name":"a"}}')

    async def stream(self, request: Request) -> Stream:
        return await self._inner.stream(request)


def suspended(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The process was suspended: the clock went on, and its timers run when they are due."""
    elapsed = clock.elapsed
    monkeypatch.setattr(clock, "elapsed", lambda: elapsed() + seconds)


@pytest.mark.virtual
@pytest.mark.spec("R-102")
@pytest.mark.parametrize("seconds", [0, 20])
async def test_a_write_that_waits_to_be_sent_again_is_not_sent_when_the_lease_ran_out_meanwhile(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    elector, _ = candidate(server, "me")
    wire = Busy(server.transport)
    fenced = Fenced(Client(wire, credentials=Static.bearer(server.token)), elector)
    async with elector.leading():
        await asyncio.sleep(0.1)
        writing = asyncio.create_task(fenced.patch(ConfigMap, "a", MergePatch({"data": {"a": "b"}}), "default"))
        await asyncio.sleep(0.5)
        assert wire.patches == 1
        suspended(monkeypatch, seconds)
        await asyncio.wait([writing])
    if seconds:
        assert isinstance(writing.exception(), LeadershipLost)
        assert wire.patches == 1
    else:
        assert (writing.exception(), wire.patches) == (None, 2)
