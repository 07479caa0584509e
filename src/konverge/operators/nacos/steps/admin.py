"""The administrator where the users are in MySQL or in the servers' own storage; PostgreSQL is the work of RotateAdmin.

The servers create the first administrator (2.4 and later; before that there is a default user). After that the password
follows the Secret whenever that changes, and only then: a password that was changed on the servers stays. It is
changed by SQL, where the operator reaches MySQL, and otherwise by the servers' API, which takes it from a signed-in
administrator alone. So the operator keeps the password that it last set in its Secret `<name>-auth`, and before it sets
another one that too: whenever it is killed, and whatever the user's Secret says by then, one of them is accepted.

No other step waits for this: the servers serve with the password that they have.
"""

from __future__ import annotations

from base64 import b64encode

from konverge.client import MergePatch
from konverge.objects import times
from konverge.objects.kinds.core_v1 import Secret
from konverge.operators.nacos import names
from konverge.operators.nacos.children.environment import ADMIN_PASSWORD, NEXT_ADMIN_PASSWORD
from konverge.operators.nacos.content.api import ContentApi, Login, Tokens
from konverge.operators.nacos.database import DatabaseError
from konverge.operators.nacos.server import NacosError
from konverge.operators.nacos.steps.database import ROTATED, checksum_of
from konverge.operators.nacos.steps.pods import Workload
from konverge.operators.nacos.steps.secrets import mysql_target, optional_value, read_secret
from konverge.operators.nacos.steps.state import ReconcileState
from konverge.operators.nacos.versions import FIRST_WITHOUT_DEFAULT_USER
from konverge.runtime.owners import is_controlled_by

ADMIN = "nacos"
"""The name of the first administrator is Nacos' own choice."""
_MYSQL_TIMEOUT = 10.0


async def ensure_admin(state: ReconcileState, workload: Workload) -> None:
    """Skipped with PostgreSQL, without `adminCredentialsSecretRef`, and for versions with a default user."""
    desired, ref = state.desired, state.desired.spec.admin_credentials_secret_ref
    if ref is None or not ref.name or desired.engine == "postgresql" or desired.version < FIRST_WITHOUT_DEFAULT_USER:
        return
    done = state.is_true(ROTATED) and state.status.admin.last_result == "Success"
    if done and await state.reads.get(Secret, ref.name) is None:
        return  # it has what it was given
    admin = _Administrator(state, workload, await read_secret(state, ref.name))
    if done and not admin.changed and state.status.admin.last_secret_checksum:
        return
    try:
        await admin.ensure(done=done)
    except NacosError as error:
        state.condition(ROTATED, False, error.reason, error.message)
    except DatabaseError as error:
        state.status.admin.last_result, state.status.admin.last_message = "Failed", error.message
        state.condition(ROTATED, False, error.reason, error.message)


