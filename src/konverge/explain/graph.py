"""`Graph`: an object with all that it owns and uses and with the owners above it, as nodes and edges.

A tree draws each object once; a graph has every relation between the objects that it shows, so that a Service and a
ReplicaSet both lead to the same pod.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from konverge.client import ClientError, Unauthorized
from konverge.explain.explainer import EVERYWHERE, Explainer
from konverge.explain.gather import Gatherer
from konverge.explain.model import Link, Ref, group_of
from konverge.explain.reading import Obj, at, items, number, text

MOST = 500
"""Objects of a graph."""
OWNERS = 8
"""Levels of owners above the object."""


class Edge(NamedTuple):
    """An object stands in a relation to another: it owns it, selects it, mounts it."""

    above: Ref
    below: Ref
    relation: str


class Graph(msgspec.Struct):
    """The objects around one, the owners first."""

    root: Ref
    nodes: list[Ref] = msgspec.field(default_factory=list)
    edges: list[Edge] = msgspec.field(default_factory=list)
    cut: int = 0
    """How many objects are left out."""


def graph(explainer: Explainer, root: Ref, *, most: int = MOST) -> Graph:
    """Pure: of what was read."""
    nodes = [*_owners(explainer, root), root]
    seen, left_out = set(nodes), set[Ref]()
    place = len(nodes) - 1
    while place < len(nodes):
        for link in explainer.links(nodes[place]):
            if link.ref in seen or not _is_drawn(link, explainer):
                continue
            if len(nodes) < most:
                seen.add(link.ref)
                nodes.append(link.ref)
            else:
                left_out.add(link.ref)
        place += 1
    edges = [Edge(ref, link.ref, link.relation) for ref in nodes for link in explainer.links(ref) if link.ref in seen]
    return Graph(root, nodes, edges, len(left_out))


def _is_drawn(link: Link, explainer: Explainer) -> bool:
    """What does not exist and need not is left out, and so is what could not be read."""
    if explainer.world.get(link.ref) is None:
        return link.required and explainer.world.is_missing(link.ref)
    return (link.ref.kind, link.ref.name) not in EVERYWHERE


def _owners(explainer: Explainer, root: Ref) -> list[Ref]:
    """The highest first, each once: owners may own each other in a ring."""
    order: list[Ref] = []
    current = [root]
    for _ in range(OWNERS):
        current = [owner for ref in current for owner in explainer.world.owners(ref) if owner != root]
        current = [owner for owner in dict.fromkeys(current) if owner not in order]
        order += current
    return order[::-1]


def ready_count(obj: Obj | None) -> str:
    """How much of an object is ready, where it says so: `2/3`.

    >>> ready_count({"kind": "Deployment", "spec": {"replicas": 3}, "status": {"readyReplicas": 2}})
    '2/3'
    """
    if not obj:
        return ""
    if text(obj, "kind") == "Pod":
        states = items(obj, "status", "containerStatuses")
        total = len(items(obj, "spec", "containers"))
        return f"{sum(at(state, 'ready') is True for state in states)}/{total}" if total else ""
    if text(obj, "kind") == "DaemonSet":
        return f"{number(obj, 'status', 'numberReady')}/{number(obj, 'status', 'desiredNumberScheduled')}"
    wanted = at(obj, "spec", "replicas")
    if isinstance(wanted, int) and not isinstance(wanted, bool):
        return f"{number(obj, 'status', 'readyReplicas')}/{wanted}"
    return ""


class GraphReader:
    """Reads a graph from a cluster.

    reader = GraphReader(client)
    shown = await reader.read(Ref("Deployment", "web", "shop", "apps"))
    reader.explainer.verdict(shown.nodes[0])
    """

    def __init__(self, gatherer: Gatherer) -> None:
        self.gatherer = gatherer
        self.explainer = Explainer(gatherer.world)

    async def read(self, ref: Ref) -> Graph:
        """Raises NotFound, Expired, and errors about the object itself."""
        await self.gatherer.explore(ref)
        await self._read_owners(ref)
        self.explainer = Explainer(self.gatherer.world)
        return graph(self.explainer, ref)

    async def _read_owners(self, ref: Ref) -> None:
        world = self.gatherer.world
        waiting, seen = [(ref, 0)], {ref}
        for current, level in waiting:
            for reference in items(world.get(current), "metadata", "ownerReferences"):
                group = group_of(text(reference, "apiVersion"))
                owner = Ref(text(reference, "kind"), text(reference, "name"), current.namespace, group)
                owner = await self._placed(owner)
                if owner in seen or level >= OWNERS:
                    continue
                seen.add(owner)
                waiting.append((owner, level + 1))

    async def _placed(self, owner: Ref) -> Ref:
        """An owner as it is known, read if it can be."""
        try:
            resource = await self.gatherer.resource_of(owner)
            owner = owner if resource.namespaced else owner._replace(namespace="")
            if self.gatherer.world.get(owner) is None:
                await self.gatherer.read(owner)
        except Unauthorized:
            raise
        except ClientError:
            pass  # it is gone, of no known kind, or not ours to read
        return owner
