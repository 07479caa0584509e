"""What a reconcile sees of the other clusters: `ctx.clusters["west"]`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from konverge.client import Client
from konverge.objects.meta import Object
from konverge.runtime.base_context import BaseContext, Caches
from konverge.runtime.result import TransientError


class UnknownCluster(TransientError, KeyError):
    """There is no cluster of this name, now. The key comes again, as after any passing problem."""

    def __str__(self) -> str:
        return str(self.args[0])


class ClusterAccess(BaseContext):
    """One cluster, from a reconcile of another: its client and caches.

        east = ctx.clusters["east"]
        config = await east.get(ConfigMap, "settings", "shop")

    Reads come from the caches that the same controller has there; they may not show yet what this reconcile wrote. An
    owner reference cannot lead to another cluster, so nothing is owned: label what you make, and delete it.
    """

    def __init__(self, name: str, client: Client, caches: Caches, manager: str) -> None:
        self.name = name
        self.client = client
        """Writes are refused when this process no longer leads."""
        self.log = logging.getLogger("konverge.controller")
        self._caches = caches
        self._manager = manager

    def _warn_uncached(self, kind: type[Object], namespace: str) -> None:
        self._caches.require_namespace(kind, namespace)  # a live read is what was asked for

    async def apply(self, desired: Object, *, force: bool = True) -> bool:
        """Server-side apply without an owner; no request when the cached object already is as desired."""
        return (await self._apply(desired, None, force=force)).differs


class OtherClusters(Mapping[str, ClusterAccess]):
    """All connected clusters by name. The home cluster is `""`, and `home`."""

    def __init__(self, names: Callable[[], list[str]], access: Callable[[str], ClusterAccess | None]) -> None:
        self._names = names
        self._access = access

    @property
    def home(self) -> ClusterAccess:
        return self[""]

    def __getitem__(self, name: str) -> ClusterAccess:
        access = self._access(name)
        if access is None:
            known = ", ".join(filter(None, self._names())) or "none"
            raise UnknownCluster(f"there is no cluster {name!r} (connected: {known})")
        return access

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())
