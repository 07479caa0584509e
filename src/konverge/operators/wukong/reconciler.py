"""The loop of a Wukong: the document's ten steps, from top to bottom, and one write of the status at most.

What the API server will not have is the user's to see: phase Error, and the next try in thirty seconds. A reconcile
that takes too long is ended like a cancelled context, and comes back in ten. A conflict or a server that is away is the
runtime's business: it reads again, or waits.
"""

from __future__ import annotations

import asyncio

from konverge.client import Forbidden
from konverge.operators.wukong.definitions import Definitions
from konverge.operators.wukong.deletion import delete
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import AnyWukong
from konverge.operators.wukong.status import PAUSED, VIRTUAL_MACHINE_READY, Trouble, say
from konverge.operators.wukong.steps.begin import finalizer, initial_status, validate
from konverge.operators.wukong.steps.conclude import conclude, report
from konverge.operators.wukong.steps.disks import disks
from konverge.operators.wukong.steps.machine import look, machine
from konverge.operators.wukong.steps.networks import networks
from konverge.operators.wukong.steps.observe import observe
from konverge.operators.wukong.steps.quota import quota
from konverge.operators.wukong.steps.restore import restore
from konverge.operators.wukong.steps.state import REFUSALS, ReconcileState
from konverge.operators.wukong.steps.template import template
from konverge.runtime import Context, NotOwned, Reconciler, Result

AT_ONCE = Result(requeue=True)
BUILDING = (restore, networks, disks, machine)
"""The steps that make something: for a spec that can be acted upon."""


class WukongReconciler(Reconciler[AnyWukong]):
    """One reconcile."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.definitions = Definitions()

    async def reconcile(self, ctx: Context[AnyWukong]) -> Result | None:
        state = ReconcileState(ctx, self.options, self.definitions)
        try:
            async with asyncio.timeout(self.options.limit):
                return await self._run_steps(state)
        except TimeoutError:
            ctx.log.info("not finished within %g s: again in %g s", self.options.limit, self.options.wait)
            return Result(requeue_after=self.options.wait)

    async def _run_steps(self, state: ReconcileState) -> Result | None:
        if state.ctx.deleting:
            return await delete(state)
        if await finalizer(state):
            return AT_ONCE
        if await template(state):
            return AT_ONCE
        if not state.trouble:
            await validate(state)
        if state.wukong is not None and await initial_status(state):
            return AT_ONCE
        await look(state)
        if state.wukong is not None:
            if state.wukong.spec.paused:
                return await paused(state)
            await quota(state)
            if not state.trouble:
                await self._build(state)
        await observe(state)
        return await conclude(state)

    async def _build(self, state: ReconcileState) -> None:
        for step in BUILDING:
            try:
                await step(state)
            except NotOwned as error:
                state.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "NotOurs", str(error), failed=True))
                return
            except REFUSALS as error:
                if isinstance(error, Forbidden) and error.namespace_terminating:
                    raise
                message = f"the API server refuses: {error}"
                state.trouble.append(Trouble(VIRTUAL_MACHINE_READY, "Refused", message, failed=True))
                return


async def paused(state: ReconcileState) -> Result | None:
    """Nothing is done, also nothing that is broken is repaired. What can be observed is still reported."""
    state.networks, state.volumes = list(state.status.networks), list(state.status.volumes)
    await observe(state)
    report(state)
    if say(state.status, PAUSED, True, "Spec", "spec.paused is true", generation=state.generation):
        state.ctx.event("Paused", "nothing is done while spec.paused is true")
    await state.ctx.save_status()
    return None
