"""What an operator needs for the certificates of its webhooks: its Secret, and the objects that name its authority.

Each is named: an operator that may patch any webhook configuration could read every write in the cluster. Only the
creation of a Secret cannot be bound to a name.
"""

from __future__ import annotations

from collections.abc import Iterable

from konverge.runtime.rbac import Permission
from konverge.runtime.webhooks.admission import MutatingHook, ValidatingHook
from konverge.runtime.webhooks.configurations import MUTATING, PLURALS, VALIDATING
from konverge.runtime.webhooks.registry import Webhook

_CONFIGURATIONS = "admissionregistration.k8s.io"
_DEFINITIONS = "apiextensions.k8s.io"


def webhook_permissions(
    webhooks: Iterable[Webhook], *, namespace: str, secret: str, configuration: str
) -> list[Permission]:
    """For certificates that the operator issues itself; with mounted ones it needs nothing. None without webhooks."""
    hooks = list(webhooks)
    if not hooks:
        return []
    needed = {Permission("", "secrets", "create", namespace)}
    needed |= {Permission("", "secrets", verb, namespace, secret) for verb in ("get", "update")}
    for kind, cls in ((VALIDATING, ValidatingHook), (MUTATING, MutatingHook)):
        if any(isinstance(hook, cls) for hook in hooks):
            needed |= _kept(_CONFIGURATIONS, PLURALS[kind], configuration)
    for name in {hook.definition for hook in hooks if hook.definition}:
        needed |= _kept(_DEFINITIONS, "customresourcedefinitions", name)
    return sorted(needed)


def _kept(group: str, plural: str, name: str) -> set[Permission]:
    return {Permission(group, plural, verb, "", name) for verb in ("get", "patch")}
