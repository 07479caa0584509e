"""Simulated clusters with a console in front of them: the six broken samples of docs/why.md, what tells a
story, an operator that has had work, and a Nacos whose upgrade is halted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import yaml

from konverge.cli.console_load import load_of
from konverge.cli.console_simulation import UpSimulation
from konverge.cli.console_sources import StoreHistory
from konverge.cli.install_objects import install_definitions
from konverge.client import MergePatch
from konverge.console.load.watching import Load
from konverge.console.operators import PAGES
from konverge.console.story.telling import Teller
from konverge.objects.meta import ObjectMeta
from konverge.operators.catalog import find
from konverge.operators.webapp import WebApp, WebAppSpec, controllers
from konverge.operators.webapp.operator import OPERATOR
from konverge.runtime import Manager
from konverge.sim.cluster import Cluster
from konverge.sim.outside import with_simulators
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


@asynccontextmanager
async def a_halted_nacos() -> AsyncIterator[tuple[Office, str]]:
    """Simulated servers with their raft groups, and an upgrade that waits for a backup."""
    operator = find("nacos")
    async with Cluster(nodes=3) as cluster, with_simulators(cluster, [operator]) as made:
        await install_definitions(cluster.client, [operator])
        manager = Manager(cluster.client, name="nacos-operator", check_permissions=False)
        for controller in made:
            manager.add(controller)
        manager.take_webhooks(operator.webhooks())
        manager.webhooks = manager.webhooks and replace(manager.webhooks, place=cluster.webhook_place())
        async with manager.running(), storied(cluster) as (office, url):
            spec = {"type": "cluster", "replicas": 3, "image": "nacos/nacos-server:v2.4.3"}
            await create(cluster.client, {**_NACOS, "spec": {**spec, "upgrade": {"requireBackupWithin": "24h"}}})
            await _in_status(cluster, lambda status: status.get("phase") == "Running")
            image = MergePatch({"spec": {"image": "nacos/nacos-server:v3.0.3"}})
            await cluster.client.patch("nacos", "mq", image, "default")
            await _in_status(cluster, lambda status: bool(status.get("upgrade", {}).get("halted")))
            yield office, url


_NACOS = {"apiVersion": "nacos.io/v1beta1", "kind": "Nacos", "metadata": {"name": "mq", "namespace": "default"}}


async def _in_status(cluster: Cluster, holds: Callable[[dict[str, Any]], bool]) -> None:
    while not holds((await cluster.client.get("nacos", "mq", "default")).get("status", {})):
        await asyncio.sleep(0.5)
