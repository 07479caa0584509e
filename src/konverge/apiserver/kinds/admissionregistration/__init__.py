"""admissionregistration.k8s.io: webhook configurations, admission policies and their bindings."""

from konverge.apiserver.kinds.admissionregistration.policies import (
    MUTATING_BINDING,
    MUTATING_POLICY,
    VALIDATING_BINDING,
    VALIDATING_POLICY,
)
from konverge.apiserver.kinds.admissionregistration.webhooks import MUTATING, VALIDATING

STRATEGIES = {
    "ValidatingWebhookConfiguration": VALIDATING,
    "MutatingWebhookConfiguration": MUTATING,
    "ValidatingAdmissionPolicy": VALIDATING_POLICY,
    "ValidatingAdmissionPolicyBinding": VALIDATING_BINDING,
    "MutatingAdmissionPolicy": MUTATING_POLICY,
    "MutatingAdmissionPolicyBinding": MUTATING_BINDING,
}
