"""Every fault at every step: the right code and message, Failed when it lasts, and Running again when it goes."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge.client import JsonPatch, MergePatch
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.nacos.resource import Nacos
from konverge.sim.databases import SimulatedServer
from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.world import CLUSTER, MYSQL, POSTGRES, SPACE, STANDALONE, World, a_world, condition

pytestmark = [pytest.mark.long, pytest.mark.virtual, pytest.mark.spec("N-12", "N-20"), pytest.mark.limit(180)]

# ------------------------------------------------------------------ PGEnsure and RotateAdmin


@pytest.mark.spec("N-05", "N-06")
async def test_postgres_gets_its_tables_and_its_admin() -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        nacos = await world.up("nacos", POSTGRES)
        database = server.databases["nacos"]
        assert {"config_info", "users", "roles"} <= set(database.content.tables)
        assert database.accepts("nacos", "first")
        assert database.content.admins == {"nacos"}
        assert (nacos.status.pg.initialized, nacos.status.pg.last_result) == (True, "Success")
        assert (nacos.status.admin.username, nacos.status.admin.last_result) == ("nacos", "Success")
        assert condition(nacos, "DatabaseReady") == ("True", "Writable")
        assert condition(nacos, "AdminRotated") == ("True", "Rotated")
        writes = server.writes
        await world.advance(600.0)
        assert server.writes == writes
        assert world.databases.calls["ensure_schema"] == 1
        assert 5 <= world.databases.calls["check"] <= 10  # once a minute or so, not once a round


@pytest.mark.spec("N-06")
@pytest.mark.parametrize("hashed", [False, True])
async def test_a_changed_secret_rotates_within_seconds(hashed: bool) -> None:
    bcrypt = "$2b$04$KcdJVvRfVMKAp0Hk0iaVYOwl9DV2lMGTDZyj0tiGcSElY3jUHS/Rq"
    async with a_world() as world, world.operating():
        server = await world.postgres()
        first = await world.up("nacos", POSTGRES)
        if hashed:
            await world.replace_secret("admin", username="boss", passwordHash=bcrypt)
        else:
            await world.replace_secret("admin", username="boss", password="second")
        await world.advance(3.0)
        content = server.databases["nacos"].content
        assert content.admins == {"boss"}  # the old name has left
        if hashed:
            assert content.users["boss"][0] == bcrypt
        else:
            assert server.databases["nacos"].accepts("boss", "second")
        second = await world.until("nacos")
        assert second.status.admin.last_secret_checksum != first.status.admin.last_secret_checksum
        assert "second" not in str(second.status)


Break = Callable[[World, SimulatedServer], Awaitable[None]]


def switch(**values: Any) -> Break:
    async def throw(world: World, server: SimulatedServer) -> None:
        for name, value in values.items():
            setattr(server, name, value)

    return throw


def secret(name: str, **values: str) -> Break:
    async def write(world: World, server: SimulatedServer) -> None:
        await world.replace_secret(name, **values)

    return write


def without(name: str) -> Break:
    async def remove(world: World, server: SimulatedServer) -> None:
        await world.client.delete(Secret, name, SPACE)

    return remove


async def freeze(world: World, server: SimulatedServer) -> None:
    server.freeze()


async def thaw(world: World, server: SimulatedServer) -> None:
    server.thaw()


async def half(world: World, server: SimulatedServer) -> None:
    server.databases["nacos"].initialise("2.4", tables=3)


async def nothing(world: World, server: SimulatedServer) -> None:
    """It gets well by itself."""


GOOD = secret("pg", username="nacos", password="word")
ADMIN = secret("admin", username="nacos", password="first")
DATABASE_FAULTS: dict[str, tuple[Break, Break, int, str]] = {
    "secret missing": (without("pg"), GOOD, 404, "get secret default/pg failed"),
    "key missing": (secret("pg", username="nacos"), GOOD, 301, "secret pg missing key password"),
    "wrong password": (secret("pg", username="nacos", password="no"), GOOD, 404, "authentication failed"),
    "down": (switch(down=True), switch(down=False), 404, "refused"),
    "read-only": (switch(read_only="standby"), switch(read_only=""), 404, "standby"),
    "slow": (freeze, thaw, 404, "within 20 s"),
    "full": (switch(full=True), switch(full=False), 404, "too many connections"),
    "no permission": (switch(denied=True), switch(denied=False), 404, "permission"),
    "admin missing": (without("admin"), ADMIN, 404, "get secret default/admin failed"),
    "admin without password": (secret("admin", username="nacos"), ADMIN, 301, "secret admin missing key passwordHash"),
    "admin hash broken": (secret("admin", username="nacos", passwordHash="plain"), ADMIN, 301, "bcrypt"),
}


@pytest.mark.spec("N-05", "N-06")
@pytest.mark.parametrize("fault", DATABASE_FAULTS)
async def test_a_fault_of_the_database_at_creation(fault: str) -> None:
    inject, repair, code, expected = DATABASE_FAULTS[fault]
    async with a_world() as world, world.operating():
        server = await world.postgres()
        await inject(world, server)
        await world.create("nacos", POSTGRES)
        await world.advance(60.0)
        early = await world.nacos("nacos")
        assert early.status.phase == "Creating"  # three minutes of patience
        failed = await world.until("nacos", "Failed", limit=300.0)
        assert failed.status.event[-1].code == code
        assert expected.lower() in failed.status.event[-1].message.lower()
        assert "word" not in failed.status.event[-1].message.replace("password", "")
        assert not await world.client.list(StatefulSet, SPACE)
        await repair(world, server)
        await world.until("nacos")


@pytest.mark.spec("N-05")
async def test_a_half_initialised_database_is_completed() -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        await half(world, server)
        await world.up("nacos", POSTGRES)
        assert "tenant_info" in server.databases["nacos"].content.tables


@pytest.mark.spec("N-14")
@pytest.mark.parametrize("spec", [POSTGRES, MYSQL], ids=["postgres", "mysql"])
async def test_a_database_outage_is_noticed_and_survived(spec: dict[str, Any]) -> None:
    async with a_world() as world, world.operating():
        await world.postgres()
        world.mysql()
        await world.up("nacos", spec)
        for server in world.databases.servers.values():
            server.down = True
        await world.advance(100.0)
        nacos = await world.nacos("nacos")
        assert (nacos.status.phase, condition(nacos, "DatabaseReady")) == ("Running", ("False", "Unreachable"))
        assert condition(nacos, "Degraded")[0] == "True"
        await world.until("nacos", "Failed")
        for server in world.databases.servers.values():
            server.down = False
        await world.until("nacos")


@pytest.mark.spec("N-03")
async def test_a_plain_password_is_warned_of_once() -> None:
    async with a_world() as world, world.operating():
        world.mysql()
        await world.up("nacos", MYSQL)
        await world.advance(120.0)
        (warning,) = await world.events("PlainTextPassword")
        assert "mysqlCredentialsSecretRef" in warning


# ------------------------------------------------------------------ CheckKind


@pytest.mark.spec("N-09")
@pytest.mark.parametrize(
    ("behave", "expected"),
    [
        ("never-ready", "nacos-0 is not ready"),
        ("image-pull-error", "ImagePull"),
        ("crash-loop", "CrashLoopBackOff"),
    ],
)
async def test_pods_that_do_not_come_up_say_why(behave: str, expected: str) -> None:
    async with a_world(rules=[Rule(image="*:v2.0.4", behave=behave)]) as world, world.operating():
        await world.create("nacos", STANDALONE)
        nacos = await world.until("nacos", "Failed", limit=400.0)
        assert condition(nacos, "PodsReady")[0] == "False"
        assert (nacos.status.event[-1].code, nacos.status.healthy) == (-1, False)
        assert expected in nacos.status.event[-1].message
        assert len(nacos.status.event) <= 10
        await world.update("nacos", image="harbor.cloud.io/nacos/nacos-server:v2.0.5")


@pytest.mark.spec("N-09")
async def test_pods_that_no_node_takes_say_why() -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos", {**STANDALONE, "nodeSelector": {"disk": "none"}})
        nacos = await world.until("nacos", "Failed", limit=400.0)
        assert "Unschedulable" in nacos.status.event[-1].message
        await world.update("nacos", nodeSelector=None)


# ------------------------------------------------------------------ CheckNacos


@pytest.mark.spec("N-10")
@pytest.mark.parametrize(
    ("when", "reason"),
    [("creation", "Unreachable"), ("creation", "Gone"), ("later", "Forbidden"), ("later", "BadAnswer")],
)
async def test_a_server_that_answers_badly(when: str, reason: Any) -> None:
    async with a_world() as world, world.operating():
        if when == "creation":
            world.servers.fail("nacos-1", reason)
        await world.create("nacos", CLUSTER)
        if when == "later":
            await world.until("nacos")
            world.servers.fail("nacos-1", reason)
        nacos = await world.until("nacos", "Failed", limit=400.0)
        assert nacos.status.event[-1].code == 401
        assert f"nacos-1: {reason}: an injected fault" in nacos.status.event[-1].message
        assert condition(nacos, "Available")[0] == "True"
        world.servers.faults.clear()
        await world.until("nacos")


@pytest.mark.spec("N-10")
async def test_servers_are_asked_at_the_same_time_and_not_for_ever() -> None:
    async with a_world(nodes=5) as world, world.operating():
        world.servers.delay = {f"nacos-{number}": 100.0 for number in range(5)}
        await world.create("nacos", {**CLUSTER, "replicas": 5})
        await world.advance(60.0)
        assert world.servers.most_under_way == 5
        nacos = await world.nacos("nacos")
        assert "gave no answer within 5 s" in nacos.status.event[-1].message
        world.servers.delay.clear()
        await world.until("nacos")


@pytest.mark.spec("N-10")
async def test_up_without_a_version_is_not_enough() -> None:
    async with a_world() as world, world.operating():
        world.servers.unverified.add("nacos-2")
        await world.create("nacos", CLUSTER)
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert nacos.status.phase == "Creating"
        assert "nacos-2 is UP without a version" in nacos.status.event[-1].message
        world.servers.unverified.clear()
        await world.until("nacos")


@pytest.mark.spec("N-10")
async def test_the_identity_header_comes_from_the_secret() -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos", {**CLUSTER, "identitySecretRef": {"name": "identity"}})
        await world.advance(30.0)
        message = (await world.nacos("nacos")).status.event[-1].message
        assert 'nacos-0: CreateContainerConfigError: secret "identity" not found' in message
        await world.secret("identity", identity_key="serverIdentity", identity_value="security")
        await world.until("nacos")
        _, identity = world.servers.calls[-1]
        assert identity is not None
        assert (identity.key, identity.value) == ("serverIdentity", "security")


@pytest.mark.spec("N-10")
async def test_a_third_generation_has_a_secret_of_its_own() -> None:
    async with a_world() as world, world.operating():
        world.servers.version = "3.0.3"
        await world.up("nacos", {**CLUSTER, "image": "nacos/nacos-server:v3.0.3"})
        made = await world.client.get(Secret, "nacos-auth", SPACE)
        assert len(base64.b64decode(base64.b64decode(made.data["token"]))) >= 32
        _, identity = world.servers.calls[-1]
        assert identity is not None
        assert identity.value == base64.b64decode(made.data["identity_value"]).decode()
        await world.advance(300.0)
        assert (await world.client.get(Secret, "nacos-auth", SPACE)).data == made.data


# ------------------------------------------------------------------ what is refused


@pytest.mark.spec("N-02")
async def test_a_resource_that_got_past_an_older_definition_fails_readably() -> None:
    async with a_world() as world, world.operating():
        loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        schema = {"type": "object", "properties": {"spec": loose, "status": loose}}
        path = "/spec/versions/0/schema/openAPIV3Schema"
        await world.client.patch(
            "customresourcedefinitions", "nacos.nacos.io", JsonPatch([{"op": "replace", "path": path, "value": schema}])
        )
        await world.cluster.settle()
        body = {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "metadata": {"name": "odd", "namespace": SPACE}}
        await world.client.create({**body, "spec": {"type": "weird", "replicas": 1}}, resource=Nacos.resource)
        await world.advance(240.0)
        nacos = await world.client.get(Nacos.resource, "odd", SPACE)
        assert nacos["status"]["phase"] == "Failed"
        assert nacos["status"]["event"][-1]["code"] == 301
        assert "$.type" in nacos["status"]["event"][-1]["message"]
        await world.client.patch(Nacos.resource, "odd", MergePatch({"spec": {"type": "standalone"}}), SPACE)
        await world.until("odd")


async def test_a_refusal_of_the_api_server_is_reported() -> None:
    async with a_world() as world, world.operating():
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": SPACE}}
        await world.client.create({**quota, "spec": {"hard": {"services": "0"}}})
        await world.cluster.settle()
        await world.create("nacos", STANDALONE)
        nacos = await world.until("nacos", "Failed", limit=400.0)
        assert nacos.status.event[-1].code == 404
        assert "exceeded quota" in nacos.status.event[-1].message
        await world.client.delete("resourcequotas", "none", SPACE)
        await world.until("nacos")
