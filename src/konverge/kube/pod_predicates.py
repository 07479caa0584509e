"""Pod news that count: most changes of a pod say nothing about where it is and whether it serves.

Pods are what changes most in a cluster. Who is interested in their readiness only asks here first, before anybody
decodes the whole of them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from konverge.cache import Change
from konverge.cache.record import Meta, Record


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


def moved(change: Change) -> bool:
    """Whether a pod's change matters to the Services in front of it."""
    if change.old is None or change.new is None:
        return True
    before, now = change.old.meta, change.new.meta
    if before.labels != now.labels or before.deletion_timestamp != now.deletion_timestamp:
        return True
    return _facts(change.old) != _facts(change.new)


def _facts(record: Record) -> tuple[object, ...]:
    view = _view(record.raw)
    ready = any(c.type == "Ready" and c.status == "True" for c in view.status.conditions)
    spec, status = view.spec, view.status
    return ready, status.phase, status.pod_ips, spec.node_name, spec.hostname, spec.subdomain


def placed(change: Change) -> bool:
    """Whether a pod came to a node, is about to go, or ended."""
    if change.new is None:
        return False
    view, over = _view(change.new.raw), _is_over(change.new)
    now = (view.spec.node_name, change.new.meta.deletion_timestamp, over)
    if change.old is None:
        return any(now)
    before = _view(change.old.raw)
    return now != (before.spec.node_name, change.old.meta.deletion_timestamp, _is_over(change.old))


def _is_over(record: Record) -> bool:
    return _view(record.raw).status.phase in ("Succeeded", "Failed")
