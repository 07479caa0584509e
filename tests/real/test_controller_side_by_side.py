"""Each of the ten controllers beside kube-controller-manager: the same scenario on two real API servers, and the same
objects and events afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.clients.waiting import until
from tests.real.controller_sides import (
    CLAIMS,
    CONFIG_MAPS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ENDPOINTS,
    JOBS,
    LABELS,
    NAMESPACES,
    NODES,
    PODS,
    QUOTAS,
    REPLICA_SETS,
    REVISIONS,
    ROLES,
    SERVICES,
    SLICES,
    STATEFUL_SETS,
    Obj,
    Side,
    both,
    same,
)

pytestmark = pytest.mark.spec("R-42")

Both = tuple[Path, Path]
GHOST = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def pair(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with both(binaries, tmp_path_factory.mktemp("sides")) as kubeconfigs:
        yield kubeconfigs


def template(image: str = "app:1", **spec: Any) -> Obj:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


def workload(replicas: int, **more: Any) -> Obj:
    return {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template(), **more}


def status(obj: Obj, name: str) -> Any:
    return obj.get("status", {}).get(name) or 0


def condition(obj: Obj, type_: str) -> str:
    conditions = obj.get("status", {}).get("conditions") or []
    return next((entry["status"] for entry in conditions if entry["type"] == type_), "")


async def refuse(side: Side, counted: str) -> None:
    """A quota that allows none of what is counted, from the moment that this returns."""
    await side.make(QUOTAS, "none", spec={"hard": {counted: "0"}})
    await side.until(QUOTAS, lambda quotas: status(quotas["none"], "used"))


# ------------------------------------------------------------------ workloads


@pytest.mark.spec("R-32")
async def test_deployment(pair: Both) -> None:
    async def scenario(side: Side) -> None:
        await side.make(DEPLOYMENTS, "web", spec=workload(2, minReadySeconds=0))
        await side.run(*await side.live_pods(2))
        await side.until(DEPLOYMENTS, lambda objects: condition(objects["web"], "Available") == "True")
        await side.until(DEPLOYMENTS, lambda objects: status(objects["web"], "availableReplicas") == 2)
        await side.patch(DEPLOYMENTS, "web", {"spec": {"template": template("app:2")}})
        while True:  # one pod after the other, as the bounds of the rollout allow
            fresh = await side.until(PODS, lambda pods: pods)
            new = [
                name for name, pod in fresh.items()
                if pod["spec"]["containers"][0]["image"] == "app:2" and not status(pod, "podIP")
            ]  # fmt: skip
            await side.run(*new)
            going = [name for name, pod in fresh.items() if "deletionTimestamp" in pod["metadata"]]
            await side.vanish(*going)
            web = (await side.until(DEPLOYMENTS, lambda objects: objects))["web"]
            done = status(web, "updatedReplicas") == status(web, "availableReplicas") == status(web, "replicas") == 2
            if done and web["status"]["observedGeneration"] == web["metadata"]["generation"] == 2:
                break
        await side.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1, "paused": True}})
        await side.live_pods(1)
        await side.until(DEPLOYMENTS, lambda objects: status(objects["web"], "replicas") == 1)

    await same(pair, "deployment", scenario, DEPLOYMENTS, REPLICA_SETS, PODS)


@pytest.mark.spec("R-32")
async def test_deployment_whose_set_is_refused(pair: Both) -> None:
    async def scenario(side: Side) -> None:
        await refuse(side, "count/replicasets.apps")
        await side.make(DEPLOYMENTS, "web", spec=workload(2))

    await same(pair, "deployment-refused", scenario, DEPLOYMENTS, REPLICA_SETS)


@pytest.mark.spec("R-33")
async def test_replica_set(pair: Both) -> None:
    async def scenario(side: Side) -> None:
        await side.make(PODS, "orphan", metadata={"labels": LABELS}, spec=template()["spec"])
        await side.make(REPLICA_SETS, "web", spec=workload(4))
        first, *others = await side.live_pods(4)
        await side.patch(PODS, others[0], {"metadata": {"labels": {"app": "other"}}})
        names = await side.live_pods(4, lambda pod: pod["metadata"]["labels"] == LABELS)
        await side.run(*names[:2])
        await side.patch(
            PODS, first, {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-7"}}}
        )
        await side.until(REPLICA_SETS, lambda sets: status(sets["web"], "readyReplicas") == 2)
        await side.patch(REPLICA_SETS, "web", {"spec": {"replicas": 2}})
        await side.live_pods(2, lambda pod: pod["metadata"]["labels"] == LABELS)
        await side.until(REPLICA_SETS, lambda sets: status(sets["web"], "replicas") == 2)

    await same(pair, "replicaset", scenario, REPLICA_SETS, PODS)


@pytest.mark.spec("R-33")
async def test_replica_set_whose_pods_are_refused(pair: Both) -> None:
    async def scenario(side: Side) -> None:
        await refuse(side, "pods")
        await side.make(REPLICA_SETS, "web", spec=workload(1))
        await side.until(REPLICA_SETS, lambda sets: condition(sets["web"], "ReplicaFailure") == "True")

    await same(pair, "replicaset-refused", scenario, REPLICA_SETS)


@pytest.mark.spec("R-34")
async def test_stateful_set(pair: Both) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    retention = {"whenDeleted": "Delete", "whenScaled": "Retain"}

    async def scenario(side: Side) -> None:
        more = {"serviceName": "db", "volumeClaimTemplates": [claim], "persistentVolumeClaimRetentionPolicy": retention}
        await side.make(STATEFUL_SETS, "db", spec=workload(3, **more))
        for ordinal in range(3):
            await side.until(PODS, lambda pods, ordinal=ordinal: f"db-{ordinal}" in pods)  # type: ignore[misc]
            await side.run(f"db-{ordinal}")
        await side.until(STATEFUL_SETS, lambda sets: status(sets["db"], "availableReplicas") == 3)
        change = {"template": template("app:2"), "updateStrategy": {"rollingUpdate": {"partition": 2}}}
        await side.patch(STATEFUL_SETS, "db", {"spec": change})
        await side.until(PODS, lambda pods: "db-2" in pods and _image(pods["db-2"]) == 2)
        await side.run("db-2")
        await side.until(STATEFUL_SETS, lambda sets: status(sets["db"], "updatedReplicas") == 1)
        await side.patch(STATEFUL_SETS, "db", {"spec": {"replicas": 1}})
        await side.until(PODS, lambda pods: sorted(pods) == ["db-0"])
        await side.until(STATEFUL_SETS, lambda sets: status(sets["db"], "replicas") == 1)

    await same(pair, "statefulset", scenario, STATEFUL_SETS, PODS, CLAIMS, REVISIONS)


def _image(pod: Obj) -> int:
    return int(pod["spec"]["containers"][0]["image"].rpartition(":")[2])


@pytest.mark.spec("R-35")
async def test_daemon_set(pair: Both) -> None:
    async def scenario(side: Side) -> None:
        for number in range(3):
            name = f"{side.space}-{number}"
            await side.make(NODES, name, metadata={"labels": {"for": side.space, "runs": "agent"}})
            await _make_ready(side, name)
        await side.until(NODES, lambda nodes: not any(_taints(nodes[f"{side.space}-{number}"]) for number in range(3)))
        await side.patch(NODES, f"{side.space}-2", {"spec": {"unschedulable": True}})
        spec = {
            "selector": {"matchLabels": LABELS},
            "template": template(nodeSelector={"for": side.space, "runs": "agent"}),
        }
        await side.make(DAEMON_SETS, "agent", spec=spec)
        nodes = {await _bind(side, name): name for name in await side.live_pods(3)}
        await side.run(nodes[f"{side.space}-0"])
        await side.until(DAEMON_SETS, lambda sets: status(sets["agent"], "numberReady") == 1)
        await side.patch(NODES, f"{side.space}-1", {"metadata": {"labels": {"runs": None}}})
        await side.live_pods(2)
        await side.until(DAEMON_SETS, lambda sets: status(sets["agent"], "desiredNumberScheduled") == 2)

    await same(pair, "daemonset", scenario, DAEMON_SETS, REVISIONS)


async def _bind(side: Side, pod: str) -> str:
    """What the scheduler does with a daemon's pod; returns the node, which its affinity names."""
    affinity = (await side.client.get(PODS, pod, side.space))["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    node: str = term["matchFields"][0]["values"][0]
    binding = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
    await side.client.create_sub(PODS, pod, "binding", binding, side.space)
    return node


async def _make_ready(side: Side, node: str, *, ready: str = "True", **others: str) -> None:
    states = {"Ready": ready, **others}
    now = (await side.client.get(NODES, node))["metadata"]["creationTimestamp"]
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    conditions = [
        {"type": type_, "status": value, "reason": "Test", "message": "", **times} for type_, value in states.items()
    ]
    await side.patch(NODES, node, {"status": {"conditions": conditions}}, "status")


def _taints(node: Obj) -> list[str]:
    return sorted(f"{taint['key']}:{taint['effect']}" for taint in node["spec"].get("taints") or [])


@pytest.mark.spec("R-36")
async def test_job(pair: Both) -> None:
    async def scenario(side: Side) -> None:
        spec = {"template": template(restartPolicy="Never"), "completions": 3, "parallelism": 2, "backoffLimit": 0}
        await side.make(JOBS, "good", spec={**spec, "completionMode": "Indexed"})
        await side.make(JOBS, "bad", spec=spec)
        await side.make(JOBS, "held", spec={**spec, "suspend": True})
        of = {name: (lambda pod, name=name: pod["metadata"]["labels"]["job-name"] == name) for name in ("good", "bad")}
        await side.run(*await side.live_pods(2, of["good"]), phase="Succeeded")
        await side.until(JOBS, lambda jobs: status(jobs["good"], "succeeded") == 2)
        last = await side.until(PODS, lambda pods: [n for n, pod in pods.items() if of["good"](pod) and _pending(pod)])
        await side.run(*[name for name, pod in last.items() if of["good"](pod) and _pending(pod)], phase="Succeeded")
        await side.run((await side.live_pods(2, of["bad"]))[0], phase="Failed")
        await side.until(JOBS, lambda jobs: condition(jobs["good"], "Complete") == "True")
        await side.until(JOBS, lambda jobs: condition(jobs["bad"], "Failed") == "True")
        await side.until(JOBS, lambda jobs: condition(jobs["held"], "Suspended") == "True")

    await same(pair, "job", scenario, JOBS, PODS)


def _pending(pod: Obj) -> bool:
    return bool(pod["status"]["phase"] == "Pending")


@pytest.mark.spec("R-37")
@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
async def test_cron_job(pair: Both, policy: str) -> None:
    """The run of last new year is due; a year later, as far as the status says, the next one."""

    async def scenario(side: Side) -> None:
        job = {"metadata": {"labels": {"of": "tick"}}, "spec": {"template": template(restartPolicy="Never")}}
        spec = {"schedule": "0 0 1 1 *", "timeZone": "Asia/Shanghai", "concurrencyPolicy": policy, "jobTemplate": job}
        await side.make(CRON_JOBS, "tick", spec={**spec, "suspend": True})
        await side.patch(CRON_JOBS, "tick", {"status": {"lastScheduleTime": "2020-06-01T00:00:00Z"}}, "status")
        await side.patch(CRON_JOBS, "tick", {"spec": {"suspend": False}})
        made = await side.until(JOBS, lambda jobs: jobs)
        await side.until(CRON_JOBS, lambda crons: status(crons["tick"], "active"))
        other = {**spec, "schedule": "0 0 2 1 *"}
        await side.patch(CRON_JOBS, "tick", {"spec": {**other, "suspend": True}})
        await side.patch(CRON_JOBS, "tick", {"status": {"lastScheduleTime": "2020-06-01T00:00:00Z"}}, "status")
        await side.patch(CRON_JOBS, "tick", {"spec": {"suspend": False}})
        if policy == "Forbid":
            return
        await side.until(JOBS, lambda jobs: set(jobs) - set(made))
        if policy == "Allow":
            (name,) = made
            (pod,) = await side.live_pods(1, lambda pod: pod["metadata"]["labels"]["job-name"] == name)
            await side.run(pod, phase="Succeeded")
            await side.until(CRON_JOBS, lambda crons: status(crons["tick"], "lastSuccessfulTime"))

    await same(pair, f"cronjob-{policy.lower()}", scenario, CRON_JOBS, JOBS)


# ------------------------------------------------------------------ the rest


@pytest.mark.spec("R-38")
async def test_endpoints(pair: Both) -> None:
    async def scenario(side: Side) -> None:
        node = f"{side.space}-0"
        await side.make(NODES, node, metadata={"labels": {"for": side.space, "topology.kubernetes.io/zone": "z"}})
        await _make_ready(side, node)
        await side.until(NODES, lambda nodes: not _taints(nodes[node]))  # its controllers know it, and its zone
        port = {"name": "http", "port": 80, "targetPort": "web"}
        await side.make(SERVICES, "web", spec={"selector": LABELS, "ports": [port], "clusterIP": "None"})
        more = {"name": "https", "port": 443, "appProtocol": "https"}
        await side.make(
            SERVICES, "unready", spec={"selector": LABELS, "ports": [more], "publishNotReadyAddresses": True}
        )
        await side.make(SERVICES, "manual", spec={"ports": [{"port": 80}]})
        subset = {"addresses": [{"ip": "10.9.0.1"}], "ports": [{"port": 80}]}
        await side.make(ENDPOINTS, "manual", subsets=[subset])
        ports = [{"name": "web", "containerPort": 8080}]
        spec = {"containers": [{"name": "c", "image": "app:1", "ports": ports}], "nodeName": node}
        for number, ready in enumerate((True, False, True)):
            name = f"p-{number}"
            await side.make(
                PODS, name, metadata={"labels": LABELS}, spec={**spec, "hostname": name, "subdomain": "web"}
            )
            await side.run(name, ready=ready, ip=f"10.1.0.{number}")
        await side.until(SLICES, lambda slices: sum(len(s.get("endpoints") or []) for s in slices.values()) == 7)
        await side.delete(PODS, "p-2")

    await same(pair, "endpoints", scenario, ENDPOINTS, SLICES)


@pytest.mark.spec("R-39")
async def test_namespace(pair: Both) -> None:
    """What holds it up is named in its conditions; the comparison is made while it is held."""

    async def scenario(side: Side) -> None:
        held = {"finalizers": ["example.com/hold"]}
        for name in ("a", "b"):
            await side.make(CONFIG_MAPS, name, metadata=held)
        await side.make(DEPLOYMENTS, "web", spec=workload(1))
        await side.live_pods(1)
        await side.delete(NAMESPACES, side.space)
        await side.until(
            NAMESPACES, lambda spaces: condition(spaces[side.space], "NamespaceFinalizersRemaining") == "True"
        )
        await side.until(PODS, lambda pods: not pods)

    await same(pair, "emptied", scenario, NAMESPACES, CONFIG_MAPS, DEPLOYMENTS, PODS)


@pytest.mark.spec("R-40")
async def test_node(pair: Both) -> None:
    async def scenario(side: Side) -> None:
        good, bad = f"{side.space}-0", f"{side.space}-1"
        for name in (good, bad):
            await side.make(NODES, name, metadata={"labels": {"for": side.space, "kubernetes.io/os": "linux"}})
            await _make_ready(side, name)
        await side.until(NODES, lambda nodes: not _taints(nodes[good]) and not _taints(nodes[bad]))
        stays = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]
        goes = [{**stays[0], "tolerationSeconds": 0}]
        for name, tolerations in (("stays", stays), ("goes", goes)):
            spec = {**template()["spec"], "nodeName": bad, "tolerations": tolerations}
            await side.make(PODS, name, spec=spec)
            await side.run(name)
        await _make_ready(side, good, MemoryPressure="True")
        await side.patch(NODES, good, {"spec": {"unschedulable": True}})
        await _make_ready(side, bad, ready="False")
        await side.until(NODES, lambda nodes: len(_taints(nodes[good])) == 2)
        await side.until(NODES, lambda nodes: len(_taints(nodes[bad])) == 2)
        await side.until(PODS, lambda pods: "goes" not in pods or "deletionTimestamp" in pods["goes"]["metadata"])

    await same(pair, "node", scenario, NODES, PODS)


