"""The two objects that a WebApp wants, and where those that there are differ from them. Pure functions.

Only what a WebApp speaks of is compared: replicas, image and environment of the Deployment, port and selector of the
Service. Everything else about them (resources, annotations, what the server filled in) is other people's business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from konverge.client.patches import MergePatch, Patch, StrategicPatch
from konverge.objects import LabelSelector, Object, ObjectMeta
from konverge.objects.kinds.apps_v1 import Deployment, DeploymentSpec
from konverge.objects.kinds.core_v1 import (
    Container,
    EnvVar,
    PodSpec,
    PodTemplateSpec,
    Service,
    ServicePort,
    ServiceSpec,
)
from konverge.operators.webapp.kind import WebApp

CONTAINER = "web"
LABEL = "app.kubernetes.io/name"


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not as desired."""

    field: str
    old: Any
    new: Any

    def __str__(self) -> str:
        """For logs and events, where the values of an environment have no place: they may be secrets."""
        return self.field if isinstance(self.new, dict) else f"{self.field} {self.old} → {self.new}"


@dataclass(frozen=True, slots=True)
class Part:
    """One of the objects that a WebApp is made of."""

    kind: type[Any]
    desired: Callable[[WebApp], Object]
    differences: Callable[[WebApp, Any], list[Difference]]
    patch: Callable[[list[Difference]], Patch]
    """What changes the fields that differ, and no others."""


def deployment_for(app: WebApp) -> Deployment:
    container = Container(name=CONTAINER, image=app.spec.image, env=_variables(app.spec.env))
    template = PodTemplateSpec(metadata=ObjectMeta(labels=_labels(app)), spec=PodSpec(containers=[container]))
    selector = LabelSelector(match_labels=_labels(app))
    spec = DeploymentSpec(replicas=app.spec.replicas, selector=selector, template=template)
    return Deployment(metadata=_metadata(app), spec=spec)


def deployment_differences(app: WebApp, live: Deployment) -> list[Difference]:
    containers = live.spec.template.spec.containers
    container = next((entry for entry in containers if entry.name == CONTAINER), Container(name=CONTAINER))
    return _differing(
        Difference("replicas", live.spec.replicas, app.spec.replicas),
        Difference("image", container.image, app.spec.image),
        Difference("env", {entry.name: entry.value or "" for entry in container.env}, app.spec.env),
    )


def deployment_patch(differences: list[Difference]) -> Patch:
    changed = {difference.field: difference.new for difference in differences}
    container: dict[str, Any] = {"name": CONTAINER}
    if "image" in changed:
        container["image"] = changed["image"]
    if "env" in changed:  # as a whole, so that variables go as well
        container["env"] = [{"$patch": "replace"}, *_variables(changed["env"])]
    spec: dict[str, Any] = {"replicas": changed["replicas"]} if "replicas" in changed else {}
    if len(container) > 1:
        spec["template"] = {"spec": {"containers": [container]}}
    return StrategicPatch({"spec": spec})


def service_for(app: WebApp) -> Service:
    ports = [ServicePort(name="http", port=app.spec.port)]
    return Service(metadata=_metadata(app), spec=ServiceSpec(selector=_labels(app), ports=ports))


def service_differences(app: WebApp, live: Service) -> list[Difference]:
    ports = [port.port if port.target_port in (None, port.port) else f"{port.port}:{port.target_port}"
             for port in live.spec.ports]  # fmt: skip
    return _differing(
        Difference("port", ports[0] if len(ports) == 1 else ports, app.spec.port),
        Difference("selector", live.spec.selector, _labels(app)),
    )


def service_patch(differences: list[Difference]) -> Patch:
    spec: dict[str, Any] = {difference.field: difference.new for difference in differences}
    if "port" in spec:
        spec["ports"] = [{"name": "http", "port": spec.pop("port")}]
    return MergePatch({"spec": spec})


PARTS = (
    Part(Deployment, deployment_for, deployment_differences, deployment_patch),
    Part(Service, service_for, service_differences, service_patch),
)


def _differing(*fields: Difference) -> list[Difference]:
    return [field for field in fields if field.old != field.new]


def _metadata(app: WebApp) -> ObjectMeta:
    return ObjectMeta(name=app.metadata.name, namespace=app.metadata.namespace, labels=_labels(app))


def _labels(app: WebApp) -> dict[str, str]:
    return {LABEL: app.metadata.name}


def _variables(env: dict[str, str]) -> list[EnvVar]:
    return [EnvVar(name=name, value=value) for name, value in sorted(env.items())]
