"""Predicates and indexes of pods: most changes of a pod concern neither its node nor whether it serves.

Pods change more than any other kind in a cluster. These functions decode the few fields that they need, so that a
controller decodes the whole pod only when the change concerns it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from konverge.cache import Change
from konverge.cache.record import Meta, Record
from konverge.runtime.predicates import ChangePredicate


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""


class _Address(msgspec.Struct, gc=False, frozen=True):
    ip: str = ""


class _Condition(msgspec.Struct, gc=False):
    type: str
    status: str = ""


class _Status(msgspec.Struct, gc=False, rename="camel"):
    phase: str = ""
    pod_ips: list[_Address] = msgspec.field(name="podIPs", default=[])
    conditions: list[_Condition] = []


class _View(msgspec.Struct, gc=False):
    """Where a pod is and whether it serves."""

    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_view = msgspec.json.Decoder(_View).decode


def by_node(record: Record, meta: Meta) -> Iterable[str]:
    """An index function: the node that a pod is on."""
    name = _view(record.raw).spec.node_name
    return (name,) if name else ()


@ChangePredicate
def moved(change: Change) -> bool:
    """Whether a pod's change concerns the Services that select it. Upstream: podEndpointsChanged."""
    if change.old is None or change.new is None:
        return True
    before, now = change.old.meta, change.new.meta
    if before.labels != now.labels or before.deletion_timestamp != now.deletion_timestamp:
        return True
    return _serving_fields(change.old) != _serving_fields(change.new)


def _serving_fields(record: Record) -> tuple[object, ...]:
    view = _view(record.raw)
    ready = any(c.type == "Ready" and c.status == "True" for c in view.status.conditions)
    spec, status = view.spec, view.status
    return ready, status.phase, status.pod_ips, spec.node_name, spec.hostname, spec.subdomain


@ChangePredicate
def placed(change: Change) -> bool:
    """Whether a pod was bound to a node, is being deleted, or ended."""
    if change.new is None:
        return False
    now = (_view(change.new.raw).spec.node_name, change.new.meta.deletion_timestamp, has_ended(change.new.raw))
    if change.old is None:
        return any(now)
    old = change.old
    return now != (_view(old.raw).spec.node_name, old.meta.deletion_timestamp, has_ended(old.raw))


def has_ended(raw: bytes) -> bool:
    """Whether a pod has ended. The bytes are searched and not decoded: this is asked for every pod of a cluster."""
    return b'"phase":"Succeeded"' in raw or b'"phase":"Failed"' in raw
