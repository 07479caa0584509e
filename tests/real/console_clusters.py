"""Simulated clusters with a console in front of them: the six broken samples of docs/why.md, what tells a
story, and an operator that has had work."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import yaml

from konverge.cli.console_load import load_of
from konverge.cli.console_simulation import UpSimulation
from konverge.cli.console_sources import StoreHistory
from konverge.console.load.watching import Load
from konverge.console.operators import PAGES
from konverge.console.story.telling import Teller
from konverge.objects.meta import ObjectMeta
from konverge.operators.webapp import WebApp, WebAppSpec, controllers
from konverge.operators.webapp.operator import OPERATOR
from konverge.sim.cluster import Cluster
from konverge.testing.operators import RunOperator
from tests.console.office import Office, in_front_of
from tests.explain.samples import create
from tests.explain.test_docs_why import BLOCK, PAGE, poor_operator

CAUSES = {
    "StatefulSet db": "storage class `fast` does not exist",
    "Deployment api": "crashes in a loop",
    "Deployment web": "Secret `web-settings` does not exist",
    "Job report": "ResourceQuota `small` would be exceeded",
    "pod train": "fits on none of 3 nodes",
    "WebApp shop": "may not create deployments.apps",
}
"""What each sample is called, and what the console must say about it."""


@asynccontextmanager
async def storied(cluster: Cluster, **options: Any) -> AsyncIterator[tuple[Office, str]]:
    """A console that knows the cluster's history and its faults, and its address."""
    simulation = UpSimulation(cluster, [])
    more = {"teller": Teller(StoreHistory(cluster.server.store)), "simulation": simulation, "pages": PAGES, **options}
    try:
        async with (
            in_front_of(cluster.server, cluster.client, **more) as office,
            office.console.serving() as (host, port),
        ):
            yield office, f"http://{host}:{port}"
    finally:
        await simulation.close()


@asynccontextmanager
async def six_broken_samples() -> AsyncIterator[tuple[Office, str]]:
    """A cluster in which each of the samples is broken by now."""
    async with Cluster(nodes=3) as cluster:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        blocks = [text for sort, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if sort == "yaml"]
        samples = [sample for text in blocks for sample in yaml.safe_load_all(text)]
        late = [sample for sample in samples if sample["kind"] in ("ResourceQuota", "Job")]
        async with (await poor_operator(cluster)).running(), storied(cluster) as (office, url):
            await create(cluster.client, *(sample for sample in samples if sample not in late))
            await _broken(office, [text for name, text in CAUSES.items() if name != "Job report"])
            await create(cluster.client, *late)  # the quota would keep the others from having pods at all
            await _broken(office, list(CAUSES.values()))
            yield office, url


async def _broken(office: Office, causes: list[str]) -> None:
    while True:  # each cause is known as soon as its controllers have met it
        problems = (await office.get("/console/v1/overview"))["problems"]
        sentences = " ".join(problem["sentence"] for problem in problems)
        if all(text in sentences for text in causes):
            return
        await asyncio.sleep(0.5)


@asynccontextmanager
async def busy(rounds: int = 1, every: float = 0.0) -> AsyncIterator[tuple[Office, str]]:
    """A cluster in which an operator has had work, with a sample of its load before and after each round of it."""
    async with Cluster(nodes=1) as cluster, RunOperator(cluster)(controllers) as manager:
        load = Load(load_of(cluster.server, lambda: (manager, cluster.manager), list))
        async with load.sampling(), storied(cluster, load=load) as (office, url):
            await load.take()
            for turn in range(rounds):
                for number in range(10 + turn % 7 * 5):
                    meta = ObjectMeta(name=f"w{turn}-{number}", namespace="default")
                    await cluster.client.create(WebApp(metadata=meta, spec=WebAppSpec(image="nginx")))
                await load.take()
                await asyncio.sleep(every)
            yield office, url
