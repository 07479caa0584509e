"""What a Wukong refers to by name: objects of others that a reconcile depends on, so that their change leads to one."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from konverge.cache.record import Meta, Record
from konverge.objects import Object, from_dict, from_json
from konverge.operators.wukong import effective_spec
from konverge.operators.wukong.resource import AnyWukong, Wukong
from konverge.operators.wukong.spec import WukongSpec
from konverge.runtime import Request
from konverge.runtime.context import Caches

REFERS = "refers"
"""The index of Wukongs by what they refer to: `Secret ns/name`."""


def refers_to(record: Record, meta: Meta) -> Iterable[str]:
    """Everything that a Wukong names, or that is named after it without being owned."""
    obj = from_json(AnyWukong, record.raw)
    try:
        wukong = Wukong(metadata=obj.metadata, spec=from_dict(WukongSpec, obj.spec))
    except msgspec.ValidationError:
        return ()
    return [f"{kind} {where or meta.namespace}/{name}" for kind, where, name in _named(wukong)]


def _named(wukong: Wukong) -> Iterable[tuple[str, str, str]]:
    spec = wukong.spec
    for disk in spec.disks:
        claim = effective_spec.claim_name(wukong, disk)
        yield "PersistentVolumeClaim", "", claim
        if effective_spec.source_of(spec, disk) is not None:
            yield "DataVolume", "", claim
    for network in spec.networks:
        namespace, _, name = effective_spec.attachment_name(wukong, network).rpartition("/")
        if name:
            yield "NetworkAttachmentDefinition", namespace, name
    for secret in sorted(effective_spec.secrets_read(spec) | effective_spec.secrets_mounted(spec)):
        yield "Secret", "", secret
    if spec.restore_from_snapshot:
        yield "WukongSnapshot", "", spec.restore_from_snapshot


def referred_by(obj: Object, caches: Caches) -> Iterable[Request]:
    """The Wukongs that refer to an object."""
    lister, meta = caches.lister(AnyWukong), obj.metadata
    value = f"{type(obj).resource.kind} {meta.namespace}/{meta.name}"
    return () if lister is None else lister.informer.keys_by_index(REFERS, value)
