"""managedFields between a resource and its /scale.

To a writer of /scale the only field is `spec.replicas` of autoscaling/v1; in the resource that field may stand
elsewhere (custom resources say where). Taking it through /scale takes it from the resource's managers.
Upstream: apimachinery/pkg/util/managedfields/scalehandler.go.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.merge import field_set
from konverge.apiserver.merge.managed_entries import EntryError, Managers, decode, encode
from konverge.apiserver.strategy import Obj

SCALE_VERSION = "autoscaling/v1"
_IN_SCALE = ("f:spec", "f:replicas")


def replicas_path(path: str = ".spec.replicas") -> tuple[str, ...]:
    """The path elements of a CRD's `specReplicasPath`."""
    return tuple(f"f:{name}" for name in path.lstrip(".").split("."))


def to_scale(entries: Any, path: tuple[str, ...]) -> list[Obj]:
    """The entries of the resource that own its replicas, as entries of its Scale."""
    managers: Managers = {}
    for identity, entry in _read(entries).items():
        if field_set.has(entry.fields, path):
            managers[identity] = entry._replace(api_version=SCALE_VERSION, fields=field_set.of(_IN_SCALE))
    return encode(managers)


def to_parent(entries: Any, scale_entries: Any, path: tuple[str, ...], api_version: str) -> list[Obj]:
    """The resource's entries after its Scale has been written."""
    # Identities of updates contain the version, so an update of the resource is never found among those of its Scale:
    # its entry is split in two, as on the upstream server.
    parents, scales = _read(entries), _read(scale_entries)
    managers: Managers = {}
    for identity, entry in parents.items():
        if not field_set.has(entry.fields, path):
            managers[identity] = entry
        elif identity in scales:
            managers[identity] = entry
            del scales[identity]
        elif fields := field_set.difference(entry.fields, field_set.of(path)):
            managers[identity] = entry._replace(fields=fields)
    for identity, entry in scales.items():
        if field_set.has(entry.fields, _IN_SCALE):
            time = parents[identity].time if identity in parents else None
            managers[identity] = entry._replace(api_version=api_version, fields=field_set.of(path), time=time)
    return encode(managers)


def _read(entries: Any) -> Managers:
    try:
        return decode(entries)
    except EntryError:
        return {}
