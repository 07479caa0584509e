"""Where clusters come from. A provider says which there are, again after every change, and that is all it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from konverge.client import Client, Config, load_config
from konverge.objects.meta import Object


@dataclass(frozen=True, slots=True)
class Connection:
    """How a cluster is reached."""

    connect: Callable[[], Client]
    """A new client; a ConfigError says why there is none."""
    fingerprint: Hashable
    """When it differs from the one before, the cluster is connected again."""
    keep_open: bool = False
    """The client is not closed when the cluster goes: it belongs to another owner."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """A cluster that is named, but cannot be connected. It is reported, and concerns no other cluster."""

    reason: str
    about: Object | None = None
    """The object of the home cluster that names it, for an event."""


Known: TypeAlias = Mapping[str, Connection | Unusable]
"""All clusters by name."""


class ClusterProvider(Protocol):
    """A source of clusters.

    class Inventory:
        async def clusters(self, home: Client) -> AsyncIterator[Known]:
            while True:
                yield {name: Connection(lambda: Client.connect(config), config) for name, config in await fetch()}
                await asyncio.sleep(60)
    """

    def clusters(self, home: Client) -> AsyncIterator[Known]:
        """All clusters that there are, at the beginning and after every change. `home` is the cluster of the leader's
        Lease. When it raises it is called again after a while, and the clusters stay as they were.
        """
        ...


class FixedClusters:
    """Clusters that never change, by name: each a client, a configuration, or the path of a kubeconfig.

    Manager(clusters=FixedClusters({"east": "/etc/clusters/east.yaml", "west": load_config(context="west")}))
    """

    def __init__(self, clusters: Mapping[str, Client | Config | str | Path]) -> None:
        self._known: Known = {check_name(name): _fixed(entry) for name, entry in clusters.items()}

    async def clusters(self, home: Client) -> AsyncIterator[Known]:
        yield self._known
        await asyncio.Event().wait()


def check_name(name: str) -> str:
    """Refuse a name that would not stand out in a log or a metric; the empty one is the home cluster."""
    if not name or not name.isprintable() or set(name) & set("/@ "):
        raise ValueError(f"{name!r} cannot be the name of a cluster: use letters, digits, '-', '.' and '_'")
    return name


def _fixed(entry: Client | Config | str | Path) -> Connection:
    if isinstance(entry, Client):
        client = entry
        return Connection(lambda: client, id(client), keep_open=True)
    if isinstance(entry, Config):
        config = entry
        return Connection(lambda: Client.connect(config), id(config))
    path = Path(entry)
    return Connection(lambda: Client.connect(load_config(kubeconfig=path)), str(path))
