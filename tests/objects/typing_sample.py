"""What a type checker makes of models. Lines with `# wrong: CODE` must be refused for that reason, others must not."""

from __future__ import annotations

from typing import Annotated, assert_type

from konverge.objects import (
    Condition,
    CustomResource,
    Maximum,
    Minimum,
    MinLength,
    Model,
    ObjectList,
    ObjectMeta,
    Quantity,
    Resource,
    from_json,
    kinds,
)
from konverge.objects.kinds.apps_v1 import Deployment, DeploymentSpec
from konverge.objects.kinds.core_v1 import Container, PodSpec, PodTemplateSpec, ResourceRequirements
from konverge.objects.meta import LabelSelector, Object


class WebAppSpec(Model):
    image: Annotated[str, MinLength(1)]
    replicas: Annotated[int, Minimum(0)] = 1
    port: Annotated[int, Minimum(1), Maximum(65535)] = 80
    env: dict[str, str] = {}


class WebAppStatus(Model):
    ready: int = 0
    conditions: list[Condition] = []


class WebApp(CustomResource[WebAppSpec, WebAppStatus], group="apps.example.com", version="v1", short_names=["wa"]): ...


app = WebApp(metadata=ObjectMeta(name="web"), spec=WebAppSpec(image="nginx"))
assert_type(app.spec, WebAppSpec)
assert_type(app.status, WebAppStatus)
assert_type(app.spec.replicas, int)
assert_type(app.metadata.name, str)
assert_type(WebApp.resource, Resource)
assert_type(from_json(WebApp, b"{}"), WebApp)
assert_type(from_json(ObjectList[WebApp], b"{}").items, list[WebApp])
assert_type(kinds.lookup("apps/v1", "Deployment"), type[Object])
app.status.conditions.append(
    Condition(type="Ready", status="True", reason="Up", message="", last_transition_time="2026-01-02T03:04:05Z")
)

WebAppSpec()  # wrong: call-arg
WebAppSpec(image=1)  # wrong: arg-type
WebAppSpec("nginx")  # wrong: call-arg
WebApp(spec=WebAppSpec(image="a"), statu=WebAppStatus())  # wrong: call-arg
WebApp(spec=WebAppStatus())  # wrong: arg-type
app.spec.size = 1  # wrong: attr-defined
Condition(type="Ready")  # wrong: call-arg

container = Container(name="web", image="nginx", resources=ResourceRequirements(requests={"cpu": Quantity("100m") * 2}))
template = PodTemplateSpec(spec=PodSpec(containers=[container]))
deployment = Deployment(spec=DeploymentSpec(selector=LabelSelector(match_labels={"a": "b"}), template=template))
assert_type(deployment.spec.replicas, int | None)
Container(image="nginx")  # wrong: call-arg
Deployment(spec=DeploymentSpec())  # wrong: call-arg
