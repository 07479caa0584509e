"""The two objects that a WebApp wants, and where those that there are differ from them. Pure functions.

What a WebApp sets is its own: replicas of the Deployment, its containers with their image and environment; type, ports
and selector of the Service; our label on both. Lists and the selector are ours as a whole, so what another client adds
to them is drift as well. Everything else (resources, probes, annotations, what the server fills in) is left to others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from konverge.client.patches import MergePatch, Patch, StrategicPatch
from konverge.objects import LabelSelector, Object, ObjectMeta, to_dict
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
PORT = "http"
LABEL = "app.kubernetes.io/name"


class Difference(msgspec.Struct, frozen=True):
    """One field that is not as desired."""

    field: str
    old: Any
    new: Any
    secret: bool = False
    """The values have no place in logs and events."""

    def __str__(self) -> str:
        return self.field if self.secret else f"{self.field} {self.old} → {self.new}"


class Part(msgspec.Struct, frozen=True):
    """One of the objects that a WebApp is made of."""

    kind: type[Any]
    desired: Callable[[WebApp], Object]
    differences: Callable[[WebApp, Any], list[Difference]]
    patch: Callable[[WebApp, Any, list[Difference]], Patch]
    """What changes the fields that differ, and no others. It names the object's uid: one that another client has made
    under the same name in the meantime is not written to."""


# ------------------------------------------------------------------ the Deployment


def deployment_for(app: WebApp) -> Deployment:
    template = PodTemplateSpec(metadata=ObjectMeta(labels=_labels(app)), spec=PodSpec(containers=[_container(app)]))
    selector = LabelSelector(match_labels=_labels(app))
    spec = DeploymentSpec(replicas=app.spec.replicas, selector=selector, template=template)
    return Deployment(metadata=_metadata(app), spec=spec)


def deployment_differences(app: WebApp, live: Deployment) -> list[Difference]:
    containers, desired = live.spec.template.spec.containers, _container(app)
    present = next((entry for entry in containers if entry.name == CONTAINER), Container(name=CONTAINER))
    return _differing(
        Difference("replicas", live.spec.replicas, app.spec.replicas),
        Difference("containers", [entry.name for entry in containers], [CONTAINER]),
        Difference("image", present.image, desired.image),
        Difference("env", _plain(present.env), _plain(desired.env), secret=True),
        _label_difference(app, live),
    )


def deployment_patch(app: WebApp, live: Deployment, differences: list[Difference]) -> Patch:
    changed = {difference.field: difference.new for difference in differences}
    present = {entry.name for entry in live.spec.template.spec.containers}
    container: dict[str, Any] = {"name": CONTAINER}
    if "image" in changed:
        container["image"] = changed["image"]
    if "env" in changed:  # as a whole, so that variables go as well; in a new container there is none to replace
        container["env"] = [*([{"$patch": "replace"}] if CONTAINER in present else []), *changed["env"]]
    containers: list[dict[str, Any]] = [container] if len(container) > 1 else []
    containers += [{"$patch": "delete", "name": name} for name in sorted(present - {CONTAINER})]
    spec: dict[str, Any] = {"replicas": changed["replicas"]} if "replicas" in changed else {}
    if containers:
        spec["template"] = {"spec": {"containers": containers}}
    return StrategicPatch(_body(app, live, changed, spec))


def _container(app: WebApp) -> Container:
    variables = [EnvVar(name=name, value=value) for name, value in sorted(app.spec.env.items())]
    return Container(name=CONTAINER, image=app.spec.image, env=variables)


def _plain(variables: list[EnvVar]) -> list[dict[str, Any]]:
    """With where a value comes from. The server leaves an empty value out."""
    entries = [to_dict(variable) for variable in variables]
    return [entry if entry.get("value") else {key: entry[key] for key in entry if key != "value"} for entry in entries]


# ------------------------------------------------------------------ the Service


def service_for(app: WebApp) -> Service:
    spec = ServiceSpec(type="ClusterIP", selector=_labels(app), ports=[ServicePort(name=PORT, port=app.spec.port)])
    return Service(metadata=_metadata(app), spec=spec)


def service_differences(app: WebApp, live: Service) -> list[Difference]:
    ports = [_shown(port) for port in live.spec.ports]
    return _differing(
        Difference("type", live.spec.type, "ClusterIP"),
        Difference("port", ports[0] if len(ports) == 1 else ports, app.spec.port),
        Difference("selector", live.spec.selector, _labels(app), secret=True),
        _label_difference(app, live),
    )


def _shown(port: ServicePort) -> int | str:
    """All that a port says but the number that a node has for it; the plain number when it is as ours are."""
    text = f"{port.port}" if port.target_port in (None, port.port) else f"{port.port}:{port.target_port}"
    if port.protocol not in (None, "", "TCP"):
        text += f"/{port.protocol}"
    if port.name != PORT:
        text += f" called {port.name or 'nothing'}"
    if port.app_protocol:
        text += f" for {port.app_protocol}"
    return port.port if text == str(port.port) else text


def service_patch(app: WebApp, live: Service, differences: list[Difference]) -> Patch:
    changed = {difference.field: difference.new for difference in differences}
    spec: dict[str, Any] = {}
    if "type" in changed:
        spec["type"] = changed["type"]
        if live.spec.external_name:
            spec["externalName"] = None
    if "port" in changed:
        spec["ports"] = [{"name": PORT, "port": changed["port"]}]
    if "selector" in changed:
        # A merge patch removes a key by null alone.
        spec["selector"] = dict.fromkeys(live.spec.selector) | changed["selector"]
    return MergePatch(_body(app, live, changed, spec))


# ------------------------------------------------------------------ both


PARTS = (
    Part(Deployment, deployment_for, deployment_differences, deployment_patch),
    Part(Service, service_for, service_differences, service_patch),
)


def _differing(*fields: Difference) -> list[Difference]:
    return [field for field in fields if field.old != field.new]


def _label_difference(app: WebApp, live: Object) -> Difference:
    return Difference("label", live.metadata.labels.get(LABEL), app.metadata.name)


def _body(app: WebApp, live: Object, changed: Mapping[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"uid": live.metadata.uid}
    if "label" in changed:
        metadata["labels"] = _labels(app)
    return {"metadata": metadata, **({"spec": spec} if spec else {})}


def _metadata(app: WebApp) -> ObjectMeta:
    return ObjectMeta(name=app.metadata.name, namespace=app.metadata.namespace, labels=_labels(app))


def _labels(app: WebApp) -> dict[str, str]:
    return {LABEL: app.metadata.name}
