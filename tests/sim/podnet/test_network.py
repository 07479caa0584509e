"""The network itself: namespaces with addresses, the ways between them, and that nothing of it is left.

Where the kernel allows none of it these tests are skipped with its reason.
"""

from __future__ import annotations

import array
import asyncio
import errno
import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from konverge.sim.network import POD_BLOCKS
from konverge.sim.podnet import network as network_module
from konverge.sim.podnet.network import NoPodNetwork, PodNetwork, why_no_network
from konverge.wire import routes
from tests.sim.podnet.support import ASKS, SAYS, SERVICES, asked, inside, possible, serving

pytestmark = pytest.mark.spec("S-52")


def addressed(network: PodNetwork, *pods: str) -> list[str]:
    return [network.address(pod) for pod in pods]


@possible
async def test_pods_have_addresses_and_all_ports_of_their_own() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        a, b = addressed(network, "a", "b")
        places = [await network.attach("a"), await network.attach("b")]
        async with serving(places[0], "0.0.0.0", 80, "a"), serving(places[1], "0.0.0.0", 80, "b"):
            assert await asked(network, a, 80) == f"a heard a question of {network.gateway}"
            assert await asked(network, b, 80) == f"b heard a question of {network.gateway}"
            assert await inside(places[0], ASKS, b, 80) == f"b heard a question of {a}"
            assert await inside(places[1], ASKS, b, 80) == f"b heard a question of {b}"


@possible
async def test_loopback_is_the_pods_own() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        [b] = addressed(network, "b")
        places = [await network.attach("a"), await network.attach("b")]
        async with serving(places[1], "127.0.0.1", 80, "b"):
            assert await inside(places[1], ASKS, "127.0.0.1", 80) == "b heard a question of 127.0.0.1"
            for place, address in ((places[0], "127.0.0.1"), (places[0], b), (places[1], b)):
                assert "Connection refused" in await inside(place, ASKS, address, 80)


@possible
async def test_nothing_outside_of_it_is_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        async with PodNetwork.at_work(SERVICES) as network:
            addressed(network, "a")
            place = await network.attach("a")
            assert "Connection refused" in await inside(place, ASKS, "127.0.0.1", server.getsockname()[1])
            assert "unreachable" in await inside(place, ASKS, "192.0.2.1", 80)
            names = "print(sorted(name for _, name in socket.if_nameindex()))"
            assert await inside(place, SAYS, names) == "['eth0', 'lo']"


@possible
async def test_containers_of_a_pod_share_their_network_and_a_pod_that_is_gone_has_none() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        [address] = addressed(network, "a")
        first, second = await asyncio.gather(network.attach("a"), network.attach("a"))
        assert first == second
        async with serving(first, "127.0.0.1", 80, "a"):
            assert await inside(second, ASKS, "127.0.0.1", 80) == "a heard a question of 127.0.0.1"
        await network.detach("a")
        with pytest.raises(OSError, match="unreachable"):
            await network.connect(address, 80)
        assert network.address("b", address) == address, "an address that is free again is not given to another"
        async with serving(await network.attach("b"), address, 80, "b"):
            assert await asked(network, address, 80) == f"b heard a question of {network.gateway}"


@possible
@pytest.mark.spec("S-79")
@pytest.mark.parametrize("host", ["\0", "ü" * 70, "x" * 70_000], ids=["NUL", "name", "long"])
async def test_what_cannot_be_bound_is_refused_and_the_network_goes_on(host: str) -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        with pytest.raises(OSError) as refused:
            await network.make_socket("tcp", (host, 80), node="node-1")
        assert refused.value.errno == errno.EINVAL
        [address] = addressed(network, "a")
        async with serving(await network.attach("a"), "0.0.0.0", 80, "a"):
            assert await asked(network, address, 80) == f"a heard a question of {network.gateway}"


@possible
@pytest.mark.spec("S-79")
async def test_a_port_that_no_socket_has_is_refused() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        with pytest.raises(OSError) as refused:
            await network.make_socket("tcp", ("127.0.0.1", 65536))
        assert refused.value.errno == errno.EINVAL
        (await network.make_socket("tcp", ("127.0.0.1", 65535))).close()


@possible
@pytest.mark.spec("S-54")
async def test_the_interface_to_a_pod_that_is_gone_goes() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        for pod in ("a", "b"):
            await network.attach(pod)
        sock = await network.make_socket("udp")
        assert _interfaces(sock) == {"lo", "pod1", "pod2"}
        await network.detach("a")
        async with asyncio.timeout(30):  # the kernel does it in its own time
            while "pod1" in _interfaces(sock):
                await asyncio.sleep(0)
        assert _interfaces(sock) == {"lo", "pod2"}
        sock.close()


def _interfaces(sock: socket.socket) -> set[str]:
    """Those with an address, of the network that a socket is of."""
    room = array.array("B", bytes(4096))
    size, _ = struct.unpack("iL", fcntl.ioctl(sock, _SIOCGIFCONF, struct.pack("iL", 4096, room.buffer_info()[0])))
    return {room[start : start + 16].tobytes().rstrip(b"\0").decode() for start in range(0, size, _ENTRY)}


_SIOCGIFCONF, _ENTRY = 0x8912, 40


