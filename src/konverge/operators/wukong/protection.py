"""The refusal of a deletion: an admission policy that the API server itself enforces.

Without it a protected machine can be asked to be deleted: the operator holds the deletion, and the resource cannot be
used for anything else again. With it the request is refused, and nothing has happened.
"""

from __future__ import annotations

from typing import Any

from konverge.operators.wukong.resource import GROUP

API_VERSION = "admissionregistration.k8s.io/v1"
MESSAGE = "spec.deletionProtection is true: set it to false, and delete the machine then"


def policies(name: str) -> list[dict[str, Any]]:
    """The policy and its binding, by the name of the installation."""
    name = f"{name}-deletion-protection"
    rule = {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["DELETE"], "resources": ["wukongs"]}
    refusal = {
        "expression": "!has(oldObject.spec.deletionProtection) || !oldObject.spec.deletionProtection",
        "message": MESSAGE,
        "reason": "Forbidden",
    }
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [refusal],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in (("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding))
    ]
