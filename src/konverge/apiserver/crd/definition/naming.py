"""Which of the names that a definition asks for it gets, its conditions, and the order of its versions.

Names are first come, first served within a group. Everything here is pure: from a definition and the others of its
group follows its new status; `crd.serving.manager` does the writing. Upstream:
pkg/controller/status/naming_controller.go and pkg/controller/establish in apiextensions-apiserver.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from konverge.apiserver.go.strconv import quote
from konverge.apiserver.strategy import Obj

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 0, "beta": 1, "alpha": 2}
EMPTY_NAMES: Obj = {"plural": "", "kind": ""}
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def copied(obj: Obj) -> Obj:
    """A definition whose metadata and status can be changed; the spec, which may be large, is shared."""
    return {**obj, "metadata": dict(obj["metadata"]), "status": deepcopy(obj.get("status") or {})}


def condition(obj: Obj, kind: str) -> Obj | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((entry for entry in conditions if entry["type"] == kind), None)


def is_true(obj: Obj, kind: str) -> bool:
    entry = condition(obj, kind)
    return entry is not None and entry["status"] == "True"


def set_condition(obj: Obj, kind: str, status: str, reason: str, message: str, now: str) -> None:
    """The time of the transition changes with the status, or when it was never set. Upstream: SetCRDCondition."""
    conditions = obj["status"].get("conditions") or []
    fresh = {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
    for index, old in enumerate(conditions):
        if old["type"] == kind:
            if old["status"] == status and old.get("lastTransitionTime"):
                fresh["lastTransitionTime"] = old["lastTransitionTime"]
            conditions[index] = fresh
            break
    else:
        conditions.append(fresh)
    obj["status"]["conditions"] = conditions


def accept(obj: Obj, others: Iterable[Obj], now: str) -> Obj | None:  # upstream: NamingController.sync
    """The definition with its names accepted or refused; None when there is nothing to change."""
    wanted, had = obj["spec"]["names"], (obj.get("status") or {}).get("acceptedNames") or {}
    if wanted == had:
        return None
    resources, kinds = _taken([obj, *others])
    names, reason, message = _accepted(wanted, had, resources, kinds)
    old = condition(obj, "NamesAccepted")
    status = "False" if reason else "True"
    reason, message = (reason, message) if reason else ("NoConflicts", "no conflicts found")
    if names == had and old is not None and (old["status"], old["reason"], old["message"]) == (status, reason, message):
        return None
    fresh = copied(obj)
    fresh["status"]["acceptedNames"] = names
    set_condition(fresh, "NamesAccepted", status, reason, message, now)
    if not is_true(fresh, "Established"):
        if status == "True":
            set_condition(fresh, "Established", "False", "Installing", "the initial names have been accepted", now)
        elif condition(fresh, "Established") is None:
            set_condition(fresh, "Established", "False", "NotAccepted", "not all names are accepted", now)
    return fresh


def establish(obj: Obj, now: str) -> Obj | None:
    """The definition as established; None when its names are not accepted or it is established already."""
    if not is_true(obj, "NamesAccepted") or is_true(obj, "Established"):
        return None
    fresh = copied(obj)
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


def _accepted(wanted: Obj, had: Obj, resources: set[str], kinds: set[str]) -> tuple[Obj, str, str]:
    """(accepted names, reason and message of the last conflict). Upstream: calculateNamesAndConditions."""
    names: dict[str, Any] = dict(had)
    reason = message = ""
    for name in ("plural", "singular", "shortNames", "kind", "listKind"):
        used = kinds if name in ("kind", "listKind") else resources
        asked, before = _texts(wanted, name), _texts(had, name)
        clashes = [text for text in asked if text not in before and text in used]
        if clashes:
            texts = list(dict.fromkeys(f"{quote(text)} is already in use" for text in clashes))
            reason = f"{name[0].upper()}{name[1:]}Conflict"
            message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        else:
            names[name] = wanted.get(name)
    names["categories"] = wanted.get("categories")
    return _in_order(names), reason, message


def _texts(names: Obj, name: str) -> list[str]:
    return names.get(name) or [] if name == "shortNames" else [names.get(name, "")]


def _in_order(names: Obj) -> Obj:
    """plural and kind are always written, the rest when set."""
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    return {name: names.get(name) or "" for name in order if names.get(name) or name in ("plural", "kind")}


def record_manager(obj: Obj, now: str) -> None:
    """Record in managedFields that the server itself set the status, through the status subresource."""
    status = obj.get("status") or {}
    names: Obj = {f"f:{name}": {} for name in sorted(status.get("acceptedNames") or {})}
    members = ("lastTransitionTime", "message", "reason", "status", "type")
    conditions: Obj = {
        f'k:{{"type":"{item["type"]}"}}': {".": {}, **{f"f:{member}": {} for member in members}}
        for item in sorted(status.get("conditions") or (), key=lambda item: item["type"])
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
    others = [item for item in obj["metadata"].get("managedFields") or () if not _is_own(item)]
    obj["metadata"]["managedFields"] = [*others, entry]


def _is_own(entry: Obj) -> bool:
    return entry.get("manager") == "kube-apiserver" and entry.get("subresource") == "status"


# --- versions


# upstream: CompareKubeAwareVersionStrings (apimachinery/pkg/version)
def version_rank(version: str) -> tuple[int, int, int, int, str]:
    """A key that sorts versions as clients prefer them: stable before beta before alpha, higher before lower."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, 0, version)
    return (0, _STABILITY[match[2]], -int(match[1]), -int(match[3] or 0), version)


def deprecation_warning(group: str, kind: str, version: str, versions: list[dict[str, object]]) -> str:
    """The warning of a deprecated version that does not bring its own."""
    better = [
        str(other["name"])
        for other in versions
        if other.get("served")
        and not other.get("deprecated")
        and version_rank(str(other["name"])) < version_rank(version)
    ]
    text = f"{group}/{version} {kind} is deprecated"
    return f"{text}; use {group}/{min(better, key=version_rank)} {kind}" if better else text
