"""The pods below an object, and the events of an object and of all that it owns: for `konverge logs` and `events`."""

from __future__ import annotations

import asyncio
from math import inf

from konverge import clock
from konverge.client import Client
from konverge.explain.explainer import OBSERVERS
from konverge.explain.gather import PASSES, Gatherer
from konverge.explain.links import is_custom, links
from konverge.explain.model import Ref
from konverge.explain.needs import BY_KIND, WORKLOADS, Query, needs
from konverge.explain.reading import Obj, items, text
from konverge.explain.world import World

MOST = 1000
"""Objects below another that are looked at."""
DOWN = frozenset(("owns", "selects", "leads to", "scales", "is served by", "protects"))
"""Relations that lead to what an object is made of, not to what it merely uses."""


_WITHIN = frozenset((*WORKLOADS, "Pod", "Service", "EndpointSlice"))


async def read_below(client: Client, ref: Ref, *, managed_fields: bool = False) -> World:
    """The world of an object with everything that it is made of. Raises NotFound."""
    gatherer = Gatherer(client, managed_fields=managed_fields)
    await gatherer.read(ref)
    for _ in range(PASSES):
        before = len(gatherer.world)
        queries = [query for each in below(ref, gatherer.world) for query in needs(each, gatherer.world)]
        queries = [query for query in queries if query.resource.kind in _WITHIN]
        if is_custom(ref.group):
            queries += [Query(resource, ref.namespace) for resource in await gatherer.custom_kinds()]
        await gatherer.fetch(queries)
        if len(gatherer.world) == before:
            break
    return gatherer.world


def below(ref: Ref, world: World) -> list[Ref]:
    """An object, and what it is made of, each once, from the top."""
    reached, seen = [ref], {ref}
    for current in reached:
        for link in links(current, world):
            if link.relation in DOWN and link.ref not in seen and world.get(link.ref) is not None:
                if len(reached) >= MOST:
                    return reached
                seen.add(link.ref)
                reached.append(link.ref)
    return reached


def pods_below(ref: Ref, world: World) -> list[Ref]:
    """The pods that an object is made of, by name."""
    return sorted(child for child in below(ref, world) if child.kind == BY_KIND["Pod"].kind and not child.group)


def containers(pod: Obj, chosen: str = "") -> list[str]:
    """The containers of a pod whose logs are shown: all that have begun, or the one that was chosen."""
    names = [
        text(status, "name")
        for part in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for status in items(pod, "status", part)
        if any(isinstance(status.get("state"), dict) and key in status["state"] for key in ("running", "terminated"))
        or text(status, "containerID")
    ]
    return [name for name in names if not chosen or name == chosen]


class Members:
    """Which pods and other objects belong to an object, as they come and go.

    members = Members(client, ref)
    await members.look()
    await members.has(pod)
    """

    def __init__(self, client: Client, ref: Ref, *, look_every: float = 2.0) -> None:
        """`look_every` are the seconds between two looks at the cluster."""
        self._client = client
        self._ref = ref
        self._every = look_every
        self._looked = -inf
        self._ours: set[str] = set()
        self._foreign: set[str] = set()
        self.names: set[tuple[str, str, str]] = set()
        """Kind, namespace and name of each, as events name them."""

    async def look(self) -> None:
        """What belongs to it now; what did so before still does."""
        world = await read_below(self._client, self._ref)
        self._looked = clock.monotonic()
        refs = below(self._ref, world)
        self.names.update((ref.kind, ref.namespace, ref.name) for ref in refs)
        self._ours.update(uid for ref in refs if (uid := text(world.get(ref), "metadata", "uid")))

    async def has(self, obj: Obj) -> bool:
        """Whether an object that was seen in a watch is one of them. Looks again if that is not known."""
        uid = text(obj, "metadata", "uid")
        owners = {text(owner, "uid") for owner in items(obj, "metadata", "ownerReferences")}
        if uid in self._ours or not owners.isdisjoint(self._ours):
            self._ours.add(uid)
            return True
        # A Service selects by labels, whoever the owner is: there each pod is a question of its own.
        key = {uid} if self._ref.kind in OBSERVERS or not owners else owners
        if key <= self._foreign:
            return False
        await asyncio.sleep(max(self._looked + self._every - clock.monotonic(), 0))
        await self.look()
        if uid in self._ours:
            return True
        self._foreign |= key
        return False
