"""Queue depth and request rates in the console: read cheaply, bounded, and for those who may read metrics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.apiserver.request.counts import PROGRAMS, RequestCounts
from konverge.cli.console_load import load_of
from konverge.console.load.samples import EVERY, KEPT, LINES, Queue, Reading, Samples
from konverge.console.load.watching import LOOKED, Load, requests_of
from konverge.objects.meta import ObjectMeta
from konverge.operators.webapp import WebApp, WebAppSpec, controllers
from konverge.sim.cluster import Cluster
from konverge.testing.operators import RunOperator
from konverge.wire.message import Headers, Request
from tests.console.office import API, SPACE, Office, an_office, decoded, in_front_of

pytestmark = [pytest.mark.virtual, pytest.mark.spec("C-27")]

KIND = f"WebApp.{WebApp.resource.group}"


def webapp(name: str) -> WebApp:
    return WebApp(metadata=ObjectMeta(name=name, namespace=SPACE), spec=WebAppSpec(image="nginx"))


def lines(answer: dict[str, Any], name: str) -> dict[str, list[float | None]]:
    return {line["name"]: line["values"] for plot in answer["plots"] if plot["name"] == name for line in plot["lines"]}


@asynccontextmanager
async def busy() -> AsyncIterator[tuple[Cluster, Office]]:
    """A cluster with an operator, and a console that knows how busy they are."""
    async with Cluster(nodes=1) as cluster, RunOperator(cluster)(controllers) as manager:
        load = Load(load_of(cluster.server, lambda: (manager, cluster.manager), list))
        async with load.sampling(), in_front_of(cluster.server, cluster.client, load=load) as office:
            yield cluster, office


async def test_a_burst_is_seen_in_the_queue_and_in_the_requests() -> None:
    async with busy() as (cluster, office):
        await asyncio.sleep(3 * EVERY)
        before = await office.get(f"{API}/load")
        for number in range(20):
            await cluster.client.create(webapp(f"w{number}"))
        await asyncio.sleep(4 * EVERY)  # before all of them are looked at again, which is another burst
        answer = await office.get(f"{API}/load")
        assert answer["missing"] == {}
        assert len(answer["times"]) > len(before["times"]) >= 2
        depths = lines(answer, "queue")["webapp"]
        assert max(depth or 0 for depth in depths) > 1, "also though it is empty again when it is read"
        assert depths[-1] == 0
        verbs, clients = lines(answer, "verbs"), lines(answer, "clients")
        assert max(rate or 0 for rate in verbs["create"]) >= 20 / EVERY
        assert {"konverge", "kube-controller-manager"} <= clients.keys()
        of_kind = await office.get(f"{API}/load", kind=KIND)
        assert {plot["name"] for plot in of_kind["plots"]} == {"queue"}
        assert lines(of_kind, "queue") == {"webapp": depths}


async def test_the_numbers_are_for_those_who_may_read_metrics() -> None:
    async with busy() as (_, office):
        jane = office.another()
        await jane.sign_in(token=await office.account("jane", "*"))
        refused = await jane.send("GET", f"{API}/load")
        assert (refused.status, "/metrics" in decoded(refused)["error"]) == (403, True)


async def test_another_cluster_is_asked_only_while_a_page_looks() -> None:
    async with an_office() as office:
        office.server.extensions.counts = counts = RequestCounts()
        asked = []
        for _ in range(3):
            answer = await office.get(f"{API}/load")
            asked.append(counts.verbs["get"])
            await office.get(f"{API}/load")
            assert counts.verbs["get"] == asked[-1], "two looks at once are one question"
            await asyncio.sleep(EVERY)
        assert asked == [1, 2, 3]
        assert answer["missing"] == {"queue": "elsewhere", "clients": "elsewhere"}
        assert len(answer["times"]) == 2
        assert lines(answer, "verbs").keys() == {"get"}
        await asyncio.sleep(3600)
        assert counts.verbs["get"] == 3


async def test_why_there_is_nothing_to_see_is_said() -> None:
    async with an_office() as office:
        answer = await office.get(f"{API}/load")
        assert answer["missing"] == {"queue": "elsewhere", "verbs": "unserved", "clients": "unserved"}
        jane = office.another()
        await jane.sign_in(token=await office.account("jane", "*"))
        answer = decoded(await jane.send("GET", f"{API}/load"))
        assert answer["missing"] == {"queue": "elsewhere", "verbs": "forbidden", "clients": "forbidden"}
        assert answer["plots"] == []
        answer = await office.get(f"{API}/load", kind=KIND)
        assert answer["missing"] == {"queue": "elsewhere"}


async def test_other_processes_are_asked_only_while_a_page_looks() -> None:
    looks: list[bool] = []

    async def read(looked_at: bool) -> Reading:
        looks.append(looked_at)
        return Reading({}, {}, {})

    load = Load(read)
    async with load.sampling():
        await asyncio.sleep(2 * EVERY)
        assert not any(looks)
        load.look("")
        await asyncio.sleep(EVERY)
        assert looks[-1]
        await asyncio.sleep(LOOKED + EVERY)
        assert not looks[-1]


def reading(total: float, **depths: int) -> Reading:
    return Reading({Queue(name): depth for name, depth in depths.items()}, {"get": total}, {})


def test_samples_are_bounded_and_totals_that_begin_again_are_no_negative_rate() -> None:
    samples = Samples()
    for number in range(KEPT + 10):
        samples.add(1000.0 + 5 * number, 5.0 * number, reading(10 * number, a=1))
    plots = samples.plots()
    assert len(plots["times"]) == KEPT
    assert set(lines(plots, "verbs")["get"]) == {2.0}
    samples.add(0.0, 5.0 * (KEPT + 10), reading(5, a=1))
    assert lines(samples.plots(), "verbs")["get"][-1] == 1.0
    samples.add(0.0, 5.0 * (KEPT + 10), reading(50, a=1))  # at the same moment: there is no rate
    assert lines(samples.plots(), "verbs")["get"][-1] == 1.0


def test_a_plot_has_few_lines() -> None:
    samples = Samples()
    samples.add(0.0, 0.0, Reading({}, {}, {}))
    queues = {Queue(f"c{number}"): number for number in range(20)}
    clients = {f"p{number}": 10.0 * number for number in range(10)}
    samples.add(10.0, 10.0, Reading(queues, {}, clients))
    plots = samples.plots()
    assert [*lines(plots, "queue")] == [f"c{number}" for number in range(19, 19 - LINES, -1)]
    assert lines(plots, "clients") == {
        **{f"p{number}": [float(number)] for number in range(9, 3, -1)},
        "other": [6.0],
    }


def test_a_queue_whose_kind_is_not_known_belongs_to_the_kind_it_is_called_after() -> None:
    samples = Samples()
    samples.add(0.0, 0.0, reading(0))
    samples.add(5.0, 5.0, Reading({Queue("note"): 0, Queue("note", "Other.example.com"): 7, Queue("x"): 1}, {}, {}))
    assert lines(samples.plots("Note.example.com"), "queue") == {"note": [0.0]}


def test_programs_are_bounded_whatever_they_call_themselves() -> None:
    counts = RequestCounts()
    for number in range(PROGRAMS + 5):
        counts.note("get", Request("GET", "/", Headers.of({"user-agent": f"p{number}/v1 (linux)"})))
    counts.note("list", Request("GET", "/", Headers()))
    assert len(counts.programs) == PROGRAMS + 1
    assert counts.programs["other"] == 6
    assert counts.programs["p0"] == 1
    page = "\n".join(counts.exposition()).encode()
    assert requests_of(page) == {"get": PROGRAMS + 5, "list": 1}
