"""A watch on one Lease, for a candidate that stands by: what its holder writes is seen at once.

The watch only makes a candidate faster. It shows when to look; whether the Lease may be taken is decided by a read and
a write guarded by the resourceVersion. So a watch that is silent, dead or forbidden costs time and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, Self

from konverge.client import Client, ClientError, Forbidden
from konverge.objects.resource import Resource

LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")

_log = logging.getLogger("konverge.election")


class LeaseWatch:
    """Watches one Lease inside its block.

    async with LeaseWatch(client, "op", "default", seen, pause) as watch:
        await watch.changed(15.0)      # until `seen` says that the Lease may be free, at most 15 s
    """

    def __init__(
        self,
        client: Client,
        name: str,
        namespace: str,
        seen: Callable[[dict[str, Any] | None], bool],
        pause: Callable[[], float],
    ) -> None:
        """`seen` is called with every state of the Lease, None when it was deleted; `pause` are the seconds between two
        attempts to watch."""
        self._client = client
        self._name = name
        self._namespace = namespace
        self._seen = seen
        self._pause = pause
        self._free = asyncio.Event()
        self.works = False
        """Whether the watch shows every change."""

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._run(), name=f"watch lease {self._namespace}/{self._name}")
        return self

    async def __aexit__(self, *error: object) -> None:
        self._watching.cancel()
        await asyncio.wait([self._watching])

    async def changed(self, limit: float) -> None:
        """Wait until the Lease may be free, at most `limit` seconds."""
        try:
            async with asyncio.timeout(limit):
                await self._free.wait()
        except TimeoutError:
            pass
        self._free.clear()

    async def _run(self) -> None:
        while True:
            try:
                await self._watch()
            except Forbidden as error:
                _log.info("the lease %s/%s is read every few seconds: %s", self._namespace, self._name, error)
                return
            except ClientError as error:
                _log.debug("the watch of the lease %s/%s ended: %s", self._namespace, self._name, error)
            except Exception:  # such as a plugin for credentials that fails in its own way: the candidate still reads
                _log.exception("cannot watch the lease %s/%s", self._namespace, self._name)
            finally:
                self.works = False
            await asyncio.sleep(self._pause())

    async def _watch(self) -> None:
        events = self._client.watch(LEASES, self._namespace, field_selector=f"metadata.name={self._name}")
        async with aclosing(events):
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                self.works = event.type != "DELETED"
                if self._seen(event.object if self.works else None):
                    self._free.set()
