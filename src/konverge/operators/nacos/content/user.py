"""Users of a Nacos: their passwords come from Secrets, and are in no status, event or log."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

from konverge.client import AlreadyExists, MergePatch
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.times import seconds_since
from konverge.operators.nacos.content.api import ContentApi
from konverge.operators.nacos.content.kinds import NacosUser
from konverge.operators.nacos.content.place import ContentError, secret_value
from konverge.operators.nacos.content.reconciler import ContentReconciler
from konverge.runtime import Context, set_controller_reference
from konverge.runtime.owners import is_controlled_by

USERNAME = "username"
PASSWORD = "password"  # noqa: S105 - the name of a key
MADE = "nacos.io/user-made"
"""The annotation of a NacosUser: its uid, and that of the Nacos in which it has made its user."""
_USER_CACHE = 30.0
"""Seconds: servers read their users again every 15 s, so a login says nothing about a password that is newer."""
_CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class DesiredUser:
    """A password and roles."""

    password: str = field(repr=False)
    mark: str
    """Of the password: made with the uid of its Secret, so that no one can guess it from the status."""
    roles: frozenset[str]

    @property
    def digest(self) -> str:
        return f"{self.mark}:{','.join(sorted(self.roles))}"


class UserReconciler(ContentReconciler[NacosUser, DesiredUser]):
    what = "user"

    @staticmethod
    def name_of(obj: NacosUser) -> str:
        return obj.spec.username

    async def desired(self, ctx: Context[NacosUser], api: ContentApi) -> DesiredUser:
        ref = ctx.obj.spec.password_secret_ref
        key = ref.key if ref is not None else PASSWORD
        secret = await self._generated(ctx) if ref is None else await ctx.get(Secret, ref.name)
        password = secret_value(secret, key)
        if secret is None or not password:
            name = ref.name if ref is not None else generated_name(ctx.obj)
            raise ContentError("SecretMissing", f"there is no Secret {name} with a password under {key}")
        mark = hashlib.sha256(f"{secret.metadata.uid}\0{password}".encode()).hexdigest()[:16]
        return DesiredUser(password, mark, frozenset(ctx.obj.spec.roles))

    @staticmethod
    async def _generated(ctx: Context[NacosUser]) -> Secret:
        """The Secret that the operator makes where the spec names none; its password can be changed there."""
        name = generated_name(ctx.obj)
        secret = await ctx.get(Secret, name)
        if secret is None:
            made = Secret(
                metadata=ObjectMeta(name=name, namespace=ctx.request.namespace),
                string_data={USERNAME: ctx.obj.spec.username, PASSWORD: secrets.token_urlsafe(24)},
            )
            set_controller_reference(ctx.obj, made)
            try:
                secret = await ctx.client.create(made)
            except AlreadyExists:
                secret = await ctx.client.get(Secret, name, ctx.request.namespace)
        if not is_controlled_by(secret, ctx.obj):
            raise ContentError("NotOwned", f"Secret {name} belongs to others; name it in passwordSecretRef to use it")
        if secret_value(secret, USERNAME) != ctx.obj.spec.username:
            patch = MergePatch(
                {"metadata": {"uid": secret.metadata.uid}, "stringData": {USERNAME: ctx.obj.spec.username}}
            )
            secret = await ctx.client.patch(Secret, name, patch, ctx.request.namespace)
        return secret

    async def observe(self, ctx: Context[NacosUser], api: ContentApi) -> str | None:
        """A password cannot be read: it is as it was left, unless a login says otherwise."""
        username = ctx.obj.spec.username
        if not await api.has_user(username):
            return None
        roles = ",".join(sorted(await api.roles_of(username)))
        left = ctx.obj.status.applied.partition(":")[0]
        if ctx.deleting:
            return f"{left}:{roles}"
        desired = await self.desired(ctx, api)
        new = seconds_since(ctx.obj.status.applied_time) < _USER_CACHE
        if left == desired.mark and (new or not api.signs_in):
            return f"{left}:{roles}"
        if api.signs_in and await api.accepts(username, desired.password):
            return f"{desired.mark}:{roles}"
        return f"{_CHANGED if left in ('', desired.mark) else left}:{roles}"

    def wrote(self, api: ContentApi, applying: str, observed: str) -> bool:
        """Roles come after the user. Where no one signs in, nothing tells whose user it is."""
        return not api.signs_in or observed.partition(":")[0] == applying.partition(":")[0]

    async def remember(self, ctx: Context[NacosUser], uid: str) -> None:
        """A password cannot be read, and where no one signs in not even tried: without its status a resource could not
        know the user that it has made."""
        ctx.obj.metadata.annotations[MADE] = _maker(ctx, uid)
        await ctx.save_metadata()

    def remembers(self, ctx: Context[NacosUser], uid: str) -> bool:
        return ctx.obj.metadata.annotations.get(MADE) == _maker(ctx, uid)

    async def write(self, ctx: Context[NacosUser], api: ContentApi, desired: DesiredUser, *, exists: bool) -> None:
        username = ctx.obj.spec.username
        if not exists:
            await api.create_user(username, desired.password)
        elif not api.signs_in or not await api.accepts(username, desired.password):
            await api.set_password(username, desired.password)
        roles = await api.roles_of(username)
        for role in sorted(desired.roles - roles):
            await api.add_role(role, username)
        for role in sorted(roles - desired.roles):
            await api.remove_role(role, username)

    async def remove(self, ctx: Context[NacosUser], api: ContentApi) -> None:
        """Servers keep the roles of users that are gone, for whoever has the name next."""
        username = ctx.obj.spec.username
        for role in sorted(await api.roles_of(username)):
            await api.remove_role(role, username)
        await api.delete_user(username)


def _maker(ctx: Context[NacosUser], uid: str) -> str:
    """With its own uid: the annotation of a copy says nothing."""
    return f"{ctx.obj.metadata.uid} {uid}"


def generated_name(obj: NacosUser) -> str:
    return f"{obj.metadata.name}-nacos-user"
