"""Simulated servers on real sockets and real time."""

from __future__ import annotations

import asyncio
import socket
import sys

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.server import HttpNacosServers, NacosError
from konverge.sim.cluster import Cluster
from konverge.sim.nacos import SimulatedNacos, Timings

AT_ONCE = Timings(boot=(0.02, 0.02), election=(0.02, 0.02), news=(0.01, 0.01))


def _pod(address: str, image: str = "nacos/nacos-server:v2.4.3") -> Pod:
    container = {"name": "nacos", "image": image, "env": [{"name": "MODE", "value": "standalone"}]}
    metadata = {"name": "nacos-0", "namespace": "default", "annotations": {"sim.konverge.dev/ip": address}}
    return from_dict(Pod, {"metadata": metadata, "spec": {"containers": [container]}})


@pytest.mark.skipif(sys.platform != "linux", reason="loopback addresses beyond 127.0.0.1")
async def test_a_server_is_found_at_its_pods_address_while_it_runs() -> None:
    async with (
        asyncio.timeout(120),
        Cluster(controllers=False) as cluster,
        SimulatedNacos(cluster, timings=AT_ONCE, sockets=True) as nacos,
    ):
        await cluster.client.create(_pod("127.88.251.7"))
        await nacos.opened("nacos-0")
        servers = HttpNacosServers()
        (member,) = await servers.nodes("127.88.251.7", timeout=60)
        assert member.version == "2.4.3"
        nacos.kill("nacos-0")
        await asyncio.sleep(0)  # the sockets' task closes what is no longer wanted
        with pytest.raises(NacosError) as caught:
            await servers.nodes("127.88.251.7", timeout=60)
        assert caught.value.reason in ("Unreachable", "ServerError")


async def test_a_port_in_use_is_logged_and_the_server_answers_in_process(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.88.251.8" if sys.platform == "linux" else "127.0.0.1", 8848))
        taken.listen()
        address = taken.getsockname()[0]
        async with (
            asyncio.timeout(120),
            Cluster(controllers=False) as cluster,
            SimulatedNacos(cluster, timings=AT_ONCE, sockets=True) as nacos,
        ):
            await cluster.client.create(_pod(address))
            await nacos.opened("nacos-0")
            assert "free the port" in caplog.text
            assert len(await HttpNacosServers(nacos.connect).nodes(address)) == 1
