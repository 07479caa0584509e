"""The chain of admission plugins: which of them a write meets, and in which order.

The order is that of the real server. Which plugins concern a kind of write is worked out once, so the write of a kind
that concerns no plugin costs little more than a dictionary lookup.

Upstream: AllOrderedPlugins (pkg/kubeapiserver/options/plugins.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from konverge.apiserver import aside
from konverge.apiserver.admission import cluster_plugins as cluster
from konverge.apiserver.admission import pod_plugins as pods
from konverge.apiserver.admission.cluster_plugins import CERTIFICATES, REQUESTS
from konverge.apiserver.admission.escalation import Grants
from konverge.apiserver.admission.limit_ranger import LimitRanger
from konverge.apiserver.admission.node_restriction import NodeRestriction
from konverge.apiserver.admission.plugin import Kind, OneStep, Phase, Plugin, Step
from konverge.apiserver.admission.pod_security import PodSecurity
from konverge.apiserver.admission.quota import ResourceQuota
from konverge.apiserver.admission.service_account import ServiceAccount
from konverge.apiserver.auth.authorization import Authorization
from konverge.apiserver.merge.managed_entries import EntryError, decode
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.admission.webhooks.client import WebhookClient
    from konverge.apiserver.request.protocols import Backend
    from konverge.apiserver.storage import Store


_Key = tuple[str, str, str, str, bool]
"""The fields of a Kind. With the scope: a definition may come back with another."""
_GROUP = "admissionregistration.k8s.io"
_REMEMBERED = 10_000
"""Custom resources come and go; what is remembered of them must not grow for ever."""


class Chain:
    """See `Admission`. Upstream: chainAdmissionHandler and reinvoker (apiserver/pkg/admission)."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._plugins = plugins
        self._admit: dict[_Key, tuple[Step, ...]] = {}
        self._validate: dict[_Key, tuple[Step, ...]] = {}

    async def admit(self, request: AdmissionRequest) -> None:
        resource = request.served.resource
        key = (resource.group, resource.plural, request.subresource, request.operation, resource.namespaced)
        steps = self._admit.get(key)
        if steps is None:
            steps = self._learn(key)[0]
        before = _managed_fields(request.obj)
        await _run(steps, request)
        if request.start_reinvocation():
            await _run(steps, request)
        if (after := _managed_fields(request.obj)) is not before:
            await _check_managed_fields(request, before, after)

    async def validate(self, request: AdmissionRequest) -> None:
        resource = request.served.resource
        key = (resource.group, resource.plural, request.subresource, request.operation, resource.namespaced)
        steps = self._validate.get(key)
        await _run(self._learn(key)[1] if steps is None else steps, request)

    def _learn(self, key: _Key) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
        kind = Kind(*key)
        if len(self._admit) >= _REMEMBERED:
            self._admit.clear()
            self._validate.clear()
        admit = tuple(step for plugin in self._plugins if (step := plugin.admit(kind)) is not None)
        validate = tuple(step for plugin in self._plugins if (step := plugin.validate(kind)) is not None)
        self._admit[key], self._validate[key] = admit, validate
        return admit, validate


def _managed_fields(obj: Obj | None) -> Any:
    return obj["metadata"].get("managedFields") if obj is not None and isinstance(obj.get("metadata"), dict) else None


# upstream: managedFieldsValidatingAdmissionController.Admit (endpoints/handlers/fieldmanager/admission.go)
async def _check_managed_fields(request: AdmissionRequest, before: Any, after: Any) -> None:
    """What a webhook has made unreadable is as it was before."""
    try:
        await aside.run(request.size, decode, after)
    except EntryError as error:
        metadata = request.new["metadata"]
        metadata.pop("managedFields")
        if before:
            metadata["managedFields"] = before
        request.call.warn(f"{_UNREADABLE}: {error}")


_UNREADABLE = (
    ".metadata.managedFields was in an invalid state after admission; "
    "this could be caused by an outdated mutating admission controller; please fix your requests"
)


async def _run(steps: tuple[Step, ...], request: AdmissionRequest) -> None:
    large = request.size >= aside.FROM
    for step in steps:
        waiting = step(request)
        if waiting is not None:
            await waiting
        if large:  # others take their turn between two plugins, as they do while a webhook is waited for
            await asyncio.sleep(0)


_BESIDE = frozenset({"LimitRanger", "ServiceAccount", "PodSecurity"})
"""Plugins that walk over all containers of a pod, and change nothing but the object of the request."""


