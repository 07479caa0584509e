"""What administrators look at: access, admission, certificates, definitions; and kinds that have no table."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import (
    NONE,
    UNSET,
    Cell,
    age,
    at,
    condition,
    count,
    created_at,
    duration,
    is_true,
    labels,
    name,
    status_of,
    text_at,
)  # fmt: skip

PLAIN: dict[str, Cell] = {"Name": name, "Created At": created_at}


# --- access


def _role(binding: Obj) -> str:
    role = binding.get("roleRef") or {}
    return f"{role.get('kind', '')}/{role.get('name', '')}"


def _subjects(kind: str) -> Cell:
    def cell(binding: Obj) -> str:
        found = [subject for subject in binding.get("subjects") or () if subject.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{one.get('namespace', '')}/{one.get('name', '')}" for one in found)
        return ", ".join(one.get("name", "") for one in found)

    return cell


_BINDING: dict[str, Cell] = {
    "Name": name,
    "Role": _role,
    "Age": age,
    "Users": _subjects("User"),
    "Groups": _subjects("Group"),
    "ServiceAccounts": _subjects("ServiceAccount"),
}


# --- admission


def _param_kind(policy: Obj) -> str:
    found = policy["spec"].get("paramKind")
    return f"{found.get('apiVersion', '')}/{found.get('kind', '')}" if found else UNSET


def _param(binding: Obj) -> str:
    found = binding["spec"].get("paramRef")
    if not found:
        return UNSET
    if found.get("name"):
        return f"{found.get('namespace') or '*'}/{found['name']}"
    selector = found.get("selector")
    return UNSET if selector is None else _struct(selector)


def _struct(selector: Obj) -> str:
    """A LabelSelector as Go prints the struct."""
    wanted = selector.get("matchLabels") or {}
    pairs = "".join(f"{key}: {wanted[key]}," for key in sorted(wanted))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{one.get('key', '')},Operator:{one.get('operator', '')},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    expressions = f"[]LabelSelectorRequirement{{{terms}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{pairs}}},MatchExpressions:{expressions},}}"


_POLICY_BINDING: dict[str, Cell] = {"Name": name, "PolicyName": at("spec.policyName"), "ParamRef": _param, "Age": age}
_WEBHOOKS: dict[str, Cell] = {"Name": name, "Webhooks": count("webhooks"), "Age": age}


# --- certificates


def _request_state(request: Obj) -> str:
    kinds = {one.get("type") for one in status_of(request).get("conditions") or ()}
    words = ["Denied" if "Denied" in kinds else "Approved" if "Approved" in kinds else "Pending"]
    words += ["Failed"] if "Failed" in kinds else []
    words += ["Issued"] if status_of(request).get("certificate") else []
    return ",".join(words)


def _requested_duration(request: Obj) -> str:
    found = request["spec"].get("expirationSeconds")
    return NONE if found is None else duration(found)


def _pod_request_state(request: Obj) -> str:
    kinds = [one.get("type") for one in status_of(request).get("conditions") or ()]
    return next((kind for kind in reversed(kinds) if kind in ("Issued", "Denied", "Failed")), "Pending")


# --- the server's own


def _served_versions(definition: Obj) -> str:
    versions = [one for one in definition["spec"].get("versions") or () if one.get("served")]
    return ",".join(sorted(one["name"] + ("(storage)" if one.get("storage") else "") for one in versions))


def _service(obj: Obj) -> str:
    found = obj["spec"].get("service")
    return f"{found.get('namespace', '')}/{found.get('name', '')}" if found else "Local"


def _available(obj: Obj) -> str:
    found = condition(obj, "Available")
    if found is None:
        return "Unknown"
    status, reason = found.get("status", ""), found.get("reason")
    return f"{status} ({reason})" if status != "True" and reason else str(status)


def _dangling(schema: Obj) -> str:
    found = condition(schema, "Dangling")
    return "?" if found is None else str(found.get("status", ""))


def _migration_state(obj: Obj) -> str:
    kinds = [one["type"] for one in status_of(obj).get("conditions") or () if one.get("status") == "True"]
    return next((kind for kind in reversed(kinds) if kind in ("Running", "Failed", "Succeeded")), "Unknown")


def _migrated(obj: Obj) -> str:
    found = obj["spec"].get("resource") or {}
    resource, group = found.get("resource", ""), found.get("group", "")
    return f"{resource}.{group}" if group else str(resource)


_QUEUING = "spec.limited.limitResponse.queuing"

KINDS: dict[str, dict[str, Any]] = {
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicy": {
        "Name": name,
        "Validations": count("spec.validations"),
        "ParamKind": _param_kind,
        "Age": age,
    },
    "MutatingAdmissionPolicy": {
        "Name": name,
        "Mutations": count("spec.mutations"),
        "ParamKind": _param_kind,
        "Age": age,
    },
    "ValidatingAdmissionPolicyBinding": _POLICY_BINDING,
    "MutatingAdmissionPolicyBinding": _POLICY_BINDING,
    "CertificateSigningRequest": {
        "Name": name,
        "Age": age,
        "SignerName": text_at("spec.signerName"),
        "Requestor": at("spec.username"),
        "RequestedDuration": _requested_duration,
        "Condition": _request_state,
    },
    "ClusterTrustBundle": {"Name": name, "SignerName": text_at("spec.signerName")},
    "PodCertificateRequest": {
        "Name": name,
        "PodName": at("spec.podName"),
        "ServiceAccountName": at("spec.serviceAccountName"),
        "NodeName": at("spec.nodeName"),
        "SignerName": at("spec.signerName"),
        "State": _pod_request_state,
        "UnverifiedUserAnnotations": lambda obj: labels(obj["spec"].get("unverifiedUserAnnotations")),
    },
    "CustomResourceDefinition": {
        "Name": name,
        "Scope": at("spec.scope"),
        "Versions": _served_versions,
        "Created At": created_at,
        "Group": at("spec.group"),
        "Kind": at("spec.names.kind"),
        "ShortNames": lambda obj: ",".join(obj["spec"]["names"].get("shortNames") or ()),
        "Established": lambda obj: is_true(obj, "Established"),
    },
    "APIService": {"Name": name, "Service": _service, "Available": _available, "Age": age},
    "PriorityClass": {
        "Name": name,
        "Value": at("value", 0),
        "Global-Default": at("globalDefault", False),
        "Age": age,
        "PreemptionPolicy": at("preemptionPolicy"),
    },
    "Lease": {"Name": name, "Holder": at("spec.holderIdentity"), "Age": age},
    "RuntimeClass": {"Name": name, "Handler": at("handler"), "Age": age},
    "FlowSchema": {
        "Name": name,
        "PriorityLevel": at("spec.priorityLevelConfiguration.name"),
        "MatchingPrecedence": at("spec.matchingPrecedence", 0),
        "DistinguisherMethod": at("spec.distinguisherMethod.type", NONE),
        "Age": age,
        "MissingPL": _dangling,
    },
    "PriorityLevelConfiguration": {
        "Name": name,
        "Type": at("spec.type"),
        "NominalConcurrencyShares": at("spec.limited.nominalConcurrencyShares", NONE),
        "Queues": at(f"{_QUEUING}.queues", NONE),
        "HandSize": at(f"{_QUEUING}.handSize", NONE),
        "QueueLengthLimit": at(f"{_QUEUING}.queueLengthLimit", NONE),
        "Age": age,
    },
    "StorageVersionMigration": {"Name": name, "Resource": _migrated, "Status": _migration_state},
}


def _first_match(schema: Obj) -> tuple[int, str]:
    """Flow schemas are shown in the order in which they are tried."""
    return schema["spec"].get("matchingPrecedence") or 0, schema["metadata"]["name"]


ORDER = {"FlowSchema": _first_match}
