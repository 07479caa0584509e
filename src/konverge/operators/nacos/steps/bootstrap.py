"""The first administrator of servers that keep their users themselves, or in MySQL: made by the servers' own API.

From 2.4 on there is no default user, so somebody has to make one. It is done once, with the plain password of
`adminCredentialsSecretRef`; nothing else waits for it, and later changes of the password are the users' own.
"""

from __future__ import annotations

from konverge.objects import times
from konverge.operators.nacos.server import NacosError
from konverge.operators.nacos.steps.members import Workload
from konverge.operators.nacos.steps.rotate_admin import ROTATED
from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.secrets import optional_value, read_secret
from konverge.operators.nacos.versions import FIRST_WITHOUT_DEFAULT_USER

_NAME = "nacos"


async def bootstrap_admin(round: Round, workload: Workload) -> None:
    """Skipped with PostgreSQL, where RotateAdmin does it, and for versions that bring their user along."""
    ref = round.wish.spec.admin_credentials_secret_ref
    if ref is None or not ref.name or round.wish.engine == "postgresql" or round.is_true(ROTATED):
        return
    if round.wish.version < FIRST_WITHOUT_DEFAULT_USER or not workload.ready:
        return
    password = optional_value(await read_secret(round, ref.name), ref.password_key)
    address = workload.ready[0].status.pod_ip or ""
    if not password:
        round.condition(ROTATED, False, "PasswordMissing", f"secret {ref.name} missing key {ref.password_key}")
        return
    try:
        made = await round.tools.servers.bootstrap_admin(address, password=password, timeout=round.options.call_timeout)
        fits = made or await round.tools.servers.login(
            address, username=_NAME, password=password, timeout=round.options.call_timeout
        )
    except NacosError as error:
        round.condition(ROTATED, False, error.reason, error.message)
        return
    if not fits:
        message = f"there is an administrator with another password than the one in Secret {ref.name}"
        round.condition(ROTATED, False, "PasswordDiffers", message)
        return
    admin = round.status.admin
    admin.username, admin.last_result, admin.last_rotate_time = _NAME, "Success", times.now()
    admin.last_message = "made by the servers" if made else "was there"
    round.condition(ROTATED, True, "Bootstrapped", f"{_NAME} has the password of Secret {ref.name}")
    if made:
        round.ctx.event("AdminCreated", f"{_NAME} was made with the password of Secret {ref.name}")
