"""What administrators look at: access, admission, certificates, definitions, devices, storage; and all other kinds."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import (
    NONE,
    UNSET,
    Cell,
    at,
    condition,
    duration,
    is_true,
    name,
    quantity,
    status_of,
)

# --- access


def subjects(kind: str) -> Cell:
    def cell(binding: Obj) -> str:
        subjects = [subject for subject in binding.get("subjects") or () if subject.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{subject.get('namespace', '')}/{subject.get('name', '')}" for subject in subjects)
        return ", ".join(subject.get("name", "") for subject in subjects)

    return cell


# --- admission


def param(binding: Obj) -> str:
    reference = binding["spec"].get("paramRef")
    if not reference:
        return UNSET
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    selector = reference.get("selector")
    return UNSET if selector is None else _struct(selector)


def _struct(selector: Obj) -> str:
    """A LabelSelector as Go prints the struct."""
    match_labels = selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {match_labels[key]}," for key in sorted(match_labels))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{term.get('key', '')},Operator:{term.get('operator', '')},"
        f"Values:[{' '.join(term.get('values') or ())}],}},"
        for term in selector.get("matchExpressions") or ()
    )
    expressions = f"[]LabelSelectorRequirement{{{terms}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},MatchExpressions:{expressions},}}"


# --- certificates


def request_state(request: Obj) -> str:
    """Upstream: extractCSRStatus."""
    types = {condition.get("type") for condition in status_of(request).get("conditions") or ()}
    states = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    states += ["Failed"] if "Failed" in types else []
    states += ["Issued"] if status_of(request).get("certificate") else []
    return ",".join(states)


def requested_duration(request: Obj) -> str:
    seconds = request["spec"].get("expirationSeconds")
    return NONE if seconds is None else duration(seconds)


def pod_request_state(request: Obj) -> str:
    types = [condition.get("type") for condition in status_of(request).get("conditions") or ()]
    return next((state for state in reversed(types) if state in ("Issued", "Denied", "Failed")), "Pending")


# --- the server's own


def established(definition: Obj) -> bool:
    return is_true(definition, "Established")


def served_versions(definition: Obj) -> str:
    versions = [version for version in definition["spec"].get("versions") or () if version.get("served")]
    return ",".join(sorted(v["name"] + ("(storage)" if v.get("storage") else "") for v in versions))


def available(obj: Obj) -> str:
    available = condition(obj, "Available")
    if available is None:
        return "Unknown"
    status, reason = available.get("status", ""), available.get("reason")
    return f"{status} ({reason})" if status != "True" and reason else str(status)


def dangling(schema: Obj) -> str:
    dangling = condition(schema, "Dangling")
    return "?" if dangling is None else str(dangling.get("status", ""))


def migration_state(obj: Obj) -> str:
    types = [c["type"] for c in status_of(obj).get("conditions") or () if c.get("status") == "True"]
    return next((state for state in reversed(types) if state in ("Running", "Failed", "Succeeded")), "Unknown")


def migrated(obj: Obj) -> str:
    target = obj["spec"].get("resource") or {}
    resource, group = target.get("resource", ""), target.get("group", "")
    return f"{resource}.{group}" if group else str(resource)


# --- dynamic resource allocation


def claim_state(claim: Obj) -> str:
    """Upstream: resourceClaimState."""
    status, deleted = status_of(claim), bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not deleted:
        states.append("pending")
    return ",".join(states)


def first_match(schema: Obj) -> tuple[int, str]:
    """Flow schemas are shown in the order in which they are tried."""
    return schema["spec"].get("matchingPrecedence") or 0, schema["metadata"]["name"]


# --- storage

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def access_modes(path: str) -> Cell:
    modes_at = at(path, ())
    return lambda obj: ",".join(short for mode, short in _MODES.items() if mode in modes_at(obj))


def quantity_at(path: str) -> Cell:
    value_at = at(path, None)
    return lambda obj: quantity(value_at(obj))


def storage_class(obj: Obj) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION) or obj["spec"].get("storageClassName") or "")


def phase(obj: Obj) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(status_of(obj).get("phase", ""))


def _if_bound(cell: Cell) -> Cell:
    """What a claim has, once it has a volume."""
    return lambda claim: cell(claim) if claim["spec"].get("volumeName") else ""


def bound_quantity(path: str) -> Cell:
    return _if_bound(quantity_at(path))


def bound_access_modes(path: str) -> Cell:
    return _if_bound(access_modes(path))


def mark_default(objects: Sequence[Obj], rows: list[Obj]) -> None:
    """Of several default classes the newest is in effect, of equally old ones the first by name.

    Upstream: getEffectiveDefaultStorageClass.
    """
    defaults = [
        (obj["metadata"].get("creationTimestamp", ""), name(obj), row)
        for obj, row in zip(objects, rows, strict=True)
        if any((obj["metadata"].get("annotations") or {}).get(key) == "true" for key in _DEFAULT_CLASS)
    ]
    if defaults:
        newest = max(stamp for stamp, _, _ in defaults)
        _, _, row = min((entry for entry in defaults if entry[0] == newest), key=lambda entry: entry[1])
        row["cells"][0] += " (default)"


def audiences(driver: Obj) -> str:
    requests = driver["spec"].get("tokenRequests")
    return UNSET if requests is None else ",".join(request.get("audience", "") for request in requests)
