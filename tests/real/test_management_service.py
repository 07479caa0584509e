"""The management service in front of the real API server: it works as in front of ours."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from konverge.cli.install_objects import install_definitions
from konverge.cli.management import Management
from konverge.client import Client, MergePatch, load_config
from konverge.client.connection import Reconnecting
from konverge.operators.catalog import find
from konverge.operators.nacos.resource import Nacos
from konverge.service.access import own_nothing
from konverge.wire.message import Headers, Request
from konverge.wire.pool import ConnectionPool
from tests.real.clients.waiting import LIMIT, until_served
from tests.service.desk import ALL, READ, SPACE, STREAM, Desk, listening
from tools.control_plane import ControlPlane

pytestmark = [pytest.mark.spec("N-22"), pytest.mark.blocking("a real server beside us")]


@asynccontextmanager
async def a_real_desk(plane: ControlPlane) -> AsyncIterator[Desk]:
    """The kubeconfig has the certificate of an administrator; the service must not use it."""
    config = load_config(kubeconfig=plane.kubeconfig)
    assert config.tls.certificate_data or config.tls.certificate_file
    async with Client.connect(config) as admin, aclosing(Reconnecting(own_nothing(config))) as transport:
        await install_definitions(admin, [find("nacos")])
        await until_served(admin, Nacos.resource)
        desk = Desk(transport, plane.token, admin)
        yield desk
        await desk.close()
        await admin.delete_collection(Nacos, SPACE)


async def test_the_cluster_decides_by_the_callers_token(real_server: ControlPlane) -> None:
    async with a_real_desk(real_server) as desk:
        for token in ("", "wrong"):
            assert (await desk.send("GET", ALL, token=token)).status == 401
            assert (await desk.send("GET", STREAM, token=token)).status == 401
        reader = await desk.account("service-reader", *READ)
        await _until_allowed(desk, reader)
        assert (await desk.send("GET", ALL, token=reader)).status == 200
        refused = await desk.send("POST", ALL, {"name": "shop"}, token=reader)
        assert refused.status == 403
        assert "cannot create resource" in refused.problem["detail"]
        assert (await desk.send("GET", "/api/v1/instances", token=reader)).status == 403
        assert (await desk.send("GET", "/api/v1/watch/instances", token=reader)).status == 403
        mine = await desk.send("GET", "/api/v1/identity", token=reader)
        assert mine.json["username"] == f"system:serviceaccount:{SPACE}:service-reader"
        assert (await desk.send("GET", "/readyz", token="")).status == 200


async def _until_allowed(desk: Desk, token: str) -> None:
    """The authorizer of the real server learns of a binding a moment after it was made."""
    async with asyncio.timeout(LIMIT):
        while (await desk.send("GET", ALL, token=token)).status == 403:
            pass


async def test_the_service_needs_only_the_arguments_of_its_pod(real_server: ControlPlane) -> None:
    """In a pod the API server is another name and the authority another file; there is no kubeconfig and no token."""
    plan = Management(operator="nacos-operator", namespace="nacos", image="x")
    given = {
        "--server": real_server.url,
        "--certificate-authority": real_server.ca_file,
        "--bind-address": "127.0.0.1:0",
    }
    arguments = [_replaced(argument, given) for argument in plan.arguments()]
    with _started(arguments) as process:
        try:
            assert process.stdout is not None
            url = (await asyncio.to_thread(process.stdout.readline)).split()[1]
            async with ConnectionPool(url) as pool:
                assert (await pool.send(Request("GET", "/readyz"))).status == 200
                assert (await pool.send(Request("GET", "/api/v1/identity"))).status == 401
                fields = Headers.of({"authorization": f"Bearer {real_server.token}"})
                assert (await pool.send(Request("GET", "/api/v1/identity", fields))).status == 200
        finally:
            process.terminate()


def _started(arguments: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "konverge.cli.main", *arguments]
    bare = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=bare)


def _replaced(argument: str, given: dict[str, Any]) -> str:
    name = argument.partition("=")[0]
    return f"{name}={given[name]}" if name in given else argument


async def test_wrong_fields_come_back_with_their_paths(real_server: ControlPlane) -> None:
    async with a_real_desk(real_server) as desk:
        for spec, status, fields in (
            ({"type": "cluster", "replicas": 2}, 422, {"spec.replicas"}),
            ({"replicas": "three"}, 422, {"spec.replicas"}),
            ({"replicaz": 3}, 400, {"spec.replicaz"}),
            ({"env": [{"value": "1"}]}, 422, {"spec.env[0].name"}),
        ):
            refused = await desk.send("POST", ALL, {"name": "shop", "spec": spec})
            assert refused.status == status
            assert {error["field"] for error in refused.problem["errors"]} == fields
        await desk.create("shop")
        for change, field in (({"replicas": 2}, "replicas"), ({"resources": {"limit": {}}}, "resources.limit")):
            refused = await desk.send("PATCH", f"{ALL}/shop", change)
            assert [error["field"] for error in refused.problem["errors"]] == [field]


async def test_an_instance_is_created_changed_watched_and_deleted(real_server: ControlPlane) -> None:
    async with a_real_desk(real_server) as desk, listening(desk) as stream:
        assert (await stream.take(1))[0].event == "synced"
        made = await desk.create("shop", type="cluster", replicas=3)
        tag = made.headers.get("etag")
        assert (await desk.send("DELETE", f"{ALL}/shop?dryRun=true")).status in (202, 204)
        assert (await desk.send("PATCH", f"{ALL}/shop", {"replicas": 5}, if_match=tag)).json["replicas"] == 5
        assert (await desk.send("PATCH", f"{ALL}/shop", {"replicas": 7}, if_match=tag)).status == 412
        assert (await desk.send("DELETE", f"{ALL}/shop", if_match=tag)).status == 412
        status = MergePatch({"status": {"phase": "Creating"}})
        await desk.admin.patch(Nacos, "shop", status, SPACE, subresource="status")
        seen = await stream.take(3)
        assert [(event.event, event.data["replicas"], event.data["phase"]) for event in seen] == [
            ("added", 3, "Pending"),
            ("modified", 5, "Pending"),
            ("modified", 5, "Creating"),
        ]
        assert (await desk.send("DELETE", f"{ALL}/shop")).status in (202, 204)
        assert (await stream.take(1))[0].event == "deleted"
        async with listening(desk, last_event_id=seen[1].id) as again:
            events = await again.take(2)
            assert [event.event for event in events] == ["modified", "deleted"]


async def test_a_watch_from_an_expired_version_starts_again(real_server: ControlPlane) -> None:
    async with a_real_desk(real_server) as desk:
        await desk.create("shop")
        async with listening(desk, last_event_id="1") as stream:
            events = await stream.take(3)
            assert [event.event for event in events] == ["reset", "added", "synced"]
            assert stream.last_id != ""


async def test_pages_continue_and_a_bad_token_is_refused(real_server: ControlPlane) -> None:
    async with a_real_desk(real_server) as desk:
        for number in range(3):
            await desk.create(f"page-{number}")
        first = await desk.send("GET", f"{ALL}?limit=2")
        assert first.json["remaining"] == 1
        await desk.create("page-9")
        second = await desk.send("GET", first.headers.get("link").partition(">")[0].removeprefix("<"))
        assert [item["name"] for item in second.json["items"]] == ["page-2"]
        assert (await desk.send("GET", f"{ALL}?continue=nonsense")).status == 400
