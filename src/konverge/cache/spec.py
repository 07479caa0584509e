"""What a cache holds (`CacheSpec`), and what it keeps of each object.

A whole cache keeps objects as the server sends them, less managedFields. A partial one keeps less, and never less than
the metadata that mapping, selectors and indexes need (`Meta`): a projection without it is refused when it is declared,
an object whose transform drops it is quarantined.

Upstream: Options of controller-runtime's pkg/cache (ByObject, Transform) and its metadata-only watches.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec

from konverge.cache.record import Key, Meta, Owner, Record, receiver
from konverge.cache.reflector import Scope
from konverge.objects.codec import decoder, encode_hook
from konverge.objects.meta import Object, metadata_of
from konverge.objects.resource import Resource

Transform: TypeAlias = Callable[[dict[str, Any]], dict[str, Any] | bytes]
"""From an object to what is kept of it: as a dict, or as JSON."""
Receive: TypeAlias = Callable[[bytes], tuple[Key, Record, Meta]]


class CacheSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache holds, and in which form. Equal specifications share one informer.

    `metadata_only` asks the server for metadata alone. `projection` is a msgspec Struct with the fields that are read;
    the rest is not kept. `transform` changes or trims each object before it is stored; with both, the projection is
    applied to what the transform returns.
    """

    resource: Resource
    namespaces: tuple[str, ...] = ()
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    field_manager: str = ""
    """The manager whose part of managedFields is kept; the other parts are not."""
    projection: type[msgspec.Struct] | None = None
    transform: Transform | None = None
    max_objects: int = 0
    """An upper bound (INFORMER_CACHE_SIZE); 0 is none."""
    list_timeout: float = 60.0
    streaming: bool = True
    """Ask for the first state as a stream (ENABLE_INCREMENTAL_SYNC); servers that cannot do that are asked for
    pages."""

    @property
    def selective(self) -> bool:
        """Whether a selector leaves objects out."""
        return bool(self.label_selector or self.field_selector)

    @property
    def whole(self) -> bool:
        """Whether objects are kept as they are, but for managedFields."""
        return not self.metadata_only and self.projection is None and self.transform is None

    def read_as(self, kind: type[Object]) -> type[Any]:
        """The class of what is kept of a kind's objects."""
        if self.metadata_only:
            return metadata_of(kind)
        return self.projection or kind

    def scopes(self) -> list[Scope]:
        return [
            Scope(
                resource=self.resource,
                namespace=namespace,
                label_selector=self.label_selector,
                field_selector=self.field_selector,
                metadata_only=self.metadata_only,
            )
            for namespace in (self.namespaces or ("",))
        ]

    def __str__(self) -> str:
        where = f" in {', '.join(self.namespaces)}" if self.namespaces else ""
        selectors = [selector for selector in (self.label_selector, self.field_selector) if selector]
        which = f" with {' and '.join(selectors)}" if selectors else ""
        form = f" ({', '.join(self._form())})" if not self.whole else ""
        return f"{self.resource.group_resource}{where}{which}{form}"

    def _form(self) -> list[str]:
        parts = ["metadata only"] if self.metadata_only else []
        if self.transform is not None:
            parts.append(f"changed by {getattr(self.transform, '__qualname__', repr(self.transform))}")
        if self.projection is not None:
            parts.append(f"as {self.projection.__name__}")
        return parts


def receiver_for(spec: CacheSpec) -> Receive:
    """The function that turns an object as it came from the wire into what this cache keeps of it."""
    plain = receiver(spec.field_manager)
    if spec.whole:
        return plain
    shape = _shape(spec)

    def shaped(data: bytes) -> tuple[Key, Record, Meta]:
        key, record, meta = plain(data)
        kept = shape(record.raw)
        if _needed(_read_meta(kept).metadata) != _needed(meta):
            raise ValueError(
                "the cache's transform changed metadata that the cache needs: keep name, namespace, uid, "
                "resourceVersion, generation, labels, ownerReferences and deletionTimestamp as they are"
            )
        return key, msgspec.structs.replace(record, raw=kept), meta

    def bare(data: bytes) -> tuple[Key, Record, Meta]:
        return plain(_metadata_alone(data))

    return bare if shape is _metadata_alone else shaped


def check_projection(projection: type[msgspec.Struct]) -> None:
    """Raise TypeError for a projection that would drop metadata which every cache needs."""
    try:
        kept = _projected(projection)(_SAMPLE)
        missing = _differences(_read_meta(kept).metadata)
    except (msgspec.MsgspecError, TypeError) as error:
        raise TypeError(
            f"{projection.__name__} cannot be a projection, as an object with nothing but metadata cannot be read "
            f"as it ({error}): derive it from konverge.objects.Object and give its fields defaults"
        ) from error
    if missing:
        raise TypeError(
            f"{projection.__name__} cannot be a projection, as it drops metadata.{', metadata.'.join(missing)}: "
            "derive it from konverge.objects.Object, which has all metadata"
        )


# ------------------------------------------------------------------ what is kept

_Shape = Callable[[bytes], bytes]


class _Metadata(msgspec.Struct, gc=False):
    metadata: msgspec.Raw


class _Head(msgspec.Struct, gc=False):
    metadata: Meta


_metadata = msgspec.json.Decoder(_Metadata)
_read_meta = msgspec.json.Decoder(_Head).decode
_needed = attrgetter(*Meta.__struct_fields__)
_encode = msgspec.json.Encoder(enc_hook=encode_hook).encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def _shape(spec: CacheSpec) -> _Shape:
    steps: list[_Shape] = [_metadata_alone] if spec.metadata_only else []
    if spec.transform is not None:
        steps.append(_transformed(spec.transform))
    if spec.projection is not None:
        check_projection(spec.projection)
        steps.append(_projected(spec.projection))
    if len(steps) == 1:
        return steps[0]

    def shape(data: bytes) -> bytes:
        for step in steps:
            data = step(data)
        return data

    return shape


def _metadata_alone(data: bytes) -> bytes:
    """The metadata, also where the server sent the whole object: one that cannot send less is allowed to. Neither kind
    nor apiVersion is kept; the reader's class has them, and the server says PartialObjectMetadata."""
    return b'{"metadata":%b}' % bytes(_metadata.decode(data).metadata)


def _projected(projection: type[msgspec.Struct]) -> _Shape:
    read = decoder(projection).decode
    return lambda data: _encode(read(data))


def _transformed(transform: Transform) -> _Shape:
    def shape(data: bytes) -> bytes:
        result: Any = transform(_decode(data))
        if isinstance(result, bytes):
            return result
        if not isinstance(result, dict):
            raise TypeError(f"a cache's transform returns a dict or bytes, not {type(result).__name__}")
        return _encode(result)

    return shape


_OWNER = Owner("v1", "Sample", "sample", "uid", True)
_FULL = Meta("sample", "1", "sample", "uid", 1, {"sample": "yes"}, [_OWNER], "2006-01-02T15:04:05Z")
_SAMPLE = msgspec.json.encode({"metadata": _FULL})


def _differences(kept: Meta) -> list[str]:
    names = zip(Meta.__struct_fields__, Meta.__struct_encode_fields__, strict=True)
    return [wire_name for name, wire_name in names if getattr(kept, name) != getattr(_FULL, name)]
