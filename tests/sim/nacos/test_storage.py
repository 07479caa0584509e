"""Simulated servers keep their data where their pods do: what is lost with a volume is lost."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod
from konverge.operators.nacos.server import PORT
from konverge.sim.databases import SimulatedDatabases
from konverge.wire.message import Headers, Request
from tests.sim.nacos.test_simulated import IDENTITY, PODS, playing

pytestmark = pytest.mark.virtual


@pytest.mark.spec("S-24")
async def test_a_claims_data_survives_its_pod_and_goes_with_the_claim() -> None:
    async with playing(replicas=1) as play:
        await play.after(90)
        assert (await play.publish("v1")).body == b"true"
        assert await play.config() == "v1"
        play.nacos.kill("nacos-0")
        await play.after(120)
        assert await play.config() == "v1"
        await play.cluster.client.delete(Pod, "nacos-0", "default")
        await play.after(120)
        assert await play.config() == "v1"
        await play.lose_claim("nacos-0")
        assert await play.ready() == ["nacos-0"]
        assert await play.config() == ""


@pytest.mark.spec("S-24")
async def test_an_empty_dir_survives_the_process_and_dies_with_the_pod() -> None:
    async with playing(replicas=1, volume="emptyDir") as play:
        await play.after(90)
        await play.publish("v1")
        play.nacos.kill("nacos-0")
        await play.after(120)
        assert await play.config() == "v1"
        await play.cluster.client.delete(Pod, "nacos-0", "default")
        await play.after(120)
        assert await play.ready() == ["nacos-0"]
        assert await play.config() == ""


async def test_data_in_the_container_dies_with_its_run() -> None:
    async with playing(replicas=1, volume="") as play:
        await play.after(90)
        await play.publish("v1")
        assert await play.config() == "v1"
        play.nacos.kill("nacos-0")
        await play.after(120)
        assert await play.ready() == ["nacos-0"]
        assert await play.config() == ""


@pytest.mark.spec("S-24")
async def test_a_cluster_survives_the_loss_of_one_volume_and_not_of_all() -> None:
    async with playing() as play:
        await play.after(90)
        await play.publish("v1", "nacos-1")
        await play.lose_claim("nacos-2")
        assert (await play.verdict()).healthy
        assert [await play.config(pod) for pod in PODS] == ["v1"] * 3
        for pod in PODS:
            await play.cluster.client.delete(PersistentVolumeClaim, f"data-{pod}", "default")
        for pod in PODS:
            await play.cluster.client.delete(Pod, pod, "default")
        await play.after(200)
        assert (await play.verdict()).healthy
        assert [await play.config(pod) for pod in PODS] == [""] * 3


async def test_the_administrator_of_an_embedded_database_goes_with_its_volume() -> None:
    async with playing(replicas=1) as play:
        await play.after(90)
        assert await play.servers.bootstrap_admin(await play.address(), password="s3cret")
        await play.lose_claim("nacos-0")
        assert not await play.servers.login(await play.address(), username="nacos", password="s3cret")
        assert await play.servers.bootstrap_admin(await play.address(), password="another")


@pytest.mark.spec("S-24")
async def test_what_is_in_an_external_database_stays_there_until_that_loses_it() -> None:
    env = {"SPRING_DATASOURCE_PLATFORM": "mysql", "MYSQL_SERVICE_HOST": "db", "MYSQL_SERVICE_DB_NAME": "nacos"}
    databases = SimulatedDatabases()
    databases.add_server("db", 3306, "mysql").add("nacos", "u", "p")
    async with playing(replicas=1, env=env, databases=databases) as play:
        await play.after(90)
        await play.publish("v1")
        await play.lose_claim("nacos-0")
        assert await play.config() == "v1"
        databases.servers["db", 3306].down = True
        assert await play.config() == ""
        databases.servers["db", 3306].down = False
        assert await play.config() == "v1"
        databases.servers["db", 3306].lose_storage()
        assert await play.config() == ""


async def test_the_third_generation_answers_as_recorded() -> None:
    async with playing("nacos/nacos-server:v3.0.3", replicas=1) as play:
        await play.after(90)
        headers = Headers.of({IDENTITY.key: IDENTITY.value})

        async def ask(path: str) -> tuple[int, dict[str, Any]]:
            request = Request("GET", f"{path}?dataId=app&groupName=DEFAULT_GROUP", headers)
            answer = await play.nacos.exchange(await play.address(), PORT, request)
            return answer.status, json.loads(answer.body)

        missing = {"code": 20004, "message": "resource not found", "data": None}
        assert await ask("/nacos/v3/client/cs/config") == (200, missing)
        assert json.loads((await play.publish("k=v")).body) == {"code": 0, "message": "success", "data": True}
        status, answer = await ask("/nacos/v3/client/cs/config")
        assert (status, answer["data"]["content"]) == (200, "k=v")
        assert answer["data"]["md5"] == hashlib.md5(b"k=v", usedforsecurity=False).hexdigest()
        status, answer = await ask("/nacos/v3/admin/cs/config")
        assert (answer["data"]["dataId"], answer["data"]["content"]) == ("app", "k=v")
