"""The plugins in the order of the real server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from konverge.apiserver.admission import certificates, defaults, storage
from konverge.apiserver.admission.chain import Chain
from konverge.apiserver.admission.grants import Grants
from konverge.apiserver.admission.lazy_plugins import OnDemand
from konverge.apiserver.admission.limit_ranger import LimitRanger
from konverge.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from konverge.apiserver.admission.node_restriction import NodeRestriction
from konverge.apiserver.admission.plugin import Plugin
from konverge.apiserver.admission.pod_resize import PodResizeValidator
from konverge.apiserver.admission.priority import Priority
from konverge.apiserver.admission.quota.plugin import ResourceQuota
from konverge.apiserver.admission.runtime_class import RuntimeClass
from konverge.apiserver.admission.security.plugin import PodSecurity
from konverge.apiserver.admission.service_account import ServiceAccount
from konverge.apiserver.auth.authorization import Authorization

if TYPE_CHECKING:
    from konverge.apiserver.admission.webhooks.client import WebhookClient
    from konverge.apiserver.request.protocols import Backend


def chain(server: Backend, authorization: Authorization, webhooks: Callable[[], WebhookClient]) -> Chain:
    """All plugins but those that the configuration disables. `webhooks` makes the client when there is one to call."""

    def mutating_policies() -> Plugin:
        from konverge.apiserver.admission.mutating_policy import MutatingPolicies

        return MutatingPolicies(server, authorization)

    def validating_policies() -> Plugin:
        from konverge.apiserver.admission.policy import ValidatingPolicies

        return ValidatingPolicies(server, authorization)

    def mutating_webhooks() -> Plugin:
        from konverge.apiserver.admission.webhooks.plugin import MutatingWebhooks

        return MutatingWebhooks(server, webhooks(), authorization)

    def validating_webhooks() -> Plugin:
        from konverge.apiserver.admission.webhooks.plugin import ValidatingWebhooks

        return ValidatingWebhooks(server, webhooks(), authorization)

    plugins: dict[str, Plugin] = {
        "NamespaceLifecycle": NamespaceLifecycle(),
        "LimitRanger": LimitRanger(),
        "ServiceAccount": ServiceAccount(),
        "NodeRestriction": NodeRestriction(),
        "TaintNodesByCondition": defaults.TaintNodesByCondition(),
        "PodSecurity": PodSecurity(),
        "Priority": Priority(),
        "DefaultTolerationSeconds": defaults.DefaultTolerationSeconds(),
        "DefaultStorageClass": storage.DefaultStorageClass(),
        "StorageObjectInUseProtection": storage.StorageObjectInUseProtection(),
        "PersistentVolumeClaimResize": storage.PersistentVolumeClaimResize(),
        "RuntimeClass": RuntimeClass(),
        "CertificateApproval": certificates.CertificateApproval(authorization),
        "CertificateSigning": certificates.CertificateSigning(authorization),
        "ClusterTrustBundleAttest": certificates.ClusterTrustBundleAttest(authorization),
        "CertificateSubjectRestriction": certificates.CertificateSubjectRestriction(),
        "DefaultIngressClass": defaults.DefaultIngressClass(),
        "PodTopologyLabels": defaults.PodTopologyLabels(),
        "PodResizeValidator": PodResizeValidator(),
        "MutatingAdmissionPolicy": OnDemand(
            server.store, "mutatingadmissionpolicybindings", "admit", mutating_policies
        ),
        "MutatingAdmissionWebhook": OnDemand(server.store, "mutatingwebhookconfigurations", "admit", mutating_webhooks),
        "Grants": Grants(authorization),
        "ValidatingAdmissionPolicy": OnDemand(
            server.store, "validatingadmissionpolicybindings", "validate", validating_policies
        ),
        "ValidatingAdmissionWebhook": OnDemand(
            server.store, "validatingwebhookconfigurations", "validate", validating_webhooks
        ),
        "ResourceQuota": ResourceQuota(),
    }
    disabled = server.config.disabled_admission
    return Chain([plugin for name, plugin in plugins.items() if name not in disabled])
