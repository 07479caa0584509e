"""Admission: rules that the API server checks by itself, and functions that decide, warn and fill in.

`konverge run examples/09_admission.py`
"""

from __future__ import annotations

from typing import Annotated

from konverge import Context, Controller, CustomResource, Denied, Manager, Model, Review, mutating, validating
from konverge.objects import Default, Maximum, Minimum, NoStatus, Rule


class PoolSpec(Model, rules=[Rule("self.least <= self.most", message="least must not be over most")]):
    least: Annotated[int, Minimum(0)] = 1
    most: Annotated[int, Minimum(1), Maximum(100), Default(3)] = 3
    owner: str = ""


class Pool(CustomResource[PoolSpec, NoStatus], group="examples.konverge.dev", version="v1"):
    """A pool of something."""


@mutating(Pool, operations=("CREATE",))
def name_the_owner(review: Review[Pool]) -> None:
    if not review.obj.spec.owner:
        review.obj.spec.owner = review.user.username


@validating(Pool, operations=("UPDATE", "DELETE"))
def protect(review: Review[Pool]) -> None:
    old, new = review.old, review.new
    if new is None and "keep" in review.obj.metadata.labels:
        raise Denied("the pool has the label keep")
    if old is not None and new is not None and new.spec.most < old.spec.most:
        review.error("spec.most", "a pool does not shrink: make another one", value=new.spec.most)
    if new is not None and new.spec.most > 50:
        review.warn("a pool of more than 50 is slow")


async def fill(ctx: Context[Pool]) -> None:
    ctx.log.info("from %d to %d", ctx.obj.spec.least, ctx.obj.spec.most)


manager = Manager(name="pools").add(Controller(Pool, fill)).add_webhook(name_the_owner).add_webhook(protect)
