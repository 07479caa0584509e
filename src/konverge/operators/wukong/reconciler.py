"""The loop of a Wukong: the document's ten steps, from top to bottom, and one write of the status at most.

What the API server will not have is the user's to see: phase Error, and the next try in thirty seconds. A round that
takes too long is ended like a cancelled context, and comes back in ten. A conflict or a server that is away is the
runtime's business: it reads again, or waits.
"""

from __future__ import annotations

import asyncio

from konverge.client import Forbidden
from konverge.operators.wukong.conditions import PAUSED, VIRTUAL_MACHINE_READY, Trouble, say
from konverge.operators.wukong.deletion import delete
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import AnyWukong
from konverge.operators.wukong.steps import (
    BUILDING,
    Round,
    conclude,
    finalizer,
    initial_status,
    look,
    observe,
    tell,
    validate,
)
from konverge.operators.wukong.steps.round import REFUSALS, NotOurs
from konverge.runtime import Context, Reconciler, Result

AT_ONCE = Result(requeue=True)


class WukongReconciler(Reconciler[AnyWukong]):
    """One round."""

    def __init__(self, options: Options) -> None:
        self.options = options

    async def reconcile(self, ctx: Context[AnyWukong]) -> Result | None:
        round = Round(ctx, self.options)
        try:
            async with asyncio.timeout(self.options.limit):
                return await self._round(round)
        except TimeoutError:
            ctx.log.info("not finished within %g s: again in %g s", self.options.limit, self.options.wait)
            return Result(requeue_after=self.options.wait)

    async def _round(self, round: Round) -> Result | None:
        if round.ctx.deleting:
            return await delete(round)
        if await finalizer(round):
            return AT_ONCE
        await validate(round)
        if round.wukong is not None and await initial_status(round):
            return AT_ONCE
        await look(round)
        if round.wukong is not None:
            if round.wukong.spec.paused:
                return await paused(round)
            await self._build(round)
        await observe(round)
        return await conclude(round)

    async def _build(self, round: Round) -> None:
        for step in BUILDING:
            try:
                await step(round)
            except NotOurs as error:
                round.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "NotOurs", str(error), failed=True))
                return
            except REFUSALS as error:
                if isinstance(error, Forbidden) and error.namespace_terminating:
                    raise
                message = f"the API server refuses: {error}"
                round.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "Refused", message, failed=True))
                return


async def paused(round: Round) -> Result | None:
    """Nothing is done, also nothing that is broken is repaired. What can be seen is still told."""
    round.networks, round.volumes = list(round.status.networks), list(round.status.volumes)
    await observe(round)
    tell(round)
    if say(round.status, PAUSED, True, "Spec", "spec.paused is true", generation=round.generation):
        round.ctx.event("Paused", "nothing is done while spec.paused is true")
    await round.ctx.save_status()
    return None
