"""Conditions that the API server itself writes, with their owners in managedFields."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.strategy import Obj


def set_condition(obj: Obj, condition: Obj, owner: Obj, *, nested: bool) -> None:
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
