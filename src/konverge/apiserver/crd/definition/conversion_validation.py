"""Validation of `spec.conversion` of a definition.

Upstream: validateCustomResourceConversion (pkg/apis/apiextensions/validation/validation.go) and, for the client, the
functions of apiserver/pkg/util/webhook/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from konverge.apiserver.field_errors import FieldError, forbidden, invalid, not_supported, required
from konverge.objects.names import dns_1035_errors, dns_subdomain_errors

_ACCEPTED = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"


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
    elif url is not None:
        yield from _url(url, f"{path}.url")
    elif service is not None:
        yield from _service(service, f"{path}.service")


def _url(text: str, path: str) -> Iterator[FieldError]:
    try:
        url = urlsplit(text)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if url.scheme != "https":
        yield invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not url.netloc:
        yield invalid(path, "", f"host must be specified{_FORM}")
    if "@" in url.netloc:
        yield invalid(path, url.netloc.rpartition("@")[0], "user information is not permitted in the URL")
    if url.fragment:
        yield invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield invalid(path, url.query, "query parameters are not permitted in the URL")


def _service(service: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    # The API server passes name and namespace in the wrong order, so each is reported as the other.
    if not service.get("namespace"):
        yield required(f"{path}.name")
    if not service.get("name"):
        yield required(f"{path}.namespace")
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        yield invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    where = service.get("path") or "/"
    if where == "/":
        return
    if where == "//":
        yield invalid(f"{path}.path", where, "segment[0] may not be empty")
        return
    if not where.startswith("/"):
        yield invalid(f"{path}.path", where, "must start with a '/'")
    for index, step in enumerate(where[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid(f"{path}.path", where, f"segment[{index}] may not be empty")
        for error in dns_subdomain_errors(step) if step else ():
            yield invalid(f"{path}.path", where, f"segment[{index}]: {error}")


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
