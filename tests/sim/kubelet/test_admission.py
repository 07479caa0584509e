"""What a kubelet refuses: pods bound by hand to a node without room, and containers that it will not create."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import Event, Pod
from konverge.sim.cluster import Cluster
from tests.sim.conftest import SPACE, pod, shown

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-16")]


def bound(name: str, *, requests: dict[str, str] | None = None, port: int = 0, **spec: Any) -> Pod:
    container: dict[str, Any] = {"name": "main", "image": "app:1", "resources": {"requests": requests or {}}}
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    return pod(name, **{"nodeName": "node-1", "containers": [container], **spec})


async def rejected(cluster: Cluster, name: str) -> tuple[str, str]:
    """Reason and message of a pod that has failed, which are those of its event."""
    status = (await cluster.client.get(Pod, name, SPACE)).status
    assert status.phase == "Failed"
    assert status.container_statuses == []
    events = await cluster.client.list(Event, SPACE, field_selector=f"involvedObject.name={name}")
    assert [(event.type, event.reason) for event in events] == [("Warning", status.reason)]
    assert status.message == f"Pod was rejected: {events.items[0].message}"
    return status.reason or "", events.items[0].message or ""


@pytest.mark.parametrize(
    ("first", "second", "reason", "message"),
    [
        (
            bound("a", requests={"cpu": "20"}),
            bound("b", requests={"cpu": "20500m"}),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 20500, used: 20000, capacity: 32000",
        ),
        (
            bound("a", requests={"memory": "200Gi"}),
            bound("b", requests={"memory": "100Gi"}),
            "OutOfmemory",
            "Node didn't have enough resource: memory, "
            f"requested: {100 << 30}, used: {200 << 30}, capacity: {256 << 30}",
        ),
        (
            bound("a", port=80),
            bound("b", port=80),
            "NodePorts",
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        ),
    ],
    ids=["cpu", "memory", "port"],
)
async def test_no_room(cluster: Cluster, first: Pod, second: Pod, reason: str, message: str) -> None:
    await cluster.client.create(first)
    await cluster.settle()
    await cluster.client.create(second)
    await cluster.settle()
    assert await shown(cluster.client, "a") == "Running True 0"
    assert await rejected(cluster, "b") == (reason, message)
    await cluster.client.delete(Pod, "b", SPACE)
    await cluster.client.delete(Pod, "a", SPACE)
    await cluster.settle()
    second.metadata.name = "c"
    await cluster.client.create(second)
    await cluster.settle()
    assert await shown(cluster.client, "c") == "Running True 0"
    assert [item.metadata.name for item in await cluster.client.list(Pod, SPACE)] == ["c"]


async def test_a_pod_that_has_ended_takes_no_room(cluster: Cluster) -> None:
    await cluster.client.create(bound("a", requests={"cpu": "20"}, restartPolicy="Never"))
    await cluster.settle()
    await cluster.client.create(bound("b", requests={"cpu": "20"}))
    await cluster.settle()
    assert await shown(cluster.client, "a") == "Succeeded False 0 Completed 0"
    assert await shown(cluster.client, "b") == "Running True 0"


def with_gpu() -> Pod:
    amounts = {"example.com/gpu": "1"}
    main = {"name": "main", "image": "app:1", "resources": {"requests": amounts, "limits": amounts}}
    return pod("a", nodeName="node-1", containers=[main])


async def test_what_a_node_does_not_know_is_not_refused(cluster: Cluster) -> None:
    await cluster.client.create(with_gpu())
    await cluster.settle()
    assert await shown(cluster.client, "a") == "Running True 0"


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        (
            {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}},
            "SysctlForbidden",
            'forbidden sysctl: "kernel.msgmax" not allowlisted',
        ),
        (
            {"nodeSelector": {"a": "b"}},
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
        ({"os": {"name": "windows"}}, "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"),
    ],
    ids=["sysctl", "selector", "os"],
)
async def test_what_a_kubelet_does_not_take(cluster: Cluster, spec: Any, reason: str, message: str) -> None:
    await cluster.client.create(bound("web", **spec))
    await cluster.settle()
    assert await rejected(cluster, "web") == (reason, message)


async def test_safe_sysctls_are_taken(cluster: Cluster) -> None:
    sysctls = [{"name": "net/ipv4/tcp_syncookies", "value": "1"}, {"name": "kernel.shm_rmid_forced", "value": "0"}]
    await cluster.client.create(bound("web", securityContext={"sysctls": sysctls}))
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 0"


FIELD = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def mounting(expression: str, *env: dict[str, Any]) -> dict[str, Any]:
    mount = {"name": "v", "mountPath": "/v", "subPathExpr": expression}
    main = {"name": "main", "image": "app:1", "env": list(env), "volumeMounts": [mount]}
    return {"containers": [main], "volumes": [{"name": "v", "emptyDir": {}}]}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (mounting("$(POD)/a", FIELD), ""),
        (mounting("$(A)", {"name": "A", "value": "../x"}), "unable to provision SubPath `../x`: must not contain '..'"),
        (mounting("$(POD)", {"name": "POD", "value": "/x"}), "error SubPath `/x` must not be an absolute path"),
        (mounting("a/$(NONE)"), "missing value for NONE"),
        (mounting("$(B)", {"name": "A", "value": ".."}, {"name": "B", "value": "$(A)/b"}),
         "unable to provision SubPath `../b`: must not contain '..'"),
        (mounting("$$(NONE)"), ""),
        ({"securityContext": {"runAsNonRoot": True, "runAsUser": 0}},
         "container's runAsUser breaks non-root policy (pod: \"web_default(UID)\", container: main)"),
        ({"securityContext": {"runAsNonRoot": True, "runAsUser": 7}}, ""),
        ({"securityContext": {"runAsNonRoot": True}}, ""),
    ],
)  # fmt: skip
async def test_containers_that_are_not_created(cluster: Cluster, spec: dict[str, Any], message: str) -> None:
    await cluster.client.create(pod("web", **spec))
    await cluster.settle()
    web = await cluster.client.get(Pod, "web", SPACE)
    state = web.status.container_statuses[0].state
    assert state is not None
    if not message:
        assert state.running is not None
        return
    assert state.waiting is not None
    assert state.waiting.reason == "CreateContainerConfigError"
    assert state.waiting.message == message.replace("UID", web.metadata.uid)


async def test_a_container_may_run_as_root_where_its_own_context_says_so(cluster: Cluster) -> None:
    main = {"name": "main", "image": "app:1", "securityContext": {"runAsNonRoot": False}}
    await cluster.client.create(pod("web", containers=[main], securityContext={"runAsNonRoot": True, "runAsUser": 0}))
    await cluster.settle()
    assert await shown(cluster.client, "web") == "Running True 0"