class _Administrator:
    """The administrator that a Secret declares."""

    def __init__(self, state: ReconcileState, workload: Workload, secret: Secret) -> None:
        ref = state.desired.spec.admin_credentials_secret_ref
        assert ref is not None
        self._state = state
        self._workload = workload
        self._secret = secret
        self._password = optional_value(secret, ref.password_key)
        self._hash = optional_value(secret, ref.password_hash_key)
        self._username = optional_value(secret, ref.username_key) or ADMIN
        checksum = state.desired.spec.admin_secret_checksum
        self._checksum = checksum or checksum_of(secret, self._username, self._hash)
        self._missing = f"secret {ref.name} missing key {ref.password_key}"

    @property
    def changed(self) -> bool:
        """The Secret is another one than the one that was last acted upon."""
        recorded = self._state.status.admin.last_secret_checksum
        return bool(recorded) and recorded != self._checksum

    @property
    def _by_sql(self) -> bool:
        return self._state.desired.engine == "mysql" and self._state.desired.spec.database.mysql_check

    async def ensure(self, *, done: bool) -> None:
        """`done`: an earlier reconcile was successful, with this Secret, another one, or one that it did not note."""
        state, admin = self._state, self._state.status.admin
        if done and not admin.last_secret_checksum:
            await self._begin_to_follow()
            return
        another = self.changed or (state.is_true(ROTATED) and not done)  # the latter: users come from a backup
        if self._password and await self._is_accepted():
            return
        if self._by_sql and (another or (self._hash and not self._password)):
            await self._rotate_by_sql()
        elif not self._password:
            state.condition(ROTATED, False, "PasswordMissing", self._missing)
        elif not another:
            self._report_another()
            self._note()
        elif not await self._rotate_by_api():
            self._report_another()

    async def _begin_to_follow(self) -> None:
        """Made by an operator that did not follow the Secret: what is there stays, until the Secret changes."""
        if self._password and await self._login(self._password):
            await self._keep(self._password)
        self._note()

    async def _is_accepted(self) -> bool:
        """The servers have this password, or no administrator until now."""
        state, timeout = self._state, self._state.options.call_timeout
        created = await state.tools.servers.bootstrap_admin(self._address, password=self._password, timeout=timeout)
        if not created and not await self._login(self._password):
            return False
        await self._keep(self._password)
        name, secret = ADMIN, self._secret.metadata.name
        self._succeed(ADMIN, "created by the servers" if created else "existed already")
        state.condition(ROTATED, True, "Bootstrapped", f"{name} has the password of Secret {secret}")
        if created:
            state.ctx.event("AdminCreated", f"{name} was created with the password of Secret {secret}")
        return True

    def _report_another(self) -> None:
        secret = self._secret.metadata.name
        message = (
            f"there is an administrator with another password than the one in Secret {secret}, which the operator does "
            "not know: change it on the servers to the one in the Secret, or the Secret to that one"
        )
        self._state.condition(ROTATED, False, "PasswordDiffers", message)

    # -------------------------------------------------------------- rotation

    async def _rotate_by_sql(self) -> None:
        before = self._state.status.admin.username
        result = await self._state.tools.databases.rotate_admin(
            await mysql_target(self._state),
            username=self._username,
            password_hash=self._hash,
            password="" if self._hash else self._password,
            previous=before if before != self._username else "",
            timeout=_MYSQL_TIMEOUT,
        )
        self._rotated(self._username, result.message)

    async def _rotate_by_api(self) -> bool:
        """False: no password that is known is accepted."""
        for known in await self._known():
            if not await self._login(known):
                continue
            await self._keep(known, following=self._password)
            await self._api(known).set_password(ADMIN, self._password)
            await self._keep(self._password)
            self._rotated(ADMIN, f"{ADMIN} has the new password")
            return True
        return False

    def _api(self, password: str) -> ContentApi:
        state = self._state
        return ContentApi(
            servers=state.tools.servers,
            uid=state.ctx.obj.metadata.uid,
            addresses=(self._address,),
            third=state.desired.third,
            login=Login(ADMIN, password),
            tokens=Tokens(),
            timeout=state.options.call_timeout,
        )

    def _rotated(self, username: str, message: str) -> None:
        self._succeed(username, message)
        self._state.condition(ROTATED, True, "Rotated", message)
        secret = self._secret.metadata.name
        self._state.ctx.event("AdminRotated", f"the password of {username} is now that of Secret {secret}")

    def _succeed(self, username: str, message: str) -> None:
        admin = self._state.status.admin
        admin.username, admin.last_result, admin.last_message = username, "Success", message
        admin.last_rotate_time = times.now()
        self._note()

    def _note(self) -> None:
        """The Secret that was acted upon; it holds no password."""
        admin = self._state.status.admin
        admin.last_secret_checksum = self._checksum
        admin.last_secret_resource_version = self._secret.metadata.resource_version

    # -------------------------------------------------------------- the servers, and what is known of them

    @property
    def _address(self) -> str:
        return self._workload.ready[0].status.pod_ip or ""

    async def _login(self, password: str) -> bool:
        timeout = self._state.options.call_timeout
        return await self._state.tools.servers.login(self._address, username=ADMIN, password=password, timeout=timeout)

    async def _kept(self) -> Secret | None:
        """The operator's own Secret; none where the servers require no login."""
        kept = await self._state.reads.get(Secret, names.auth_secret(self._state.desired.name))
        return kept if kept is not None and is_controlled_by(kept, self._state.ctx.obj) else None

    async def _known(self) -> list[str]:
        kept = await self._kept()
        if kept is None:
            return []
        return [value for key in (ADMIN_PASSWORD, NEXT_ADMIN_PASSWORD) if (value := optional_value(kept, key))]

    async def _keep(self, password: str, following: str = "") -> None:
        """Where only an administrator can change the password: this one, and the one that will follow it."""
        kept = None if self._by_sql else await self._kept()
        if kept is None:
            return
        if [optional_value(kept, key) for key in (ADMIN_PASSWORD, NEXT_ADMIN_PASSWORD)] == [password, following]:
            return
        data = {ADMIN_PASSWORD: _encoded(password), NEXT_ADMIN_PASSWORD: _encoded(following) if following else None}
        meta = kept.metadata
        await self._state.ctx.client.patch(
            Secret, meta.name, MergePatch({"metadata": {"uid": meta.uid}, "data": data}), meta.namespace
        )


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
