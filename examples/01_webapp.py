"""A whole operator: a WebApp is a ConfigMap-configured Deployment that is kept as the spec asks.

Run it against any cluster that has the definition: `python examples/01_webapp.py crd | kubectl apply -f -` first.
"""

from __future__ import annotations

import sys
from typing import Annotated

from konverge import Context, Controller, CustomResource, Manager, Model, ObjectMeta, Reconciler, Result
from konverge.objects import LabelSelector, Maximum, Minimum, MinLength
from konverge.objects.kinds.apps_v1 import Deployment, DeploymentSpec
from konverge.objects.kinds.core_v1 import Container, PodSpec, PodTemplateSpec


class WebAppSpec(Model):
    image: Annotated[str, MinLength(1)]
    replicas: Annotated[int, Minimum(0)] = 1
    port: Annotated[int, Minimum(1), Maximum(65535)] = 80


class WebAppStatus(Model):
    ready_replicas: int = 0


class WebApp(CustomResource[WebAppSpec, WebAppStatus], group="examples.konverge.dev", version="v1", short_names=["wa"]):
    """A web application."""


def deployment_for(app: WebApp) -> Deployment:
    labels = {"app": app.metadata.name}
    return Deployment(
        metadata=ObjectMeta(name=app.metadata.name),
        spec=DeploymentSpec(
            replicas=app.spec.replicas,
            selector=LabelSelector(match_labels=labels),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels=labels),
                spec=PodSpec(containers=[Container(name="web", image=app.spec.image)]),
            ),
        ),
    )


class WebAppReconciler(Reconciler[WebApp]):
    async def reconcile(self, ctx: Context[WebApp]) -> Result | None:
        await ctx.apply(deployment_for(ctx.obj))
        live = await ctx.get(Deployment, ctx.obj.metadata.name)
        ctx.obj.status.ready_replicas = (live.status.ready_replicas or 0) if live else 0
        await ctx.save_status()
        return Result(requeue_after=30)


def make_manager() -> Manager:
    return Manager(name="webapp-operator").add(Controller(WebApp, WebAppReconciler(), owns=[Deployment]))


if __name__ == "__main__":
    if "crd" in sys.argv[1:]:
        import yaml

        from konverge.objects import crd_dict

        print(yaml.safe_dump(crd_dict(WebApp)))
    else:
        make_manager().run()
