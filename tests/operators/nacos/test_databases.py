"""What the operator asks of databases: MySQL's Job, PostgreSQL's policies and TLS."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap, Pod
from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.world import MYSQL, POSTGRES, SPACE, World, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120)]
WITH_JOB: dict[str, Any] = {**MYSQL, "image": "nacos/nacos-server:v2.4.3", "mysqlInitImage": "mysql:8"}


@pytest.mark.spec("N-07", "N-08")
async def test_the_job_creates_the_tables_once_and_again_for_another_line() -> None:
    async with a_world() as world, world.operating():
        world.mysql()
        await world.up("nacos", WITH_JOB)
        script = (await world.client.get(ConfigMap, "nacos-mysql-sql-init", SPACE)).data["SQL_SCRIPT"]
        assert "config_info_beta" in script
        assert "config_info_gray" not in script
        first = await world.client.get(Job, "nacos-mysql-sql-init", SPACE)
        await world.advance(300.0)
        assert (await world.client.get(Job, "nacos-mysql-sql-init", SPACE)).metadata.uid == first.metadata.uid
        world.servers.version = "2.5.0"
        await world.change("nacos", image="nacos/nacos-server:v2.5.0")
        await world.advance(10.0)
        await world.until("nacos")
        assert (await world.client.get(Job, "nacos-mysql-sql-init", SPACE)).metadata.uid != first.metadata.uid
        script = (await world.client.get(ConfigMap, "nacos-mysql-sql-init", SPACE)).data["SQL_SCRIPT"]
        assert "config_info_gray" in script


async def images_seen(world: World, seconds: float) -> set[str]:
    """The images of all servers' pods that exist at any time of these seconds."""
    seen: set[str] = set()
    for _ in range(int(seconds // 2)):
        await world.advance(2.0)
        seen |= {str(pod.spec.containers[0].image) for pod in await world.pods()}
    return seen


async def job_of(world: World) -> Job:
    return await world.client.get(Job, "nacos-mysql-sql-init", SPACE)


def is_complete(job: Job) -> bool:
    return any(entry.type == "Complete" and entry.status == "True" for entry in job.status.conditions)


SLOW_JOB = [Rule(image="mysql:slow", container="mysql-sql-init", behave="exit 0 after 120s")]


@pytest.mark.spec("N-08", "N-15")
async def test_no_server_of_a_new_line_starts_before_its_job_is_complete() -> None:
    async with a_world(rules=SLOW_JOB) as world, world.operating():
        world.mysql()
        await world.up("nacos", WITH_JOB)
        before = await world.client.get(StatefulSet, "nacos", SPACE)
        first, uids = await job_of(world), await world.uids()
        assert is_complete(first), "it is of the older line, and must not count for the new one"
        await world.change("nacos", image="nacos/nacos-server:v2.5.0", mysqlInitImage="mysql:slow")
        assert await images_seen(world, 100.0) == {WITH_JOB["image"]}
        second = await job_of(world)
        assert second.metadata.uid != first.metadata.uid
        assert not is_complete(second)
        assert (await world.client.get(StatefulSet, "nacos", SPACE)).spec == before.spec
        asked = len(world.servers.calls)
        await world.client.delete(Pod, "nacos-1", SPACE)  # the servers that run are looked after
        assert await images_seen(world, 16.0) == {WITH_JOB["image"]}
        assert len(world.servers.calls) > asked
        world.servers.version = "2.5.0"
        await world.advance(30.0)
        await world.until("nacos")
        assert is_complete(await job_of(world))
        assert sorted(await world.restarted(uids)) == ["nacos-0", "nacos-1", "nacos-2"]
        assert {pod.spec.containers[0].image for pod in await world.pods()} == {"nacos/nacos-server:v2.5.0"}


@pytest.mark.spec("N-08")
async def test_the_first_servers_start_after_their_job() -> None:
    async with a_world(rules=SLOW_JOB) as world, world.operating():
        world.mysql()
        await world.create("nacos", {**WITH_JOB, "mysqlInitImage": "mysql:slow"})
        assert await images_seen(world, 110.0) == set()
        await world.until("nacos")


@pytest.mark.spec("N-12", "N-15")
async def test_a_failed_job_halts_the_upgrade_and_the_servers_go_on() -> None:
    rules = [Rule(image="mysql:broken", container="mysql-sql-init", behave="exit 1")]
    async with a_world(rules=rules) as world, world.operating():
        world.mysql()
        await world.up("nacos", WITH_JOB)
        uids = await world.uids()
        await world.change("nacos", image="nacos/nacos-server:v2.5.0", mysqlInitImage="mysql:broken")
        await world.advance(5.0)
        nacos = await world.until("nacos", "Failed", limit=3000.0)
        assert "Job nacos-mysql-sql-init failed" in nacos.status.event[-1].message
        assert condition(nacos, "Ready") == ("False", "InitJobFailed")
        assert condition(nacos, "Available")[0] == "True"
        assert await world.restarted(uids) == []
        await world.change("nacos", image=WITH_JOB["image"], mysqlInitImage="mysql:8")  # taken back
        await world.advance(5.0)
        nacos = await world.until("nacos")
        assert condition(nacos, "DatabaseReady") == ("True", "Writable")
        assert await world.restarted(uids) == []


@pytest.mark.spec("N-08", "N-14")
async def test_a_new_process_waits_for_the_job_too() -> None:
    async with a_world(rules=SLOW_JOB) as world:
        world.mysql()
        async with world.operating():
            await world.up("nacos", WITH_JOB)
            await world.change("nacos", image="nacos/nacos-server:v2.5.0", mysqlInitImage="mysql:slow")
            await world.advance(20.0)
            running = await job_of(world)
        async with world.operating():
            assert await images_seen(world, 80.0) == {WITH_JOB["image"]}
            assert (await job_of(world)).metadata.uid == running.metadata.uid
            world.servers.version = "2.5.0"
            await world.advance(30.0)
            await world.until("nacos")


@pytest.mark.spec("N-05", "N-15")
async def test_no_server_of_a_new_line_starts_before_postgres_has_its_tables() -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        await world.up("nacos", POSTGRES)
        server.denied = True
        await world.change("nacos", image="nacos/nacos-server:v2.5.0")
        assert await images_seen(world, 60.0) == {POSTGRES["image"]}
        assert "config_info_gray" not in server.databases["nacos"].content.tables
        server.denied = False
        world.servers.version = "2.5.0"
        await world.advance(10.0)
        await world.until("nacos")
        assert "config_info_gray" in server.databases["nacos"].content.tables


@pytest.mark.spec("N-07")
@pytest.mark.parametrize(("tag", "seeded"), [("v2.3.2", True), ("v2.4.0", False)])
async def test_the_default_user_is_created_for_servers_that_need_it(tag: str, seeded: bool) -> None:
    async with a_world() as world, world.operating():
        world.mysql()
        await world.create("nacos", {**WITH_JOB, "image": f"nacos/nacos-server:{tag}"})
        await world.advance(15.0)
        script = (await world.client.get(ConfigMap, "nacos-mysql-sql-init", SPACE)).data["SQL_SCRIPT"]
        assert ("INSERT INTO users" in script) is seeded


@pytest.mark.spec("N-12", "N-20")
async def test_a_failed_job_is_reported_and_tried_again() -> None:
    rules = [Rule(image="mysql:broken", container="mysql-sql-init", behave="exit 1")]
    async with a_world(rules=rules) as world, world.operating():
        world.mysql()
        await world.create("nacos", {**WITH_JOB, "mysqlInitImage": "mysql:broken"})
        nacos = await world.until("nacos", "Failed", limit=3000.0)
        first = await world.client.get(Job, "nacos-mysql-sql-init", SPACE)
        assert "Job nacos-mysql-sql-init failed" in nacos.status.event[-1].message
        assert condition(nacos, "DatabaseReady") == ("False", "InitJobFailed")
        await world.advance(180.0)
        assert (await world.client.get(Job, "nacos-mysql-sql-init", SPACE)).metadata.uid != first.metadata.uid
        await world.change("nacos", mysqlInitImage="mysql:8")
        await world.advance(5.0)
        await world.until("nacos")


@pytest.mark.spec("N-07")
async def test_mysql_credentials_by_secret_and_without_a_check() -> None:
    async with a_world() as world, world.operating():
        await world.secret("my", username="nacos", password="word")
        database = {"type": "mysql", "mysqlHost": "nowhere", "mysqlCredentialsSecretRef": {"name": "my"}}
        await world.up("nacos", {**MYSQL, "database": {**database, "mysqlCheck": False}})
        assert not world.databases.calls
        assert not await world.events("PlainTextPassword")


@pytest.mark.spec("N-05")
@pytest.mark.parametrize(
    ("init", "prepared", "code", "reason"),
    [
        ({"policy": "Never"}, None, 404, "SchemaMissing"),
        ({"policy": "Never"}, "2.4", 0, ""),
        ({"policy": "Always"}, "2.4", 0, ""),
        ({"policy": "BumpVersion", "schemaVersion": 2}, "2.4", 0, ""),
        ({"enabled": False}, "2.4", 0, ""),
    ],
    ids=["never-missing", "never-there", "always", "bump", "off"],
)
async def test_the_policies_of_pg_init(init: dict[str, Any], prepared: str | None, code: int, reason: str) -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        if prepared:
            server.databases["nacos"].initialise(prepared)
        await world.create("nacos", {**POSTGRES, "pgInit": init})
        if code:
            nacos = await world.until("nacos", "Failed", limit=400.0)
            assert nacos.status.event[-1].code == code
            assert condition(nacos, "DatabaseReady") == ("False", reason)
            return
        nacos = await world.until("nacos")
        assert nacos.status.pg.initialized == init.get("enabled", True)
        assert server.databases["nacos"].content.version == init.get("schemaVersion", 1)


@pytest.mark.spec("N-05")
async def test_tls_needs_the_right_authority() -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        server.ca, server.names = "right", frozenset({"pg"})
        await world.secret("ca", **{"ca.crt": "wrong"})
        tls = {"mode": "verify-full", "caSecretRef": {"name": "ca"}}
        await world.create("nacos", {**POSTGRES, "postgres": {**POSTGRES["postgres"], "tls": tls}})
        nacos = await world.until("nacos", "Failed", limit=400.0)
        assert condition(nacos, "DatabaseReady") == ("False", "TlsFailed")
        await world.secret("ca2", **{"ca.crt": "right"})
        await world.change("nacos", postgres={"tls": {"caSecretRef": {"name": "ca2"}}})
        await world.until("nacos")


@pytest.mark.spec("N-05")
async def test_an_image_without_a_version_needs_spec_version() -> None:
    async with a_world() as world, world.operating():
        await world.postgres()
        await world.create("nacos", {**POSTGRES, "image": "nacos/nacos-server:latest"})
        await world.advance(30.0)
        nacos = await world.nacos("nacos")
        assert (nacos.status.event[-1].code, "set spec.version" in nacos.status.event[-1].message) == (301, True)
        await world.change("nacos", version="2.4.3")
        await world.until("nacos")
