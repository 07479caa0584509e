"""Twenty mistakes that a type checker must flag, each on its own line. Not run: only checked."""

from __future__ import annotations

from konverge import (
    Client,
    Condition,
    Context,
    Controller,
    CustomResource,
    Index,
    LeaderElection,
    Manager,
    Model,
    ObjectMeta,
    Owns,
    Reconciler,
    Request,
    Result,
    Review,
    Source,
    Use,
    Watches,
    mutating,
    set_condition,
    validating,
)
from konverge.objects import Column, NoStatus
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import ConfigMap, Secret


class AppSpec(Model):
    image: str
    replicas: int = 1


class AppStatus(Model):
    ready: int = 0
    conditions: list[Condition] = []


class App(CustomResource[AppSpec, AppStatus], group="x.example.com", version="v1"):
    """An application."""


class Other(CustomResource[AppSpec, NoStatus], group="x.example.com", version="v1"):
    """Another kind."""


class WrongResult(Reconciler[App]):
    async def reconcile(self, ctx: Context[App]) -> int:  # mistake: what it returns
        return 30


class OtherKind(Reconciler[Other]):
    async def reconcile(self, ctx: Context[Other]) -> None:
        pass


async def reconcile(ctx: Context[App]) -> Result | None:
    ctx.obj.spec.replica = 3  # mistake: no such field
    ctx.obj.spec.replicas = "3"  # mistake: a number
    ctx.obj.status.ready = None  # mistake: a number, always
    await ctx.get(Deployment)  # mistake: which one
    live = await ctx.get(Deployment, "web")
    print(live.spec)  # mistake: it may not be there
    await ctx.apply({"kind": "ConfigMap"})  # mistake: no object
    await ctx.apply(ConfigMap(metadata=ObjectMeta(nmae="web")))  # mistake: no such field
    ctx.event("Started")  # mistake: no message
    set_condition(ctx.obj.status.conditions, "Ready", 1.5, "Why")  # mistake: true, false or unknown
    for secret in await ctx.owned(Secret):
        print(secret.spec)  # mistake: Secrets have none
    return Result(after=30)  # mistake: no such argument


async def not_a_result(ctx: Context[App]) -> str:
    return "done"


async def use(client: Client) -> None:
    app = App(metadata=ObjectMeta(name="web"), spec=AppSpec(replicas=2))  # mistake: no image
    await client.create(app, "default", dry_runs=True)  # mistake: no such option
    found: Secret = await client.get(ConfigMap, "web", "default")  # mistake: another kind
    print(found)


@validating(App)
def check(review: Review[App]) -> None:
    print(review.old.spec)  # mistake: it is None when the object is created
    review.obj.spec.replicas = "3"  # mistake: a number
    review.error("spec.image", "no", problem="Wrong")  # mistake: no such problem


@mutating(App, operations=("PATCH",))  # mistake: no such operation
def default(review: Review[App]) -> None: ...


@validating(Other)  # mistake: the review of another kind
def check_other(review: Review[App]) -> None: ...


Controller(App, OtherKind())  # mistake: the reconciler of another kind
Controller(App, not_a_result)  # mistake: what it returns
Controller(App, reconcile, owns=["deployments"])  # mistake: a class
Watches(Secret, requests=lambda secret: [secret.metadata.name])  # mistake: requests, not names
Watches(Secret, when=lambda old, new: old.data != new.data)  # mistake: either may be None
Owns(Secret, when=lambda change: True)  # mistake: two objects
Controller(App, reconcile, when=lambda old, new: new is not None and new.spec.size > 1)  # mistake: no such field
Index(Secret, "type", lambda secret: [secret.kind_of])  # mistake: no such field
Index(Secret, "type", lambda secret: len(secret.data))  # mistake: texts
Use(Secret, "read")  # mistake: no such verb
Source(name="clock", requests=[Request("default", "web")])  # mistake: a function
Manager(leader_election="web")  # mistake: a LeaderElection
LeaderElection("web")  # mistake: by keyword
Column("Age", jsonpath=".metadata")  # mistake: no such argument
