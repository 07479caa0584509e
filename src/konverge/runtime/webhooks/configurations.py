"""Webhook configurations from the declarations of webhooks, as plain objects. Pure.

Every field is written, also where it has the default of the API: what is compared and applied is then what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from konverge.objects.codec import to_dict
from konverge.runtime.webhooks.admission import AdmissionHook, MutatingHook, ValidatingHook
from konverge.runtime.webhooks.registry import Webhook

Obj = dict[str, Any]
Target = Callable[[str], Obj]
"""Path of a webhook -> its `clientConfig`."""

API_VERSION = "admissionregistration.k8s.io/v1"
VALIDATING, MUTATING = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"
PLURALS = {VALIDATING: "validatingwebhookconfigurations", MUTATING: "mutatingwebhookconfigurations"}
REVIEW_VERSIONS = ["v1"]


def service_target(service: str, namespace: str, *, bundle: str = "", port: int = 443) -> Target:
    """By a Service. Without a bundle, the operator (or cert-manager) fills it in."""

    def config(path: str) -> Obj:
        reference = {"name": service, "namespace": namespace, "path": path, "port": port}
        return {"service": reference, **({"caBundle": bundle} if bundle else {})}

    return config


def url_target(url: str, bundle: str) -> Target:
    return lambda path: {"url": url + path, **({"caBundle": bundle} if bundle else {})}


def configurations(webhooks: Iterable[Webhook], name: str, target: Target) -> list[Obj]:
    """The configurations of all admission webhooks, both named `name`; only those that are needed."""
    hooks = [webhook for webhook in webhooks if isinstance(webhook, AdmissionHook)]
    kinds = ((VALIDATING, ValidatingHook), (MUTATING, MutatingHook))
    return [
        {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": [_entry(hook, target) for hook in hooks if isinstance(hook, cls)],
        }
        for kind, cls in kinds
        if any(isinstance(hook, cls) for hook in hooks)
    ]


def _entry(hook: AdmissionHook[Any], target: Target) -> Obj:
    options = hook.options
    entry: Obj = {
        "name": hook.name,
        "admissionReviewVersions": REVIEW_VERSIONS,
        "clientConfig": target(hook.path),
        "rules": [_rule(hook)],
        "failurePolicy": options.failure_policy,
        "matchPolicy": options.match_policy,
        "sideEffects": options.side_effects,
        "timeoutSeconds": options.timeout,
        "namespaceSelector": to_dict(options.namespace_selector) if options.namespace_selector else {},
        "objectSelector": to_dict(options.object_selector) if options.object_selector else {},
    }
    if options.match_conditions:
        conditions = options.match_conditions.items()
        entry["matchConditions"] = [{"name": name, "expression": expression} for name, expression in conditions]
    if isinstance(hook, MutatingHook):
        entry["reinvocationPolicy"] = options.reinvocation
    return entry


def _rule(hook: AdmissionHook[Any]) -> Obj:
    resource = hook.resource
    plurals = [f"{resource.plural}/{part}" if part else resource.plural for part in hook.options.subresources]
    return {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": plurals,
        "operations": list(hook.options.operations),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }
