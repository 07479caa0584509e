"""Which of the names that a definition asks for it gets, and the conditions that tell of it.

Names are first come, first served within a group. Everything here is pure: a definition and its neighbours in, a new
status out; `crd.manager` does the writing.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from konverge.apiserver.go.strconv import quote
from konverge.apiserver.strategy import Obj

EMPTY_NAMES: Obj = {"plural": "", "kind": ""}
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def condition(obj: Obj, kind: str) -> Obj | None:
    found = (obj.get("status") or {}).get("conditions") or ()
    return next((one for one in found if one["type"] == kind), None)


def is_true(obj: Obj, kind: str) -> bool:
    found = condition(obj, kind)
    return found is not None and found["status"] == "True"


def set_condition(obj: Obj, kind: str, status: str, reason: str, message: str, now: str) -> None:
    """The time of the transition changes with the status, or when it was never set."""
    conditions = obj["status"].get("conditions") or []
    fresh = {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
    for index, one in enumerate(conditions):
        if one["type"] == kind:
            if one["status"] == status and one.get("lastTransitionTime"):
                fresh["lastTransitionTime"] = one["lastTransitionTime"]
            conditions[index] = fresh
            break
    else:
        conditions.append(fresh)
    obj["status"]["conditions"] = conditions


def accept(obj: Obj, others: Iterable[Obj], now: str) -> Obj | None:
    """The definition with its names settled; None when there is nothing to change."""
    wanted, had = obj["spec"]["names"], (obj.get("status") or {}).get("acceptedNames") or {}
    if wanted == had:
        return None
    resources, kinds = _taken([obj, *others])
    names, reason, message = _settle(wanted, had, resources, kinds)
    old = condition(obj, "NamesAccepted")
    status = "False" if reason else "True"
    reason, message = (reason, message) if reason else ("NoConflicts", "no conflicts found")
    if names == had and old is not None and (old["status"], old["reason"], old["message"]) == (status, reason, message):
        return None
    fresh = deepcopy(obj)
    fresh.setdefault("status", {})["acceptedNames"] = names
    set_condition(fresh, "NamesAccepted", status, reason, message, now)
    if not is_true(fresh, "Established"):
        if status == "True":
            set_condition(fresh, "Established", "False", "Installing", "the initial names have been accepted", now)
        elif condition(fresh, "Established") is None:
            set_condition(fresh, "Established", "False", "NotAccepted", "not all names are accepted", now)
    return fresh


def establish(obj: Obj, now: str) -> Obj | None:
    """The definition as served: names accepted, not yet established."""
    if not is_true(obj, "NamesAccepted") or is_true(obj, "Established"):
        return None
    fresh = deepcopy(obj)
    set_condition(fresh, "Established", "True", "InitialNamesAccepted", "the initial names have been accepted", now)
    return fresh


def _taken(definitions: Iterable[Obj]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for definition in definitions:
        names = (definition.get("status") or {}).get("acceptedNames") or {}
        resources |= {names.get("plural") or "", names.get("singular") or "", *(names.get("shortNames") or ())}
        kinds |= {names.get("kind") or "", names.get("listKind") or ""}
    return resources, kinds


def _settle(wanted: Obj, had: Obj, resources: set[str], kinds: set[str]) -> tuple[Obj, str, str]:
    """(accepted names, reason and message of the last conflict)."""
    names: dict[str, Any] = dict(had)
    reason = message = ""
    for name, used in (("plural", resources), ("singular", resources)):
        if wanted.get(name, "") != had.get(name, "") and wanted.get(name, "") in used:
            reason, message = f"{name.capitalize()}Conflict", f"{quote(wanted[name])} is already in use"
        else:
            names[name] = wanted.get(name, "")
    clashes = [
        one for one in wanted.get("shortNames") or () if one not in (had.get("shortNames") or ()) and one in resources
    ]
    if clashes:
        texts = list(dict.fromkeys(f"{quote(one)} is already in use" for one in clashes))
        reason, message = "ShortNamesConflict", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    else:
        names["shortNames"] = wanted.get("shortNames")
    for name, title in (("kind", "Kind"), ("listKind", "ListKind")):
        if wanted.get(name, "") != had.get(name, "") and wanted.get(name, "") in kinds:
            reason, message = f"{title}Conflict", f"{quote(wanted[name])} is already in use"
        else:
            names[name] = wanted.get(name, "")
    names["categories"] = wanted.get("categories")
    return _in_order(names), reason, message


def _in_order(names: Obj) -> Obj:
    """plural and kind are always written, the rest when set."""
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    return {name: names.get(name) or "" for name in order if names.get(name) or name in ("plural", "kind")}


def record_manager(obj: Obj, now: str) -> None:
    """Who set the status: the server itself, through the status subresource."""
    status = obj.get("status") or {}
    names: Obj = {f"f:{name}": {} for name in sorted(status.get("acceptedNames") or {})}
    members = ("lastTransitionTime", "message", "reason", "status", "type")
    conditions: Obj = {
        f'k:{{"type":"{one["type"]}"}}': {".": {}, **{f"f:{member}": {} for member in members}}
        for one in sorted(status.get("conditions") or (), key=lambda one: one["type"])
    }
    fields = {"f:status": {"f:acceptedNames": names, "f:conditions": conditions}}
    entry = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": "apiextensions.k8s.io/v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "subresource": "status",
    }
    others = [one for one in obj["metadata"].get("managedFields") or () if not _is_own(one)]
    obj["metadata"]["managedFields"] = [*others, entry]


def _is_own(entry: Obj) -> bool:
    return entry.get("manager") == "kube-apiserver" and entry.get("subresource") == "status"
