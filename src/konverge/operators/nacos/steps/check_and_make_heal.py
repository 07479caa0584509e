"""Step 5, CheckAndMakeHeal: CheckKind, CheckNacos; then pods of an older template, and whatever can be healed.

While a cluster comes up, each check that passes for the first time ends its round, as the document's tables have it;
and UpdateStatus acts on the verdict of the round before, if that is fresh, without asking again.
"""

from __future__ import annotations

from konverge.operators.nacos.pods import seconds_since
from konverge.operators.nacos.steps.bootstrap import bootstrap_admin
from konverge.operators.nacos.steps.check_kind import check_kind
from konverge.operators.nacos.steps.check_nacos import check_nacos, question
from konverge.operators.nacos.steps.heal import heal_pods, heal_split
from konverge.operators.nacos.steps.members import look
from konverge.operators.nacos.steps.peers import forget_departed, readmit
from konverge.operators.nacos.steps.rollout import replace_next, replace_useless
from konverge.operators.nacos.steps.round import MEMBERS_VERIFIED, Round
from konverge.operators.nacos.steps.stop import Stop


async def check_and_make_heal(round: Round) -> None:
    round.step = "CheckAndMakeHeal"
    if not round.settled and _is_fresh(round):
        return
    workload = await look(round)
    await replace_useless(round, workload)
    try:
        check_kind(round, workload)
    except Stop as stop:
        await heal_pods(round, workload, None, stop)
        raise
    led_before = round.status.leader
    views, verdict = await question(round, workload)
    await forget_departed(round, workload, verdict)
    await readmit(round, workload, verdict)
    if not round.cannot_leave:
        await replace_next(round, workload, views, verdict, led_before)
    try:
        check_nacos(round, verdict)
    except Stop as stop:
        await heal_split(round, workload, views, verdict, stop)
        await heal_pods(round, workload, verdict, stop)
        raise
    await bootstrap_admin(round, workload)


def _is_fresh(round: Round) -> bool:
    since = round.true_since(MEMBERS_VERIFIED)
    return bool(since) and seconds_since(since) <= round.options.verdict_lasts
