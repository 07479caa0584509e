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
    book = ctx.obj.metadata.name
    await ctx.apply_set(
        ConfigMap(metadata=ObjectMeta(name=f"{book}-{name}"), data={"text": text})
        for name, text in ctx.obj.spec.chapters.items()
    )


manager = Manager(name="books").add(Controller(Book, write, owns=[ConfigMap]))
