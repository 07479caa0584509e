"""The simulation in the console: faults that happen, for administrators alone, and recordings that become tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.cli.console_simulation import UpSimulation
from konverge.client import ConnectionFailed
from konverge.console.recording import MOST, Place, place_of
from konverge.operators.webapp import WebApp, controllers
from konverge.sim.cluster import Cluster
from konverge.testing.operators import RunOperator
from konverge.wire.message import Request
from tests.console.office import API, SPACE, Office, an_office, decoded, in_front_of
from tests.explain.samples import create, deployment, obj

pytestmark = [pytest.mark.virtual, pytest.mark.spec("C-12")]

MERGE = "application/merge-patch+json"
DEPLOYMENTS = f"/k8s/apis/apps/v1/namespaces/{SPACE}/deployments"


@asynccontextmanager
async def simulated(*operators: str, nodes: int = 2, seed: int = 0) -> AsyncIterator[tuple[Cluster, Office]]:
    async with Cluster(nodes=nodes) as cluster:
        simulation = UpSimulation(cluster, list(operators), seed)
        async with in_front_of(cluster.server, cluster.client, simulation=simulation) as office:
            yield cluster, office
        await simulation.close()


async def inflict(office: Office, name: str, **values: Any) -> dict[str, Any]:
    answer = await office.send("POST", f"{API}/simulation/faults/{name}", values)
    assert answer.status == 200, answer.body
    state: dict[str, Any] = decoded(answer)
    return state


def fault(state: dict[str, Any], name: str) -> dict[str, Any]:
    return next(entry for entry in state["faults"] if entry["name"] == name)


async def test_nodes_are_lost_and_recovered() -> None:
    async with simulated() as (cluster, office):
        state = await office.get(f"{API}/simulation")
        assert [(node["name"], node["lost"], node["ready"]) for node in state["nodes"]] == [
            ("node-1", False, True),
            ("node-2", False, True),
        ]
        assert fault(state, "lose-node")["parameters"][0]["values"] == ["node-1", "node-2"]
        state = await inflict(office, "lose-node", node="node-1")
        assert [node["lost"] for node in state["nodes"]] == [True, False]
        assert fault(state, "recover-node")["parameters"][0]["values"] == ["node-1"]
        await asyncio.sleep(300)
        assert [node["ready"] for node in (await office.get(f"{API}/simulation"))["nodes"]] == [False, True]
        await inflict(office, "recover-node", node="node-1")
        await asyncio.sleep(60)
        assert [node["ready"] for node in (await office.get(f"{API}/simulation"))["nodes"]] == [True, True]
        assert cluster.kubelet.lost == set()


async def test_pods_crash_operators_are_cut_off_and_the_history_is_forgotten() -> None:
    async with simulated(nodes=1) as (cluster, office):
        await create(cluster.client, deployment("web"))
        await cluster.settle()
        pod = (await cluster.client.list("pods", SPACE)).items[0]["metadata"]["name"]
        await inflict(office, "crash-pod", namespace=SPACE, pod=pod)
        await asyncio.sleep(60)
        status = (await cluster.client.get("pods", pod, SPACE))["status"]["containerStatuses"][0]
        assert status["restartCount"] == 1
        await inflict(office, "cut-api", seconds=3600)
        await asyncio.sleep(1)
        with pytest.raises(ConnectionFailed):
            await cluster.connect("operator").version()
        await asyncio.sleep(3601)
        assert await cluster.connect("operator").version()
        state = await inflict(office, "delay-watch", seconds=5)
        assert state["late"] == 5
        await inflict(office, "forget-history")
        assert cluster.server.store.compacted == cluster.server.store.revision
        await inflict(office, "jump-clock", seconds=3600)


@pytest.mark.parametrize(
    ("name", "values", "status"),
    [
        ("burn-down", {}, 404),
        ("lose-node", {}, 422),
        ("lose-node", {"node": "node-9"}, 422),
        ("cut-api", {"seconds": "ten"}, 422),
        ("cut-api", {"seconds": True}, 422),
        ("cut-api", {"seconds": -1}, 422),
        ("cut-api", {"seconds": 1e9}, 422),
        ("crash-pod", {"namespace": SPACE, "pod": "none"}, 422),
    ],
)
async def test_what_cannot_happen_is_said(name: str, values: dict[str, Any], status: int) -> None:
    async with simulated() as (_, office):
        answer = await office.send("POST", f"{API}/simulation/faults/{name}", values)
        assert (answer.status, bool(decoded(answer)["error"])) == (status, True)


async def test_the_simulation_is_for_administrators_and_not_everywhere() -> None:
    async with simulated() as (cluster, office):
        other = office.another()
        await other.sign_in(token=await office.account("jane", "*", resources=("pods", "nodes")))
        for method, path in (
            ("GET", "simulation"),
            ("POST", "simulation/faults/lose-node"),
            ("POST", "simulation/recording"),
            ("GET", "simulation/recording/test"),
        ):
            body = {"node": "node-1", "active": True} if method == "POST" else None
            assert (await other.send(method, f"{API}/{path}", body)).status == 403, path
        assert cluster.kubelet.lost == set()
    async with an_office() as plain:
        assert (await plain.send("GET", f"{API}/simulation")).status == 404
        assert (await plain.send("POST", f"{API}/simulation/faults/lose-node", {"node": "node-1"})).status == 404


async def record(office: Office, active: bool) -> dict[str, Any]:
    answer = await office.send("POST", f"{API}/simulation/recording", {"active": active})
    state: dict[str, Any] = decoded(answer)["recording"]
    return state


async def replay(text: str, seed: int = 0) -> None:
    """Run the recorded test as the plugin does: on a cluster of its own, on virtual time."""
    names: dict[str, Any] = {}
    exec(compile(text, "test_recorded.py", "exec"), names)
    async with Cluster(nodes=2) as cluster:
        await names["test_recorded"](cluster, cluster.client, RunOperator(cluster), seed)


async def test_a_recording_becomes_a_test_that_does_the_same() -> None:
    async with simulated("webapp") as (cluster, office):
        await create(cluster.client, deployment("old"), deployment("web", replicas=1))
        await cluster.settle()
        assert await record(office, True) == {"active": True, "steps": 0}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"k": 'it\'s "so"'}}
        await office.send("POST", f"/k8s/api/v1/namespaces/{SPACE}/configmaps", made)
        await asyncio.sleep(5)
        await office.send("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 2}}, content_type=MERGE)
        await office.send("PATCH", f"{DEPLOYMENTS}/web?dryRun=All", {"spec": {"replicas": 9}}, content_type=MERGE)
        await office.send("PATCH", f"{DEPLOYMENTS}/none", {"spec": {"replicas": 9}}, content_type=MERGE)
        await cluster.settle()
        await inflict(office, "lose-node", node="node-1")
        pod = (await cluster.client.list("pods", SPACE, label_selector="app=web")).items[0]["metadata"]["name"]
        await office.send("POST", f"{API}/simulation/faults/crash-pod", {"namespace": SPACE, "pod": pod})
        await inflict(office, "recover-node", node="node-1")
        await office.send("DELETE", f"{DEPLOYMENTS}/old")
        await cluster.settle()
        stopped = await record(office, False)
        assert stopped["active"] is False
        await office.send("DELETE", f"{DEPLOYMENTS}/web")  # after the end: not recorded
        answer = await office.send("GET", f"{API}/simulation/recording/test")
        assert answer.headers.get("content-type").startswith("text/plain")
        text = answer.body.decode()
    assert "find('webapp')" in text
    assert "{'replicas': 9}" not in text
    assert text.count("client.delete(") == 1
    assert "cluster.lose_node('node-1')" in text
    assert "pytest.raises(NotFound)" in text
    await replay(text)


@pytest.mark.spec("C-41")
async def test_the_seed_is_shown_and_goes_into_the_test() -> None:
    async with simulated(nodes=1, seed=41) as (_, office):
        assert (await office.get(f"{API}/simulation"))["seed"] == 41
        text = (await office.send("GET", f"{API}/simulation/recording/test")).body.decode()
    assert "@pytest.mark.konverge(nodes=1, seed=41)\n" in text
    assert "with_simulators(cluster, operators, seed=konverge_seed)" in text
    async with simulated() as (_, office):
        assert (await office.get(f"{API}/simulation"))["seed"] == 0, "a number that can be given to --seed"


async def test_the_test_fails_where_the_outcome_is_another() -> None:
    async with simulated() as (cluster, office):
        await create(cluster.client, deployment("web"))
        await cluster.settle()
        await record(office, True)
        await office.send("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 2}}, content_type=MERGE)
        await cluster.settle()
        text = (await office.send("GET", f"{API}/simulation/recording/test")).body.decode()
    assert "== 'ready'" in text
    await replay(text)
    with pytest.raises(AssertionError):
        await replay(text.replace("== 'ready'", "== 'failed'"))


async def test_custom_resources_and_secrets_in_a_recording() -> None:
    async with simulated("webapp") as (cluster, office), RunOperator(cluster)(controllers):
        await record(office, True)
        secret = obj("Secret", "s", stringData={"password": "hunter2"})
        await office.send("POST", f"/k8s/api/v1/namespaces/{SPACE}/secrets", secret)
        app = {
            "apiVersion": WebApp.resource.api_version,
            "kind": "WebApp",
            "metadata": {"name": "hello"},
            "spec": {"image": "nginx", "replicas": 2},
        }
        await office.send("POST", f"/k8s/apis/{app['apiVersion']}/namespaces/{SPACE}/webapps", app)
        await cluster.settle()
        text = (await office.send("GET", f"{API}/simulation/recording/test")).body.decode()
    assert "hunter2" not in text
    assert "'WebApp', 'hello'" in text
    await replay(text)


@pytest.mark.parametrize(
    ("method", "target", "place"),
    [
        ("POST", "/api/v1/namespaces", Place("", "v1", "namespaces")),
        ("DELETE", "/api/v1/namespaces/shop", Place("", "v1", "namespaces", "", "shop")),
        ("PUT", "/api/v1/namespaces/shop/pods/a/status", Place("", "v1", "pods", "shop", "a", "status")),
        ("PATCH", "/apis/apps/v1/namespaces/n/deployments/d", Place("apps", "v1", "deployments", "n", "d")),
        ("GET", "/api/v1/pods", None),
        ("POST", "/api/v1/namespaces/n/pods/p/exec?command=sh", None),
        ("PATCH", "/api/v1/nodes/n?dryRun=All", None),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", None),
        ("POST", "/version", None),
    ],
)
def test_which_writes_count(method: str, target: str, place: Place | None) -> None:
    assert place_of(Request(method, target)) == place


async def test_a_recording_is_bounded() -> None:
    async with simulated() as (_, office):
        await record(office, True)
        simulator = office.console._simulator
        assert simulator is not None
        for _ in range(MOST + 5):
            simulator.recording.add_fault("forget-history", {})
        assert len(simulator.recording.steps) == MOST
