"""What administrators look at: access, admission, certificates, definitions, devices; and kinds without a table."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import (
    AGED,
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
    since,
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
        subjects = [subject for subject in binding.get("subjects") or () if subject.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{subject.get('namespace', '')}/{subject.get('name', '')}" for subject in subjects)
        return ", ".join(subject.get("name", "") for subject in subjects)

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
    kind = policy["spec"].get("paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def _param(binding: Obj) -> str:
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


_POLICY_BINDING: dict[str, Cell] = {"Name": name, "PolicyName": at("spec.policyName"), "ParamRef": _param, "Age": age}
_WEBHOOKS: dict[str, Cell] = {"Name": name, "Webhooks": count("webhooks"), "Age": age}


# --- certificates


def _request_state(request: Obj) -> str:
    """Upstream: extractCSRStatus."""
    types = {condition.get("type") for condition in status_of(request).get("conditions") or ()}
    states = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    states += ["Failed"] if "Failed" in types else []
    states += ["Issued"] if status_of(request).get("certificate") else []
    return ",".join(states)


def _requested_duration(request: Obj) -> str:
    seconds = request["spec"].get("expirationSeconds")
    return NONE if seconds is None else duration(seconds)


def _pod_request_state(request: Obj) -> str:
    types = [condition.get("type") for condition in status_of(request).get("conditions") or ()]
    return next((state for state in reversed(types) if state in ("Issued", "Denied", "Failed")), "Pending")


# --- the server's own


def _served_versions(definition: Obj) -> str:
    versions = [version for version in definition["spec"].get("versions") or () if version.get("served")]
    return ",".join(sorted(v["name"] + ("(storage)" if v.get("storage") else "") for v in versions))


def _service(obj: Obj) -> str:
    service = obj["spec"].get("service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def _available(obj: Obj) -> str:
    available = condition(obj, "Available")
    if available is None:
        return "Unknown"
    status, reason = available.get("status", ""), available.get("reason")
    return f"{status} ({reason})" if status != "True" and reason else str(status)


def _dangling(schema: Obj) -> str:
    dangling = condition(schema, "Dangling")
    return "?" if dangling is None else str(dangling.get("status", ""))


def _migration_state(obj: Obj) -> str:
    types = [c["type"] for c in status_of(obj).get("conditions") or () if c.get("status") == "True"]
    return next((state for state in reversed(types) if state in ("Running", "Failed", "Succeeded")), "Unknown")


def _migrated(obj: Obj) -> str:
    target = obj["spec"].get("resource") or {}
    resource, group = target.get("resource", ""), target.get("group", "")
    return f"{resource}.{group}" if group else str(resource)


# --- dynamic resource allocation


def _claim_state(claim: Obj) -> str:
    """Upstream: resourceClaimState."""
    status, deleted = status_of(claim), bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not deleted:
        states.append("pending")
    return ",".join(states)


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
    "DeviceClass": AGED,
    "ResourceClaim": {"Name": name, "State": _claim_state, "Age": age},
    "ResourceClaimTemplate": AGED,
    "ResourceSlice": {
        "Name": name,
        "Node": at("spec.nodeName"),
        "Driver": at("spec.driver"),
        "Pool": at("spec.pool.name"),
        "Age": age,
    },
    "DeviceTaintRule": {
        "Name": name,
        "Key": at("spec.taint.key"),
        "Value": at("spec.taint.value"),
        "Effect": at("spec.taint.effect"),
        "TimeAdded": lambda rule: since(at("spec.taint.timeAdded")(rule), ""),
        "Age": age,
    },
}


def _first_match(schema: Obj) -> tuple[int, str]:
    """Flow schemas are shown in the order in which they are tried."""
    return schema["spec"].get("matchingPrecedence") or 0, schema["metadata"]["name"]


ORDER = {"FlowSchema": _first_match}
