"""Names of Services and pods, as a process in a pod would resolve them."""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from konverge.sim.applications.names import Names, Resolver, resolv_conf
from konverge.sim.applications.names.message import AAAA, NAME_ERROR, NO_ERROR, PTR, SRV, A
from tests.sim.applications.support import running, simulated
from tests.sim.conftest import SPACE

pytestmark = pytest.mark.spec("K-65")


def service(name: str, *ports: tuple[str, int], **spec: Any) -> dict[str, Any]:
    listed = [{"name": title, "port": number} for title, number in ports]
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"ports": listed, **spec}}


def endpoints(
    name: str, *addresses: str, ready: bool = True, ports: tuple[tuple[str, int], ...] = ()
) -> dict[str, Any]:
    entries = [
        {"addresses": [address], "conditions": {"ready": ready}, "hostname": f"{name}-{number}"}
        for number, address in enumerate(addresses)
    ]
    listed = [{"name": title, "port": number, "protocol": "TCP"} for title, number in ports]
    labels = {"kubernetes.io/service-name": name}
    return {
        "metadata": {"name": f"{name}-x", "namespace": "shop", "labels": labels},
        "endpoints": entries,
        "ports": listed,
    }


class Objects:
    def __init__(self, services: list[dict[str, Any]], slices: list[dict[str, Any]]) -> None:
        self._services = services
        self._slices = slices

    def get(self, group: str, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        assert (group, plural) == ("", "services")
        return next(
            (entry for entry in self._services if entry["metadata"] == {"name": name, "namespace": namespace}), None
        )

    def scan(self, group: str, plural: str, namespace: str = "") -> Iterator[dict[str, Any]]:
        entries = self._services if plural == "services" else self._slices
        return iter(entry for entry in entries if not namespace or entry["metadata"]["namespace"] == namespace)


NAMES = Names(
    Objects(
        [
            service("web", ("http", 80), clusterIP="10.0.0.1"),
            service("db", ("sql", 33), clusterIP="10.0.0.2"),
            service("idle", ("http", 80), clusterIP="10.0.0.3"),
            service("peers", ("zk", 2181), clusterIP="None"),
            service("away", type="ExternalName", externalName="peers.shop.svc.cluster.local"),
        ],
        [
            endpoints("web", "127.1.0.1", ports=(("http", 80),)),
            endpoints("db", "127.1.0.2", ports=(("sql", 3306),)),
            endpoints("idle", "127.1.0.9", ready=False, ports=(("http", 80),)),
            endpoints("peers", "127.1.0.10", "127.1.0.4", ports=(("zk", 2181),)),
        ],
    )
)


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("web.shop.svc.cluster.local", ["127.1.0.1"]),  # its ports are those of its pods
        ("db.shop.svc.cluster.local", ["10.0.0.2"]),
        ("idle.shop.svc.cluster.local", ["10.0.0.3"]),
        ("peers.shop.svc.cluster.local", ["127.1.0.4", "127.1.0.10"]),
        ("peers-1.peers.shop.svc.cluster.local", ["127.1.0.4"]),
        ("peers-7.peers.shop.svc.cluster.local", []),
        ("127-1-0-4.shop.pod.cluster.local", ["127.1.0.4"]),
        ("x.shop.pod.cluster.local", []),
        ("nothing.shop.svc.cluster.local", []),
        ("a.b.web.shop.svc.cluster.local", []),
        ("shop.svc.cluster.local", []),
        ("example.org", []),
        ("web", ["127.1.0.1"]),
        ("web.shop", ["127.1.0.1"]),
        ("web.shop.svc", ["127.1.0.1"]),
        ("peers-0.peers.shop", ["127.1.0.10"]),
    ],
)
def test_names_stand_for_pods_and_services(name: str, addresses: list[str]) -> None:
    assert NAMES.addresses(name, "shop") == addresses


def test_short_names_are_those_of_the_own_namespace() -> None:
    assert NAMES.addresses("web", "other") == []
    assert resolv_conf("127.0.0.1", "shop").splitlines() == [
        "nameserver 127.0.0.1",
        "search shop.svc.cluster.local svc.cluster.local cluster.local",
        "options ndots:5 timeout:1 attempts:2",
    ]


def test_an_external_name_is_an_alias() -> None:
    result = NAMES.look_up("away.shop.svc.cluster.local", A)
    assert [entry.value for entry in result.entries] == ["peers.shop.svc.cluster.local", "127.1.0.4", "127.1.0.10"]


def test_a_name_without_an_address_of_a_family_exists() -> None:
    assert (
        NAMES.look_up("web.shop.svc.cluster.local", AAAA).code,
        NAMES.look_up("no.shop.svc.cluster.local", A).code,
    ) == (
        NO_ERROR,
        NAME_ERROR,
    )


