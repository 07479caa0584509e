"""The stand-in for MongoDB: a replica set, its users, and the proof of passwords."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.sim.applications import Applications
from konverge.sim.applications.kinds import bson
from konverge.sim.cluster import Cluster
from tests.sim.applications.support import delete, running, simulated
from tests.sim.conftest import SPACE

pytestmark = pytest.mark.spec("K-67")

RULES = {
    "servers": [{"kind": "mongodb", "image": "app:*", "with": {"set": "rs0", "version": "5.0.7"}}],
    "exec": [{"image": "app:*", "server": "mongodb"}],
}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "rs", "uid": "u", "controller": True}
INITIATE = "cat <<-EOF | mongo\nrs.initiate({ _id: 'rs0', version: 1, members: [{ _id: 0, host: \"rs-0.rs:27017\" }]})"
ADMIN = 'mongo --eval \'db.getSiblingDB("admin").createUser( {user: "admin",pwd: "secret",roles: [ "x" ]})\''


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, **document: Any) -> dict[str, Any]:
        body = struct.pack("<IB", 0, 0) + bson.encode({**document, "$db": "admin"})
        self._writer.write(struct.pack("<iiii", len(body) + 16, 1, 0, bson.OP_MSG) + body)
        return bson.decode((await self._answer())[5:])

    async def ask_the_old_way(self, **document: Any) -> dict[str, Any]:
        body = struct.pack("<i", 0) + b"admin.$cmd\0" + struct.pack("<ii", 0, -1) + bson.encode(document)
        self._writer.write(struct.pack("<iiii", len(body) + 16, 1, 0, bson.OP_QUERY) + body)
        return bson.decode((await self._answer())[20:])

    async def _answer(self) -> bytes:
        size, _, number, _ = struct.unpack("<iiii", await self._reader.readexactly(16))
        assert number == 1
        return await self._reader.readexactly(size - 16)

    async def prove(self, user: str, password: str) -> dict[str, Any]:
        """As a driver does it, with the server's own proof checked."""
        bare = f"n={user},r=nonce"
        first = await self.ask(saslStart=1, mechanism="SCRAM-SHA-256", payload=f"n,,{bare}".encode())
        shown = first["payload"].decode()
        fields = dict(part.split("=", 1) for part in shown.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
        signed = f"{bare},{shown},c=biws,r={fields['r']}".encode()
        key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        last = await self.ask(saslContinue=1, conversationId=1, payload=f"c=biws,r={fields['r']},p={proof}".encode())
        if last["ok"]:
            expected = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
            assert last["payload"] == b"v=" + base64.b64encode(expected)
        return last


@asynccontextmanager
async def connected(address: str | None) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection(address, 27017)
    try:
        yield Connection(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


async def shell(cluster: Cluster, applications: Applications, pod: str, text: str) -> int:
    whole = cluster.server.objects.get("", "pods", SPACE, pod)
    assert whole is not None
    answer = applications.commands.answer(whole, "main", ["sh", "-c", text])
    assert answer is not None
    return answer.exit


async def test_a_set_is_initiated_by_the_shell_and_steered_by_who_knows_the_password() -> None:
    async with simulated(RULES) as (cluster, applications):
        pods = [await running(cluster, name, owner=OWNER) for name in ("rs-0", "rs-1")]
        first, second = (pod.status.pod_ip for pod in pods)
        async with connected(first) as connection:
            shown = await connection.ask_the_old_way(isMaster=1, saslSupportedMechs="admin.admin")
            assert (shown["ismaster"], shown["isreplicaset"]) == (False, True)
            assert shown["saslSupportedMechs"] == ["SCRAM-SHA-256"]
            assert (await connection.prove("admin", "secret"))["code"] == 18
        assert await shell(cluster, applications, "rs-0", INITIATE) == 0
        assert await shell(cluster, applications, "rs-0", ADMIN) == 0
        assert await shell(cluster, applications, "rs-0", ADMIN) != 0  # without a user the shell is let in, once
        async with connected(first) as connection:
            assert (await connection.ask(replSetGetStatus=1))["code"] == 13
            assert (await connection.prove("admin", "wrong"))["code"] == 18
        async with connected(first) as connection:
            assert (await connection.prove("admin", "secret"))["ok"]
            shown = await connection.ask(isMaster=1)
            assert (shown["ismaster"], shown["me"], shown["setName"]) == (True, "rs-0.rs:27017", "rs0")
            config = (await connection.ask(replSetGetConfig=1))["config"]
            config["members"].append({"_id": 1, "host": "rs-1.rs:27017", "priority": 2, "votes": 1})
            assert (await connection.ask(replSetReconfig=config, force=True))["ok"]
            members = (await connection.ask(replSetGetStatus=1))["members"]
            assert [(entry["name"], entry["state"]) for entry in members] == [
                ("rs-0.rs:27017", 1),
                ("rs-1.rs:27017", 2),
            ]
        await delete(cluster, applications, "rs-0")
        async with connected(second) as connection:
            assert (await connection.ask(hello=1))["ismaster"]  # the other one took over
            await connection.prove("admin", "secret")
            assert [entry["state"] for entry in (await connection.ask(replSetGetStatus=1))["members"]] == [8, 1]


async def test_users_and_roles_are_kept() -> None:
    async with simulated(RULES) as (cluster, applications):
        address = (await running(cluster, "rs-0", owner=OWNER)).status.pod_ip
        await shell(cluster, applications, "rs-0", INITIATE)
        await shell(cluster, applications, "rs-0", ADMIN)
        async with connected(address) as connection:
            await connection.prove("admin", "secret")
            assert (await connection.ask(createUser="backup", pwd="a", roles=["restore"]))["ok"]
            assert (await connection.ask(createUser="backup", pwd="a", roles=[]))["code"] == 51003
            assert (await connection.ask(updateUser="backup", pwd="b"))["ok"]
            assert (await connection.ask(updateUser="nobody", pwd="b"))["code"] == 11
            shown = await connection.ask(usersInfo="backup")
            assert shown["users"][0]["roles"] == [{"role": "restore", "db": "admin"}]
            assert (await connection.ask(usersInfo="other"))["users"] == []
            privileges = [{"resource": {"db": "", "collection": ""}, "actions": ["find"]}]
            assert (await connection.ask(rolesInfo="r"))["roles"] == []
            await connection.ask(createRole="r", privileges=privileges, roles=[])
            assert (await connection.ask(rolesInfo="r", showPrivileges=True))["roles"][0]["privileges"] == privileges
            assert (await connection.ask(buildinfo=1))["version"] == "5.0.7"
            fcv = await connection.ask(getParameter=1, featureCompatibilityVersion=1)
            assert fcv["featureCompatibilityVersion"] == {"version": "5.0"}
            assert (await connection.ask(listDatabases=1))["ok"]
            assert (await connection.ask(fly=1))["code"] == 59
        async with connected(address) as connection:
            assert (await connection.prove("backup", "b"))["ok"]
            assert (await connection.ask(dropUser="backup"))["ok"]
        async with connected(address) as connection:
            assert not (await connection.prove("backup", "b"))["ok"]


async def test_faults_and_an_eager_server() -> None:
    rules = {"servers": [{**RULES["servers"][0], "with": {"set": "rs7", "eager": True}}], "exec": RULES["exec"]}  # type: ignore[dict-item]
    async with simulated(rules) as (cluster, applications):
        address = (await running(cluster, "rs-0", owner=OWNER)).status.pod_ip
        async with connected(address) as connection:
            shown = await connection.ask(isMaster=1)
            assert (shown["ismaster"], shown["setName"]) == (True, "rs7")
        await shell(cluster, applications, "rs-0", INITIATE)
        applications.servers["mongodb"].fault = "wrong"
        async with connected(address) as connection:
            assert not (await connection.ask(isMaster=1))["ismaster"]
        applications.servers["mongodb"].fault = "error"
        async with connected(address) as connection:
            assert (await connection.ask(ping=1))["code"] == 8000
        assert await shell(cluster, applications, "rs-0", INITIATE) == 1


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text("abé", max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text("abc", max_size=5), values, max_size=5))
def test_documents_come_back_as_they_went(document: dict[str, Any]) -> None:
    assert bson.decode(bson.encode(document)) == document


@given(st.binary(max_size=60))
def test_nonsense_is_an_error_and_no_more(data: bytes) -> None:
    for read in (bson.decode, lambda body: bson.command(bson.OP_MSG, body)):
        try:
            read(data)
        except bson.BsonError:
            continue
