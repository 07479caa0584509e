"""ServiceAccount. Upstream: pkg/registry/core/serviceaccount/strategy.go."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.apiserver.kinds.framework.lifecycle import prepared
from konverge.apiserver.strategy import Context, Obj, Strategy

_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"


def _bare_secrets(account: Obj) -> None:  # upstream: cleanSecretReferences
    """Of a referenced secret only the name counts."""
    if account.get("secrets"):
        account["secrets"] = [{"name": s["name"]} if s.get("name") else {} for s in account["secrets"]]


# upstream: warnIfHasEnforceMountableSecretsAnnotation
def _warnings(account: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    before = (old or {}).get("metadata", {}).get("annotations") or {}
    if _MOUNTABLE in (account["metadata"].get("annotations") or {}) and _MOUNTABLE not in before:
        detail = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        yield f"metadata.annotations[{_MOUNTABLE}]: {detail}"


SERVICE_ACCOUNT = Strategy(
    **prepared(_bare_secrets),
    warnings=_warnings,
    returns_deleted=True,
)
