"""From a resource of the API server to the instance that callers see. Pure, and lenient.

The resource may have been written under another definition, so nothing is assumed about it: a field of an unexpected
form reads as if it were missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.operators.nacos.resource import PAUSE
from konverge.operators.nacos.versions import version_of_image
from konverge.service.models import Happening, Instance, Server, State, Storage, Upgrade
from konverge.service.redaction import Obj, in_text, shown

_CLUSTER_SIZE = 3
_SHOWN = frozenset(("type", "image", "replicas", "hibernate", "resources", "volume", "database", "postgres"))
"""The fields of a spec that callers see: the others need not be redacted, which saves time in long lists."""


def instance(resource: Obj) -> Instance:
    """The instance that callers see of a resource."""
    spec = {key: part for key, part in _map(resource, "spec").items() if key in _SHOWN}
    clean = shown({**resource, "spec": spec})
    meta, spec, status = (_map(clean, name) for name in ("metadata", "spec", "status"))
    conditions = [*map(_state, _maps(status, "kubeConditions"))]
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
        hibernate=spec.get("hibernate") is True,
        labels={key: value for key, value in _map(meta, "labels").items() if isinstance(value, str)},
        type=kind,
        image=image,
        version=_text(status, "version") or _version_of_tag(image),
        replicas=_number(spec, "replicas", _CLUSTER_SIZE if kind == "cluster" else 1),
        ready_replicas=_number(status, "readyReplicas"),
        phase=_text(status, "phase") or "Pending",
        healthy=status.get("healthy") is True,
        up_to_date=_number(status, "observedGeneration") == _number(meta, "generation", -1),
        leader=_text(status, "leader"),
        message=_why_not_ready(conditions),
        resources=_map(spec, "resources"),
        storage=_storage(spec),
        upgrade=_upgrade(_map(status, "upgrade")),
        servers=[_server(entry) for entry in _maps(status, "conditions") if _text(entry, "podName")],
        conditions=conditions,
    )


def happening(event: Obj) -> Happening:
    """The Event that callers see. Newer clients write its times into other fields than older ones."""
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


def _server(entry: Obj) -> Server:
    return Server(
        pod=_text(entry, "podName"),
        role=_text(entry, "type"),
        ready=_text(entry, "status").lower() == "true",
        address=_text(entry, "instance"),
        node=_text(entry, "nodeName"),
        message=_text(entry, "message"),
    )


def _state(condition: Obj) -> State:
    return State(
        type=_text(condition, "type"),
        status=_text(condition, "status"),
        reason=_text(condition, "reason"),
        message=_text(condition, "message"),
        since=_text(condition, "lastTransitionTime"),
    )


def _upgrade(record: Obj) -> Upgrade | None:
    if not _text(record, "to"):
        return None
    done = record.get("membersDone")
    return Upgrade(
        from_version=_text(record, "from"),
        to=_text(record, "to"),
        step=_text(record, "step"),
        since=_text(record, "since"),
        halted=_text(record, "halted"),
        message=_text(record, "message"),
        members_done=[pod for pod in done if isinstance(pod, str)] if isinstance(done, list) else [],
        backup=_text(record, "backup"),
    )


def _why_not_ready(conditions: Iterable[State]) -> str:
    ready = next((condition for condition in conditions if condition.type == "Ready"), State())
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


def _version_of_tag(image: str) -> str:
    version = version_of_image(image)
    return str(version) if version.known else ""


def _map(obj: Obj, name: str) -> Obj:
    value = obj.get(name)
    return value if isinstance(value, dict) else {}


def _maps(obj: Obj, name: str) -> list[Obj]:
    value = obj.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(obj: Obj, name: str) -> str:
    value: Any = obj.get(name)
    return value if isinstance(value, str) else ""


def _number(obj: Obj, name: str, default: int = 0) -> int:
    value: Any = obj.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else default
