"""A small operator with a right and a wrong way: two ConfigMaps for each Kept, and a Secret on request."""

from __future__ import annotations

from konverge import Context, Controller, CustomResource, Manager, Model, ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap


class Spec(Model):
    text: str = ""


class Kept(CustomResource[Spec, Model], group="example.com", version="v1"):
    """A text."""


async def keep(ctx: Context[Kept]) -> None:
    await first(ctx)
    await second(ctx)


async def keep_together(ctx: Context[Kept]) -> None:
    """Makes the second only beside a new first: a crash between the two is never repaired."""
    known = await ctx.get(ConfigMap, f"{ctx.request.name}-first", ctx.request.namespace)
    await first(ctx)
    if known is None:
        await second(ctx)


async def fail(ctx: Context[Kept]) -> None:
    return


async def first(ctx: Context[Kept]) -> None:
    name = f"{ctx.request.name}-first"
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=name), data={"text": ctx.obj.spec.text}))


async def second(ctx: Context[Kept]) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=f"{ctx.request.name}-second"), data={"text": "always"}))


manager = Manager(name="keeper").add(Controller(Kept, keep, owns=[ConfigMap]))
wrong = Manager(name="keeper").add(Controller(Kept, keep_together, owns=[ConfigMap]))
idle = Manager(name="keeper").add(Controller(Kept, fail, owns=[ConfigMap]))
SAMPLE = {
    "apiVersion": "example.com/v1",
    "kind": "Kept",
    "metadata": {"name": "note", "namespace": "default"},
    "spec": {"text": "hello"},
}