@pytest.mark.parametrize(
    ("address", "names"),
    [
        ("10.0.0.2", ["db.shop.svc.cluster.local"]),
        ("127.1.0.4", ["peers-1.peers.shop.svc.cluster.local"]),
        ("127.1.0.9", []),  # it is not ready
        ("192.0.2.1", []),
    ],
)
def test_addresses_have_names(address: str, names: list[str]) -> None:
    asked = ".".join((*reversed(address.split(".")), "in-addr.arpa"))
    result = NAMES.look_up(asked, PTR)
    assert [entry.value for entry in result.entries] == names
    assert result.code == NAMES.look_up(asked, A).code == (NO_ERROR if names else NAME_ERROR)
    assert not NAMES.look_up(asked, A).entries


def test_ports_have_names_too() -> None:
    result = NAMES.look_up("_zk._tcp.peers.shop.svc.cluster.local", SRV)
    assert [entry.value for entry in result.entries] == [
        "0 100 2181 peers-1.peers.shop.svc.cluster.local",
        "0 100 2181 peers-0.peers.shop.svc.cluster.local",
    ]
    assert [entry.value for entry in result.extra] == ["127.1.0.4", "127.1.0.10"]
    whole = NAMES.look_up("_sql._tcp.db.shop.svc.cluster.local", SRV)
    assert [entry.value for entry in whole.entries] == ["0 100 33 db.shop.svc.cluster.local"]
    assert NAMES.look_up("_sql._udp.db.shop.svc.cluster.local", SRV).code == NAME_ERROR


# ------------------------------------------------------------------ over the wire


def query(name: str, kind: int = A) -> bytes:
    labels = b"".join(bytes((len(label),)) + label.encode() for label in name.split("."))
    return struct.pack(">HHHHHH", 77, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def read(answer: bytes, asked: bytes) -> tuple[int, list[str]]:
    """Code and addresses of an answer."""
    number, flags, _, count, _, _ = struct.unpack_from(">HHHHHH", answer)
    assert number == 77
    assert flags & 0x8000
    addresses = [str(ipaddress.ip_address(answer[-4:]))] if count == 1 else []
    assert answer[12 : len(asked)] == asked[12:]
    return flags & 15, addresses


class Datagram(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.answer.set_result(data)


async def by_udp(port: int, data: bytes) -> bytes:
    transport, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        Datagram, remote_addr=("127.0.0.1", port)
    )
    transport.sendto(data)
    answer = await protocol.answer
    transport.close()
    return answer


async def by_tcp(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(len(data).to_bytes(2, "big") + data)
    answer = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize("ask", [by_udp, by_tcp])
async def test_a_resolver_answers_by_udp_and_tcp(ask: Any) -> None:
    async with Resolver(NAMES) as resolver:
        port = await resolver.listen(port=0)
        for name, kind, expected in (
            ("Web.Shop.svc.cluster.local", A, (NO_ERROR, ["127.1.0.1"])),
            ("web.shop.svc.cluster.local", AAAA, (NO_ERROR, [])),
            ("example.org", A, (NAME_ERROR, [])),
            ("localhost", A, (NO_ERROR, ["127.0.0.1"])),
        ):
            asked = query(name, kind)
            assert read(await ask(port, asked), asked) == expected


def test_an_answer_that_is_too_long_for_udp_is_asked_for_again() -> None:
    many = Names(
        Objects([service("all", clusterIP="None")], [endpoints("all", *(f"127.1.1.{n}" for n in range(1, 60)))])
    )
    asked = query("all.shop.svc.cluster.local")
    resolver = Resolver(many)
    short, whole = resolver.answer(asked, 512), resolver.answer(asked)
    assert short is not None
    assert whole is not None
    assert (len(short) <= 512, short[2] & 2, struct.unpack_from(">H", whole, 6)[0]) == (True, 2, 59)


@pytest.mark.parametrize("data", [b"", b"x" * 11, query("web")[:-3], b"\0" * 12 + b"\xc0\x0c" + b"\0" * 4])
def test_what_is_no_query_gets_no_answer(data: bytes) -> None:
    assert Resolver(NAMES).answer(data) is None


@pytest.mark.virtual
async def test_the_names_of_a_cluster_follow_its_pods() -> None:
    async with simulated({}, controllers=("endpoints",)) as (cluster, _):
        body: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "peers", "namespace": SPACE},
        }
        body["spec"] = {"clusterIP": "None", "selector": {"app": "x"}, "ports": [{"port": 1}]}
        await cluster.client.create(body)
        web = await running(cluster, "web", labels={"app": "x"}, hostname="web", subdomain="peers")
        names = Names(cluster.server.objects)
        assert names.addresses("peers") == names.addresses("web.peers") == [web.status.pod_ip]
