"""TLS to the databases of a Nacos: switched on, rotated, wrong, and taken back, while its servers run."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.operators.nacos.v1beta1 import VERSIONS
from konverge.sim.databases import SimulatedServer
from konverge.wire import x509
from tests.operators.nacos.world import MYSQL, POSTGRES, SPACE, World, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120)]
FIRST, SECOND = (x509.authority(name).pem[0].decode() for name in ("first", "second"))
SPEC: dict[str, Any] = {**MYSQL, "image": "nacos/nacos-server:v2.4.3"}
TLS = {"caSecretRef": {"name": "ca"}}


def with_tls(tls: dict[str, Any]) -> dict[str, Any]:
    return {**SPEC, "database": {**SPEC["database"], "tls": tls}}


async def a_server(world: World) -> SimulatedServer:
    server = world.mysql()
    server.ca, server.names = FIRST, frozenset({"my"})
    await world.secret("ca", **{"ca.crt": FIRST})
    return server


async def parameters(world: World) -> str:
    live = await world.client.get(StatefulSet, "nacos", SPACE)
    env = {variable.name: variable.value for variable in live.spec.template.spec.containers[0].env}
    return env.get("MYSQL_SERVICE_DB_PARAM") or ""


@pytest.mark.spec("N-73")
async def test_switched_on_for_servers_that_run_and_off_again() -> None:
    async with a_world() as world, world.operating():
        await a_server(world)
        await world.up("nacos", SPEC)
        assert await parameters(world) == ""
        uids = await world.uids()
        await world.change("nacos", database={"tls": TLS})
        assert await world.until_ready() >= 2, "one server after the other"
        assert "sslMode=VERIFY_IDENTITY" in await parameters(world)
        assert sorted(await world.restarted(uids)) == ["nacos-0", "nacos-1", "nacos-2"]
        uids = await world.uids()
        await world.change("nacos", database={"tls": None})
        assert await world.until_ready() >= 2
        assert await parameters(world) == ""
        assert sorted(await world.restarted(uids)) == ["nacos-0", "nacos-1", "nacos-2"]
        await world.advance(40.0)
        configs = await world.client.list(ConfigMap, SPACE)
        assert "nacos-mysql-ca" not in {config.metadata.name for config in configs}


@pytest.mark.spec("N-74")
@pytest.mark.parametrize("wrong", ["authority", "name", "no TLS"])
async def test_servers_do_not_restart_for_what_the_database_cannot_do(wrong: str) -> None:
    async with a_world() as world, world.operating():
        server = await a_server(world)
        await world.up("nacos", SPEC)
        uids = await world.uids()
        if wrong == "authority":
            server.ca = SECOND
        elif wrong == "name":
            server.names = frozenset({"another"})
        else:
            server.tls = False
        await world.change("nacos", database={"tls": TLS})
        await world.advance(400.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "DatabaseReady") == ("False", "TlsFailed")
        assert condition(nacos, "Ready") == ("False", "DatabaseTlsFailed")
        assert condition(nacos, "Available")[0] == "True"
        assert await world.restarted(uids) == []
        assert await parameters(world) == ""
        await world.change("nacos", database={"tls": None})
        await world.advance(2.0)
        await world.until("nacos")
        assert await world.restarted(uids) == []


@pytest.mark.spec("N-74")
async def test_a_setting_that_is_taken_back_from_a_database_that_insists_on_tls() -> None:
    async with a_world() as world, world.operating():
        server = await a_server(world)
        server.insists_on_tls = True
        await world.up("nacos", with_tls(TLS))
        uids = await world.uids()
        await world.change("nacos", database={"tls": None})
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "DatabaseReady") == ("False", "TlsFailed")
        assert "insists on TLS" in nacos.status.event[-1].message
        assert await world.restarted(uids) == []
        server.insists_on_tls = False
        await world.advance(10.0)
        await world.until("nacos")
        assert await parameters(world) == ""


@pytest.mark.spec("N-75")
async def test_another_authority_restarts_no_server() -> None:
    async with a_world() as world, world.operating():
        server = await a_server(world)
        await world.up("nacos", with_tls(TLS))
        uids = await world.uids()
        store = await world.client.get(ConfigMap, "nacos-mysql-ca", SPACE)
        await world.replace_secret("ca", **{"ca.crt": SECOND})
        await world.advance(20.0)
        assert condition(await world.nacos("nacos"), "DatabaseReady") == ("False", "TlsFailed")
        same = await world.client.get(ConfigMap, "nacos-mysql-ca", SPACE)
        assert same.binary_data == store.binary_data, "it is not proven"
        server.ca = SECOND
        await world.advance(10.0)
        await world.until("nacos")
        changed = await world.client.get(ConfigMap, "nacos-mysql-ca", SPACE)
        assert changed.data == {"ca.crt": SECOND}
        assert changed.binary_data != store.binary_data
        assert await world.restarted(uids) == []


@pytest.mark.spec("N-75")
async def test_an_authority_that_is_deleted_harms_no_server() -> None:
    async with a_world() as world, world.operating():
        await a_server(world)
        await world.up("nacos", with_tls(TLS))
        uids = await world.uids()
        await world.replace_secret("ca", other="x")
        await world.advance(30.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready") == ("False", "SecretMalformed")
        assert condition(nacos, "Available")[0] == "True"
        assert (await world.client.get(ConfigMap, "nacos-mysql-ca", SPACE)).data == {"ca.crt": FIRST}
        await world.replace_secret("ca", **{"ca.crt": FIRST})
        await world.advance(10.0)
        await world.until("nacos")
        assert await world.restarted(uids) == []


@pytest.mark.spec("N-75")
async def test_another_authority_of_postgresql_restarts_no_server() -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        server.ca, server.names = FIRST, frozenset({"pg"})
        await world.secret("ca", **{"ca.crt": FIRST})
        await world.up("nacos", {**POSTGRES, "postgres": {**POSTGRES["postgres"], "tls": TLS}})
        uids = await world.uids()
        final = (await world.client.get(ConfigMap, "nacos-final-config", SPACE)).data["application.properties"]
        assert "?sslmode=verify-full&sslrootcert=" in final
        server.ca = SECOND
        await world.replace_secret("ca", **{"ca.crt": SECOND})
        await world.advance(70.0)
        await world.until("nacos")
        assert await world.restarted(uids) == []


@pytest.mark.spec("N-74")
async def test_servers_on_postgresql_do_not_restart_for_what_it_cannot_do() -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        server.tls = False
        await world.up("nacos", POSTGRES)
        uids = await world.uids()
        await world.change("nacos", postgres={"tls": {"mode": "require"}})
        await world.advance(300.0)
        assert condition(await world.nacos("nacos"), "DatabaseReady") == ("False", "TlsFailed")
        assert await world.restarted(uids) == []
        server.tls = True
        await world.advance(10.0)
        await world.until("nacos")
        assert sorted(await world.restarted(uids)) == ["nacos-0", "nacos-1", "nacos-2"]


@pytest.mark.spec("N-73")
async def test_both_versions_have_the_block() -> None:
    async with a_world(versions=True) as world, world.operating():
        await a_server(world)
        tls = {"mode": "verify-ca", "caSecretRef": {"name": "ca", "key": "ca.crt"}}
        await world.up("nacos", with_tls(tls))
        for version in VERSIONS:
            shown = await world.client.get(version.resource, "nacos", SPACE)
            assert shown["spec"]["database"]["tls"] == tls
