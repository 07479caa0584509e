"""Addresses of Services, from inside of pods."""

from __future__ import annotations

import asyncio

import pytest

from konverge.sim.podnet.network import PodNetwork
from konverge.sim.podnet.proxies import Proxies
from konverge.sim.podnet.services import Behind, Front
from tests.sim.podnet.support import ASKS, ASKS_BY_UDP, HEARS, SERVICES, asked, inside, possible, serving

pytestmark = [pytest.mark.spec("S-53"), possible]

ADDRESS = "10.96.3.4"
WEB, DNS = Front("tcp", ADDRESS, 80), Front("udp", ADDRESS, 53)
KEY = ("shop", "web")


async def test_a_service_leads_to_its_pods_while_it_has_some() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        proxies = Proxies(network)
        backend = (network.address("server"), 8080)
        client, server = (network.address("client"), await network.attach("client"))[1], await network.attach("server")
        async with serving(server, "0.0.0.0", 8080, "server"):
            assert "Connection refused" in await inside(client, ASKS, ADDRESS, 80)
            await proxies.set(KEY, {WEB: Behind((backend,))})
            for place in (client, server):  # a pod may be behind the Service that it asks
                assert await inside(place, ASKS, ADDRESS, 80) == f"server heard a question of {network.gateway}"
            assert "Connection refused" in await inside(client, ASKS, ADDRESS, 81)
            await proxies.set(KEY, {})
            assert "Connection refused" in await inside(client, ASKS, ADDRESS, 80)
        await proxies.aclose()


async def test_backends_that_do_not_answer_are_passed_over_and_their_refusal_passed_on() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        proxies = Proxies(network)
        good, bad = network.address("good"), network.address("bad")
        places = [await network.attach("good"), await network.attach("bad")]
        await proxies.set(KEY, {WEB: Behind(((bad, 80),))})
        assert "reset" in await inside(places[0], HEARS, ADDRESS, 80)
        await proxies.set(KEY, {WEB: Behind(((bad, 80), (good, 80)))})
        async with serving(places[0], good, 80, "good"):
            for _ in range(4):
                assert (await inside(places[1], ASKS, ADDRESS, 80)).startswith("good heard")
        await proxies.aclose()


async def test_what_is_not_in_a_pod_is_reached_from_this_machine() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"this machine heard " + await reader.read())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with PodNetwork.at_work(SERVICES) as network:
        network.address("client")
        client, proxies = await network.attach("client"), Proxies(network)
        await proxies.set(KEY, {WEB: Behind((server.sockets[0].getsockname()[:2],))})
        assert await inside(client, ASKS, ADDRESS, 80) == "this machine heard a question"
        await proxies.aclose()
    server.close()
    await server.wait_closed()


async def test_datagrams_and_what_comes_back() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        proxies = Proxies(network)
        addresses = [network.address(name) for name in ("client", "one", "two")]
        client, one, two = [await network.attach(name) for name in ("client", "one", "two")]
        async with serving(one, "0.0.0.0", 53, "one", udp=True), serving(two, "0.0.0.0", 53, "two", udp=True):
            for address, name in zip(addresses[1:], ("one", "two"), strict=True):
                await proxies.set(KEY, {DNS: Behind(((address, 53),))})
                assert await inside(client, ASKS_BY_UDP, ADDRESS, 53) == "\n".join([f"{name} heard a question"] * 2)
        proxies.forget(KEY)
        assert "refused" in await inside(client, ASKS_BY_UDP, ADDRESS, 53)
        await proxies.aclose()


async def test_much_data_passes_whole_and_both_ends_are_told_of_the_end() -> None:
    size = 8 * 1024 * 1024

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(str(len(await reader.read())).encode())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with PodNetwork.at_work(SERVICES) as network:
        proxies = Proxies(network)
        await proxies.set(KEY, {WEB: Behind((server.sockets[0].getsockname()[:2],))})
        reader, writer = await asyncio.open_connection(sock=await network.connect(ADDRESS, 80))
        writer.write(bytes(size))
        writer.write_eof()
        assert await reader.read() == str(size).encode()
        writer.close()
        await writer.wait_closed()
        await proxies.aclose()
    server.close()
    await server.wait_closed()


@pytest.mark.spec("S-58")
async def test_the_ports_of_a_node_are_on_all_of_its_addresses_and_gone_with_it() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        proxies = Proxies(network)
        backend = (network.address("server"), 8080)
        client, server = (network.address("client"), await network.attach("client"))[1], await network.attach("server")
        nodes = [network.node_address(name) for name in ("node-1", "node-2")]
        assert network.nodes() == {"node-1", "node-2"}
        front = Front("tcp", "0.0.0.0", 30080, "node-1")
        async with serving(server, "0.0.0.0", 8080, "server"):
            await proxies.set(KEY, {front: Behind((backend,))})
            said = f"server heard a question of {network.gateway}"
            assert await inside(client, ASKS, nodes[0], 30080) == said
            assert await asked(network, nodes[0], 30080) == said
            on_node = await network.attach_node("node-1")
            assert await inside(on_node, ASKS, "127.0.0.1", 30080) == said
            assert await inside(on_node, ASKS, backend[0], 8080) == f"server heard a question of {nodes[0]}"
            elsewhere = await network.attach_node("node-2")
            assert "Connection refused" in await inside(elsewhere, ASKS, "127.0.0.1", 30080)
        await proxies.aclose()
        network.forget_node("node-1")
        assert network.nodes() == {"node-2"}
