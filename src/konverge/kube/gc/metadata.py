"""The part of an object's metadata that garbage collection is about, decoded from cached bytes or a live answer."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from konverge.objects.resource import Resource

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Identity(NamedTuple):
    """Which object: its coordinates and its uid. Sorted as upstream does (referenceLessThan)."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    # upstream: objectReference.String
    def __str__(self) -> str:
        return f"[{self.api_version}/{self.kind}, namespace: {self.namespace}, name: {self.name}, uid: {self.uid}]"


class Reference(NamedTuple):
    """An owner as a dependent names it."""

    kind: str
    api_version: str
    name: str
    uid: str
    blocks: bool = False
    """blockOwnerDeletion: a foreground deletion of the owner waits for the dependent."""

    def identity(self, namespace: str) -> Identity:
        """The object that is meant, if the owner's kind lives in this namespace."""
        return Identity(self.kind, self.api_version, namespace, self.name, self.uid)

    def names(self, identity: Identity) -> bool:
        """Whether these are the coordinates. Upstream: ownerReferenceMatchesCoordinates."""
        return self.identity(identity.namespace) == identity


class Metadata(NamedTuple):
    """What an object says about its owners and its deletion."""

    namespace: str
    name: str
    uid: str
    version: str
    owners: tuple[Reference, ...]
    finalizers: tuple[str, ...]
    deleting: bool

    @property
    def deletes_dependents(self) -> bool:
        return self.deleting and FOREGROUND in self.finalizers

    # upstream: deletionStartsWithFinalizer
    def starts_deletion(self, finalizer: str, before: Metadata | None) -> bool:
        if not self.deleting or finalizer not in self.finalizers:
            return False
        return before is None or not before.deleting or finalizer not in before.finalizers

    def identity(self, resource: Resource) -> Identity:
        return Identity(resource.kind, resource.api_version, self.namespace, self.name, self.uid)


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
    resource_version: str = ""
    owner_references: list[_Owner] | None = None
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None


class _Head(msgspec.Struct, gc=False):
    metadata: _Meta


_head = msgspec.json.Decoder(_Head)


def read_metadata(data: bytes) -> Metadata:
    """The metadata of an object in JSON. Raises `msgspec.DecodeError` if there is none, or no uid."""
    meta = _head.decode(data).metadata
    if not meta.uid:
        raise msgspec.ValidationError(f"the object {meta.name!r} has no uid")
    owners = tuple(
        Reference(owner.kind, owner.api_version, owner.name, owner.uid, bool(owner.block_owner_deletion))
        for owner in meta.owner_references or ()
    )
    finalizers, deleting = tuple(meta.finalizers or ()), bool(meta.deletion_timestamp)
    return Metadata(meta.namespace, meta.name, meta.uid, meta.resource_version, owners, finalizers, deleting)
