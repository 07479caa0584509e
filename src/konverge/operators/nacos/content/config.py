"""Configurations in a Nacos: where their content comes from, the history of what was published, and the way back."""

from __future__ import annotations

import msgspec

from konverge.objects import times
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.operators.nacos.content.api import PUBLIC, ConfigKey, ContentApi, digest
from konverge.operators.nacos.content.kinds import (
    HISTORY,
    LONGEST_CONTENT,
    AppliedVersion,
    KeyRef,
    NacosConfig,
    NacosNamespace,
)
from konverge.operators.nacos.content.place import ContentError, allows, secret_value
from konverge.operators.nacos.content.reconciler import SAME_CONTENT, ContentReconciler, content_key
from konverge.operators.nacos.resource import AnyNacos
from konverge.runtime import Context


class DesiredConfig(msgspec.Struct, frozen=True):
    """The content of a configuration, and its form."""

    content: str | None
    """None: that of an earlier version, which only the servers have."""
    md5: str
    type: str

    @property
    def digest(self) -> str:
        return f"{self.md5}:{self.type}"


class ConfigReconciler(ContentReconciler[NacosConfig, DesiredConfig]):
    what = "configuration"

    @staticmethod
    def name_of(obj: NacosConfig) -> str:
        return str(_key(obj))

    async def desired(self, ctx: Context[NacosConfig], api: ContentApi) -> DesiredConfig:
        spec = ctx.obj.spec
        if spec.rollback_to is not None:
            earlier = self._version(ctx, spec.rollback_to)
            return DesiredConfig(None, earlier.md5, earlier.type)
        content = await self._content(ctx)
        if len(content.encode()) > LONGEST_CONTENT:
            raise ContentError("TooLarge", f"the content has more than the {LONGEST_CONTENT} bytes that servers take")
        if not content:
            raise ContentError("Empty", "the content is empty, and servers take no empty one")
        return DesiredConfig(content, digest(content), spec.type)

    @staticmethod
    def _version(ctx: Context[NacosConfig], revision: int) -> AppliedVersion:
        known = ctx.obj.status.history
        version = next((version for version in known if version.revision == revision), None)
        if version is None:
            listed = ", ".join(str(version.revision) for version in known) or "none"
            raise ContentError("RevisionUnknown", f"revision {revision} is not in status.history, which has {listed}")
        return version

    @staticmethod
    async def _content(ctx: Context[NacosConfig]) -> str:
        spec = ctx.obj.spec
        if spec.secret_key_ref is not None:
            secret = await ctx.get(Secret, spec.secret_key_ref.name)
            if secret is None or spec.secret_key_ref.key not in secret.data:
                raise _missing("Secret", spec.secret_key_ref)
            return secret_value(secret, spec.secret_key_ref.key)
        if spec.config_map_key_ref is not None:
            config_map = await ctx.get(ConfigMap, spec.config_map_key_ref.name)
            if config_map is None or spec.config_map_key_ref.key not in config_map.data:
                raise _missing("ConfigMap", spec.config_map_key_ref)
            return config_map.data[spec.config_map_key_ref.key]
        return spec.content or ""

    async def observe(self, ctx: Context[NacosConfig], api: ContentApi) -> str | None:
        stored = await api.config(_key(ctx.obj))
        return f"{digest(stored.content or '')}:{stored.type or 'text'}" if stored is not None else None

    async def before_write(self, ctx: Context[NacosConfig], nacos: AnyNacos, api: ContentApi) -> None:
        """The servers would publish into a namespace that no console shows."""
        space = ctx.obj.spec.namespace
        if space == PUBLIC:
            return
        declared = ctx.indexed(NacosNamespace, SAME_CONTENT, content_key(ctx.obj, space))
        leaving = [namespace for namespace in declared if namespace.metadata.deletion_timestamp is not None]
        if any(allows(nacos, namespace.metadata.namespace) for namespace in leaving):
            raise ContentError("NamespaceDeleting", f"namespace {space} is being deleted")
        if space not in await api.namespaces():
            raise ContentError("NamespaceMissing", f"there is no namespace {space} on the servers; declare one")

    async def write(self, ctx: Context[NacosConfig], api: ContentApi, desired: DesiredConfig, *, exists: bool) -> None:
        key, content = _key(ctx.obj), desired.content
        if content is None:
            content = await api.earlier_content(key, desired.md5)
        if content is None:
            message = f"the servers have the content of revision {ctx.obj.spec.rollback_to} no longer"
            raise ContentError("RevisionGone", message)
        await api.publish(key, content, desired.type, ctx.obj.spec.description)

    def applied(self, ctx: Context[NacosConfig], desired: DesiredConfig) -> None:
        status, target = ctx.obj.status, ctx.obj.spec.rollback_to
        if status.applied == desired.digest:
            return  # a repair is no new version
        status.revision, status.md5 = status.revision + 1, desired.md5
        version = AppliedVersion(
            revision=status.revision,
            md5=desired.md5,
            type=desired.type,
            time=times.now(),
            generation=ctx.obj.metadata.generation,
            rolled_back_to=target or 0,
        )
        history = [*status.history, version]
        kept = [old for old in history[:-HISTORY] if old.revision == target][:1]
        status.history = kept + history[-HISTORY:]

    async def remove(self, ctx: Context[NacosConfig], api: ContentApi) -> None:
        await api.delete_config(_key(ctx.obj))


def _key(obj: NacosConfig) -> ConfigKey:
    return ConfigKey(obj.spec.namespace, obj.spec.group, obj.spec.data_id)


def _missing(kind: str, ref: KeyRef) -> ContentError:
    return ContentError("SourceMissing", f"there is no {kind} {ref.name} with the key {ref.key}")
