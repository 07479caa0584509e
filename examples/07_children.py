"""Children: made, kept as asked for, deleted when no longer asked for, and gone with their owner.

`konverge run examples/07_children.py`
"""

from __future__ import annotations

from konverge import Context, Controller, CustomResource, Manager, Model, ObjectMeta
from konverge.objects import NoStatus
from konverge.objects.kinds.core_v1 import ConfigMap


class BookSpec(Model):
    chapters: dict[str, str] = {}


class Book(CustomResource[BookSpec, NoStatus], group="examples.konverge.dev", version="v1"):
    """A ConfigMap for each chapter."""


async def write(ctx: Context[Book]) -> None:
    wanted = {f"{ctx.obj.metadata.name}-{name}": text for name, text in ctx.obj.spec.chapters.items()}
    for name, text in wanted.items():
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name=name), data={"text": text}))
    for child in await ctx.owned(ConfigMap):
        if child.metadata.name not in wanted:
            await ctx.delete(ConfigMap, child.metadata.name)


manager = Manager(name="books").add(Controller(Book, write, owns=[ConfigMap]))
