"""Step 6, UpdateStatus: Running, with one write, or none when the status says so already."""

from __future__ import annotations

from konverge.operators.nacos.steps.ending import finish
from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.stop import NORMAL, Stop


async def update_status(round: Round) -> None:
    """A cluster that shrinks in steps is not where it should be before the last of them."""
    round.step = "UpdateStatus"
    if round.now.replicas != round.wish.replicas:
        message = f"{round.now.replicas} servers on the way to {round.wish.replicas}"
        raise Stop(NORMAL, "Scaling", message)
    before = (round.status.phase, round.settled)
    finish(round)
    if before != ("Running", True):
        round.note("UPDATE", "Nacos", "Status")
