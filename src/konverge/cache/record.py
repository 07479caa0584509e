"""What the cache keeps of an object: its JSON bytes, its version, its uid and its generation.

A typed object is decoded at every read, so no reader can change the cache. Bytes and gc-free structs are invisible to
the garbage collector: a full collection over a hundred thousand cached objects costs nothing, where one over as many
dicts would stop the loop for seconds. `managedFields` are cut out before storing: no reconciler reads them, and they
are a third of many objects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec

from konverge.cache.deep import cut_below


class Key(NamedTuple):
    """The key of an object: namespace (empty for cluster-scoped kinds) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Owner(msgspec.Struct, gc=False, rename="camel"):
    """The part of an owner reference that maps an object to its owner."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class Meta(msgspec.Struct, gc=False, rename="camel"):
    """The metadata that mapping, selectors and indexes use. Decoded from the bytes in one or two microseconds."""

    name: str
    resource_version: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    owner_references: list[Owner] = []
    deletion_timestamp: str = ""


class _Head(msgspec.Struct, gc=False):
    metadata: Meta


class _Annotations(msgspec.Struct, gc=False):
    annotations: dict[str, str] = {}


class _AnnotatedHead(msgspec.Struct, gc=False):
    metadata: _Annotations


class _Incoming(Meta, gc=False):
    managed_fields: msgspec.Raw = msgspec.Raw()


class _IncomingHead(msgspec.Struct, gc=False):
    metadata: _Incoming


class Record(msgspec.Struct, gc=False, frozen=True):
    """One cached object. `version` is its resourceVersion as a number (comparable since Kubernetes 1.35)."""

    raw: bytes
    version: int
    uid: str
    generation: int
    contains: bytes = b""
    """The digest of the desired object that was found in this one more than once: it need not be compared again. What
    the cache knows later of the object is another record."""

    @property
    def meta(self) -> Meta:
        return _head.decode(self.raw).metadata

    @property
    def annotations(self) -> dict[str, str]:
        return _annotated.decode(self.raw).metadata.annotations


_annotated = msgspec.json.Decoder(_AnnotatedHead)
_head = msgspec.json.Decoder(_Head)
_read_incoming = msgspec.json.Decoder(_IncomingHead).decode

_MANAGED = b'"managedFields":'
_MANAGED_SIZE = len(_MANAGED)
_NOTHING = msgspec.Raw()
new_key: Callable[[tuple[str, str]], Key] = partial(tuple.__new__, Key)
"""What the constructor of a NamedTuple does, without its arguments: for what is called for every object."""
_COMMA = ord(",")


def receiver(field_manager: str = "") -> Callable[[bytes], tuple[Key, Record, Meta]]:
    """A function that turns an object as it came from the wire into its key, its record, and its metadata for immediate
    use. Of managedFields, one manager's part is kept.
    """
    signature = f'"{field_manager}"'.encode()

    def receive(data: bytes) -> tuple[Key, Record, Meta]:
        meta = _read_incoming(data).metadata
        if meta.managed_fields:
            managed = bytes(meta.managed_fields)
            kept = _applied_by(field_manager, managed) if field_manager and signature in managed else b""
            data = _trim_managed_fields(data, managed, kept)
            meta.managed_fields = _NOTHING  # the Raw value would keep the whole message alive
        version = meta.resource_version
        record = Record(data, int(version) if version.isdigit() else 0, meta.uid, meta.generation)
        return new_key((meta.namespace, meta.name)), record, meta

    return receive


receive = receiver()


class _LooseMeta(msgspec.Struct, gc=False, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _LooseHead(msgspec.Struct, gc=False):
    metadata: _LooseMeta


_read_loosely = msgspec.json.Decoder(_LooseHead).decode


def identify(data: bytes) -> tuple[Key, int, str]:
    """Key, version and uid of an object that cannot be received otherwise. Raises a DecodeError if it has none."""
    try:
        meta = _read_loosely(data).metadata
    except RecursionError:
        meta = _read_loosely(cut_below(data, 2)[0]).metadata
    return Key(meta.namespace, meta.name), number(meta.resource_version), meta.uid


def number(resource_version: str) -> int:
    """A resourceVersion as a number, for comparisons. Servers before 1.35 might send an opaque text: then 0, which is
    never newer.
    """
    return int(resource_version) if resource_version.isdigit() else 0


class _Entry(msgspec.Struct, gc=False):
    manager: str = ""
    operation: str = ""


_entries = msgspec.json.Decoder(list[msgspec.Raw])
_entry = msgspec.json.Decoder(_Entry)


def _trim_managed_fields(data: bytes, value: bytes, kept: bytes) -> bytes:
    """Remove managedFields, or replace them by what is kept; the JSON around them stays as it is.

    The metadata comes first in practice, and a field of that name deeper in the object would need the same value to be
    mistaken for it.
    """
    start = data.find(_MANAGED)
    while not data.startswith(value, start + _MANAGED_SIZE):
        start = data.find(_MANAGED, start + 1)
        if start < 0:
            return data  # with a space before the value: it stays
    end = start + _MANAGED_SIZE + len(value)
    if kept:
        return data[: start + _MANAGED_SIZE] + kept + data[end:]
    if data[start - 1] == _COMMA:
        start -= 1
    elif data[end] == _COMMA:
        end += 1
    else:
        return data  # with a space on the side of its comma: it stays
    return data[:start] + data[end:]


def _applied_by(manager: str, value: bytes) -> bytes:
    """The entries of managedFields that a manager applied, as a JSON list; empty when there are none."""
    kept = [bytes(raw) for raw in _entries.decode(value) if _is_applied_by(raw, manager)]
    return b"[%b]" % b",".join(kept) if kept else b""


def _is_applied_by(raw: msgspec.Raw, manager: str) -> bool:
    entry = _entry.decode(raw)
    return entry.manager == manager and entry.operation == "Apply"
