"""One candidate for a Lease: which requests it makes, when, and what it leaves of what others wrote."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import socket
from collections.abc import Callable
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, Forbidden, MergePatch, RetryPolicy, Static
from konverge.client.errors import Status
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.runtime.election import Timing
from konverge.runtime.elector import Fenced, LeaderElector, default_identity
from konverge.wire.errors import ConnectionLost
from konverge.wire.message import Request, Response, Stream, Transport
from tests.runtime.objects import SPACE, config_map

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-27")]


def now() -> float:
    return asyncio.get_running_loop().time()


class Tapped:
    """A transport that notes every request; `trouble` may raise, wait, or do something else before it is sent."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.requests: list[tuple[float, Request]] = []
        self.trouble: Callable[[Request], Any] | None = None
        self.streams = 0
        self.refusal: Exception | None = None
        """What opening a watch raises."""

    async def send(self, request: Request) -> Response:
        self.requests.append((now(), request))
        if self.trouble is not None:
            waiting = self.trouble(request)
            if waiting is not None:
                await waiting
        return await self._inner.send(request)

    async def stream(self, request: Request) -> Stream:
        self.streams += 1
        if self.refusal is not None:
            raise self.refusal
        return await self._inner.stream(request)

    def times(self, method: str) -> list[float]:
        return [at for at, request in self.requests if request.method == method]

    @property
    def methods(self) -> list[str]:
        return [request.method for _, request in self.requests]


class Candidate:
    def __init__(self, server: ApiServer, identity: str = "me", **options: Any) -> None:
        self.wire = Tapped(server.transport)
        client = Client(self.wire, credentials=Static.bearer(server.token), retry=RetryPolicy(retries=0))
        self.elector = LeaderElector(client, "op", SPACE, identity=identity, **options)


def is_away(request: Request) -> None:
    raise ConnectionLost("away")


def hangs(request: Request) -> Any:
    return asyncio.Event().wait()


async def lease(client: Client) -> Lease:
    return await client.get(Lease, "op", SPACE)


# ------------------------------------------------------------------ waiting for the Lease


