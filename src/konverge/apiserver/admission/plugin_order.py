"""The plugins in the order of the real server. Upstream: AllOrderedPlugins (pkg/kubeapiserver/options/plugins.go)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from konverge.apiserver.admission import certificates, cluster_plugins, pod_plugins
from konverge.apiserver.admission.chain import Chain, OnDemand
from konverge.apiserver.admission.escalation import Grants
from konverge.apiserver.admission.limit_ranger import LimitRanger
from konverge.apiserver.admission.node_restriction import NodeRestriction
from konverge.apiserver.admission.plugin import Plugin
from konverge.apiserver.admission.pod_security import PodSecurity
from konverge.apiserver.admission.quota import ResourceQuota
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
        from konverge.apiserver.admission.validating_policy import ValidatingPolicies

        return ValidatingPolicies(server, authorization)

    def mutating_webhooks() -> Plugin:
        from konverge.apiserver.admission.webhooks.plugin import MutatingWebhooks

        return MutatingWebhooks(server, webhooks(), authorization)

    def validating_webhooks() -> Plugin:
        from konverge.apiserver.admission.webhooks.plugin import ValidatingWebhooks

        return ValidatingWebhooks(server, webhooks(), authorization)

    store = server.store
    plugins: dict[str, Plugin] = {
        "NamespaceLifecycle": cluster_plugins.NamespaceLifecycle(),
        "LimitRanger": LimitRanger(),
        "ServiceAccount": ServiceAccount(),
        "NodeRestriction": NodeRestriction(),
        "TaintNodesByCondition": cluster_plugins.TaintNodesByCondition(),
        "PodSecurity": PodSecurity(),
        "Priority": pod_plugins.Priority(),
        "DefaultTolerationSeconds": pod_plugins.DefaultTolerationSeconds(),
        "DefaultStorageClass": cluster_plugins.DefaultStorageClass(),
        "StorageObjectInUseProtection": cluster_plugins.StorageObjectInUseProtection(),
        "PersistentVolumeClaimResize": cluster_plugins.PersistentVolumeClaimResize(),
        "RuntimeClass": pod_plugins.RuntimeClass(),
        "CertificateApproval": certificates.CertificateApproval(authorization),
        "CertificateSigning": certificates.CertificateSigning(authorization),
        "ClusterTrustBundleAttest": certificates.ClusterTrustBundleAttest(authorization),
        "CertificateSubjectRestriction": certificates.CertificateSubjectRestriction(),
        "DefaultIngressClass": cluster_plugins.DefaultIngressClass(),
        "PodTopologyLabels": pod_plugins.PodTopologyLabels(),
        "PodResizeValidator": pod_plugins.PodResizeValidator(),
        "MutatingAdmissionPolicy": OnDemand(store, "mutatingadmissionpolicybindings", "admit", mutating_policies),
        "MutatingAdmissionWebhook": OnDemand(store, "mutatingwebhookconfigurations", "admit", mutating_webhooks),
        "Grants": Grants(authorization),
        "ValidatingAdmissionPolicy": OnDemand(
            store, "validatingadmissionpolicybindings", "validate", validating_policies
        ),
        "ValidatingAdmissionWebhook": OnDemand(
            store, "validatingwebhookconfigurations", "validate", validating_webhooks
        ),
        "ResourceQuota": ResourceQuota(),
    }
    disabled = server.config.disabled_admission
    return Chain([plugin for name, plugin in plugins.items() if name not in disabled])
