"""v1beta1 and v1alpha1 of Nacos on the real kube-apiserver, with kubectl."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from konverge.client import Client, load_config
from tests.operators.nacos import versions_contract as contract
from tests.real.embedded import Tool
from tools.control_plane import ControlPlane

pytestmark = [pytest.mark.limit(600)]


@asynccontextmanager
async def connected(server: ControlPlane) -> AsyncIterator[Client]:
    async with Client.connect(load_config(kubeconfig=str(server.kubeconfig))) as client:
        yield client


@asynccontextmanager
async def converting(server: ControlPlane) -> AsyncIterator[Client]:
    async with connected(server) as client:
        await contract.define(client)
        await contract.served(client)
        async with contract.converter().bound_to(client).running():
            await contract.converted(client)
            yield client


@pytest.mark.spec("N-27")
async def test_objects_from_before_and_the_way_back(real_server: ControlPlane) -> None:
    """The first one here: the definition of the earlier release has to come first."""
    async with connected(real_server) as client:
        await contract.before_there_were_versions(client)
        async with converting(real_server):
            await contract.after_there_are_versions(client)
            await contract.back_to_the_earlier_release(client)


@pytest.mark.spec("N-26")
async def test_both_versions_are_served(real_server: ControlPlane) -> None:
    async with converting(real_server) as client:
        await contract.served(client, contract.BETA)
        await contract.written_and_read_in_both(client)
        await contract.patched_in_both(client)
        await contract.two_writers_in_different_versions(client)
        await contract.applied_in_both(client)
        await contract.conflicts_across_versions(client)
        await contract.listed_and_watched_in_both(client)
        await contract.refused_in_both(client)


@pytest.mark.spec("N-28")
async def test_the_strategy_none_loses_data(real_server: ControlPlane) -> None:
    async with converting(real_server) as client:
        await contract.the_strategy_none_loses_data(client)


@pytest.mark.spec("N-24")
async def test_kubectl_in_both_versions(real_server: ControlPlane, kubectl: Path, tmp_path: Path) -> None:
    """`nacos` is v1beta1 for kubectl, because a beta version goes before an alpha one."""
    k = Tool(kubectl, real_server.kubeconfig, tmp_path, contract.SPACE)
    wait = ("wait", "--for=condition=Ready")
    async with converting(real_server) as client:
        await asyncio.to_thread(k.until, lambda printed: True, "get", "nacos.v1beta1.nacos.io")
        await client.create(contract.alpha("shown", type="cluster", replicas=3, function_mode="naming"))
        await contract.write_status(client, "shown", contract.written_status(ready="False"))
        assert "timed out" in await asyncio.to_thread(k.fails, *wait, "nacos/shown", "--timeout=3s")
        await contract.write_status(client, "shown", contract.written_status())
        for name in ("nacos", "nacos.v1beta1.nacos.io", "nacos.v1alpha1.nacos.io"):
            assert "condition met" in await asyncio.to_thread(k, *wait, f"{name}/shown", "--timeout=120s")
            table = await asyncio.to_thread(k, "get", name, "shown")
            assert table.split()[:7] == ["NAME", "REPLICAS", "READY", "TYPE", "DBTYPE", "VERSION", "CREATETIME"]
        wide = await asyncio.to_thread(k, "get", "nacos", "shown", "-o", "wide")
        assert [*wide.split()[7:10], *wide.split()[-2:]] == ["AVAILABLE", "LEADER", "REASON", "n-0", "Running"]
        explained = await asyncio.to_thread(
            k.until, lambda printed: "VERSION:    v1beta1" in printed, "explain", "nacos.status.servers.role"
        )
        assert "leader or follower" in explained
        scaled = await asyncio.to_thread(k, "scale", "nacos", "shown", "--replicas=5")
        assert "scaled" in scaled
        assert (await client.get(contract.ALPHA, "shown", contract.SPACE))["spec"]["replicas"] == 5
        assert "timed out" in await asyncio.to_thread(k.fails, *wait, "nacos/shown", "--timeout=3s"), "generation 2"


@pytest.mark.spec("N-29")
async def test_without_the_operator(real_server: ControlPlane) -> None:
    async with connected(real_server) as client:
        await contract.define(client)
        await contract.served(client, contract.BETA)
        await contract.without_the_operator(client)
        async with converting(real_server):
            await contract.with_the_operator_again(client)