async def test_a_candidate_that_cannot_watch_reads_the_lease_every_period_and_writes_nothing(
    server: ApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    second = Candidate(server, "second")
    second.wire.refusal = ConnectionLost("no watch")
    async with LeaderElector(client, "op", SPACE, identity="first").leading():
        with caplog.at_level(logging.INFO, "konverge.election"):
            waiting = asyncio.create_task(second.elector.acquire())
            await asyncio.sleep(60)
        assert not waiting.done()
        assert set(second.wire.methods) == {"GET"}
        gaps = [after - before for before, after in itertools.pairwise(second.wire.times("GET"))]
        assert all(2.0 <= gap <= 2.4 for gap in gaps)
        assert len(gaps) >= 60 / 2.4 - 1
        assert max(gaps) - min(gaps) > 0.1, "candidates that started together must not stay together"
        assert caplog.text.count("is led by first") == 1
        assert not second.elector.is_leader
    await waiting
    assert second.elector.is_leader
    assert (await lease(client)).spec.holder_identity == "second"
    assert (await lease(client)).spec.lease_transitions == 1


@pytest.mark.spec("R-77")
async def test_a_candidate_that_watches_takes_a_released_lease_at_once(server: ApiServer, client: Client) -> None:
    second = Candidate(server, "second")
    async with LeaderElector(client, "op", SPACE, identity="first").leading():
        waiting = asyncio.create_task(second.elector.acquire())
        await asyncio.sleep(60)
        assert len(second.wire.requests) <= 60 / 15 + 1, "renewals come through the watch: little is read"
        assert not waiting.done()
    released = now()
    await waiting
    assert now() - released < 1.0
    assert (await lease(client)).spec.holder_identity == "second"


@pytest.mark.spec("R-77")
async def test_a_candidate_that_watches_takes_the_lease_of_a_dead_holder_after_its_duration(
    server: ApiServer, client: Client
) -> None:
    first, second = Candidate(server, "first"), Candidate(server, "second")
    async with first.elector.leading():
        waiting = asyncio.create_task(second.elector.acquire())
        await asyncio.sleep(30)
        first.wire.trouble = is_away
        gone = now()
        await waiting
        assert 15 - 2.4 <= now() - gone <= 15 + 2.4
        assert not first.elector.is_leader


@pytest.mark.spec("R-77")
async def test_a_candidate_that_may_not_watch_asks_once(server: ApiServer, client: Client) -> None:
    second = Candidate(server, "second")
    second.wire.refusal = Forbidden(Status(message="leases is forbidden"))
    async with LeaderElector(client, "op", SPACE, identity="first").leading():
        waiting = asyncio.create_task(second.elector.acquire())
        await asyncio.sleep(60)
        assert second.wire.streams == 1
        assert len(second.wire.times("GET")) >= 60 / 2.4 - 1
    await waiting


async def test_every_request_has_the_renew_deadline_as_its_limit(server: ApiServer) -> None:
    timing = Timing(lease_duration=60, renew_deadline=7, retry_period=5)
    candidate = Candidate(server, timing=timing)
    async with candidate.elector.leading():
        await asyncio.sleep(20)
    assert set(candidate.wire.methods) == {"GET", "POST", "PUT"}
    assert {request.timeout for _, request in candidate.wire.requests} == {7}
    gaps = [after - before for before, after in itertools.pairwise(candidate.wire.times("PUT")[:-1])]
    assert all(5 <= gap <= 6 for gap in gaps)


@pytest.mark.parametrize("error", [ConnectionLost("away"), RuntimeError("a plugin for credentials is broken")])
async def test_a_candidate_goes_on_while_the_server_cannot_be_asked(
    server: ApiServer, client: Client, error: Exception
) -> None:
    def fails(request: Request) -> None:
        raise error

    candidate = Candidate(server)
    candidate.wire.trouble = fails
    waiting = asyncio.create_task(candidate.elector.acquire())
    await asyncio.sleep(30)
    assert not waiting.done()
    assert len(candidate.wire.requests) >= 12
    candidate.wire.trouble = None
    await asyncio.sleep(2.5)
    await waiting
    assert (await lease(client)).spec.holder_identity == "me"


async def test_a_lease_of_another_that_was_deleted_is_free_at_once(server: ApiServer, client: Client) -> None:
    theirs = Lease(metadata=ObjectMeta(name="op", namespace=SPACE))
    theirs.spec.holder_identity, theirs.spec.lease_duration_seconds = "other", 15
    await client.create(theirs)
    candidate = Candidate(server)
    waiting = asyncio.create_task(candidate.elector.acquire())
    await asyncio.sleep(5)
    await client.delete(Lease, "op", SPACE)
    await waiting
    assert now() <= 7.5
    assert (await lease(client)).spec.lease_transitions == 0


async def test_of_two_that_create_the_lease_at_once_one_leads(server: ApiServer, client: Client) -> None:
    def other_is_faster(request: Request) -> Any:
        if request.method != "POST":
            return None
        candidate.wire.trouble = None
        theirs = Lease(metadata=ObjectMeta(name="op", namespace=SPACE))
        theirs.spec.holder_identity, theirs.spec.lease_duration_seconds = "other", 15
        return client.create(theirs)

    candidate = Candidate(server)
    candidate.wire.trouble = other_is_faster
    waiting = asyncio.create_task(candidate.elector.acquire())
    await asyncio.sleep(14)
    assert not waiting.done()
    assert (await lease(client)).spec.holder_identity == "other"
    await waiting
    assert (await lease(client)).spec.holder_identity == "me"
    assert now() >= 15


# ------------------------------------------------------------------ holding it


async def test_a_leader_renews_without_reading_and_keeps_the_time_since_when_it_leads(
    server: ApiServer, client: Client
) -> None:
    candidate = Candidate(server, labels={"team": "shop"})
    async with candidate.elector.leading() as lost:
        first = await lease(client)
        await asyncio.sleep(30)
        assert not lost.is_set()
        assert candidate.wire.methods[:2] == ["GET", "POST"]
        assert set(candidate.wire.methods[2:]) == {"PUT"}
        renewed = await lease(client)
    assert first.metadata.labels == renewed.metadata.labels == {"team": "shop"}
    assert renewed.spec.acquire_time == first.spec.acquire_time
    assert (renewed.spec.renew_time or "") > (first.spec.renew_time or "")
    assert renewed.spec.lease_transitions == 0


async def test_what_others_write_to_the_lease_stays(server: ApiServer, client: Client) -> None:
    candidate = Candidate(server)
    async with candidate.elector.leading() as lost:
        before = await lease(client)
        await client.patch(Lease, "op", MergePatch({"metadata": {"labels": {"a": "b"}}}), SPACE)
        await asyncio.sleep(30)
        after = await lease(client)
        assert candidate.wire.methods.count("GET") == 2, "after the conflict it is read again, once"
        assert not lost.is_set()
    assert after.metadata.labels == {"a": "b"}
    assert after.spec.acquire_time == before.spec.acquire_time
    assert (after.spec.renew_time or "") > (before.spec.renew_time or "")


class Answering(Client):
    """Has one Lease, and keeps what is written to it."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.lease: dict[str, Any] = {"metadata": {"name": "op", "namespace": SPACE, "resourceVersion": "5"}, **spec}

    async def get(self, *args: Any, **kwargs: Any) -> Any:
        return self.lease

    async def update(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        self.lease = obj
        return obj


@pytest.mark.parametrize(
    ("spec", "kept"),
    [({"spec": {"strategy": "OldestEmulationVersion"}}, {"strategy": "OldestEmulationVersion"}), ({"spec": None}, {})],
)
async def test_a_lease_without_a_holder_is_taken_with_all_its_fields(spec: Any, kept: dict[str, str]) -> None:
    client = Answering(spec)
    await LeaderElector(client, "op", SPACE, identity="me").acquire()
    written = client.lease["spec"]
    assert written["holderIdentity"] == "me"
    assert {name: written[name] for name in kept} == kept
    assert client.lease["metadata"]["resourceVersion"] == "5"


async def test_a_lease_that_was_deleted_is_created_again_with_its_labels(server: ApiServer, client: Client) -> None:
    candidate = Candidate(server, labels={"team": "shop"})
    async with candidate.elector.leading() as lost:
        await client.delete(Lease, "op", SPACE)
        await asyncio.sleep(30)
        assert not lost.is_set()
        made = await lease(client)
    assert made.metadata.labels == {"team": "shop"}
    assert made.spec.holder_identity == "me"
    assert made.spec.lease_transitions == 0


async def test_a_lease_that_another_took_is_left_to_it(server: ApiServer, client: Client) -> None:
    candidate = Candidate(server)
    async with candidate.elector.leading() as lost:
        await client.patch(Lease, "op", MergePatch({"spec": {"holderIdentity": "thief"}}), SPACE)
        await asyncio.wait_for(lost.wait(), 5)
        assert not candidate.elector.is_leader
    assert (await lease(client)).spec.holder_identity == "thief"


@pytest.mark.parametrize("trouble", [is_away, hangs])
async def test_leadership_ends_the_renew_deadline_after_the_last_renewal(server: ApiServer, trouble: Any) -> None:
    candidate = Candidate(server)
    async with candidate.elector.leading() as lost:
        await asyncio.sleep(30)
        last = candidate.wire.times("PUT")[-1]
        candidate.wire.trouble = trouble
        await lost.wait()
        assert now() == pytest.approx(last + 10, abs=0.01)
        assert not candidate.elector.is_leader
        candidate.wire.trouble = None


async def test_a_short_outage_costs_a_line_in_the_log(server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    candidate = Candidate(server)
    async with candidate.elector.leading() as lost:
        for outage in (1, 2, 3):
            candidate.wire.trouble = is_away
            await asyncio.sleep(5)
            candidate.wire.trouble = None
            await asyncio.sleep(5)
            assert caplog.text.count("cannot reach the lease default/op: ") == outage
        assert (candidate.elector.is_leader, lost.is_set()) == (True, False)


# ------------------------------------------------------------------ giving it back


async def test_a_leader_stops_to_lead_before_it_releases(server: ApiServer, client: Client) -> None:
    candidate = Candidate(server)
    led: list[bool] = []
    async with candidate.elector.leading():
        before = await lease(client)
        candidate.wire.trouble = lambda request: led.append(candidate.elector.is_leader)
    assert led == [False]
    body = json.loads(candidate.wire.requests[-1][1].body)
    assert body["spec"]["holderIdentity"] == ""
    assert body["spec"]["leaseDurationSeconds"] == 1
    assert body["metadata"]["resourceVersion"] == before.metadata.resource_version
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("renew lease")]


async def test_a_leader_may_come_back_after_it_released(server: ApiServer, client: Client) -> None:
    candidate = Candidate(server)
    for turn in range(3):
        async with candidate.elector.leading() as lost:
            await asyncio.sleep(10)
            assert candidate.elector.is_leader
            assert not lost.is_set()
            assert (await lease(client)).spec.lease_transitions == turn
        assert not candidate.elector.is_leader
    assert now() == pytest.approx(30, abs=0.1)


async def test_a_release_that_fails_is_no_error_and_the_lease_runs_out(server: ApiServer, client: Client) -> None:
    candidate = Candidate(server)
    async with candidate.elector.leading():
        candidate.wire.trouble = is_away
    assert not candidate.elector.is_leader
    assert (await lease(client)).spec.holder_identity == "me"
    candidate.wire.trouble = None
    async with candidate.elector.leading():
        assert now() < 5, "its own Lease needs no waiting"


async def test_who_does_not_lead_any_more_releases_nothing(server: ApiServer) -> None:
    candidate = Candidate(server)
    async with candidate.elector.leading() as lost:
        candidate.wire.trouble = is_away
        await lost.wait()
        candidate.wire.trouble = None
        candidate.wire.requests.clear()
    assert candidate.wire.requests == []


# ------------------------------------------------------------------ names and the fence


def test_an_identity_is_the_pod_or_the_host_and_differs_for_each_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POD_NAME", raising=False)
    assert default_identity().startswith(f"{socket.gethostname()}_")
    monkeypatch.setenv("POD_NAME", "web-0")
    first, second = default_identity(), default_identity()
    assert first.startswith("web-0_")
    assert first != second


async def test_without_a_name_of_its_own_a_candidate_makes_one(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "web-0")
    elector = LeaderElector(client, "op", SPACE)
    async with elector.leading():
        assert (await lease(client)).spec.holder_identity == elector.election.identity
    assert elector.election.identity.startswith("web-0_")


async def test_a_client_that_does_not_lead_reads_and_watches(server: ApiServer, client: Client) -> None:
    await client.create(config_map("a"))
    fenced = Fenced(client, Candidate(server).elector)
    assert fenced.caller.near == client.caller.near
    assert (await fenced.get(ConfigMap, "a", SPACE)).metadata.name == "a"
    events = fenced.watch(ConfigMap, SPACE)
    assert (await anext(events)).object.metadata.name == "a"  # type: ignore[union-attr]
    await events.aclose()
