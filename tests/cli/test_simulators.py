"""On the cluster of `konverge up`, every sample of every operator comes to rest: what is outside is simulated."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

import konverge.sim.kubevirt
import konverge.sim.nacos  # noqa: F401 - loaded before a loop runs
from konverge.cli.databases import database
from konverge.cli.install_objects import create_samples, install_definitions
from konverge.operators.catalog import SUMMARIES, find
from konverge.runtime import Manager
from konverge.sim.cluster import Cluster
from konverge.sim.outside import with_simulators

OPERATORS = {name: find(name) for name in SUMMARIES}
"""Found here: it loads them, which would hold the loop of the first test."""


@pytest.mark.virtual
@pytest.mark.parametrize("name", list(SUMMARIES))
async def test_the_samples_converge(name: str) -> None:
    operator = OPERATORS[name]
    async with Cluster() as cluster, with_simulators(cluster, [operator]) as controllers:
        await install_definitions(cluster.client, [operator])
        manager = Manager(cluster.client, name="konverge")
        for controller in controllers:
            manager.add(controller)
        manager.webhooks = manager.webhooks and replace(manager.webhooks, place=cluster.webhook_place())
        async with manager.running():
            samples = await create_samples(cluster.client, [operator])
            ours = [
                sample
                for sample in samples
                if sample["apiVersion"] in {kind.resource.api_version for kind in operator.kinds}
            ]
            assert ours
            await cluster.clock.advance(300)
            for sample in ours:
                where = (sample["metadata"]["name"], sample["metadata"]["namespace"])
                obj = await cluster.client.get(f"{sample['kind']}.{sample['apiVersion'].partition('/')[0]}", *where)
                if sample["kind"] == "WukongTemplate":
                    assert "status" not in obj, "it is read by machines, and nothing becomes of it"
                    continue
                well = {"WukongSnapshot": "Succeeded"}.get(sample["kind"], "Running")
                ready = [entry["status"] for entry in obj["status"]["conditions"] if entry["type"] == "Ready"]
                assert (where, obj["status"].get("phase", well)) == (where, well)
                assert "phase" in obj["status"] or ready == ["True"], where
            assert manager.engines[name].numbers.panics == 0


@pytest.mark.virtual
async def test_the_samples_converge_on_databases_of_other_names() -> None:
    operator = find("nacos")
    chosen = [database("mysql://ann:x@my.example:3307/m"), database("postgresql://bob:y@pg.example/p")]
    async with Cluster() as cluster, with_simulators(cluster, [operator], chosen) as controllers:
        await install_definitions(cluster.client, [operator])
        manager = Manager(cluster.client, name="konverge")
        for controller in controllers:
            manager.add(controller)
        manager.webhooks = manager.webhooks and replace(manager.webhooks, place=cluster.webhook_place())
        async with manager.running():
            await create_samples(cluster.client, [operator], chosen)
            await cluster.clock.advance(300)
            phases = {item["metadata"]["name"]: item["status"]["phase"] for item in await cluster.client.list("nacos")}
            assert phases
            assert set(phases.values()) == {"Running"}


@pytest.mark.virtual
@pytest.mark.spec("C-41")
@pytest.mark.parametrize(
    ("name", "simulator"),
    [("nacos", "konverge.sim.nacos.SimulatedNacos"), ("wukong", "konverge.sim.kubevirt.SimulatedKubeVirt")],
)
async def test_simulated_servers_have_the_seed(name: str, simulator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    module, _, kind = simulator.rpartition(".")
    real = getattr(sys.modules[module], kind)

    def seen(*arguments: Any, seed: int, **options: Any) -> Any:
        seeds.append(seed)
        return real(*arguments, seed=seed, **options)

    monkeypatch.setattr(simulator, seen)
    async with Cluster(nodes=0) as cluster:
        async with with_simulators(cluster, [OPERATORS[name]], seed=41):
            pass
        async with with_simulators(cluster, [OPERATORS[name]]):
            pass
    assert seeds == [41, 0]


@pytest.mark.virtual
async def test_samples_that_are_there_stay_as_they_are() -> None:
    operator = find("webapp")
    async with Cluster(controllers=False) as cluster:
        await install_definitions(cluster.client, [operator])
        await create_samples(cluster.client, [operator])
        hello = await cluster.client.get("webapps", "hello", "default")
        hello["spec"]["replicas"] = 7
        await cluster.client.update(hello)
        await create_samples(cluster.client, [operator])
        assert (await cluster.client.get("webapps", "hello", "default"))["spec"]["replicas"] == 7
