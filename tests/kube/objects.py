"""Objects that several tests create: workloads called `web`, a DaemonSet called `agent`, a Job called `work`, nodes."""

from __future__ import annotations

from typing import Any

from konverge import CustomResource, Model, ObjectMeta
from konverge.client import Client, MergePatch
from konverge.objects import LabelSelector, NoStatus
from konverge.objects.codec import from_dict
from konverge.objects.kinds.apps_v1 import (
    DaemonSet,
    DaemonSetSpec,
    Deployment,
    DeploymentSpec,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from konverge.objects.kinds.batch_v1 import Job, JobSpec
from konverge.objects.kinds.core_v1 import Container, Node, NodeSpec, PodSpec, PodTemplateSpec, Taint

WEB = LabelSelector(match_labels={"app": "web"})


class WidgetSpec(Model):
    size: int = 0


class Widget(CustomResource[WidgetSpec, NoStatus], group="tests.konverge.dev", version="v1"):
    """Nothing in particular."""


def template(image: str = "app:1") -> PodTemplateSpec:
    return PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": "web"}), spec=PodSpec(containers=[Container(name="main", image=image)])
    )


def deployment(replicas: int = 3, image: str = "app:1", **spec: Any) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=DeploymentSpec(replicas=replicas, selector=WEB, template=template(image), **spec),
    )


def statefulset(replicas: int = 3, image: str = "app:1", **spec: Any) -> StatefulSet:
    return StatefulSet(
        metadata=ObjectMeta(name="web", namespace="default"),
        spec=StatefulSetSpec(replicas=replicas, selector=WEB, service_name="web", template=template(image), **spec),
    )


def rolling_update(**fields: Any) -> StatefulSetUpdateStrategy:
    return StatefulSetUpdateStrategy(type="RollingUpdate", rolling_update=RollingUpdateStatefulSetStrategy(**fields))


def job(**spec: Any) -> Job:
    pod_template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}}
    return Job(
        metadata=ObjectMeta(name="work", namespace="default"),
        spec=from_dict(JobSpec, {"template": pod_template, **spec}),
    )


def daemonset(image: str = "app:1", *, spec: dict[str, Any] | None = None, **more: Any) -> DaemonSet:
    pod_template = template(image)
    if spec:
        pod_template.spec = from_dict(PodSpec, {"containers": [{"name": "main", "image": image}], **spec})
    return DaemonSet(
        metadata=ObjectMeta(name="agent", namespace="default"),
        spec=DaemonSetSpec(selector=WEB, template=pod_template, **more),
    )


def node(name: str, *taints: Taint, **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels), spec=NodeSpec(taints=list(taints)))


async def add_node(client: Client, name: str, **labels: str) -> None:
    """A node that is ready: admission taints a new one, and the taint is removed here."""
    await client.create(node(name, **labels))
    await client.patch(Node, name, MergePatch({"spec": {"taints": None}}))


async def set_image(client: Client, kind: type[Any], name: str, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    await client.patch(kind, name, MergePatch({"spec": {"template": {"spec": {"containers": containers}}}}), "default")
