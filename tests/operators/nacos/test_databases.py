"""What the operator asks of databases: MySQL's Job, PostgreSQL's policies and TLS."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.world import MYSQL, POSTGRES, SPACE, a_world, condition

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
