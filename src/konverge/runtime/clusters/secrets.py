"""Clusters from Secrets with a label in the home cluster: one Secret, one cluster, named after the Secret."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator

import msgspec

from konverge.cache.informer import Informer
from konverge.cache.record import Key, Record
from konverge.cache.spec import CacheSpec
from konverge.client import Client
from konverge.client.errors import ConfigError
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.meta import ObjectMeta, PartialObjectMetadata
from konverge.runtime.clusters.confined import confined_config
from konverge.runtime.clusters.providers import Connection, Known, Unusable, check_name
from konverge.runtime.rbac import Permission
from konverge.runtime.relations import CACHE_VERBS

LABEL = "sigs.k8s.io/multicluster-runtime-kubeconfig=true"
"""The label that multicluster-runtime's kubeconfig provider looks for."""


class _Content(msgspec.Struct):
    data: dict[str, str] = {}


_content = msgspec.json.Decoder(_Content)


class KubeconfigSecrets:
    """The Secrets of a namespace that carry a label, each with a kubeconfig under `key`.

    Manager(clusters=KubeconfigSecrets("fleet"))
    Manager(clusters=KubeconfigSecrets("fleet", label="cluster.x-k8s.io/cluster-name", key="value"))  # Cluster API

    A Secret that is edited connects its cluster again, one that is deleted takes it away. Kubeconfigs that name
    programs or files are refused (`allow_exec`, `allow_files`): whoever may write a Secret could run them here.
    """

    def __init__(
        self,
        namespace: str,
        *,
        label: str = LABEL,
        key: str = "kubeconfig",
        allow_exec: bool = False,
        allow_files: bool = False,
    ) -> None:
        self.namespace = namespace
        self.label = label
        self.key = key
        self._allowed = {"allow_exec": allow_exec, "allow_files": allow_files}

    def permissions(self) -> list[Permission]:
        """What it needs in the home cluster: to read the Secrets, and to record events about those it cannot use."""
        needed = [Permission("", "secrets", verb, self.namespace) for verb in CACHE_VERBS]
        return needed + [Permission("", "events", verb, self.namespace) for verb in ("create", "patch")]

    async def clusters(self, home: Client) -> AsyncIterator[Known]:
        spec = CacheSpec(resource=Secret.resource, namespaces=(self.namespace,), label_selector=self.label)
        informer, changed = Informer(home.caller, spec), asyncio.Event()
        informer.add_handler(lambda change: changed.set())
        known: dict[Key, tuple[int, Connection | Unusable]] = {}
        reading = asyncio.create_task(informer.run(), name="cache of the clusters' Secrets")
        try:
            synced = asyncio.create_task(informer.synced.wait(), name="clusters' Secrets read")
            await asyncio.wait({reading, synced}, return_when=asyncio.FIRST_COMPLETED)
            synced.cancel()
            while not reading.done():
                changed.clear()
                present = dict(informer.items())
                known = {key: self._entry(key, record, known.get(key)) for key, record in present.items()}
                yield {key.name: entry for key, (_, entry) in known.items()}
                change = asyncio.create_task(changed.wait(), name="change of the clusters' Secrets")
                try:
                    await asyncio.wait({reading, change}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    change.cancel()
            reading.result()
        finally:
            reading.cancel()
            await asyncio.wait({reading})

    def _entry(
        self, key: Key, record: Record, before: tuple[int, Connection | Unusable] | None
    ) -> tuple[int, Connection | Unusable]:
        if before is not None and before[0] == record.version:
            return before
        return record.version, self._read(key, record)

    def _read(self, key: Key, record: Record) -> Connection | Unusable:
        source = f"Secret {key}"
        encoded = _content.decode(record.raw).data.get(self.key)
        try:
            check_name(key.name)
            if encoded is None:
                raise ConfigError(f"{source} has no key {self.key!r}")
            content = base64.b64decode(encoded)
            config = confined_config(content, source, **self._allowed)
        except (ConfigError, ValueError, OSError, RuntimeError) as error:  # the last two: of files, where allowed
            meta = ObjectMeta(name=key.name, namespace=key.namespace, uid=record.uid)
            return Unusable(str(error), PartialObjectMetadata(api_version="v1", kind="Secret", metadata=meta))
        return Connection(lambda: Client.connect(config), hashlib.sha256(content).hexdigest())