@possible
async def test_a_pod_keeps_the_address_that_it_has_if_it_is_of_this_network() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        known = str(network.block[500])
        assert network.address("a", known) == network.address("a") == known
        for other in ("127.1.0.1", "", "no address"):
            assert network.has(network.address(f"b{other}", other))
        assert not network.has("127.1.0.1")


@possible
async def test_who_does_not_wait_for_an_answer_takes_none_from_others() -> None:
    async with PodNetwork.at_work(SERVICES) as network:
        before = len(list(Path("/proc/self/fd").iterdir()))
        hasty = [asyncio.create_task(network.make_socket("udp")) for _ in range(5)]
        await asyncio.sleep(0)
        for task in hasty:
            task.cancel()
        sock = await network.make_socket("tcp", (network.gateway, 7))
        assert sock.getsockname() == (network.gateway, 7)
        assert sock.type == socket.SOCK_STREAM
        sock.close()
        assert len(list(Path("/proc/self/fd").iterdir())) == before


@possible
async def test_the_way_to_pods_is_known_in_this_process_alone_and_clusters_have_different_ones() -> None:
    async with PodNetwork.at_work(SERVICES) as one, PodNetwork.at_work(SERVICES) as other:
        assert not one.block.overlaps(other.block)
        a, b = one.address("a"), other.address("a")
        places = [await one.attach("a"), await other.attach("a")]
        async with serving(places[0], a, 80, "of one"), serving(places[1], b, 80, "of the other"):
            for address, name in ((a, "of one"), (b, "of the other")):
                reader, writer = await routes.open_connection(address, 80)
                writer.write(b"x")
                assert (await reader.read()).decode().startswith(name)
                writer.close()
                await writer.wait_closed()
            assert "unreachable" in await inside(places[0], ASKS, b, 80)
    assert routes.way_to(a) is None


async def test_the_block_is_not_that_of_the_services() -> None:
    if why_no_network():
        pytest.skip(why_no_network())
    async with PodNetwork.at_work(str(POD_BLOCKS[0])) as network:
        assert network.block == POD_BLOCKS[1]


# ------------------------------------------------------------------ the end, and where there is none


@possible
@pytest.mark.spec("S-54")
async def test_nothing_is_left_on_this_machine() -> None:
    before = socket.if_nameindex(), _held_namespaces()
    async with PodNetwork.at_work(SERVICES) as network:
        network.address("a")
        place = await network.attach("a")
        namespace = os.fstat(place.network).st_ino
        async with serving(place, "0.0.0.0", 80, "a"):
            assert namespace in _network_namespaces()
            assert socket.if_nameindex() == before[0], "this machine has an interface more"
    assert namespace not in _network_namespaces()
    assert (socket.if_nameindex(), _held_namespaces()) == before


def _held_namespaces() -> list[str]:
    """By descriptors of this process."""
    targets = map(_target, Path("/proc/self/fd").iterdir())
    return [target for target in targets if target.startswith(("net:", "user:"))]


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # the folder itself was open a moment ago
        return ""


def _network_namespaces() -> set[int]:
    found = set()
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(path.stat().st_ino)
        except OSError:
            continue
    return found


_ALONE = """
import asyncio, os, sys
from pathlib import Path
from konverge.sim.podnet.network import PodNetwork

async def main():
    async with PodNetwork.at_work("10.96.0.0/16") as network:
        network.address("a")
        place = await network.attach("a")
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        print(*children, os.fstat(place.network).st_ino, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def _be_able_to_become(who: dict[str, Any]) -> None:
    try:
        subprocess.run([sys.executable, "-c", "import konverge"], check=True, capture_output=True, cwd="/", **who)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this Python cannot be run as another user: {error}")


@possible
@pytest.mark.spec("S-54")
@pytest.mark.parametrize("user", [None, 65534], ids=["as we are", "as nobody"])
def test_the_keeper_ends_with_a_cluster_that_is_killed(user: int | None) -> None:
    who: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    if user is not None:
        _be_able_to_become(who)
    with subprocess.Popen([sys.executable, "-c", _ALONE], stdout=subprocess.PIPE, text=True, cwd="/", **who) as process:
        assert process.stdout is not None
        said = process.stdout.readline().split()
        assert len(said) == 2, "the network is not possible for this user, or there is not one keeper"
        keeper = os.pidfd_open(int(said[0]))
        process.send_signal(signal.SIGKILL)
    try:
        assert select.select([keeper], [], [], 30)[0], "the keeper outlives its cluster"
    finally:
        os.close(keeper)
    assert int(said[1]) not in _network_namespaces()


@pytest.mark.spec("S-54")
async def test_where_it_is_refused_the_reason_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(network_module, "KEEPER", (sys.executable, "-I", "-S", "-c", _REFUSED))
    with pytest.raises(NoPodNetwork, match="no namespace for you"):
        async with PodNetwork.at_work(SERVICES):
            pass
    assert why_no_network() == "no namespace for you"
    monkeypatch.setattr(network_module, "KEEPER", (sys.executable, "-I", "-S", "-c", "pass"))
    with pytest.raises(NoPodNetwork, match="has ended"):
        async with PodNetwork.at_work(SERVICES):
            pass
    assert why_no_network() == "the trial ended early"


_REFUSED = """
import json, socket, sys
socket.socket(fileno=int(sys.argv[1])).send(json.dumps({"error": "no namespace for you", "errno": 1}).encode())
"""
