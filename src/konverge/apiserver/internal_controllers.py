"""Controllers that run in the API server itself: the conditions of FlowSchemas and APIServices.

Each follows a table and, in the loop's next turn, writes the condition that the present state requires. A condition
that says the same already is left alone, so that no write causes another one. After the disk has failed, all conditions
are looked at again: some may not have been written, or not have stayed.

Upstream: apiserver/pkg/util/flowcontrol/apf_controller.go, kube-aggregator/pkg/controllers/status.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.object_access import Objects
from konverge.apiserver.storage import Event, Store
from konverge.apiserver.storage.failures import Failed
from konverge.apiserver.strategy import Obj

FLOW = "flowcontrol.apiserver.k8s.io"
REGISTRATION = "apiregistration.k8s.io"
_FOLLOWED = ((FLOW, "flowschemas"), (REGISTRATION, "apiservices"))

Condition = Callable[[Obj], Obj | None]


class InternalControllers:
    """Keeps conditions in step with what is stored."""

    def __init__(self, store: Store, objects: Objects) -> None:
        self._store = store
        self._objects = objects
        self._pending: set[tuple[str, str]] = set()

    def start(self) -> None:
        for group, plural in _FOLLOWED:
            self._store.subscribe(f"{group}/{plural}", self._follower(group, plural))
        self._store.subscribe(f"{FLOW}/prioritylevelconfigurations", self._levels_changed)
        self._store.on_recovery(self._check_all)

    def _check_all(self) -> None:
        for group, plural in _FOLLOWED:
            for record in self._objects.records(group, plural):
                self._later(group, plural, record.name)

    def _follower(self, group: str, plural: str) -> Callable[[Event], None]:
        def follow(event: Event) -> None:
            if event.record is not None:
                self._later(group, plural, event.key)

        return follow

    def _levels_changed(self, event: Event) -> None:
        if event.record is None or event.old is None:
            for record in self._objects.records(FLOW, "flowschemas"):
                self._later(FLOW, "flowschemas", record.name)

    def _later(self, group: str, plural: str, name: str) -> None:
        if (plural, name) not in self._pending:
            self._pending.add((plural, name))
            asyncio.get_running_loop().call_soon(self._settle, group, plural, name)

    def _settle(self, group: str, plural: str, name: str) -> None:
        self._pending.discard((plural, name))
        change = self._dangling if plural == "flowschemas" else self._available
        with contextlib.suppress(Failed):  # `_check_all` comes when the disk works again
            self._objects.update(group, plural, "", name, change)

    def _dangling(self, schema: Obj) -> Obj | None:
        level = schema["spec"]["priorityLevelConfiguration"]["name"]
        exists = self._objects.exists(FLOW, "prioritylevelconfigurations", "", level)
        what = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}"'
        condition = {
            "type": "Dangling",
            "status": "False" if exists else "True",
            "reason": "Found" if exists else "NotFound",
            "message": f"{what} and it exists" if exists else f"{what} but there is no such object",
        }
        owner = {"manager": "api-priority-and-fairness-config-consumer-v1", "operation": "Apply"}
        _set(schema, condition, {**owner, "apiVersion": f"{FLOW}/v1"}, nested=False)
        return None

    def _available(self, service: Obj) -> Obj | None:
        target = service["spec"].get("service")
        if target is None:
            return None
        namespace, name = target["namespace"], target["name"]
        condition = {"type": "Available", "status": "False"}
        if not self._objects.exists("", "services", namespace, name):
            condition |= {"reason": "ServiceNotFound", "message": f'service/{name} in "{namespace}" is not present'}
        else:
            message = f'endpoints for service/{name} in "{namespace}" have no addresses with port name ""'
            condition |= {"reason": "MissingEndpoints", "message": message}
        owner = {"manager": "kube-apiserver", "operation": "Update", "apiVersion": f"{REGISTRATION}/v1"}
        _set(service, condition, owner, nested=True)
        return None


def _set(obj: Obj, condition: Obj, owner: Obj, *, nested: bool) -> None:
    """Write a condition and its owner, unless it says the same already."""
    conditions = obj.setdefault("status", {}).get("conditions") or []
    old = next((present for present in conditions if present["type"] == condition["type"]), None)
    if old is not None and all(old.get(name) == value for name, value in condition.items()):
        return
    time = timestamp()
    changed = old["lastTransitionTime"] if old is not None and old["status"] == condition["status"] else time
    others = [present for present in conditions if present is not old]
    obj["status"]["conditions"] = [*others, {**condition, "lastTransitionTime": changed}]
    metadata, entries = obj["metadata"], obj["metadata"].get("managedFields") or []
    kept = [other for other in entries if (other["manager"], other.get("subresource")) != (owner["manager"], "status")]
    fields = _fields(condition["type"], nested)
    entry = {**owner, "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": "status"}
    metadata["managedFields"] = [*kept, entry]


def _fields(kind: str, nested: bool) -> dict[str, Any]:
    """The fields of one condition; an update owns the list as well, an apply does not."""
    members: dict[str, Any] = {".": {}}
    members |= {f"f:{name}": {} for name in ("lastTransitionTime", "message", "reason", "status", "type")}
    conditions: dict[str, Any] = {".": {}} if nested else {}
    return {"f:status": {"f:conditions": {**conditions, f'k:{{"type":"{kind}"}}': members}}}
