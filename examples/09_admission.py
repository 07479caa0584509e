"""Admission without a webhook: the API server itself checks fields, rules and transitions, also while no operator runs.

`konverge run examples/09_admission.py`
"""

from __future__ import annotations

from typing import Annotated

from konverge import Context, Controller, CustomResource, Manager, Model
from konverge.objects import Default, Maximum, Minimum, NoStatus, Rule


class PoolSpec(
    Model,
    rules=[
        Rule("self.least <= self.most", message="least must not be over most"),
        Rule("self.most >= oldSelf.most", message="a pool does not shrink: make another one"),
    ],
):
    least: Annotated[int, Minimum(0)] = 1
    most: Annotated[int, Minimum(1), Maximum(100), Default(3)] = 3


class Pool(CustomResource[PoolSpec, NoStatus], group="examples.konverge.dev", version="v1"):
    """A pool of something."""


async def fill(ctx: Context[Pool]) -> None:
    ctx.log.info("from %d to %d", ctx.obj.spec.least, ctx.obj.spec.most)


manager = Manager(name="pools").add(Controller(Pool, fill))
