"""Every cause that a user should hear of, produced by the simulated cluster and explained from what it serves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Client, MergePatch
from konverge.explain import Answer, Health
from konverge.sim import Cluster
from tests.explain.samples import SPACE, create, deployment, obj, stateful_set, template, why

pytestmark = [pytest.mark.virtual, pytest.mark.spec("O-81")]
LONG = 400.0
"""Seconds after which everything that is going to happen has happened."""


def chain(answer: Answer) -> list[str]:
    """The kinds from the object to the cause."""
    return [step.ref.kind for step in answer.chain]


async def broken(cluster: Cluster, *objects: dict[str, Any]) -> Client:
    await create(cluster.client, *objects)
    await asyncio.sleep(LONG)
    return cluster.client


async def test_a_missing_storage_class() -> None:
    async with Cluster(nodes=1) as cluster:
        client = await broken(cluster, stateful_set("db", storage_class="fast"))
        answer = await why(client, "StatefulSet", "db")
    assert answer.sentence == (
        "StatefulSet db waits for pod db-0, which waits for claim data-db-0, whose storage class `fast` does not exist"
    )
    assert (answer.health, answer.cause) == (Health.WAITING, "missing-storage-class")
    assert chain(answer) == ["StatefulSet", "Pod", "PersistentVolumeClaim", "StorageClass"]


async def test_the_answer_is_ready_once_the_cause_is_gone() -> None:
    async with Cluster(nodes=1) as cluster:
        client = await broken(cluster, stateful_set("db", storage_class="fast"))
        provided = obj("StorageClass", "fast", namespace="", provisioner="sim.konverge.dev/disk")
        await create(client, provided)
        await asyncio.sleep(LONG)
        answer = await why(client, "StatefulSet", "db")
    assert (answer.health, answer.cause, answer.sentence) == (
        Health.READY,
        "",
        "StatefulSet db has 1 of 1 replicas ready",
    )


async def test_containers_that_do_not_run() -> None:
    killed = {"reason": "OOMKilled", "exitCode": 137}
    async with Cluster(nodes=1) as cluster:
        client = await broken(
            cluster,
            deployment("crash", "exit 3 after 1s"),
            deployment("image", "image-pull-error"),
            deployment("probe", "never-ready", container={"readinessProbe": {"httpGet": {"path": "/", "port": 80}}}),
            obj("Job", "once", {"backoffLimit": 0, "template": _once("exit 4")}),
            obj("Pod", "killed", template("killed", "exit 137")["spec"] | {"restartPolicy": "Never"}),
        )
        crash = await why(client, "Deployment", "crash")
        image = await why(client, "Deployment", "image")
        probe = await why(client, "Deployment", "probe")
        job = await why(client, "Job", "once")
        status = {"status": {"containerStatuses": [{"name": "main", "state": {"terminated": killed}}]}}
        await client.patch("pods", "killed", MergePatch(status), SPACE, subresource="status")
    assert (crash.cause, chain(crash)) == ("crash-loop", ["Deployment", "ReplicaSet", "Pod"])
    assert "crashes in a loop: container main exits with code 3 (restarted " in crash.sentence
    assert any("exit 3" in line for line in crash.log)
    assert (image.cause, "cannot pull the image `app:1`: Failed to pull image" in image.sentence) == (
        "image-pull",
        True,
    )
    assert probe.cause == "probe"
    assert "is not ready: container main: Readiness probe failed" in probe.sentence
    assert (job.health, job.cause, chain(job)) == (Health.FAILED, "failed-pod", ["Job", "Pod"])
    assert "container main exits with code 4" in job.sentence


def _once(behaviour: str) -> dict[str, Any]:
    made = template("once", behaviour)
    made["spec"]["restartPolicy"] = "Never"
    return made


async def test_what_pods_read_and_mount() -> None:
    key = {"valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}, "name": "PASSWORD"}
    volume = {"name": "v", "configMap": {"name": "settings", "items": [{"key": "app.yaml", "path": "app.yaml"}]}}
    async with Cluster(nodes=1) as cluster:
        client = await broken(
            cluster,
            obj("Secret", "db", data={}),
            obj("ConfigMap", "settings", data={"other": ""}),
            deployment("variable", container={"envFrom": [{"secretRef": {"name": "gone"}}]}),
            deployment("mounted", volumes=[{"name": "v", "configMap": {"name": "away"}}]),
            deployment("optional", volumes=[{"name": "v", "configMap": {"name": "away", "optional": True}}]),
            deployment("keyless", container={"env": [key]}),
            deployment("fileless", volumes=[volume]),
        )
        answers = {
            name: await why(client, "Deployment", name)
            for name in ("variable", "mounted", "optional", "keyless", "fileless")
        }
    assert answers["optional"].health is Health.READY
    assert {name: answer.cause for name, answer in answers.items() if answer.cause} == {
        "variable": "missing-secret",
        "mounted": "missing-configmap",
        "keyless": "missing-key",
        "fileless": "missing-key",
    }
    assert answers["variable"].sentence.endswith(", whose Secret `gone` does not exist")
    assert answers["mounted"].sentence.endswith(", whose ConfigMap `away` does not exist")
    assert answers["keyless"].sentence.endswith(", whose Secret `db` has no key `password`")
    assert answers["fileless"].sentence.endswith(", whose ConfigMap `settings` has no key `app.yaml`")


async def test_pods_and_claims_that_the_api_server_refuses() -> None:
    small = obj("ResourceQuota", "small", {"hard": {"pods": "1"}})
    no_disks = obj("ResourceQuota", "disks", {"hard": {"persistentvolumeclaims": "0"}})
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, small, no_disks)
        await asyncio.sleep(1)
        await create(client, deployment("first"))
        await asyncio.sleep(10)
        await broken(
            cluster,
            deployment("second"),
            obj("Job", "job", {"template": _once("")}),
            stateful_set("db", storage_class=None),
        )
        pods = await why(client, "Deployment", "second")
        job = await why(client, "Job", "job")
        claims = await why(client, "StatefulSet", "db")
    assert (pods.cause, job.cause, claims.cause) == ("quota", "quota", "quota")
    assert "its ResourceQuota `small` would be exceeded: pods=1 requested, pods=1 used, pods=1 allowed" in pods.sentence
    assert "ResourceQuota `small`" in job.sentence
    assert "ResourceQuota `disks` would be exceeded: persistentvolumeclaims=1 requested" in claims.sentence


async def test_limits_service_accounts_and_pod_security() -> None:
    limits = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}
    async with Cluster(nodes=1) as cluster:
        client = await broken(
            cluster,
            obj("LimitRange", "modest", limits),
            deployment("large", container={"resources": {"limits": {"cpu": "2"}}}),
            deployment("robot", serviceAccountName="robot"),
        )
        large = await why(client, "Deployment", "large")
        robot = await why(client, "Deployment", "robot")
    assert large.cause == "limit-range"
    assert (
        "LimitRange `modest` refuses its pods: maximum cpu usage per Container is 1, but limit is 2" in large.sentence
    )
    assert robot.cause == "missing-service-account"
    assert robot.sentence.endswith("its service account `robot` does not exist")


async def test_an_admission_webhook_that_is_away() -> None:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    hook = {
        "name": "guard.example.com",
        "clientConfig": {"service": {"name": "guard", "namespace": SPACE}},
        "rules": rules,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    guard = obj("ValidatingWebhookConfiguration", "guard", namespace="", webhooks=[hook])
    async with Cluster(nodes=1) as cluster:
        client = await broken(cluster, guard, deployment("web"))
        answer = await why(client, "Deployment", "web")
    assert answer.cause == "missing-service"
    assert answer.sentence == (
        "Deployment web waits: its admission webhook `guard.example.com` does not answer, "
        "since Service guard does not exist"
    )


async def test_pods_that_find_no_node() -> None:
    taint = {"spec": {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}}
    async with Cluster(nodes=2) as cluster:
        client = cluster.client
        await client.patch("nodes", "node-1", MergePatch(taint))
        await broken(
            cluster,
            deployment("big", container={"resources": {"requests": {"cpu": "900"}}}),
            deployment("picky", nodeSelector={"disk": "ssd"}),
            deployment("gated", schedulingGates=[{"name": "example.com/approval"}]),
            deployment("foreign", schedulerName="mine"),
            deployment("claimless", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]),
        )
        answers = {
            name: await why(client, "Deployment", name) for name in ("big", "picky", "gated", "foreign", "claimless")
        }
    assert {name: answer.cause for name, answer in answers.items()} == {
        "big": "no-room",
        "picky": "taint",
        "gated": "scheduling-gate",
        "foreign": "no-scheduler",
        "claimless": "missing-claim",
    }
    assert (
        "fits on none of 2 nodes: 1 has not enough cpu, 1 has a taint that it does not tolerate"
        in answers["big"].sentence
    )
    assert "1 has labels other than it asks for" in answers["picky"].sentence
    assert answers["claimless"].sentence.endswith("whose claim `gone` does not exist")


async def test_a_cluster_without_nodes() -> None:
    async with Cluster(nodes=0) as cluster:
        client = await broken(cluster, deployment("web"))
        answer = await why(client, "Deployment", "web")
    assert (answer.cause, answer.sentence.endswith("which finds no node: the cluster has none")) == ("no-nodes", True)


async def test_a_node_that_falls_silent() -> None:
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, deployment("web"))
        await asyncio.sleep(10)
        cluster.lose_node("node-1")
        await asyncio.sleep(60)
        answer = await why(client, "Deployment", "web")
        node = await why(client, "Node", "node-1", "")
    assert (answer.cause, chain(answer)[-1]) == ("node-not-ready", "Node")
    assert "which waits for node node-1, which is not ready: Kubelet stopped posting node status" in answer.sentence
    assert (node.health, node.cause) == (Health.FAILED, "node-not-ready")


async def test_a_drain_that_a_budget_blocks() -> None:
    budget = obj("PodDisruptionBudget", "keep", {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}})
    async with Cluster(nodes=1) as cluster:
        client = await broken(cluster, deployment("web"), budget)
        fine = await why(client, "PodDisruptionBudget", "keep")
        await client.patch("nodes", "node-1", MergePatch({"spec": {"unschedulable": True}}))
        node = await why(client, "Node", "node-1", "")
        held = await why(client, "PodDisruptionBudget", "keep")
    assert fine.health is Health.READY
    assert (node.cause, held.cause) == ("drain-blocked", "drain-blocked")
    assert node.chain[-1].ref.name == "keep"


async def test_deletions_that_wait() -> None:
    held = obj("ConfigMap", "held", data={})
    held["metadata"]["finalizers"] = ["example.com/clean-up"]
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, obj("Namespace", "old", namespace=""))
        inside = {**held, "metadata": {**held["metadata"], "namespace": "old"}}
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        user = deployment("user", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
        await create(client, held, inside, obj("PersistentVolumeClaim", "data", claim), user)
        await asyncio.sleep(10)
        await client.delete("configmaps", "held", SPACE)
        await client.delete("pvc", "data", SPACE)
        await client.delete("namespaces", "old")
        await asyncio.sleep(LONG)
        config = await why(client, "ConfigMap", "held")
        used = await why(client, "PersistentVolumeClaim", "data")
        space = await why(client, "Namespace", "old", "")
    assert (config.cause, "`example.com/clean-up` is removed" in config.sentence) == ("finalizer", True)
    assert (used.health, used.chain[0].says.count("kubernetes.io/pvc-protection")) == (Health.WAITING, 1)
    assert (space.cause, chain(space)) == ("finalizer", ["Namespace", "ConfigMap"])


async def test_what_is_held_on_purpose() -> None:
    paused = deployment("web", replicas=2)
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        await create(client, paused)
        await asyncio.sleep(10)
        change = {"spec": {"paused": True, "template": template("web", container={"image": "app:2"})}}
        await client.patch("deployments", "web", MergePatch(change), SPACE)
        job = {"schedule": "* * * * *", "suspend": True, "jobTemplate": {"spec": {"template": _once("")}}}
        client = await broken(
            cluster,
            obj("Job", "later", {"suspend": True, "template": _once("")}),
            obj("CronJob", "nightly", job),
        )
        web = await why(client, "Deployment", "web")
        later = await why(client, "Job", "later")
        nightly = await why(client, "CronJob", "nightly")
    assert (web.cause, later.cause, nightly.cause) == ("paused", "suspended", "suspended")
    assert {web.health, later.health, nightly.health} == {Health.WAITING}


async def test_what_leads_nowhere() -> None:
    backend = {"defaultBackend": {"service": {"name": "away", "port": {"number": 80}}}}
    scaler = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "away"},
        "maxReplicas": 3,
    }
    unmeasured = {**scaler, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
    ports = [{"port": 80}]
    async with Cluster(nodes=1) as cluster:
        client = await broken(
            cluster,
            deployment("web", "crash-loop"),
            obj("Ingress", "door", backend),
            obj("Service", "nothing", {"selector": {"app": "wbe"}, "ports": ports}),
            obj("Service", "unready", {"selector": {"app": "web"}, "ports": ports}),
            obj(
                "Service", "cloudless", {"type": "LoadBalancer", "loadBalancerClass": "example.com/lb", "ports": ports}
            ),
            obj("HorizontalPodAutoscaler", "lost", scaler),
            obj("HorizontalPodAutoscaler", "blind", unmeasured),
        )
        door = await why(client, "Ingress", "door")
        services = [await why(client, "Service", name) for name in ("nothing", "unready", "cloudless")]
        scalers = [await why(client, "HorizontalPodAutoscaler", name) for name in ("lost", "blind")]
    assert door.sentence == "Ingress door waits: its Service `away` does not exist"
    assert [answer.cause for answer in services] == ["no-pods", "crash-loop", "load-balancer"]
    assert services[0].sentence == "Service nothing selects no pod (app=wbe)"
    assert scalers[0].sentence == "HorizontalPodAutoscaler lost waits: its Deployment `away` does not exist"
    assert (scalers[1].health, scalers[1].cause) == (Health.WAITING, "no-metrics")


async def test_claims_without_a_class() -> None:
    async with Cluster(nodes=1) as cluster:
        client = cluster.client
        async for storage_class in client.each("storageclasses"):
            await client.delete("storageclasses", storage_class["metadata"]["name"])
        await broken(cluster, stateful_set("db", storage_class=None))
        answer = await why(client, "StatefulSet", "db")
    assert answer.cause == "no-storage-class"
    assert chain(answer)[-1] == "PersistentVolumeClaim"
