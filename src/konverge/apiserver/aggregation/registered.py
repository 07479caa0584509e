"""Which groups and versions other servers answer. Almost always none: nothing else is imported or begun before one is.

Upstream: APIAggregator (kube-aggregator/pkg/apiserver/apiserver.go).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver.object_access import Objects
from konverge.apiserver.storage import Event, Store
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from collections.abc import Callable

    from konverge.apiserver.aggregation.availability import Availability
    from konverge.apiserver.aggregation.connections import Connections
    from konverge.apiserver.aggregation.offers import Offer

GROUP, PLURAL = "apiregistration.k8s.io", "apiservices"
CUSTOM_PRIORITIES = 1000, 100
"""Of a group of custom resources, and of its versions. Upstream: autoregister (crdregistration_controller.go)."""


class Remote(msgspec.Struct, frozen=True):
    """One APIService: a group and version, and the Service that answers it."""

    name: str
    group: str
    version: str
    namespace: str
    service: str
    port: int
    ca: bytes
    insecure: bool
    group_priority: int
    version_priority: int
    available: bool

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}"

    @property
    def backend(self) -> tuple[str, str, int]:
        return self.namespace, self.service, self.port

    @property
    def server_name(self) -> str:
        return f"{self.service}.{self.namespace}.svc"


def remote(obj: Obj) -> Remote | None:
    """What an APIService says; None for those that this server answers itself."""
    spec = obj["spec"]
    target = spec.get("service")
    if target is None or not spec.get("group"):
        return None
    conditions = (obj.get("status") or {}).get("conditions") or ()
    try:
        ca = base64.b64decode(spec.get("caBundle") or "")
    except binascii.Error:
        ca = b""
    return Remote(
        name=obj["metadata"]["name"],
        group=spec["group"],
        version=spec["version"],
        namespace=target["namespace"],
        service=target["name"],
        port=target.get("port") or 443,
        ca=ca,
        insecure=bool(spec.get("insecureSkipTLSVerify")),
        group_priority=spec.get("groupPriorityMinimum") or 0,
        version_priority=spec.get("versionPriority") or 0,
        available=any(entry["type"] == "Available" and entry["status"] == "True" for entry in conditions),
    )


class Aggregation:
    """The APIServices of other servers, as they are stored."""

    def __init__(
        self, store: Store, objects: Objects, resolve: Callable[[str, str, int], str], data_dir: Path | None
    ) -> None:
        self._store = store
        self._objects = objects
        self._resolve = resolve
        self._data_dir = data_dir
        self._remotes: dict[tuple[str, str], Remote] = {}
        self._keys: dict[str, tuple[str, str]] = {}
        self._local: dict[str, tuple[int, int]] = {}
        """The priorities of groups and versions that this server answers, by the names of their APIServices."""
        self._availability: Availability | None = None
        self.generation = 0
        """Changes with whatever discovery shows."""

    def start(self) -> None:
        self._store.subscribe(f"{GROUP}/{PLURAL}", self._changed)
        for record in self._objects.records(GROUP, PLURAL):
            self._take(record.name, record.decode())

    async def stop(self) -> None:
        if self._availability is not None:
            await self._availability.stop()
        if "connections" in self.__dict__:
            await self.connections.aclose()

    def find(self, group: str, version: str) -> Remote | None:
        return self._remotes.get((group, version))

    def all(self) -> Iterable[Remote]:
        return self._remotes.values()

    @cached_property
    def connections(self) -> Connections:
        from konverge.apiserver.aggregation.connections import Connections

        return Connections(self._objects, self._resolve, self._data_dir)

    def publish(self, client_authority: str) -> None:
        """Tell servers to come whom they may believe, and which authority signs the certificates of users.

        They read it when they start, which may be before there is an APIService, and end if it is not there.
        """
        self.connections.publish(client_authority)

    def offer(self, remote: Remote) -> Offer | None:
        """What a server said that it serves when it was last asked, which it may be away since; None before that."""
        return self._run().offers.get(remote.name)

    def local_priorities(self, group: str, version: str) -> tuple[int, int]:
        """Of a group and of a version that this server answers."""
        return self._local.get(f"{version}.{group}", CUSTOM_PRIORITIES)

    def _changed(self, event: Event) -> None:
        self._take(event.key, event.record.decode() if event.record is not None else None)

    def _take(self, name: str, obj: Obj | None) -> None:
        new = remote(obj) if obj is not None else None
        old = self._keys.pop(name, None)
        if old is not None:
            del self._remotes[old]
        self._local.pop(name, None)
        if obj is not None and new is None:
            spec = obj["spec"]
            self._local[name] = spec.get("groupPriorityMinimum") or 0, spec.get("versionPriority") or 0
        if new is not None:
            self._keys[name] = (new.group, new.version)
            self._remotes[new.group, new.version] = new
        if old is not None or new is not None:
            self.generation += 1
            self._run().look_at(name)

    def _run(self) -> Availability:
        if self._availability is None:
            from konverge.apiserver.aggregation.availability import Availability

            self._availability = Availability(self._store, self._objects, self, self.connections)
            self._availability.start()
        return self._availability
