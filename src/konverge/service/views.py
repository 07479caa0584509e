"""From a resource, as the API server gave it, to the instance that callers see. Pure, and forgiving.

The resource may have been written under another definition, so nothing of it is taken for granted: what is not of the
form that is expected reads as if it were not there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.operators.nacos.resource import PAUSE
from konverge.operators.nacos.versions import version_of_image
from konverge.service.models import Happening, Instance, Server, State, Storage
from konverge.service.redaction import Obj, in_text, shown

_CLUSTER_SIZE = 3
_TOLD = frozenset(("type", "image", "replicas", "resources", "volume", "database", "postgres"))
"""What is told of a spec: the rest need not even be cleaned, and a list has many."""


def instance(resource: Obj) -> Instance:
    """What callers see of a resource."""
    spec = {key: part for key, part in _map(resource, "spec").items() if key in _TOLD}
    clean = shown({**resource, "spec": spec})
    meta, spec, status = (_map(clean, name) for name in ("metadata", "spec", "status"))
    conditions = [_state(one) for one in _maps(status, "kubeConditions")]
    kind = _text(spec, "type") or "standalone"
    image = _text(spec, "image")
    return Instance(
        name=_text(meta, "name"),
        namespace=_text(meta, "namespace"),
        uid=_text(meta, "uid"),
        resource_version=_text(meta, "resourceVersion"),
        created=_text(meta, "creationTimestamp"),
        deleting=bool(_text(meta, "deletionTimestamp")),
        paused=_text(_map(meta, "annotations"), PAUSE) == "true",
        labels={key: value for key, value in _map(meta, "labels").items() if isinstance(value, str)},
        type=kind,
        image=image,
        version=_text(status, "version") or _announced(image),
        replicas=_number(spec, "replicas", _CLUSTER_SIZE if kind == "cluster" else 1),
        ready_replicas=_number(status, "readyReplicas"),
        phase=_text(status, "phase") or "Pending",
        healthy=status.get("healthy") is True,
        up_to_date=_number(status, "observedGeneration") == _number(meta, "generation", -1),
        leader=_text(status, "leader"),
        message=_trouble(conditions),
        resources=_map(spec, "resources"),
        storage=_storage(spec),
        servers=[_server(one) for one in _maps(status, "conditions")],
        conditions=conditions,
    )


def happening(event: Obj) -> Happening:
    """What callers see of an Event of Kubernetes. Newer clients write its times elsewhere than older ones."""
    series = _map(event, "series")
    when = _text(event, "eventTime") or _text(_map(event, "metadata"), "creationTimestamp")
    first = _text(event, "firstTimestamp") or when
    return Happening(
        type=_text(event, "type"),
        reason=_text(event, "reason"),
        message=in_text(_text(event, "message")),
        count=_number(series, "count") or _number(event, "count", 1),
        first=first,
        last=_text(series, "lastObservedTime") or _text(event, "lastTimestamp") or first,
    )


def _server(found: Obj) -> Server:
    return Server(
        pod=_text(found, "podName"),
        role=_text(found, "type"),
        ready=_text(found, "status").lower() == "true",
        address=_text(found, "instance"),
        node=_text(found, "nodeName"),
        message=_text(found, "message"),
    )


def _state(found: Obj) -> State:
    return State(
        type=_text(found, "type"),
        status=_text(found, "status"),
        reason=_text(found, "reason"),
        message=_text(found, "message"),
        since=_text(found, "lastTransitionTime"),
    )


def _trouble(conditions: Iterable[State]) -> str:
    ready = next((one for one in conditions if one.type == "Ready"), State())
    return ready.message if ready.status != "True" else ""


def _storage(spec: Obj) -> Storage:
    volume = _map(spec, "volume")
    claim = _map(_map(_map(_map(volume, "volumeClaimTemplate"), "spec"), "resources"), "requests")
    size = _map(volume, "requests").get("storage") or claim.get("storage") or volume.get("persistentVolumeSize") or ""
    return Storage(
        database=_database(spec),
        volume=volume.get("enabled") is True,
        size=str(size),
        storage_class=_text(volume, "storageClass"),
    )


def _database(spec: Obj) -> str:
    named = _text(_map(spec, "database"), "type")
    if named == "mysql":
        return named
    return "postgresql" if named.startswith("postgres") or _text(_map(spec, "postgres"), "host") else "embedded"


def _announced(image: str) -> str:
    """By the image's tag, until the servers have said themselves."""
    found = version_of_image(image)
    return str(found) if found.known else ""


def _map(obj: Obj, name: str) -> Obj:
    found = obj.get(name)
    return found if isinstance(found, dict) else {}


def _maps(obj: Obj, name: str) -> list[Obj]:
    found = obj.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _text(obj: Obj, name: str) -> str:
    found: Any = obj.get(name)
    return found if isinstance(found, str) else ""


def _number(obj: Obj, name: str, default: int = 0) -> int:
    found: Any = obj.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) else default