@pytest.mark.spec("R-41")
async def test_garbage_collector(pair: Both) -> None:
    def reference(owner: Obj, **changes: Any) -> Obj:
        meta = owner["metadata"]
        found = {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"], "uid": meta["uid"]}
        return {"ownerReferences": [{**found, **changes}]}

    async def scenario(side: Side) -> None:
        owner = await side.make(CONFIG_MAPS, "owner")
        ghost = {"metadata": {"name": "ghost", "uid": GHOST}}
        await side.make(
            CONFIG_MAPS, "of-unknown-kind", metadata=reference(ghost, apiVersion="nope.dev/v1", kind="Nope")
        )
        await side.make(
            CONFIG_MAPS, "of-unserved-version", metadata=reference(ghost, apiVersion="apps/v1beta1", kind="Deployment")
        )
        await side.make(CONFIG_MAPS, "of-lower-case-kind", metadata=reference(owner, kind="configmap"))
        await side.make(ROLES, f"{side.space}-role", metadata=reference(owner))
        await side.make(ROLES, f"{side.space}-ghost", metadata=reference(ghost))
        await side.make(CONFIG_MAPS, "child", metadata=reference(owner, blockOwnerDeletion=True))
        far_name = "extension-apiserver-authentication"  # the API server makes it in its own time
        far = (await until(side.client, CONFIG_MAPS, "kube-system", lambda maps: far_name in maps))[far_name]
        for name, metadata in {
            "of-ghost": reference(ghost),
            "of-another-uid": reference(owner, uid=GHOST.replace("4", "5")),
            "of-another-name": reference(owner, name="other"),
            "of-another-namespace": reference(far),
        }.items():
            await side.make(CONFIG_MAPS, name, metadata=metadata)
        gone = {"of-ghost", "of-another-uid", "of-another-name", "of-another-namespace"}
        await side.until(CONFIG_MAPS, lambda maps: not gone & maps.keys())
        for policy in ("Background", "Foreground", "Orphan"):
            name = policy.lower()
            parent = await side.make(CONFIG_MAPS, name)
            await side.make(CONFIG_MAPS, f"child-{name}", metadata=reference(parent, blockOwnerDeletion=True))
            await side.delete(CONFIG_MAPS, name, propagation=policy)
        await side.until(CONFIG_MAPS, lambda maps: not {"background", "foreground", "orphan"} & maps.keys())
        await side.until(CONFIG_MAPS, lambda maps: not {"child-background", "child-foreground"} & maps.keys())

    await same(pair, "gc", scenario, CONFIG_MAPS, ROLES)
