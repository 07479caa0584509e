"""Graph nodes from cached records and from live objects."""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.cache import Record
from konverge.kube.gc.graph import Node, Reference
from konverge.objects.resource import Resource


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
    """What the collector needs to know of an object."""
    head = _head.decode(source.raw) if isinstance(source, Record) else msgspec.convert(source, _Head)
    meta = head.metadata
    owners = tuple(
        Reference(owner.api_version, owner.kind, owner.name, owner.uid, bool(owner.block_owner_deletion))
        for owner in meta.owner_references
    )
    return Node(
        resource, meta.namespace, meta.name, meta.uid, owners, tuple(meta.finalizers), bool(meta.deletion_timestamp)
    )
