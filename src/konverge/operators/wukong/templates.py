"""A machine and its template as one spec. Pure.

Lists whose entries have names are merged by name, and entries of the same name field by field; anything else that the
machine says takes the place of what the template says. The API server fills in the defaults of a machine's spec, so a
value that is the default counts as not said.

Whoever may read a VirtualMachine need not be one who may read templates: in the copy that is on it there is a null in
place of each password. What they were is in the Secret that cloud-init reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from konverge.objects import crd_dict
from konverge.operators.wukong.resource import NAMED, AnyWukong, Wukong
from konverge.operators.wukong.spec_disks import OF_A_NEW_CLAIM

Spec = dict[str, Any]

_CONTENT = frozenset({"image", "source", "existingClaim", "checksum", "secretRef"})
"""What is on a disk: a machine that says one of them says all of them."""
_CLAIM = frozenset(OF_A_NEW_CLAIM)
_SIZE = frozenset({"cpu", "memory"})
_PASSWORDS = frozenset({"password", "passwordHash"})
_LOGIN = _PASSWORDS | {"passwordSecret"}


def resolved_spec(wukong: AnyWukong) -> Spec:
    """The spec of a machine together with what it has taken from its template."""
    record = wukong.status.template
    return wukong.spec if record is None or not wukong.spec.get("template") else merged(record.spec, wukong.spec)


def merged(template: Spec, machine: Spec) -> Spec:
    """
    >>> merged({"cpu": 2, "disks": [{"name": "a", "size": "1Gi"}]}, {"disks": [{"name": "a", "size": "2Gi"}]})
    {'cpu': 2, 'disks': [{'name': 'a', 'size': '2Gi'}]}
    """
    own: Spec = _said(machine, _schema())
    left_out = _SIZE if "instancetype" in own else {"instancetype"} if _SIZE & own.keys() else frozenset()
    result = {name: value for name, value in template.items() if name not in left_out}
    for name, value in own.items():
        base = result.get(name)
        both = name in NAMED and isinstance(base, list) and isinstance(value, list)
        result[name] = _entries(base or [], value) if both else value
    return result


def _entries(template: list[Any], machine: list[Any]) -> list[Any]:
    """Those of the template first, in their order."""
    own = {entry.get("name"): entry for entry in machine if isinstance(entry, dict)}
    known = {entry.get("name") for entry in template if isinstance(entry, dict)}
    changed = [_entry(entry, own[entry["name"]]) if entry.get("name") in own else entry for entry in template]
    return [*changed, *(entry for entry in machine if not isinstance(entry, dict) or entry.get("name") not in known)]


def _entry(template: Spec, machine: Spec) -> Spec:
    left_out = _CONTENT if _CONTENT & machine.keys() else frozenset()
    if "existingClaim" in machine:
        left_out |= _CLAIM
    return {name: value for name, value in template.items() if name not in left_out} | machine


@cache
def _schema() -> Spec:
    (version,) = crd_dict(Wukong)["spec"]["versions"]
    schema: Spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema


def _said(value: Any, schema: Spec) -> Any:
    """A value without what is a default by its schema."""
    if isinstance(value, list):
        return [_said(entry, schema.get("items", {})) for entry in value]
    if not isinstance(value, dict):
        return value
    known = schema.get("properties", {})
    parts = {name: known.get(name, {}) for name in value}
    return {
        name: _said(part, parts[name])
        for name, part in value.items()
        if "default" not in parts[name] or part != parts[name]["default"]
    }


# ------------------------------------------------------------------ without passwords


def without_passwords(template: Spec) -> Spec:
    """
    >>> without_passwords({"users": [{"name": "ann", "password": "s3cret"}]})
    {'users': [{'name': 'ann', 'password': None}]}
    """
    return _with_users(template, lambda user: user | dict.fromkeys(_PASSWORDS & user.keys()))


def with_passwords(template: Spec, machine: Spec, known: Mapping[str, Spec]) -> Spec:
    """The way back, by the passwords that are known of each user; one that is not is left out.

    They are those that the machine has: where it says them itself they are none of the template's.
    """
    own = {str(user.get("name")) for user in _users(machine) if _LOGIN & user.keys()}

    def fill(user: Spec) -> Spec:
        name = str(user.get("name"))
        found = {} if name in own else known.get(name, {})
        filled = user | {field: found.get(field) for field in _PASSWORDS if field in user and user[field] is None}
        return {field: part for field, part in filled.items() if field not in _PASSWORDS or part is not None}

    return _with_users(template, fill)


def _users(spec: Spec) -> list[Spec]:
    first = spec.get("cloudInitUser")
    return [user for user in (first, *(spec.get("users") or ())) if isinstance(user, dict)]


def _with_users(spec: Spec, change: Callable[[Spec], Spec]) -> Spec:
    """With each of its users changed."""
    changed = dict(spec)
    if isinstance(spec.get("cloudInitUser"), dict):
        changed["cloudInitUser"] = change(spec["cloudInitUser"])
    if isinstance(spec.get("users"), list):
        changed["users"] = [change(user) if isinstance(user, dict) else user for user in spec["users"]]
    return changed
