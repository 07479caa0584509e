"""The graph of owners and dependents, by uid. Pure: it takes in objects and returns which ones must be checked again.

Absent owners need no node of their own: `dependents` is kept by the uid in the references, whether or not an object
with that uid has been seen.

Upstream: GraphBuilder.processGraphChanges (pkg/controller/garbagecollector/graph_builder.go), graph.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from konverge.cache import Record
from konverge.objects.resource import Resource

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(frozen=True, slots=True)
class Reference:
    """An owner as a dependent names it."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool = False
    """blockOwnerDeletion: a foreground deletion of the owner waits for the dependent."""


@dataclass(slots=True)
class Node:
    """An object in the graph."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    owners: tuple[Reference, ...] = ()
    finalizers: tuple[str, ...] = ()
    deleting: bool = False

    @property
    def deletes_dependents(self) -> bool:
        """Its deletion waits until its dependents are gone. Upstream: isDeletingDependents."""
        return self.deleting and FOREGROUND in self.finalizers

    @property
    def orphans_dependents(self) -> bool:
        return self.deleting and ORPHAN in self.finalizers

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.group_resource} {where}{self.name}"


class _Owner(msgspec.Struct, rename="camel", gc=False):
    api_version: str
    kind: str
    name: str
    uid: str
    block_owner_deletion: bool | None = None


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str
    uid: str
    namespace: str = ""
    owner_references: list[_Owner] = []
    finalizers: list[str] = []
    deletion_timestamp: str = ""


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


_head = msgspec.json.Decoder(_Head)


def node_of(resource: Resource, source: Record | dict[str, Any]) -> Node:
    """The node of a cached record or of a live object."""
    head = _head.decode(source.raw) if isinstance(source, Record) else msgspec.convert(source, _Head)
    meta = head.metadata
    owners = tuple(
        Reference(owner.api_version, owner.kind, owner.name, owner.uid, bool(owner.block_owner_deletion))
        for owner in meta.owner_references
    )
    return Node(
        resource, meta.namespace, meta.name, meta.uid, owners, tuple(meta.finalizers), bool(meta.deletion_timestamp)
    )


@dataclass(slots=True)
class Graph:
    """All objects, and which depend on which."""

    nodes: dict[str, Node] = field(default_factory=dict)
    dependents: dict[str, set[str]] = field(default_factory=dict)

    def put(self, node: Node) -> list[str]:
        """An object was added or changed; returns the uids to check."""
        known = self.nodes.get(node.uid)
        self.nodes[node.uid] = node
        self._link(node.uid, known.owners if known else (), node.owners)
        wake = [node.uid] if self._concerns(known, node) else []
        if known is not None and known.owners != node.owners:
            # An owner that waits for its dependents may no longer wait for this one.
            wake += [owner.uid for owner in known.owners if self._waits(owner.uid)]
        if node.deletes_dependents and not (known and known.deletes_dependents):
            wake += self.dependents.get(node.uid, ())
        return wake

    def remove(self, uid: str) -> list[str]:
        """An object is gone: its dependents lost an owner, its owners perhaps the last dependent they waited for."""
        known = self.nodes.pop(uid, None)
        if known is None:
            return []
        self._link(uid, known.owners, ())
        waiting = [owner.uid for owner in known.owners if self._waits(owner.uid)]
        return [*self.dependents.get(uid, ()), *waiting]

    def blocking_dependents(self, uid: str) -> list[Node]:
        """The dependents for which a foreground deletion of the owner waits. Upstream: blockingDependents."""
        return [node for node in self.dependents_of(uid) if any(ref.uid == uid and ref.blocks for ref in node.owners)]

    def dependents_of(self, uid: str) -> list[Node]:
        return [self.nodes[other] for other in self.dependents.get(uid, ()) if other in self.nodes]

    def _waits(self, uid: str) -> bool:
        owner = self.nodes.get(uid)
        return owner is not None and owner.deletes_dependents

    def _concerns(self, known: Node | None, node: Node) -> bool:
        if node.orphans_dependents or node.deletes_dependents:
            return True
        if not node.owners or node.deleting:
            return False
        return known is None or known.owners != node.owners

    def _link(self, uid: str, before: Iterable[Reference], after: Iterable[Reference]) -> None:
        kept = {owner.uid for owner in after}
        for owner in before:
            if owner.uid not in kept:
                others = self.dependents.get(owner.uid)
                if others is not None:
                    others.discard(uid)
                    if not others:
                        del self.dependents[owner.uid]
        for owner_uid in kept:
            self.dependents.setdefault(owner_uid, set()).add(uid)
