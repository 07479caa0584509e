"""Validation of `spec.conversion` of a definition.

Upstream: validateCustomResourceConversion (pkg/apis/apiextensions/validation/validation.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.apiserver.field_errors import FieldError, forbidden, invalid, not_supported, required
from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.rules.webhook_clients import webhook_service, webhook_url
from konverge.objects.names import dns_1035_errors

_ACCEPTED = ("v1", "v1beta1")


def check(conversion: Mapping[str, Any] | None, path: str, *, recognized: bool) -> Iterator[FieldError]:
    """`recognized`: at least one review version must be known (unless the stored definition had none)."""
    if conversion is None:
        return
    strategy = conversion.get("strategy") or ""
    if not strategy:
        yield required(f"{path}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield not_supported(f"{path}.strategy", strategy, ["None", "Webhook"])
    webhook = conversion.get("webhook") or {}
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == "Webhook":
        if client is None:
            yield required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
        else:
            yield from _client(client, f"{path}.webhookClientConfig")
        yield from _versions(versions, f"{path}.conversionReviewVersions", recognized=recognized)
        return
    detail = "should not be set when strategy is not set to Webhook"
    if client is not None:
        yield forbidden(f"{path}.webhookClientConfig", detail)
    if versions:
        yield forbidden(f"{path}.conversionReviewVersions", detail)


def _client(client: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
        return
    report = Report()
    if url is not None:
        webhook_url(url, f"{path}.url", report)
    elif service is not None:
        webhook_service(service, f"{path}.service", report)
    yield from report.errors


def _versions(versions: list[str], path: str, *, recognized: bool) -> Iterator[FieldError]:
    if not versions:
        yield required(path)
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        for error in dns_1035_errors(version):
            yield invalid(f"{path}[{index}]", version, error)
    if recognized and not seen & set(_ACCEPTED):
        yield invalid(path, versions, f"must include at least one of {', '.join(_ACCEPTED)}")


def recognizes(conversion: Mapping[str, Any] | None) -> bool:
    """True when the versions are empty or hold one that the server knows: then an update must keep it so."""
    versions = ((conversion or {}).get("webhook") or {}).get("conversionReviewVersions") or []
    return not versions or any(version in _ACCEPTED for version in versions)
