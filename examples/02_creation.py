"""Creation: an object asks for something, the operator makes it and says so. `konverge run examples/02_creation.py`"""

from __future__ import annotations

from konverge import Context, Controller, CustomResource, Manager, Model, ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap


class NoteSpec(Model):
    text: str


class NoteStatus(Model):
    kept_in: str = ""


class Note(CustomResource[NoteSpec, NoteStatus], group="examples.konverge.dev", version="v1"):
    """A text that is kept in a ConfigMap."""


async def keep(ctx: Context[Note]) -> None:
    await ctx.apply(ConfigMap(metadata=ObjectMeta(name=ctx.obj.metadata.name), data={"text": ctx.obj.spec.text}))
    ctx.obj.status.kept_in = ctx.obj.metadata.name
    await ctx.save_status()


manager = Manager(name="notes").add(Controller(Note, keep, owns=[ConfigMap]))
