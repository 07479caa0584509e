"""The `clientConfig` of a webhook: its URL or its service.

Upstream: k8s.io/apiserver/pkg/util/webhook/validation.go.
"""

from __future__ import annotations

from konverge.apiserver.go.url import UrlError, parse_reference
from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.kinds.rules.numbers import inclusive
from konverge.apiserver.strategy import Obj
from konverge.objects.names import dns_subdomain_errors

_FORM = "; desired format: https://host[/path]"


def webhook_url(value: str, path: str, report: Report) -> bool:  # upstream: ValidateWebhookURL
    try:
        url = parse_reference(value)
    except UrlError as error:
        return report.required(path, f"url must be a valid URL: {error}{_FORM}")
    if url.scheme != "https":
        report.invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not url.host:
        report.invalid(path, url.host, f"host must be specified{_FORM}")
    if url.user is not None:
        report.invalid(path, url.user, "user information is not permitted in the URL")
    if url.fragment:
        report.invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        report.invalid(path, url.query, "query parameters are not permitted in the URL")
    return True


def webhook_service(service: Obj, path: str, report: Report) -> bool:  # upstream: ValidateWebhookService
    """The service that a webhook is reached by. The real server reports each of the two names as the other."""
    for name, shown in (("namespace", "name"), ("name", "namespace")):
        if not service.get(name):
            report.required(f"{path}.{shown}")
    port = service.get("port") or 0
    if not 0 < port < 65536:
        report.invalid(f"{path}.port", port, f"port is not valid: {inclusive(1, 65535)}")
    return _service_path(service.get("path") or "", f"{path}.path", report)


def _service_path(value: str, path: str, report: Report) -> bool:  # upstream: ValidateWebhookService
    if value in ("", "/"):
        return True
    if value == "//":
        return report.invalid(path, value, "segment[0] may not be empty")
    if not value.startswith("/"):
        report.invalid(path, value, "must start with a '/'")
    for index, step in enumerate(value[1:].removesuffix("/").split("/")):
        if not step:
            report.invalid(path, value, f"segment[{index}] may not be empty")
            continue
        for error in dns_subdomain_errors(step):
            report.invalid(path, value, f"segment[{index}]: {error}")
    return True
