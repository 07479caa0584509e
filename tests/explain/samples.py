"""Broken things to put into a cluster, and how to ask why."""

from __future__ import annotations

from typing import Any

from konverge import kube
from konverge.client import Client
from konverge.explain import Answer, Gatherer, Ref
from konverge.sim.kubelet.behaviour import ANNOTATION

kube.all_controllers()  # imported now: on a loop that is watched for what blocks it, that takes too long
kube.services()

SPACE = "default"
GROUPS = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "PodDisruptionBudget": "policy/v1",
    "Ingress": "networking.k8s.io/v1",
    "StorageClass": "storage.k8s.io/v1",
    "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
    "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "Lease": "coordination.k8s.io/v1",
}


def obj(kind: str, name: str, spec: Any = None, *, namespace: str = SPACE, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": GROUPS.get(kind, "v1"), "kind": kind, "metadata": {"name": name}}
    if namespace:
        made["metadata"]["namespace"] = namespace
    if spec is not None:
        made["spec"] = spec
    return made | more


def template(name: str, behaviour: str = "", **pod: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "app:1", **pod.pop("container", {})}
    notes = {"annotations": {ANNOTATION: behaviour}} if behaviour else {}
    return {"metadata": {"labels": {"app": name}, **notes}, "spec": {"containers": [container], **pod}}


def deployment(name: str, behaviour: str = "", *, replicas: int = 1, **pod: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": name}}
    spec = {"replicas": replicas, "selector": selector, "template": template(name, behaviour, **pod)}
    return obj("Deployment", name, spec)


def stateful_set(name: str, *, storage_class: str | None, replicas: int = 1) -> dict[str, Any]:
    claim: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    if storage_class is not None:
        claim["storageClassName"] = storage_class
    spec = {
        "serviceName": name,
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": template(name, container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]}),
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
    }
    return obj("StatefulSet", name, spec)


def ref(kind: str, name: str, namespace: str = SPACE, group: str | None = None) -> Ref:
    version = GROUPS.get(kind, "v1")
    return Ref(kind, name, namespace, version.rpartition("/")[0] if group is None else group)


async def create(client: Client, *objects: dict[str, Any]) -> None:
    for each in objects:
        await client.create(each, resource=await client.mapper.kind(each["apiVersion"], each["kind"]))


async def why(client: Client, kind: str, name: str, namespace: str = SPACE, group: str | None = None) -> Answer:
    return await Gatherer(client).why(ref(kind, name, namespace, group), tree=True)
