"""The stand-in for Cassandra's management API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sim.applications.support import delete, running, simulated
from tests.sim.applications.test_servers import asked
from tests.sim.conftest import condition
from tests.sim.processes.support import is_ready, until

pytestmark = pytest.mark.spec("K-67")

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "dc1", "uid": "u", "controller": True}


def rules(**settings: Any) -> dict[str, Any]:
    return {"servers": [{"kind": "cassandra", "image": "app:*", "with": settings}]}


async def nodes(address: str) -> list[tuple[str, str, str]]:
    """Address, status and life of every node, as one node shows them."""
    _, body = await asked(address, "GET", "/api/v0/metadata/endpoints")
    entries = json.loads(body)["entity"]
    return [(entry["RPC_ADDRESS"], entry["STATUS"].partition(",")[0], entry["IS_ALIVE"]) for entry in entries]


async def test_a_pod_is_ready_when_its_node_was_started_and_again_after_it_was_recreated() -> None:
    async with simulated(rules()) as (cluster, applications):
        pod = await running(cluster, "dc-0", owner=OWNER)
        address = pod.status.pod_ip or ""
        assert condition(pod, "Ready")[0] == "False"
        assert await nodes(address) == []
        assert (await asked(address, "GET", "/api/v0/probes/cluster"))[0] == 500
        assert (await asked(address, "POST", "/api/v0/lifecycle/start"))[0] == 201
        await until(cluster.client, "dc-0", is_ready)
        assert await nodes(address) == [(address, "NORMAL", "true")]
        await delete(cluster, applications, "dc-0")
        assert condition(await running(cluster, "dc-0", owner=OWNER), "Ready")[0] == "False"


async def test_a_node_that_is_decommissioned_leaves() -> None:
    async with simulated(rules(started=True)) as (cluster, applications):
        first, second = [(await running(cluster, name, owner=OWNER)).status.pod_ip or "" for name in ("dc-0", "dc-1")]
        assert await nodes(first) == [(first, "NORMAL", "true"), (second, "NORMAL", "true")]
        assert (await asked(second, "POST", "/api/v0/ops/node/decommission"))[0] == 200
        assert [status for _, status, _ in await nodes(first)] == ["NORMAL", "LEAVING"]
        assert [status for _, status, _ in await nodes(first)] == ["NORMAL", "LEFT"]
        await asked(first, "POST", "/api/v0/ops/auth/role?username=me&password=secret")
        (entry,) = applications.export().values()
        assert entry["state"]["roles"] == {"me": "secret"}
        applications.servers["cassandra"].fault = "wrong"
        assert await nodes(first) == []


async def test_keyspaces_are_kept_and_nonsense_is_refused() -> None:
    async with simulated(rules(started=True)) as (cluster, applications):
        address = (await running(cluster, "dc-0", owner=OWNER)).status.pod_ip or ""
        body = json.dumps({"keyspace_name": "shop", "replication_settings": [{"dc1": "3"}]})
        assert (await asked(address, "POST", "/api/v0/ops/keyspace/create", body))[0] == 200
        assert (await asked(address, "POST", "/api/v0/ops/keyspace/create", "{}"))[0] == 400
        assert (await asked(address, "POST", "/api/v0/ops/fly"))[0] == 404
        (entry,) = applications.export().values()
        assert entry["state"]["keyspaces"] == {"shop": [{"dc1": "3"}]}
