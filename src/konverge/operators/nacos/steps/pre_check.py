"""Step 1, PreCheck: a new resource is being created; one that failed is to be healed."""

from __future__ import annotations

from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.stop import NORMAL, PARAMETER, Stop
from konverge.operators.nacos.wish import WrongWish, read_wish


async def pre_check(round: Round) -> None:
    """No phase yet: Creating, and the round is over. Failed: everything that follows is the repair."""
    round.step = "PreCheck"
    accepted = round.status.phase == ""
    if accepted:
        round.status.phase = "Creating"
        round.begin_again("Creating", "the resource was accepted")
        round.ctx.event("Creating", "the resource was accepted")
    try:
        round.wish = round.now = read_wish(round.ctx.obj)
    except WrongWish as wrong:
        raise Stop(PARAMETER, "InvalidSpec", str(wrong)) from None
    if round.ctx.obj.metadata.generation != round.status.observed_generation:
        _warn_of_plain_passwords(round)
    if accepted:
        raise Stop(NORMAL, "Creating", "the resource was accepted", progress=True)


def _warn_of_plain_passwords(round: Round) -> None:
    """Once for each wish: they can be read by everybody who may read the resource."""
    spec = round.wish.spec
    plain = []
    if round.wish.engine == "mysql" and spec.database.mysql_password and not spec.database.mysql_credentials_secret_ref:
        plain.append("database.mysqlPassword (use database.mysqlCredentialsSecretRef)")
    if spec.certification.token:
        plain.append("certification.token (use certification.tokenSecretRef)")
    if plain:
        round.ctx.warning("PlainTextPassword", f"plain text in the resource: {', '.join(plain)}")
