"""Servers on the addresses of pods: they live with their containers, have faults, and their data can be restored."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.applications import Application, Applications, Member
from konverge.wire.message import Request
from tests.sim.applications.support import delete, running, simulated
from tests.sim.conftest import SPACE, condition
from tests.sim.processes.support import is_ready, until

pytestmark = pytest.mark.spec("K-63")

PORT = 8080
TABLE = [
    {"path": "/start", "method": "post", "status": 201, "set": {"started": "yes", "by": "{body.who}"}},
    {"path": "/state", "when": {"started": "yes"}, "body": '{"state": {"by": "{var.by}"}}'},
    {"path": "/state", "status": 503, "body": "not yet"},
    {"path": "/pods/*", "body": "{pod.metadata.name}", "headers": {"X-From": "table"}},
]
HTTP = {"servers": [{"kind": "http", "server": "api", "image": "app:*", "ports": [PORT], "table": TABLE}]}


async def asked(address: str, method: str, path: str, body: str = "", port: int = PORT) -> tuple[int, str]:
    """Status and body of one HTTP request."""
    reader, writer = await asyncio.open_connection(address, port)
    try:
        fields = f"host: x\r\nconnection: close\r\ncontent-length: {len(body)}"
        writer.write(f"{method} {path} HTTP/1.1\r\n{fields}\r\n\r\n{body}".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        return int(head.split(" ")[1]), (await reader.read()).decode()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_a_table_answers_by_method_path_and_what_was_set() -> None:
    async with simulated(HTTP) as (cluster, _):
        address = (await running(cluster, "web")).status.pod_ip or ""
        assert await asked(address, "GET", "/state?x=1") == (503, "not yet")
        assert await asked(address, "GET", "/start") == (404, "no line of the table of this stand-in matches")
        assert (await asked(address, "POST", "/start", '{"who": "me"}'))[0] == 201
        assert await asked(address, "GET", "/state") == (200, '{"state": {"by": "me"}}')
        assert await asked(address, "GET", "/pods/1") == (200, "web")


async def test_a_server_ends_with_its_pod() -> None:
    async with simulated(HTTP) as (cluster, applications):
        address = (await running(cluster, "web")).status.pod_ip or ""
        assert applications.servers["api"].pods == ["web"]
        await delete(cluster, applications, "web")
        with pytest.raises(ConnectionRefusedError):
            await asked(address, "GET", "/pods/1")


async def test_faults_are_switched_on_and_off_while_it_runs() -> None:
    async with simulated(HTTP) as (cluster, applications):
        address = (await running(cluster, "web")).status.pod_ip or ""
        server = applications.servers["api"]
        server.fault = "error"
        assert (await asked(address, "GET", "/pods/1"))[0] == 500
        server.fault = "wrong"
        assert await asked(address, "GET", "/pods/1") == (200, "{}")
        server.fault = "cut"
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await asked(address, "GET", "/pods/1")
        server.fault = "refuse"
        with pytest.raises(ConnectionRefusedError):
            await asked(address, "GET", "/pods/1")
        server.fault = ""
        assert await asked(address, "GET", "/pods/1") == (200, "web")
        server.break_down("error", pod="another")
        assert await asked(address, "GET", "/pods/1") == (200, "web")
        with pytest.raises(ValueError, match=r"server api has no fault 'angry'; it has: refuse \(no connection"):
            server.fault = "angry"


async def test_a_pod_that_starts_under_a_fault_has_it() -> None:
    async with simulated(HTTP) as (cluster, applications):
        applications.servers["api"].fault = "refuse"
        address = (await running(cluster, "web")).status.pod_ip or ""
        with pytest.raises(ConnectionRefusedError):
            await asked(address, "GET", "/pods/1")


async def test_pods_of_one_owner_share_their_data_and_it_ends_with_the_last() -> None:
    async with simulated(HTTP) as (cluster, applications):
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "shop", "uid": "u-1", "controller": True}
        one = await running(cluster, "one", owner=owner)
        two = await running(cluster, "two", owner=owner)
        lone = await running(cluster, "lone")
        await asked(one.status.pod_ip or "", "POST", "/start", "{}")
        assert (await asked(two.status.pod_ip or "", "GET", "/state"))[0] == 200
        assert (await asked(lone.status.pod_ip or "", "GET", "/state"))[0] == 503
        for name in ("one", "two"):
            await delete(cluster, applications, name)
        again = await running(cluster, "one", owner=owner)
        assert (await asked(again.status.pod_ip or "", "GET", "/state"))[0] == 503


async def test_data_on_a_claim_outlives_the_pods() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": SPACE}}
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    async with simulated(HTTP) as (cluster, applications):
        await cluster.client.create(claim)
        first = await running(cluster, "web", volumes=volumes)
        await asked(first.status.pod_ip or "", "POST", "/start", "{}")
        await delete(cluster, applications, "web")
        second = await running(cluster, "web", volumes=volumes)
        assert (await asked(second.status.pod_ip or "", "GET", "/state"))[0] == 200


@pytest.mark.spec("K-64")
async def test_data_can_be_had_as_it_was_at_a_revision() -> None:
    async with simulated(HTTP) as (cluster, applications):
        address = (await running(cluster, "web")).status.pod_ip or ""
        body = MergePatch({"metadata": {"labels": {"a": "b"}}})
        before = int((await cluster.client.patch(Pod, "web", body, SPACE)).metadata.resource_version or "")
        await asked(address, "POST", "/start", '{"who": "me"}')
        body = MergePatch({"metadata": {"labels": {"a": "c"}}})
        after = int((await cluster.client.patch(Pod, "web", body, SPACE)).metadata.resource_version or "")
        # When revision `before` was written the request had not come yet; when `after` was, it had.
        old, new = applications.export(before), applications.export(after)
        assert new == applications.export()
    assert await _state(old) == (503, "not yet")
    assert await _state(new) == (200, '{"state": {"by": "me"}}')


async def _state(document: dict[str, Any]) -> tuple[int, str]:
    """What a cluster that begins with this data shows."""
    async with simulated(HTTP) as (cluster, applications):
        applications.restore(document)
        return await asked((await running(cluster, "web")).status.pod_ip or "", "GET", "/state")


@pytest.mark.virtual
async def test_on_virtual_time_requests_are_answered_without_sockets() -> None:
    async with simulated(HTTP) as (cluster, applications):
        address = (await running(cluster, "web")).status.pod_ip or ""
        handler = applications.handler(address, PORT)
        assert handler is not None
        response = await handler(Request("GET", "/pods/1"))
        assert (response.status, response.body) == (200, b"web")
        assert applications.handler(address, PORT + 1) is None
        applications.servers["api"].fault = "refuse"
        assert applications.handler(address, PORT) is None


# ------------------------------------------------------------------ one's own


class Gate(Application):
    """Echoes lines; its pods are ready when the word `open` has come."""

    ports = (7,)

    async def serve(self, member: Member, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if line == b"open\n":
                self.state["open"] = True
                self.changed()
                for other in self.members.values():
                    self.around.look_at(other)
            writer.write(member.name.encode() + b": " + line)
            await writer.drain()

    def ready(self, member: Member) -> bool:
        return bool(self.state.get("open"))


OWN = {"servers": [{"python": f"{__name__}:Gate", "image": "app:*", "ports": ["echo"]}]}
CONTAINER = {"name": "main", "image": "app:1", "ports": [{"name": "echo", "containerPort": 7777}]}


async def test_a_server_of_ones_own_decides_when_its_pod_is_ready() -> None:
    async with simulated(OWN) as (cluster, applications):
        web = await running(cluster, "web", containers=[CONTAINER])
        assert condition(web, "Ready")[0] == "False"
        reader, writer = await asyncio.open_connection(web.status.pod_ip, 7777)
        writer.write(b"open\n")
        assert await reader.readline() == b"web: open\n"
        writer.close()
        await writer.wait_closed()
        await until(cluster.client, "web", is_ready)
        assert _open(applications)


def _open(applications: Applications) -> bool:
    return any(entry["state"].get("open") for entry in applications.export().values())