class Beside:
    """A plugin whose work on a large object is done beside the loop."""

    def __init__(self, plugin: Plugin) -> None:
        self._plugin = plugin

    def admit(self, kind: Kind) -> Step | None:
        return self._beside(self._plugin.admit(kind))

    def validate(self, kind: Kind) -> Step | None:
        return self._beside(self._plugin.validate(kind))

    def _beside(self, step: Step | None) -> Step | None:
        if step is None:
            return None

        async def run(size: int, request: AdmissionRequest) -> None:
            waiting = await aside.run(size, step, request)
            if waiting is not None:
                await waiting

        def choose(request: AdmissionRequest) -> Awaitable[None] | None:
            return step(request) if request.size < aside.FROM else run(request.size, request)

        return choose


class OnDemand:
    """A plugin of one phase that is imported when the first object of `plural` is stored.

    Policies bring a whole expression language along, webhooks an HTTP client; most servers have neither. As long as the
    table of their configurations is empty, a write passes by at the cost of one look.
    """

    def __init__(self, store: Store, plural: str, phase: Phase, make: Callable[[Phase], Plugin]) -> None:
        self._table = store.table(f"{_GROUP}/{plural}")
        self._phase = phase
        self._make = make
        self._plugin: Plugin | None = None

    def admit(self, kind: Kind) -> Step | None:
        return self._step(kind) if self._phase == "admit" else None

    def validate(self, kind: Kind) -> Step | None:
        return self._step(kind) if self._phase == "validate" else None

    def _step(self, kind: Kind) -> Step:
        def step(request: AdmissionRequest) -> Awaitable[None] | None:
            if not self._table.records:
                return None
            if self._plugin is None:
                self._plugin = self._make(self._phase)
            own_step = self._plugin.admit(kind) if self._phase == "admit" else self._plugin.validate(kind)
            return None if own_step is None else own_step(request)

        return step


def chain(server: Backend, authorization: Authorization, webhooks: Callable[[], WebhookClient]) -> Chain:
    """All plugins but those that the configuration disables. `webhooks` makes the client when there is one to call."""

    def policies(phase: Phase) -> Plugin:
        if phase == "admit":
            from konverge.apiserver.admission.mutating_policy import MutatingPolicies

            return MutatingPolicies(server, authorization)
        from konverge.apiserver.admission.validating_policy import ValidatingPolicies

        return ValidatingPolicies(server, authorization)

    def hooks(phase: Phase) -> Plugin:
        from konverge.apiserver.admission.webhooks.plugin import MutatingWebhooks, ValidatingWebhooks

        kind = MutatingWebhooks if phase == "admit" else ValidatingWebhooks
        return kind(server, webhooks(), authorization)

    store, claims = server.store, "persistentvolumeclaims"
    plugins: dict[str, Plugin] = {
        "NamespaceLifecycle": cluster.NamespaceLifecycle(),
        "LimitRanger": LimitRanger(),
        "ServiceAccount": ServiceAccount(),
        "NodeRestriction": NodeRestriction(),
        "TaintNodesByCondition": OneStep("admit", cluster.taint_new_node, "", "nodes", "CREATE"),
        "PodSecurity": PodSecurity(),
        "Priority": pods.Priority(),
        "DefaultTolerationSeconds": OneStep("admit", pods.tolerate_lost_nodes, "", "pods", "CREATE", "UPDATE"),
        "DefaultStorageClass": OneStep("admit", cluster.set_storage_class, "", claims, "CREATE"),
        "StorageObjectInUseProtection": cluster.StorageObjectInUseProtection(),
        "PersistentVolumeClaimResize": OneStep("validate", cluster.check_growth, "", claims, "UPDATE"),
        "RuntimeClass": pods.RuntimeClass(),
        "CertificateApproval": cluster.CertificateApproval(authorization),
        "CertificateSigning": cluster.CertificateSigning(authorization),
        "ClusterTrustBundleAttest": cluster.ClusterTrustBundleAttest(authorization),
        "CertificateSubjectRestriction": OneStep("validate", cluster.check_subject, CERTIFICATES, REQUESTS, "CREATE"),
        "DefaultIngressClass": OneStep("admit", cluster.set_ingress_class, "networking.k8s.io", "ingresses", "CREATE"),
        "PodTopologyLabels": pods.PodTopologyLabels(),
        "PodResizeValidator": OneStep("validate", pods.check_resize, "", "pods", "UPDATE", subresource="resize"),
        "MutatingAdmissionPolicy": OnDemand(store, "mutatingadmissionpolicybindings", "admit", policies),
        "MutatingAdmissionWebhook": OnDemand(store, "mutatingwebhookconfigurations", "admit", hooks),
        "Grants": Grants(authorization),
        "ValidatingAdmissionPolicy": OnDemand(store, "validatingadmissionpolicybindings", "validate", policies),
        "ValidatingAdmissionWebhook": OnDemand(store, "validatingwebhookconfigurations", "validate", hooks),
        "ResourceQuota": ResourceQuota(),
    }
    disabled = server.config.disabled_admission
    return Chain(
        [Beside(plugin) if name in _BESIDE else plugin for name, plugin in plugins.items() if name not in disabled]
    )
