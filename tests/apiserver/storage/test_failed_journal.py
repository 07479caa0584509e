"""A disk that fails shows in health checks and in every refused write, and all works again when the disk does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.storage.failures import Lost
from konverge.apiserver.storage.folder import FolderError
from tests.apiserver.api import CONFIG_MAPS, Api
from tests.apiserver.storage.faulty_disk import BROKEN, FULL, Fault, FaultyDisk

pytestmark = pytest.mark.virtual
HEALTH = ("/healthz", "/livez", "/readyz")


async def names(api: Api) -> list[str]:
    listed = await api.call("GET", CONFIG_MAPS)
    return [item["metadata"]["name"] for item in listed["items"]]


@pytest.mark.spec("T-02", "T-05")
async def test_a_full_disk_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    disk = FaultyDisk()
    async with ApiServer(data_dir=tmp_path, disk=disk) as server:
        api = Api(server)
        await api.create("before")
        disk.fail("commit", "checkpoint")
        for name in ("in-flight", "later"):
            refused = await api.send("POST", CONFIG_MAPS, {"metadata": {"name": name}})
            assert (refused.status, refused.headers.get("retry-after")) == (503, "2")
            status = json.loads(refused.body)
            assert (status["reason"], status["details"]["retryAfterSeconds"]) == ("ServiceUnavailable", 2)
            assert f"the disk of the data folder {tmp_path} is full" in status["message"]
        for path in ("/healthz", "/readyz"):
            answer = await api.send("GET", path)
            assert answer.status == 500
            assert "[-]etcd failed: reason withheld\n" in answer.body.decode()
            assert f"{path[1:]} check failed" in answer.body.decode()
            assert (await api.send("GET", f"{path}?exclude=etcd&exclude=etcd-readiness")).status == 200
        assert (await api.send("GET", "/readyz?exclude=etcd")).status == 500
        assert (await api.send("GET", "/readyz/etcd-readiness")).status == 500
        assert (await api.send("GET", "/livez")).status == 200, "a restart would make no room"
        assert b"[-]etcd failed" in (await api.send("GET", "/livez?verbose")).body
        for path in HEALTH:
            single = await api.send("GET", f"{path}/etcd")
            assert single.status == 500
            assert b"make room" in single.body
            assert (await api.send("GET", f"{path}/ping")).status == 200
        assert await names(api) == ["before"]
        assert (await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "before"}})).status == 409
        assert (await api.send("POST", f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "dry"}})).status == 201
        disk.work()
        await asyncio.sleep(1)
        for path in HEALTH:
            assert (await api.send("GET", path)).status == 200
        assert (await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "later"}})).status == 201
    async with ApiServer(data_dir=tmp_path) as server:
        assert await names(Api(server)) == ["before", "later"]


@pytest.mark.spec("T-05")
async def test_a_write_whose_outcome_is_not_known_is_not_repeated_by_clients(tmp_path: Path) -> None:
    disk = FaultyDisk()
    async with ApiServer(data_dir=tmp_path, disk=disk) as server:
        api = Api(server)
        disk.plan = lambda kind: Fault(BROKEN, late=kind == "commit") if kind in ("commit", "connect") else None
        unknown = await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})
        assert (unknown.status, unknown.headers.get("retry-after")) == (504, "")
        again = await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})
        assert again.status == 503, "a refusal may not rest on what is not known to be there"
        assert (await api.send("GET", f"{CONFIG_MAPS}/x")).status == 404
        disk.work()
        await asyncio.sleep(1)
        assert (await api.send("GET", f"{CONFIG_MAPS}/x")).status == 200
        assert (await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})).status == 409


@pytest.mark.spec("T-05")
async def test_all_of_a_collection_is_refused(tmp_path: Path) -> None:
    disk = FaultyDisk()
    async with ApiServer(data_dir=tmp_path, disk=disk) as server:
        api = Api(server)
        for name in "abc":
            await api.create(name)
        disk.fail("commit", "checkpoint", fault=Fault(FULL))
        for _ in range(2):
            assert (await api.send("DELETE", CONFIG_MAPS)).status == 503
        assert await names(api) == ["a", "b", "c"]
        disk.work()
        await asyncio.sleep(1)
        assert (await api.send("DELETE", CONFIG_MAPS)).status == 200
        assert await names(api) == []


@pytest.mark.spec("T-05")
async def test_a_server_whose_disk_lost_writes_ends(tmp_path: Path) -> None:
    disk = FaultyDisk()
    server = ApiServer(data_dir=tmp_path, disk=disk)
    await server.__aenter__()
    api, stopping = Api(server), asyncio.Event()
    serving = asyncio.create_task(server.serve_until(stopping))
    disk.fail("commit", fault=Fault(lies=True))
    await api.create("dropped")
    assert not serving.done()
    disk.fail_once("statement", Fault(BROKEN))
    assert (await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})).status == 503
    with pytest.raises(Lost):
        await serving
    lost = await api.send("POST", CONFIG_MAPS, {"metadata": {"name": "x"}})
    assert (lost.status, lost.headers.get("retry-after")) == (500, "")
    for path in HEALTH:
        assert (await api.send("GET", path)).status == 500
    with pytest.raises(Lost, match="it lost writes, or another program changed it"):
        await server.__aexit__(None, None, None)


@pytest.mark.spec("T-05")
async def test_a_server_that_is_told_to_stop_does(tmp_path: Path) -> None:
    async with ApiServer(data_dir=tmp_path, disk=FaultyDisk()) as server:
        stopping = asyncio.Event()
        serving = asyncio.create_task(server.serve_until(stopping))
        await asyncio.sleep(1)
        assert not serving.done()
        stopping.set()
        await serving


@pytest.mark.spec("T-02")
async def test_a_server_on_a_disk_that_fails_does_not_start(tmp_path: Path) -> None:
    disk = FaultyDisk()
    disk.fail("sync", fault=Fault(BROKEN))
    server = ApiServer(data_dir=tmp_path, disk=disk)
    with pytest.raises(FolderError, match=r"cannot be written \(.*Input/output error\): check the disk"):
        await server.start()
    async with ApiServer(data_dir=tmp_path) as again:  # the lock of the folder is free
        assert (await Api(again).send("GET", "/readyz")).status == 200
