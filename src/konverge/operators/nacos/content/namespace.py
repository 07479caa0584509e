"""Namespaces of a Nacos."""

from __future__ import annotations

import msgspec

from konverge.operators.nacos.content.api import ContentApi, digest
from konverge.operators.nacos.content.kinds import NacosNamespace
from konverge.operators.nacos.content.place import ContentError
from konverge.operators.nacos.content.reconciler import ContentReconciler
from konverge.runtime import Context


class DesiredNamespace(msgspec.Struct, frozen=True):
    """The texts of a namespace."""

    title: str
    description: str

    @property
    def digest(self) -> str:
        return digest(f"{self.title}\0{self.description}")


class NamespaceReconciler(ContentReconciler[NacosNamespace, DesiredNamespace]):
    """A namespace with configurations is never deleted: the servers would keep them where no one finds them."""

    what = "namespace"

    @staticmethod
    def name_of(obj: NacosNamespace) -> str:
        return obj.spec.id

    async def desired(self, ctx: Context[NacosNamespace], api: ContentApi) -> DesiredNamespace:
        spec = ctx.obj.spec
        return DesiredNamespace(spec.title or spec.id, spec.description)

    async def observe(self, ctx: Context[NacosNamespace], api: ContentApi) -> str | None:
        space = (await api.namespaces()).get(ctx.obj.spec.id)
        if space is None:
            return None
        return DesiredNamespace(space.namespace_show_name, space.namespace_desc or "").digest

    async def write(
        self, ctx: Context[NacosNamespace], api: ContentApi, desired: DesiredNamespace, *, exists: bool
    ) -> None:
        write = api.update_namespace if exists else api.create_namespace
        await write(ctx.obj.spec.id, desired.title, desired.description)

    async def remove(self, ctx: Context[NacosNamespace], api: ContentApi) -> None:
        space = (await api.namespaces()).get(ctx.obj.spec.id)
        if space is not None and space.config_count:
            raise ContentError("NotEmpty", f"{space.config_count} configurations are in namespace {ctx.obj.spec.id}")
        await api.delete_namespace(ctx.obj.spec.id)
