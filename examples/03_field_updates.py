"""Updates of one field: what was done is in the status, so a change is what differs from it, also one that was missed.

`konverge run examples/03_field_updates.py`
"""

from __future__ import annotations

from konverge import Context, Controller, CustomResource, Manager, Model, generation_changed


class LampSpec(Model):
    colour: str = "white"
    place: str = ""


class LampStatus(Model):
    colour: str = ""
    switched: int = 0


class Lamp(CustomResource[LampSpec, LampStatus], group="examples.konverge.dev", version="v1"):
    """A lamp whose colour can be changed."""


async def switch(ctx: Context[Lamp]) -> None:
    spec, status = ctx.obj.spec, ctx.obj.status
    if status.colour != spec.colour:
        ctx.event("Switched", f"from {status.colour or 'off'} to {spec.colour}")
        status.colour, status.switched = spec.colour, status.switched + 1
        await ctx.save_status()


manager = Manager(name="lamps").add(Controller(Lamp, switch, when=generation_changed))
