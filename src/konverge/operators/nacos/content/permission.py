"""Permissions of roles in a Nacos."""

from __future__ import annotations

import msgspec

from konverge.operators.nacos.content.api import ContentApi
from konverge.operators.nacos.content.kinds import NacosPermission
from konverge.operators.nacos.content.place import ContentError
from konverge.operators.nacos.content.reconciler import ContentReconciler
from konverge.operators.nacos.resource import AnyNacos
from konverge.runtime import Context

_GRANTED = "granted"


class DesiredPermission(msgspec.Struct, frozen=True):
    """A permission is there or not."""

    digest: str = _GRANTED


class PermissionReconciler(ContentReconciler[NacosPermission, DesiredPermission]):
    what = "permission"

    @staticmethod
    def name_of(obj: NacosPermission) -> str:
        return f"{obj.spec.role} {obj.spec.action} {obj.spec.resource}"

    async def desired(self, ctx: Context[NacosPermission], api: ContentApi) -> DesiredPermission:
        return DesiredPermission()

    async def observe(self, ctx: Context[NacosPermission], api: ContentApi) -> str | None:
        spec = ctx.obj.spec
        granted = await api.permissions_of(spec.role)
        return _GRANTED if (spec.resource, spec.action) in granted else None

    async def before_write(self, ctx: Context[NacosPermission], nacos: AnyNacos, api: ContentApi) -> None:
        """A role exists by the users that have it; servers refuse permissions of others."""
        role = ctx.obj.spec.role
        if not await api.has_role(role):
            raise ContentError("RoleMissing", f"no user has the role {role}; give it to a NacosUser in spec.roles")

    async def write(
        self, ctx: Context[NacosPermission], api: ContentApi, desired: DesiredPermission, *, exists: bool
    ) -> None:
        spec = ctx.obj.spec
        await api.grant(spec.role, spec.resource, spec.action)

    async def remove(self, ctx: Context[NacosPermission], api: ContentApi) -> None:
        spec = ctx.obj.spec
        await api.revoke(spec.role, spec.resource, spec.action)
